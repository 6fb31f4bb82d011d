"""Training: what comes out is what a plain NumPy loop makes, on one device and on any number of replicas."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.devices import run_on_gpus
from support.tf.dense_net import DenseNet, classes_of_points

#: The last batch has 5 samples: over 2 and 4 replicas they are not even, and over 8 not enough for all.
SAMPLES, BATCH, EPOCHS = 53, 16, 3
RATES = {"sgd": 0.5, "momentum": 0.1, "adam": 0.05}
REPLICAS = (0, 1, 2, 4, 8)

PROGRAM = """
import numpy as np
from contextlib import nullcontext
import allotment.tf as tf
k = tf.keras
data = np.load({data!r})
optimizers = dict(
    sgd=lambda: k.optimizers.SGD(0.5),
    momentum=lambda: k.optimizers.SGD(0.1, momentum=0.9),
    adam=lambda: k.optimizers.Adam(0.05),
)
found = dict()
for count in {replicas}:
    strategy = tf.distribute.MirroredStrategy([f"GPU:{{i}}" for i in range(count)]) if count else None
    for rule, optimizer in optimizers.items():
        with strategy.scope() if count else nullcontext():
            model = k.Sequential([k.Input((4,)), k.layers.Dense(8, "relu"), k.layers.Dense(3, "softmax")])
            model.compile(optimizer(), "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.set_weights([data[f"w{{i}}"] for i in range(4)])
        history = model.fit(data["x"], data["y"], {batch}, {epochs}, verbose=0, shuffle=False).history
        found[f"{{rule}} {{count}} history"] = np.array([history["loss"], history["accuracy"]])
        found[f"{{rule}} {{count}} evaluated"] = model.evaluate(data["x"], data["y"], verbose=0)
        found[f"{{rule}} {{count}} predicted"] = model.predict(data["x"], verbose=0)
        for i, value in enumerate(model.get_weights()):
            found[f"{{rule}} {{count}} w{{i}}"] = value
        assert model.optimizer.iterations == {epochs} * 4
        if count:
            for variable in model.variables + model.optimizer.variables:
                assert len(variable.values) == count
                for copy in variable.values:
                    np.testing.assert_array_equal(copy.numpy(), variable.values[0].numpy())
np.savez({found!r}, **found)
"""


@pytest.fixture(scope="module")
def start() -> list[Any]:
    draw = np.random.default_rng(1)
    return [0.5 * draw.standard_normal(shape).astype(np.float32) for shape in ((4, 8), (8,), (8, 3), (3,))]


@pytest.fixture(scope="module")
def found(start: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What Keras made of the data for each rule and number of replicas; 0 of them is without a strategy."""
    folder: Path = tmp_path_factory.mktemp("training")
    x, y = classes_of_points(SAMPLES)
    np.savez(folder / "data.npz", x=x, y=y, **{f"w{i}": value for i, value in enumerate(start)})
    paths = {"data": str(folder / "data.npz"), "found": str(folder / "found.npz")}
    done = run_on_gpus("8:16MiB", PROGRAM.format(**paths, replicas=REPLICAS, batch=BATCH, epochs=EPOCHS))
    assert done.returncode == 0, done.stderr
    return np.load(folder / "found.npz")


@pytest.fixture(scope="module", params=RATES)
def by_hand(request: pytest.FixtureRequest, start: list[Any]) -> tuple[DenseNet, list[float]]:
    """The same training in NumPy, and the losses of the epochs."""
    x, y = classes_of_points(SAMPLES)
    net = DenseNet(start, request.param, RATES[request.param])
    losses = []
    for _ in range(EPOCHS):
        total = 0.0
        for first in range(0, SAMPLES, BATCH):
            rows = slice(first, first + BATCH)
            total += net.loss(x[rows], y[rows]) * len(y[rows])
            net.step(x[rows], y[rows])
        losses.append(total / SAMPLES)
    return net, losses


@pytest.mark.parametrize("replicas", REPLICAS)
def test_training_is_what_a_loop_by_hand_makes(
    found: Any, by_hand: tuple[DenseNet, list[float]], replicas: int
) -> None:
    net, losses = by_hand
    name = f"{net.rule} {replicas}"
    np.testing.assert_allclose(found[f"{name} history"][0], losses, rtol=2e-6)
    for index, wanted in enumerate(net.weights):
        np.testing.assert_allclose(found[f"{name} w{index}"], wanted, rtol=1e-5, atol=2e-6)
    x, y = classes_of_points(SAMPLES)
    loss, accuracy = found[f"{name} evaluated"]
    assert loss == pytest.approx(net.loss(x, y), rel=2e-6)
    assert accuracy == pytest.approx(net.accuracy(x, y))
    np.testing.assert_allclose(found[f"{name} predicted"], net.probabilities(x)[1], rtol=1e-5, atol=1e-6)
    # The task is learned: not just any numbers agree.
    assert accuracy > 0.7
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("rule", RATES)
def test_replicas_agree_to_rounding(found: Any, rule: str) -> None:
    for replicas in REPLICAS[1:]:
        np.testing.assert_allclose(found[f"{rule} {replicas} history"], found[f"{rule} 0 history"], rtol=1e-6)
        for index in range(4):
            one, other = found[f"{rule} {replicas} w{index}"], found[f"{rule} 0 w{index}"]
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
