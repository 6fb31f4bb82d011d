"""Keras in several processes: what comes out of training, evaluating and predicting is about all of them."""

import json

import numpy as np
import pytest

from support.child import run_program
from support.mpi import facts, run_processes

FIT = """
rng = np.random.default_rng(11)
inputs = rng.normal(size=(50, 6)).astype(np.float32)
targets = (inputs.sum(axis=1) > 0).astype(np.int64)

def train(tf):
    first = tf.keras.layers.Dense(8, activation="tanh", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1))
    second = tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2))
    model = tf.keras.Sequential([tf.keras.Input((6,)), first, second])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.5), loss, metrics=["accuracy"])
    return model

def told(model):
    # The last batch has two samples: with four replicas two of them have none.
    history = model.fit(inputs, targets, batch_size=16, epochs=3, shuffle=False, verbose=0,
                        validation_data=(inputs[:7], targets[:7])).history
    return dict(
        history=history,
        evaluated=model.evaluate(inputs, targets, batch_size=16, verbose=0),
        predicted=model.predict(inputs[:9], batch_size=4, verbose=0).tolist(),
        one=model.test_on_batch(inputs[:5], targets[:5]),
    )
"""
ALONE = (
    "import json\nimport numpy as np\nimport allotment.tf as tf\n"
    + FIT
    + "print(json.dumps(told(train(tf))))\n"
)
TOGETHER = (
    FIT
    + """
if gpus := int(os.environ["GPUS"]):
    allotment.testing.simulate_gpus(f"{gpus}:64MiB")
strategy = strategy()
with strategy.scope():
    model = train(tf)
tell(rank=strategy.cluster_resolver.task_id, **told(model))
"""
)


@pytest.mark.parametrize(("processes", "gpus"), [(2, 0), (2, 2)])
def test_all_processes_have_the_figures_of_one_device(processes: int, gpus: int) -> None:
    alone = run_program(ALONE)
    assert alone.returncode == 0, alone.stderr
    wanted = json.loads(alone.stdout)
    ran = run_processes(TOGETHER, processes, GPUS=str(gpus))
    assert ran.status == 0, ran.stderr
    found = facts(ran.stdout)
    assert len(found) == processes
    for each in found:
        assert each["history"].keys() == wanted["history"].keys()
        for name, values in wanted["history"].items():
            np.testing.assert_allclose(each["history"][name], values, rtol=2e-5)
        for name in ("evaluated", "predicted", "one"):
            np.testing.assert_allclose(each[name], wanted[name], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["arrays", "data set"])
def test_a_model_is_trained_with_each_sample_once_an_epoch_however_they_are_shuffled(kind: str) -> None:
    ran = run_processes(
        f"""
strategy = strategy()
rank = strategy.cluster_resolver.task_id
samples = np.arange(1, 25, dtype=np.float32).reshape(24, 1)
if {kind!r} == "arrays":
    data = dict(x=samples, y=samples, batch_size=6)
else:
    data = dict(x=tf.data.Dataset.from_tensor_slices((samples, samples)).shuffle(24).batch(6))
seen = []

class Model(tf.keras.Model):
    def call(self, inputs):
        return inputs

    def train_step(self, data):
        seen.extend(data[0].numpy().ravel().tolist())
        return {{"loss": tf.constant(0.0)}}

with strategy.scope():
    model = Model()
    model.compile("sgd", "mse")
model.fit(**data, epochs=2, verbose=0)
tell(rank=rank, seen=seen)
""",
        2,
    )
    assert ran.status == 0, ran.stderr
    one, other = (each["seen"] for each in facts(ran.stdout))
    assert len(one) == len(other) == 24
    for epoch in (slice(12), slice(12, None)):
        assert sorted(one[epoch] + other[epoch]) == list(range(1, 25))
    assert one[:12] != one[12:]
