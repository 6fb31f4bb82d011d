"""Reductions between devices: beside NumPy, bit by bit the same everywhere, and in how much memory."""

from typing import ClassVar

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.interpreter import FREE_THREADED
from support.tf.replicas import MEAN, MIB, SUM, ctx, in_use, own, pools, raised, rid

ALGORITHMS = ["ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("replicas", [2, 3, 5, 8])
def test_totals_and_means_are_numpys_and_the_same_on_each_device(algorithm: str, replicas: int) -> None:
    with runtime(f"{replicas}:16MiB"):
        s = tf.distribute.MirroredStrategy(cross_device_ops=getattr(tf.distribute, algorithm)())
        rng = np.random.default_rng(1)
        n = s.num_replicas_in_sync
        for shape in ((), (1,), (2,), (n - 1,), (7, 3), (64, 33), (0, 4)):
            for dtype in ("float16", "float32", "float64", "int32", "int64", "complex64", "uint8"):
                given = [rng.normal(size=shape) * 9 for _ in range(n)]
                given = [np.asarray(each).astype(dtype) for each in given]
                if shape == (64, 33):
                    given = [np.asfortranarray(each) for each in given]
                step = lambda: [ctx().all_reduce(op, tf.constant(given[rid()])) for op in (SUM, MEAN)]
                total, mean = s.run(step)
                sums = [each.numpy() for each in total.values]
                exact = np.sum(
                    [each.astype("complex128" if "c" in dtype else "float64") for each in given], axis=0
                )
                near = 1e-2 if dtype == "float16" else 1e-5
                if dtype == "uint8":
                    assert (sums[0] == np.sum(given, axis=0, dtype="uint8")).all()
                else:
                    assert np.allclose(sums[0], exact, rtol=near, atol=near * 20)
                    assert np.allclose(mean.values[0].numpy(), exact / n, rtol=near, atol=near * 20)
                assert sums[0].dtype == dtype
                assert sums[0].shape == shape
                for each in (total, mean):
                    assert len({one.numpy().tobytes() for one in each.values}) == 1
                    names = [one.device for one in each.values]
                    assert names == list(s.extended.worker_devices), names


@pytest.mark.parametrize(
    ("algorithm", "first", "others"),
    [
        # In sizes of the value. The first device holds the total and one copy at a time, the others the result.
        ("ReductionToOneDevice", 2, 1),
        # It holds a sum and the copy that is added next; what others hold for a while is gone before the result.
        ("HierarchicalCopyAllReduce", 2, 1),
        # Each holds a share of the total, a quarter here, and the result.
        ("NcclAllReduce", 1.25, 1.25),
    ],
)
@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL what replicas made is freed later, and peaks are higher"
)
@runtime("4:64MiB")
def test_a_reduction_takes_little_beside_the_values(algorithm: str, first: float, others: float) -> None:
    s = tf.distribute.MirroredStrategy(cross_device_ops=getattr(tf.distribute, algorithm)())
    x = s.run(lambda: tf.ones([MIB]))  # 4 MiB on each
    size = 4 * MIB
    before = in_use()
    assert before == [size] * 4, before
    for pool in pools():
        pool.reset_peaks()
    made = s.run(lambda x: ctx().all_reduce("SUM", x), args=(x,))
    assert in_use() == [2 * size] * 4
    peaks = [(pool.stats().peak_in_use - size) / size for pool in pools()]
    assert peaks == [first, others, others, others], peaks
    del made
    assert in_use() == before


@runtime("2:64MiB")
def test_values_are_reduced_where_the_program_says() -> None:
    d = tf.distribute
    seen = []

    def add(tensors):
        seen.append([each.device[-5:] for each in tensors])
        return tf.add_n(tensors)

    s = d.MirroredStrategy(cross_device_ops=d.ReductionToOneDevice("gpu:1", accumulation_fn=add))
    made = s.run(lambda: ctx().all_reduce("SUM", own()))
    assert seen == [["GPU:1", "GPU:1"]]
    assert [each.numpy() for each in made.values] == [3.0, 3.0]
    ops = d.NcclAllReduce()
    x = s.run(own)
    assert [each.device[-5:] for each in ops.reduce("SUM", x, ["gpu:0", "gpu:1"]).values] == [  # type: ignore[union-attr]
        "GPU:0",
        "GPU:1",
    ]
    total = ops.reduce(MEAN, x, "gpu:1")
    assert total.device.endswith("GPU:1")
    assert total.numpy() == 1.5
    assert [each.numpy() for each in ops.batch_reduce("SUM", [(x, "gpu:0"), (x, total)])] == [3.0, 3.0]
    assert ops.broadcast(tf.constant(2.0), x)._as_tensor().numpy() == 2.0  # type: ignore[union-attr]
    assert type(raised(lambda: ops.reduce("SUM", x, 3))) is TypeError
    for kind in (d.NcclAllReduce, d.HierarchicalCopyAllReduce):
        assert "requires num_packs >= 0, but -1 is specified" in str(raised(lambda: kind(num_packs=-1)))


@runtime("2:64MiB")
def test_an_algorithm_of_the_programs_own_takes_one_method() -> None:
    from allotment.tf.distribute.reductions.cross_device_ops import Part

    class Last(tf.distribute.CrossDeviceOps):
        # Adds up on the last device.
        def _sum(self, rows, sources, first):
            last = sources[-1]
            total = last.compute(np.copy, rows[-1])
            for row, source in zip(rows[:-1], sources[:-1], strict=False):
                last.compute(np.add, total, last.copy_in(row, source.home), total)
            return [Part(0, total.size, total, last)]

    s = tf.distribute.MirroredStrategy(cross_device_ops=Last())
    assert [each.numpy() for each in s.run(lambda: ctx().all_reduce("MEAN", own())).values] == [1.5, 1.5]


@runtime("2:64MiB")
def test_values_that_do_not_go_together_are_named() -> None:
    s = tf.distribute.MirroredStrategy()
    error = raised(lambda: s.run(lambda: ctx().all_reduce("SUM", tf.ones([rid() + 1, 3]))))
    assert type(error) is tf.errors.InvalidArgumentError, error
    assert "float32[1, 3] on replica 0 and float32[2, 3] on replica 1" in str(error)
    error = raised(
        lambda: s.run(lambda: ctx().all_reduce("SUM", tf.cast(own(), "float64") if rid() else own()))
    )
    assert "float32[] on replica 0 and float64[] on replica 1" in str(error)
    with tf.device("/CPU:0"):
        text = tf.constant("text")
    for value in (text, True):
        error = raised(lambda: s.run(lambda: ctx().all_reduce("SUM", value)))
        assert type(error) is tf.errors.InvalidArgumentError
        assert "no numbers" in str(error)
    assert (
        str(raised(lambda: s.run(lambda: ctx().all_reduce("max", own())))) == "'MAX' is not a valid ReduceOp"
    )


@runtime("2:64MiB")
def test_other_processes_add_their_parts_between_the_halves() -> None:
    from allotment.tf.distribute.mirrored import MirroredExtended
    from allotment.tf.distribute.strategy import Strategy

    class TwoMachines(MirroredExtended):
        # The other machine's replicas have the same values, plus 10.
        _first_replica, _num_replicas = 2, 4
        calls: ClassVar[list[int]] = []

        def _exchange(self, arrays):
            self.calls.append(sum(each.size for each in arrays))
            for each in arrays:
                each += each + 20

    s = Strategy.__new__(Strategy)
    devices = tuple(f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(2))
    Strategy.__init__(s, TwoMachines(s, devices))
    x = s.run(lambda: tf.ones([5]) * float(rid()))
    assert s.num_replicas_in_sync == 4
    assert [each.numpy()[0] for each in x.values] == [2, 3]
    total, _ = s.run(lambda x: ctx().all_reduce("SUM", [x, 2.0 * x]), args=(x,))
    assert total.values[1].numpy().tolist() == [30.0] * 5  # 2 + 3 + 12 + 13
    mean = s.run(lambda x: ctx().all_reduce("MEAN", x), args=(x,))
    assert mean.values[0].numpy().tolist() == [7.5] * 5
    assert [each.numpy()[0] for each in x.values] == [2, 3]  # what was given stays as it was
    assert TwoMachines.calls == [10, 5]  # once for all values


@runtime("2:64MiB")
def test_gradients_go_through_collectives() -> None:
    s = tf.distribute.MirroredStrategy()

    def step():
        x = tf.constant([1.0, 2.0]) * own()
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            total = tf.reduce_sum(ctx().all_reduce("SUM", x * x) * own())
            mean = tf.reduce_sum(ctx().all_reduce("MEAN", [x * x])[0] * own())
            rows = ctx().all_gather(tf.reshape(x * x, [1, 2]), axis=0)
            gathered = tf.reduce_sum(rows * [[1.0, 10.0], [100.0, 1000.0]] * own())
        return [tape.gradient(target, x) for target in (total, mean, gathered)]

    total, mean, gathered = s.run(step)
    # d/dx of (1 + 2) times the sum of squares, at x = [1, 2] and [2, 4]
    assert [each.numpy().tolist() for each in total.values] == [[6, 12], [12, 24]]
    assert [each.numpy().tolist() for each in mean.values] == [[3, 6], [6, 12]]
    assert [each.numpy().tolist() for each in gathered.values] == [[6, 120], [1200, 24000]]


@runtime("2:16MiB")
def test_values_without_axes_are_not_joined() -> None:
    s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    for call in (lambda: s.gather(s.run(own), 0), lambda: s.run(lambda: ctx().all_gather(own(), 0))):
        error = raised(call)
        assert type(error) is ValueError
        assert "tf.reshape(value, [1])" in str(error)
    assert s.gather(s.run(lambda: tf.reshape(own(), [1])), 0).numpy().tolist() == [1, 2]
    # One value is what is there to be joined.
    assert s.gather(tf.constant(1.0), 0).numpy() == 1.0
