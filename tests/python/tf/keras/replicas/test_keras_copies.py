"""Copies of what is trained stay equal: after a failed update, and in loops of the program's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import rid

k, L = tf.keras, tf.keras.layers

x = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
y = x.sum(1, keepdims=True)


class Constraint:
    """A constraint that fails on the second replica in a ``with`` block of ``failing``."""

    _fails = False

    def __call__(self, kernel: Any) -> Any:
        context = tf.distribute.get_replica_context()
        if self._fails and context is not None and context.replica_id_in_sync_group == 1:
            raise RuntimeError("no luck")
        return kernel * 0.9

    @contextmanager
    def failing(self) -> Iterator[None]:
        self._fails = True
        try:
            with pytest.raises(RuntimeError, match="no luck"):
                yield
        finally:
            self._fails = False


def copies(model: Any, optimizer: Any) -> list[list[np.ndarray]]:
    return [[copy.numpy() for copy in each.values] for each in [*model.weights, *optimizer.variables]]


def made(optimizer: Any, constraint: Any = None) -> Any:
    model = k.Sequential([k.Input((3,)), L.Dense(2, kernel_constraint=constraint), L.Dense(1)])
    start = np.random.default_rng(1)
    model.set_weights([start.standard_normal(each.shape) for each in model.get_weights()])
    model.compile(optimizer, "mse")
    return model


@runtime("2:64MiB")
def test_copies_are_equal_again_after_an_update_that_failed_on_one_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    constraint = Constraint()
    with strategy.scope():
        optimizer = k.optimizers.Adam(0.1)
        model = made(optimizer, constraint)
    model.train_on_batch(x, y)
    with constraint.failing():
        model.train_on_batch(x, y)
    assert any(not np.array_equal(one, other) for one, other in copies(model, optimizer))
    first = [one for one, _ in copies(model, optimizer)]
    np.testing.assert_array_equal(
        model.predict(x, verbose=0)[:4], model.predict(x[:4], batch_size=8, verbose=0)
    )
    for kept, (one, other) in zip(first, copies(model, optimizer), strict=True):
        np.testing.assert_array_equal(one, kept)
        np.testing.assert_array_equal(other, kept)
    model.fit(x, y, epochs=2, verbose=0)
    for one, other in copies(model, optimizer):
        np.testing.assert_array_equal(one, other)


@runtime("2:64MiB")
def test_copies_are_equal_again_in_a_loop_of_the_programs_own() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    constraint = Constraint()
    with strategy.scope():
        optimizer = k.optimizers.SGD(0.1, momentum=0.9)
        model = made(optimizer, constraint)

    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x) - y) ** 2) / 8
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    data = next(iter(strategy.experimental_distribute_dataset([(x, y)])))
    strategy.run(step, data)
    with constraint.failing():
        strategy.run(step, data)
    strategy.run(step, data)
    assert int(optimizer.iterations) == 3
    for one, other in copies(model, optimizer):
        np.testing.assert_array_equal(one, other)


@runtime("2:64MiB")
def test_an_optimizer_that_another_model_uses_is_refused() -> None:
    optimizer = k.optimizers.Adam(0.1)
    first, second = made(optimizer), made(optimizer)
    first.train_on_batch(x, y)
    before = second.get_weights()
    with pytest.raises(ValueError, match="Unknown variable"):
        second.train_on_batch(x, y)
    for one, other in zip(before, second.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@runtime("2:64MiB")
def test_synchronized_batch_normalization_where_the_mean_is_large_against_the_spread() -> None:
    far = (np.random.default_rng(0).standard_normal((8, 3)) * 0.1 + 10_000).astype(np.float32)
    exact = far.astype(np.float64)
    wanted = (exact - exact.mean(0)) / np.sqrt(exact.var(0) + 1e-3)
    for count in (1, 2):
        strategy = tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(count)])
        with strategy.scope():
            model = k.Sequential([k.Input((3,)), L.BatchNormalization(synchronized=True, momentum=0.0)])
            model.compile("sgd", "mse")
        layer = model.layers[0]

        values = next(iter(strategy.experimental_distribute_dataset([far])))
        found = strategy.run(partial(layer, training=True), (values,))
        parts = [each.numpy() for each in getattr(found, "values", [found])] if count > 1 else [found.numpy()]
        np.testing.assert_allclose(np.concatenate(parts), wanted, atol=0.03)
        np.testing.assert_allclose(layer.moving_mean.numpy(), exact.mean(0), rtol=1e-6)
        np.testing.assert_allclose(layer.moving_variance.numpy(), exact.var(0), rtol=0.05)


@runtime("2:64MiB")
def test_what_batch_normalization_in_float16_remembers_of_many_samples() -> None:
    many = np.full((2048, 1), 100, np.float16)
    many[::2] = 102
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    for synchronized in (False, True):
        with strategy.scope():
            layer = L.BatchNormalization(synchronized=synchronized, momentum=0.0, dtype="float16")
            layer.build((None, 1))
        values = next(iter(strategy.experimental_distribute_dataset([many])))
        strategy.run(partial(layer, training=True), (values,))
        np.testing.assert_allclose(layer.moving_mean.numpy(), [101], rtol=1e-3)
        np.testing.assert_allclose(layer.moving_variance.numpy(), [1], rtol=1e-2)


@runtime("2:16MiB")
def test_a_variable_without_copies_is_changed_once_by_the_sum() -> None:
    strategy = tf.distribute.MirroredStrategy()
    alone: Any = tf.Variable(1.0)
    with strategy.scope():
        copied: Any = tf.Variable(1.0)
    optimizers: list[Any] = [tf.keras.optimizers.SGD(0.1), tf.train.GradientDescentOptimizer(0.1)]
    for optimizer in optimizers:
        alone.assign(1.0)
        copied.assign(1.0)
        strategy.run(
            lambda each: each.apply_gradients([(rid() + 1.0, alone), (rid() + 1.0, copied)]), (optimizer,)
        )
        found = [float(alone), *map(float, copied.values)]
        assert all(abs(each - 0.7) < 1e-6 for each in found), (optimizer, found)


@runtime("2:64MiB")
def test_losses_of_replicas_add_up_to_a_mean() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    labels, predictions = tf.constant([[1.0], [2.0]]), tf.constant([[0.0], [0.0]])
    mean, total = k.losses.MeanSquaredError(), k.losses.MeanSquaredError(reduction="sum")
    with strategy.scope():
        assert float(mean(labels, predictions)) == 1.25
    found = strategy.run(lambda: (mean(labels, predictions), total(labels, predictions)))
    assert [[float(each) for each in one.values] for one in found] == [[1.25, 1.25], [5.0, 5.0]]
    assert float(mean(labels, predictions)) == 2.5
