"""Models of a strategy: replicas compute what one device computes, and a replica that fails ends the step."""

import pytest

from support.devices import run_on_gpus
from support.interpreter import FREE_THREADED
from support.tf.keras_replicas import SETUP, run

NETS = {
    "convolution": 'L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(), L.Flatten()',
    "means": 'L.Conv2D(4, 3, strides=2, padding="same"), L.AveragePooling2D(2, 1), L.GlobalAveragePooling2D()',
    "normalised": 'L.Flatten(), L.LayerNormalization(), L.Dense(5, "gelu")',
    "synchronized": "L.Conv2D(4, 3), L.BatchNormalization(synchronized=True), L.ReLU(), L.Flatten()",
}


@pytest.mark.parametrize("net", NETS)
def test_replicas_make_of_each_layer_what_one_device_makes(net: str) -> None:
    layers = f'k.Input((6, 6, 2)), {NETS[net]}, L.Dense(3, "softmax")'
    run(f"agree(lambda: k.Sequential([{layers}]))")


def test_optimizers_of_both_kinds() -> None:
    run(
        """
make = lambda: k.Sequential([k.Input((6, 6, 2)), L.Flatten(), L.Dense(3, "softmax")])
for optimizer in (
    lambda: k.optimizers.RMSprop(0.01, momentum=0.5, centered=True),
    lambda: k.optimizers.Adagrad(0.1),
    lambda: k.optimizers.SGD(0.1, weight_decay=0.01),
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    lambda: tf.train.AdamOptimizer(0.01),
):
    agree(make, optimizer)
"""
    )


def test_models_and_metrics_of_ones_own() -> None:
    run(
        """
class Own(k.Model):
    def __init__(self):
        super().__init__()
        self.flat, self.rest = L.Flatten(), [L.Dense(4, "tanh", kernel_initializer="ones")]
        self.last = L.Dense(3, "softmax", kernel_initializer="zeros")

    def call(self, inputs, training=None):
        return self.last(self.rest[0](self.flat(inputs)))

class Seen(k.metrics.Metric):
    def __init__(self):
        super().__init__(name="seen")
        self.count = self.add_weight(name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.count.assign_add(float(len(y_pred)))

    def result(self):
        return self.count.value()

for count in ALL:
    model, history = trained(count, Own, lambda: k.optimizers.SGD(0.05), metrics=[Seen])
    assert history["seen"] == [26, 26]
    assert not count or all(len(each.values) == count for each in model.weights)
    wanted = history if count == 0 else wanted
    np.testing.assert_allclose(history["loss"], wanted["loss"], rtol=1e-5)
    np.testing.assert_allclose(history["accuracy"], wanted["accuracy"], rtol=1e-5)
"""
    )


def test_batches_of_each_replica_count_for_what_is_remembered_of_all() -> None:
    run(
        """
with strategy_of(4).scope():
    model = k.Sequential([k.Input((6, 6, 2)), L.BatchNormalization(momentum=0.5), L.Flatten(), L.Dense(1)])
    model.compile("sgd", "mse")
# Parts of 2, 2, 1 and 0 samples: replicas weigh as much as they have seen.
model.train_on_batch(x[:5], y[:5])
layer, parts = model.layers[0], np.split(x[:5], [2, 4])
means = sum(len(part) * part.mean((0, 1, 2)) for part in parts) / 5
variances = sum(len(part) * part.var((0, 1, 2)) for part in parts) / 5
for copy in layer.moving_mean.values:
    np.testing.assert_allclose(copy.numpy(), 0.5 * means, rtol=1e-5)
for copy in layer.moving_variance.values:
    np.testing.assert_allclose(copy.numpy(), 0.5 + 0.5 * variances, rtol=1e-5)
# One sample for four replicas: three have none.
model.train_on_batch(x[:1], y[:1])
for variable in model.weights:
    assert all(np.isfinite(copy.numpy()).all() for copy in variable.values)
"""
    )


def test_dropout_is_the_same_in_each_run_whichever_replica_comes_first() -> None:
    run(
        """
def losses():
    tf.random.set_seed(4)
    make = lambda: k.Sequential([k.Input((6, 6, 2)), L.Flatten(), L.Dropout(0.5), L.Dense(3, "softmax")])
    return trained(4, make, lambda: k.optimizers.SGD(0.05))[1]["loss"]
first = losses()
for _ in range(3):
    assert losses() == first
"""
    )


def test_each_replica_drops_something_else() -> None:
    program = """
strategy = strategy_of(2)
with strategy.scope():
    layer = L.Dropout(0.5, seed=3)
ones = np.ones((1, 100), np.float32)
one, other = strategy.run(lambda: layer(ones, training=True)).values
assert (one.numpy() != other.numpy()).any()
"""
    done = run_on_gpus("2:64MiB", SETUP + program)
    assert done.returncode == 0, done.stderr


def test_a_replica_that_fails_ends_the_step_and_holds_nothing() -> None:
    run(
        """
import pytest
class Fragile(L.Layer):
    fails = False
    def call(self, inputs):
        if self.fails and inputs.device.endswith("GPU:2"):
            raise ArithmeticError("broken")
        return inputs
    def compute_output_shape(self, shape):
        return shape
with strategy_of(4).scope():
    model = k.Sequential([k.Input((6, 6, 2)), L.Flatten(), Fragile(), L.Dense(3, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
model.fit(x, y, batch_size=8, verbose=0)
import gc; gc.collect()
before, weights = held(), model.get_weights()
Fragile.fails = True
with pytest.raises(ArithmeticError, match="broken") as raised:
    model.fit(x, y, batch_size=8, verbose=0)
assert "raised by replica 2" in raised.value.__notes__[0]
del raised
gc.collect()
assert held() == before
for one, other in zip(weights, model.get_weights(), strict=True):
    np.testing.assert_array_equal(one, other)
Fragile.fails = False
model.fit(x, y, batch_size=8, verbose=0)
"""
    )


def test_a_replica_without_memory_names_it_and_training_goes_on_with_less() -> None:
    run(
        """
import gc, pytest
with strategy_of(2).scope():
    model = k.Sequential([k.Input((64,)), L.Dense(64, "relu"), L.Dense(1)])
    model.compile("sgd", "mse")
big = np.zeros((20000, 64), np.float32)
model.train_on_batch(big[:64], big[:64, :1])
gc.collect()
before = held()
with pytest.raises(tf.errors.ResourceExhaustedError) as refused:
    model.train_on_batch(big, big[:, :1])
assert refused.value.limit == 8 << 20
del refused
gc.collect()
assert held() == before
model.train_on_batch(big[:64], big[:64, :1])
""",
        "2:8MiB",
    )


@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL what replicas made is freed later, and peaks are higher"
)
@pytest.mark.parametrize(
    ("optimizer", "kept"), [('"sgd"', 0), ('"adam"', 2), ("tf.train.GradientDescentOptimizer(0.1)", 0)]
)
def test_memory_of_a_replica_is_that_of_one_device_and_buffers_of_the_reduction(
    optimizer: str, kept: int
) -> None:
    program = f"""
count, optimizer = COUNT, {optimizer}
with strategy_of(count).scope() if count else tf.device("GPU:0"):
    model = k.Sequential([k.Input((256,)), L.Dense(512, "relu"), L.Dense(512, "relu"), L.Dense(8)])
    model.compile(optimizer, "mse")
rows = 128 * max(count, 1)
data = np.ones((rows, 256), np.float32), np.ones((rows, 8), np.float32)
for _ in range(3):
    model.train_on_batch(*data)
pools = [device.pool.stats() for device in context().ready().devices if device.pool is not None]
print(model.count_params() * 4, *(pool.peak_requested for pool in pools), *(pool.requested for pool in pools))
"""
    figures: dict[int, list[int]] = {}
    for count in (0, 2, 4):
        figures[count] = [int(each) for each in run(program.replace("COUNT", str(count))).split()]
    size, alone = figures[0][:2]
    # Variables, what the optimizer keeps, gradients, and what is computed of 128 samples.
    assert (kept + 2) * size < alone < (kept + 3.5) * size
    for count in (2, 4):
        peaks, held = figures[count][1:5], figures[count][5:]
        for peak in peaks[:count]:
            # The reduced gradients beside a replica's own, and what is on the way between devices.
            assert 0 <= peak - alone <= 1.5 * size
        assert peaks[count:] == [0] * (4 - count)
        for each in held[:count]:
            assert abs(each - (kept + 1) * size) < 8192


def test_metrics_in_groups_are_those_over_all_replicas() -> None:
    out = run(
        """
class OwnStep(k.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            made = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=made)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.metrics[1].update_state(y, made)
        return {each.name: each.result() for each in self.metrics[1:]}
x, y = x[:7, 0, :, 0], x[:7, 0, 0, :1]
found = []
for kind in (k.Sequential, OwnStep):
    with strategy_of(4).scope():
        model = kind([k.Input((6,)), L.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse", metrics=["mae"])
    found.append(model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history)
assert found[1].keys() == {"mae"}
np.testing.assert_allclose(found[1]["mae"], found[0]["mae"], rtol=1e-6)
print("done")
"""
    )
    assert out == "done\n"
