"""Models that replicas build: to which strategy they belong, when they are built, and custom training loops."""

from support.devices import run_on_gpus
from support.tf.keras_replicas import SETUP, run


def test_a_model_belongs_to_the_strategy_it_was_made_under() -> None:
    run(
        """
import pytest
model = k.Sequential([k.Input((2,)), L.Dense(1)])
model.compile("sgd", "mse")
data = np.ones((4, 2)), np.ones((4, 1))
with strategy_of(2).scope():
    with pytest.raises(ValueError, match="was made outside of this strategy's scope"):
        model.fit(*data, verbose=0)
model.fit(*data, verbose=0)
strategy = strategy_of(2)
with strategy.scope():
    model = k.Sequential([L.Dense(1)])
    model.compile("sgd", "mse")
    # In the scope or outside of it: a lazily built model gets its copies.
    model.fit(*data, verbose=0)
assert [len(each.values) for each in model.weights] == [2, 2]
assert model.predict(np.ones((3, 2)), verbose=0).shape == (3, 1)
# A first call outside of the scope makes copies, too.
with strategy.scope():
    model = k.Sequential([L.Dense(1)])
model(data[0])
assert [len(each.values) for each in model.weights] == [2, 2]
# What was made elsewhere has none.
layer = L.Dense(1)
layer.build((None, 2))
with strategy.scope():
    model = k.Sequential([k.Input((2,)), layer])
    model.compile("sgd", "mse")
with pytest.raises(ValueError, match="was made outside of the scope of the strategy"):
    model.fit(*data, verbose=0)
# All copies at once cannot be changed by a gradient.
with strategy.scope():
    variable, optimizer = tf.Variable(1.0), k.optimizers.SGD()
    with pytest.raises(RuntimeError, match="cannot be called in cross-replica context"):
        optimizer.apply_gradients([(tf.constant(1.0), variable)])
one = tf.distribute.OneDeviceStrategy("GPU:3")
with one.scope():
    model = k.Sequential([k.Input((2,)), L.Dense(1)])
    model.compile("adam", "mse")
model.fit(*data, verbose=0)
assert {each.device[-5:] for each in model.weights + model.optimizer.variables} == {"GPU:3"}
"""
    )


def test_a_training_loop_of_ones_own_under_a_strategy() -> None:
    program = """
strategy = strategy_of(2)
with strategy.scope():
    model = k.Sequential([k.Input((6, 6, 2)), L.Flatten(), L.Dense(3)])
    optimizer = k.optimizers.Adam(0.01)
    loss_of = k.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    accuracy = k.metrics.SparseCategoricalAccuracy()
start = model.get_weights()
def step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loss_of(labels, model(images, training=True))) / 8
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    accuracy.update_state(labels, model(images))
    return loss
dataset = tf.data.Dataset.from_tensor_slices((x[:24], y[:24])).batch(8)
total = 0.0
for batch in strategy.experimental_distribute_dataset(dataset):
    total += float(strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None))
assert optimizer.iterations == 3
assert accuracy._count.total() == 24
# The same on one device.
plain = k.Sequential([k.Input((6, 6, 2)), L.Flatten(), L.Dense(3)])
plain.compile(k.optimizers.Adam(0.01), k.losses.SparseCategoricalCrossentropy(from_logits=True))
plain.set_weights(start)
history = plain.fit(x[:24], y[:24], batch_size=8, verbose=0, shuffle=False).history
np.testing.assert_allclose(total / 3, history["loss"][0], rtol=1e-5)
for one, other in zip(plain.get_weights(), model.get_weights(), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
"""
    done = run_on_gpus("2:64MiB", SETUP + program)
    assert done.returncode == 0, done.stderr


def test_replicas_build_a_model_once_whichever_comes_first() -> None:
    out = run(
        """
import logging, sys
logging.disable()
sys.setswitchinterval(1e-6)
class Own(L.Layer):
    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], 2))
        self.inner = [L.BatchNormalization(), L.Dense(3)]
    def call(self, x):
        x = x @ self.kernel
        for layer in self.inner:
            x = layer(x)
        return x
class Subclassed(k.Model):
    def __init__(self):
        super().__init__()
        self.parts = [L.Dense(3), L.BatchNormalization(), Own()]
    def call(self, x):
        for layer in self.parts:
            x = layer(x)
        return x
def functional():
    start = k.Input((3,))
    return k.Model(start, L.Dense(1)(L.BatchNormalization()(Own()(start))))
def nested():
    return k.Sequential([Subclassed(), L.Dense(2), k.Sequential([L.Dense(2), L.BatchNormalization()])])
def plain():
    return k.Sequential([L.Dense(3), L.BatchNormalization(), L.Dense(1)])
def data():
    return tf.fill([4, 3], float(tf.distribute.get_replica_context().replica_id_in_sync_group))
count = {plain: 8, Own: 7, Subclassed: 13, functional: 13, nested: 21}
for _ in range(10):
    for make, variables in count.items():
        for replicas in (2, 4):
            strategy = strategy_of(replicas)
            with strategy.scope():
                model = make()
            strategy.run(lambda: model(data(), training=True))
            assert len(model.weights) == variables, (make, len(model.weights))
            # All have the same variables with a copy each, also where each has made a layer of its own.
            outputs = strategy.experimental_local_results(strategy.run(lambda: model(data(), training=False)))
            assert len(outputs) == replicas and len(model.weights) == variables
            for weight in model.weights:
                for copy in weight.values:
                    np.testing.assert_array_equal(copy.numpy(), weight.values[0].numpy())
            alone = model(tf.concat([tf.fill([4, 3], float(each)) for each in range(replicas)], 0), training=False)
            np.testing.assert_allclose(np.concatenate([each.numpy() for each in outputs]), alone, rtol=1e-4, atol=1e-5)
print("done")
"""
    )
    assert out == "done\n"


def test_layers_that_each_replica_makes_of_its_own_have_the_same_variables() -> None:
    out = run(
        """
import logging
logging.disable()
strategy = strategy_of(4)
made = {}
def step():
    index = int(tf.distribute.get_replica_context().replica_id_in_sync_group)
    # Twice the first layer, twice one of its own.
    layer = made[index] = made[0] if index == 1 and 0 in made else L.Dense(2)
    return layer(tf.ones([1, 3]))
outputs = strategy.experimental_local_results(strategy.run(step))
assert len({id(layer.kernel) for layer in made.values()}) == 1
assert len({layer.name for layer in made.values()}) == 1
for each in outputs:
    np.testing.assert_array_equal(each, outputs[0])
print("done")
"""
    )
    assert out == "done\n"


def test_each_replica_may_make_a_model_of_inputs_and_outputs() -> None:
    out = run(
        """
import logging, sys
logging.disable()
sys.setswitchinterval(1e-6)
strategy = strategy_of(4)
def step():
    start, norm, dense = k.Input((3,)), L.BatchNormalization(), L.Dense(2)
    outputs = L.add([dense(norm(start)), dense(start)]) * 2
    assert norm.output.shape == (None, 3)
    return k.Model(start, outputs)(tf.ones([2, 3]), training=True), dense.kernel
for _ in range(10):
    outputs, kernel = strategy.run(step)
    assert len(kernel.values) == 4
    for output, own in zip(outputs.values, kernel.values, strict=True):
        # What is normalised is all the same, and so gives nothing.
        np.testing.assert_allclose(output, 2 * np.ones((2, 3)) @ own.numpy(), rtol=1e-5)
print("done")
"""
    )
    assert out == "done\n"
