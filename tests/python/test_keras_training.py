"""Training: what comes out is what a plain NumPy loop makes, on one device and on replicas."""

from typing import Any

import numpy as np
import pytest

from allotment import keras
from allotment import random as tf_random
from allotment.distribute import MirroredStrategy
from allotment.distribute.scopes import entered
from support.dense_net import DenseNet, classes_of_points
from support.devices import fresh

#: A last batch of 5 in 53 samples: over 2 and 4 replicas not evenly, and over 8 not for all.
SAMPLES, BATCH, EPOCHS = 53, 16, 3


def made(optimizer: Any) -> keras.Sequential:
    """The net, with weights that are the same each time."""
    tf_random.set_seed(3)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3, "softmax")]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.5),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.05),
}
RATES = {"sgd": 0.5, "momentum": 0.1, "adam": 0.05}


def by_hand(model: keras.Sequential, rule: str) -> tuple[DenseNet, list[float]]:
    """The same training in NumPy, and the losses of the epochs."""
    x, y = classes_of_points(SAMPLES)
    net = DenseNet(model.get_weights(), rule, RATES[rule])
    losses = []
    for _ in range(EPOCHS):
        total = 0.0
        for start in range(0, SAMPLES, BATCH):
            rows = slice(start, start + BATCH)
            total += net.loss(x[rows], y[rows]) * len(y[rows])
            net.step(x[rows], y[rows])
        losses.append(total / SAMPLES)
    return net, losses


@pytest.mark.parametrize("rule", OPTIMIZERS)
@pytest.mark.parametrize("replicas", [None, 1, 2, 4, 8])
def test_training_is_what_a_loop_by_hand_makes(
    monkeypatch: pytest.MonkeyPatch, rule: str, replicas: int | None
) -> None:
    fresh(monkeypatch, f"{replicas or 1}:16MiB")
    if replicas is None:
        model = made(OPTIMIZERS[rule]())
    else:
        with MirroredStrategy().scope():
            model = made(OPTIMIZERS[rule]())
    net, losses = by_hand(model, rule)
    x, y = classes_of_points(SAMPLES)
    history = model.fit(x, y, BATCH, EPOCHS, verbose=0, shuffle=False).history
    np.testing.assert_allclose(history["loss"], losses, rtol=2e-6)
    for value, wanted in zip(model.get_weights(), net.weights, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=2e-6)
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert loss == pytest.approx(net.loss(x, y), rel=2e-6)
    assert accuracy == pytest.approx(net.accuracy(x, y))
    np.testing.assert_allclose(model.predict(x, verbose=0), net.probabilities(x)[1], rtol=1e-5, atol=1e-6)
    assert entered  # the thread is in no scope any more
    assert model.optimizer.iterations == EPOCHS * 4
