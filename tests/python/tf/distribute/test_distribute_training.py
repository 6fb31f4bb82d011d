"""Training with several replicas: beside a plain loop over NumPy, and in how much memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.interpreter import FREE_THREADED
from support.tf.replicas import ctx, own, pools, raised, rid

rng = np.random.default_rng(3)
STEPS, BATCH, RATE = 25, 24, np.float32(0.05)
X = rng.normal(size=(STEPS, BATCH, 6)).astype(np.float32)
Y = np.sin(X.sum(axis=2, keepdims=True)).astype(np.float32)
FIRST = [rng.normal(size=shape).astype(np.float32) * 0.5 for shape in ((6, 16), (16,), (16, 1), (1,))]


def plain():
    # The same model and its gradients by hand, in float64.
    a, b, c, d = (each.astype(np.float64) for each in FIRST)
    losses = []
    for x, y in zip(X.astype(np.float64), Y.astype(np.float64), strict=False):
        h = np.tanh(x @ a + b)
        e = h @ c + d - y
        losses.append((e * e).mean())
        g = 2 * e / BATCH
        back = (g @ c.T) * (1 - h * h)
        a, b, c, d = a - RATE * x.T @ back, b - RATE * back.sum(0), c - RATE * h.T @ g, d - RATE * g.sum(0)
    return losses, [a, b, c, d]


def train(devices, ops=None, rows=BATCH):
    s = tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
    with s.scope():
        weights = [tf.Variable(each) for each in FIRST]

    def step(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.matmul(x, weights[0]) + weights[1])
            error = tf.matmul(hidden, weights[2]) + weights[3] - y
            loss = tf.reduce_sum(error * error) / BATCH
        gradients = ctx().all_reduce("SUM", tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients, strict=False):
            weight.assign_sub(RATE * gradient)
        return loss

    losses = []
    for batch in s.experimental_distribute_dataset(zip(X[:, :rows], Y[:, :rows], strict=True)):
        losses.append(s.reduce("SUM", s.run(step, args=(batch,)), axis=None).numpy())
    for weight in weights:
        assert len({each.numpy().tobytes() for each in weight.values}) == 1, "copies drift apart"
    return losses, [each.numpy() for each in weights]


@pytest.mark.parametrize("algorithm", ["ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce"])
@runtime("5:16MiB")
def test_any_number_of_replicas_trains_as_a_plain_loop_does(algorithm: str) -> None:
    losses, weights = plain()
    for count in (1, 2, 3, 4, 5):
        found = train([f"gpu:{i}" for i in range(count)], getattr(tf.distribute, algorithm)())
        assert np.allclose(found[0], losses, rtol=1e-5), count
        for mine, exact in zip(found[1], weights, strict=False):
            assert np.allclose(mine, exact, rtol=1e-4, atol=1e-6), count


@runtime("3:16MiB")
def test_the_same_steps_give_the_same_bits() -> None:
    first = train(["gpu:0", "gpu:1", "gpu:2"])
    for _ in range(3):
        again = train(["gpu:0", "gpu:1", "gpu:2"])
        assert first[0] == again[0]
        assert all(one.tobytes() == other.tobytes() for one, other in zip(first[1], again[1], strict=False))


@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL what replicas made is freed later, and peaks are higher"
)
@runtime("4:64MiB")
def test_a_replica_takes_what_one_alone_takes_and_its_reductions_buffers() -> None:
    WIDTH = 512

    def peak(count, reduce):
        s = tf.distribute.MirroredStrategy([f"gpu:{i}" for i in range(count)])
        with s.scope():
            weights = [tf.Variable(tf.ones([WIDTH, WIDTH])) for _ in range(2)]
        x = s.run(lambda: tf.ones([128, WIDTH]))

        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.matmul(tf.matmul(x, weights[0]), weights[1]))
            gradients = tape.gradient(loss, weights)
            if reduce:
                gradients = ctx().all_reduce("SUM", gradients)
            for weight, gradient in zip(weights, gradients, strict=False):
                weight.assign_sub(gradient)

        s.run(step, args=(x,))
        for pool in pools():
            pool.reset_peaks()
        s.run(step, args=(x,))
        return [pool.stats().peak_in_use for pool in pools()][:count]

    (alone,) = peak(1, False)
    gradients = 2 * WIDTH * WIDTH * 4
    without = peak(4, False)
    with_reduction = peak(4, True)
    print(alone, without, with_reduction, gradients)
    # Without a reduction, exactly what one replica needs.
    assert without == [alone] * 4, (alone, without)
    # With one, the results and two shares of the one that is being reduced beside, or the rest of a chunk that is not
    # worth splitting.
    share = WIDTH * WIDTH * 4 // 4
    assert all(each - alone <= gradients + 2 * share + 4096 for each in with_reduction), (
        alone,
        with_reduction,
    )


@runtime("8:16MiB")
def test_a_replica_without_rows_takes_part() -> None:
    # The last replica has nothing to do in each step: 24 rows in parts of 5.
    found = train([f"gpu:{i}" for i in range(8)], rows=21)  # parts of 3, the last one empty
    one = train(["gpu:0"], rows=21)
    assert np.allclose(found[0], one[0], rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda train: train.GradientDescentOptimizer(0.1),
        lambda train: train.MomentumOptimizer(0.1, 0.9),
        lambda train: train.AdagradOptimizer(0.1),
        lambda train: train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        lambda train: train.AdamOptimizer(0.1),
    ],
    ids=["descent", "momentum", "adagrad", "rmsprop", "adam"],
)
@runtime("3:16MiB")
def test_optimizers_of_train_change_all_copies_by_the_sum_of_gradients_as_one_device_does(
    make: Callable[[Any], Any],
) -> None:
    from contextlib import nullcontext

    def train(devices, plain, aggregation=tf.VariableAggregation.NONE):
        s = tf.distribute.MirroredStrategy(devices)
        with nullcontext() if plain else s.scope():
            v = tf.Variable([1.0, -2.0, 0.5], aggregation=aggregation)
            count = tf.Variable(0, dtype=tf.int64)
        optimizer = make(tf.compat.v1.train)

        def step(x):
            optimizer.minimize(lambda: tf.reduce_sum(x * v * v), global_step=count)

        for _ in range(4):
            for x in s.experimental_distribute_dataset([np.arange(1, 13, dtype=np.float32).reshape(4, 3)]):
                s.run(step, args=(x,))
        copies = [each.numpy() for each in getattr(v, "values", [v])]
        assert len({each.tobytes() for each in copies}) == 1, "copies drift apart"
        assert {int(each) for each in getattr(count, "values", [count])} == {4}
        kept = optimizer.variables()
        assert len({id(each) for each in kept}) == len(kept)
        slots = [optimizer.get_slot(v, name) for name in optimizer.get_slot_names()]
        assert all(hasattr(each, "values") != plain for each in slots)
        for each in kept:
            assert len({copy.numpy().tobytes() for copy in getattr(each, "values", [each])}) == 1
        return copies[0]

    v, optimizer = tf.Variable([1.0, -2.0, 0.5]), make(tf.compat.v1.train)
    sums = np.arange(1, 13, dtype=np.float32).reshape(4, 3).sum(0)
    for _ in range(4):
        optimizer.minimize(lambda: tf.reduce_sum(sums * v * v))
    for count in (1, 2, 3):
        for plain in (False, True):
            found = train([f"gpu:{i}" for i in range(count)], plain)
            assert np.allclose(found, v.numpy(), rtol=1e-5), (count, plain, found, v.numpy())
    # What a variable says of values that differ is not about what an optimizer assigns.
    found = train(["gpu:0", "gpu:1"], False, tf.VariableAggregation.SUM)
    assert np.allclose(found, v.numpy(), rtol=1e-5)


@runtime("2:16MiB")
def test_an_optimizer_of_train_may_be_used_inside_and_outside_of_replicas() -> None:
    s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    with s.scope():
        v = tf.Variable([1.0, 2.0])
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.5)
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])

    def step():
        optimizer.apply_gradients([(own() * tf.constant([1.0, 0.0]), v)])

    s.run(step)
    # Sums: 1, 0.5 + 3; and 1, 0.5.
    for each in v.values:  # type: ignore[attr-defined]
        assert np.allclose(each, [1 - 0.1 - 0.35, 2 - 0.1 - 0.05]), each
    assert [each.numpy().tolist() for each in optimizer.get_slot(v, "momentum").values] == [[3.5, 0.5]] * 2

    def differing():
        optimizer.apply_gradients([(own() * tf.ones(2), v)] if rid() else [(own() * tf.ones(2), v)] * 2)

    error = raised(lambda: s.run(differing))
    assert type(error) is RuntimeError
    assert "all_reduce" in str(error)
