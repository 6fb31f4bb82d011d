"""Strategies: their devices, their scopes, what replicas run and return.

Longer than 300 lines: one rule after the other of one interface, under the same strategies.
"""

import threading

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import MEAN, ctx, own, raised, rid, run


@runtime("2:64MiB")
def test_a_mirrored_strategy_takes_all_gpus() -> None:
    s = tf.distribute.MirroredStrategy()
    names = tuple(f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(2))
    assert s.num_replicas_in_sync == 2
    assert s.extended.worker_devices == s.extended.parameter_devices == names
    assert tf.distribute.MirroredStrategy([]).extended.worker_devices == names
    assert tf.distribute.MirroredStrategy(("gpu:1", "/CPU:0")).extended.worker_devices == (
        names[1],
        "/job:localhost/replica:0/task:0/device:CPU:0",
    )


@runtime("2:64MiB")
def test_devices_that_cannot_be_used_are_refused() -> None:
    mirrored = tf.distribute.MirroredStrategy
    error = raised(lambda: mirrored("/cpu:0"))
    assert type(error) is ValueError
    assert "Unknown attribute 'c'" in str(error)
    error = raised(lambda: mirrored(["gpu:0", "/device:GPU:0"]))
    assert type(error) is AssertionError
    assert "No duplicates allowed in `devices` argument: ('/job:" in str(error)
    assert type(raised(lambda: mirrored(3))) is TypeError
    error = raised(lambda: mirrored(cross_device_ops="ring"))  # type: ignore[arg-type]
    assert type(error) is TypeError
    assert "NcclAllReduce" in str(error)
    # That a device does not exist is seen when it is used.
    s = mirrored(["gpu:0", "gpu:7"])
    error = raised(lambda: s.run(lambda: tf.constant(1.0)))
    assert type(error) is tf.errors.InvalidArgumentError
    assert "GPU:7" in str(error)


@runtime("2:64MiB")
def test_scopes_say_what_is_in_force() -> None:
    d = tf.distribute
    s, other, default = d.MirroredStrategy(), d.MirroredStrategy(["gpu:0"]), d.get_strategy()

    def state():
        return (
            d.has_strategy(),
            d.in_cross_replica_context(),
            d.get_strategy() is s,
            d.get_replica_context() is None,
        )

    assert state() == (False, False, False, False)
    with s.scope() as entered:
        assert entered is s
        assert state() == (True, True, True, True)
        with s.scope():
            assert state() == (True, True, True, True)
        error = raised(lambda: other.scope().__enter__())
        assert type(error) is RuntimeError
        assert "Mixing different tf.distribute.Strategy objects:" in str(error)
        assert type(raised(lambda: other.run(own))) is RuntimeError
        assert "Must not nest" in str(raised(lambda: default.scope().__enter__()))
        seen = []
        thread = threading.Thread(target=lambda: seen.append(d.has_strategy()))
        thread.start()
        thread.join()
        assert seen == [False]
    assert state() == (False, False, False, False)
    assert s.run(lambda: state()) == (True, False, True, False)


@runtime("2:64MiB")
def test_replicas_run_on_their_devices_at_the_same_time() -> None:
    s = tf.distribute.MirroredStrategy()
    together = threading.Barrier(2)

    def step(x, y=0.0):
        together.wait(10)  # nobody gets past it alone
        return x + y

    with tf.device("/CPU:0"), tf.name_scope("outer"):
        made = s.run(step, args=(tf.constant(1.0),), kwargs={"y": s.run(own)})
    assert [each.numpy() for each in made.values] == [2.0, 3.0]
    assert [each.device[-5:] for each in made.values] == ["GPU:0", "GPU:1"]
    assert str(s.run(own)) == (
        "PerReplica:{\n  0: tf.Tensor(1.0, shape=(), dtype=float32),\n  1: tf.Tensor(2.0, shape=(), dtype=float32)\n}"
    )
    assert "  0: <tf.Tensor: shape=(), dtype=float32, numpy=1.0>,\n" in repr(s.run(own))
    assert type(raised(lambda: made + 1)) is TypeError
    assert not hasattr(made, "numpy")
    error = raised(lambda: tf.reduce_sum(made))
    assert type(error) is ValueError
    assert "while not inside a replica context" in str(error)
    assert type(raised(lambda: s.run(own, args=None))) is ValueError  # type: ignore[arg-type]


@runtime("2:64MiB")
def test_results_are_put_together_part_by_part() -> None:
    import collections

    s = tf.distribute.MirroredStrategy()
    per_replica = type(s.run(own))
    Pair = collections.namedtuple("Pair", "left right")
    one = tf.constant(1.0)
    made = s.run(lambda: {"list": [own(), 3, "text", None], "pair": Pair(own(), (own(),)), "same": one})
    assert type(made["list"][0]) is per_replica
    assert made["list"][1:] == [3, "text", None]
    assert type(made["pair"]) is Pair
    assert type(made["pair"].right[0]) is per_replica
    assert made["same"] is one
    assert s.run(lambda: int("5000")) == 5000
    assert s.run(rid).values == (0, 1)
    assert s.run(lambda: None) is None
    for different in ("[] if rid() else ()", "[0] * rid()", "{rid(): 1}"):
        error = raised(lambda: s.run(lambda: eval(different)))
        assert type(error) is AssertionError, (different, error)
    # and taken apart the same way
    nested = s.run(lambda: {"a": [own(), 2]})
    assert s.run(lambda x: x["a"][0] * x["a"][1], args=(nested,)).values[1].numpy() == 4.0
    assert s.experimental_local_results(nested)[1]["a"][0].numpy() == 2.0
    assert s.experimental_local_results(3) == (3,)
    assert [each.numpy() for each in s.experimental_local_results(s.run(own))] == [1.0, 2.0]


@runtime("2:64MiB")
def test_values_are_made_for_each_replica() -> None:
    s = tf.distribute.MirroredStrategy()
    made = s.experimental_distribute_values_from_function(lambda c: (c.replica_id_in_sync_group * 10, 1))
    assert made[0].values == (0, 10)
    assert made[1].values == (1, 1)
    context = s.experimental_distribute_values_from_function(lambda c: c).values[1]
    assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (1, 2)
    assert (
        type(raised(lambda: s.run(lambda: s.experimental_distribute_values_from_function(lambda c: 1))))
        is RuntimeError
    )


@runtime("2:64MiB")
def test_values_are_reduced_to_one_on_the_first_device() -> None:
    s = tf.distribute.MirroredStrategy()
    vectors = s.run(lambda: tf.range(3.0) + own())
    total = s.reduce("sum", vectors, axis=None)
    assert total.numpy().tolist() == [3.0, 5.0, 7.0]
    assert total.device.endswith("GPU:0")
    assert s.reduce(MEAN, vectors, axis=None).numpy().tolist() == [1.5, 2.5, 3.5]
    assert s.reduce("SUM", vectors, axis=0).numpy() == 15.0
    uneven = s.run(lambda: tf.ones([rid() + 1]) * own())
    assert s.reduce("MEAN", uneven, axis=0).numpy() == np.float32(5 / 3)
    assert s.reduce("SUM", {"a": vectors}, axis=-1)["a"].numpy() == 15.0
    assert s.reduce("MEAN", s.run(lambda: ctx().replica_id_in_sync_group), axis=None).numpy() == 0.5
    assert s.reduce("MEAN", 3.0, axis=None) == 3.0
    error = raised(lambda: s.reduce("SUM", tf.constant(3.0), axis=None))
    assert type(error) is ValueError
    assert str(error) == (
        "A non-DistributedValues value tf.Tensor(3.0, shape=(), dtype=float32) cannot be reduced with the given "
        "reduce op ReduceOp.SUM."
    )
    assert str(raised(lambda: s.reduce("bad", total, axis=None))) == "'BAD' is not a valid ReduceOp"
    assert type(raised(lambda: s.reduce("SUM", total))) is TypeError  # type: ignore[call-arg]
    for call in (lambda: s.reduce("SUM", total, axis=None), lambda: s.run(own)):
        assert "use get_replica_context().merge_call()" in str(raised(lambda: s.run(call)))


@runtime("2:64MiB")
def test_values_are_gathered_along_an_axis() -> None:
    s = tf.distribute.MirroredStrategy()
    made = s.run(lambda: tf.ones([rid() + 1, 2]) * own())
    whole = s.gather(made, axis=0)
    assert whole.numpy().tolist() == [[1, 1], [2, 2], [2, 2]]
    assert whole.device.endswith("GPU:0")
    assert s.gather({"a": made}, axis=0)["a"].shape == (3, 2)
    assert type(raised(lambda: s.gather(made, axis=1))) is tf.errors.InvalidArgumentError
    assert "use get_replica_context().all_gather()" in str(
        raised(lambda: s.run(lambda: s.gather(own(), axis=0)))
    )
    every = s.run(lambda: ctx().all_gather({"a": tf.ones([1, rid() + 1]) * own()}, axis=-1))
    assert [each.numpy().tolist() for each in every["a"].values] == [[[1, 2, 2]], [[1, 2, 2]]]
    assert [each.device[-5:] for each in every["a"].values] == ["GPU:0", "GPU:1"]


@runtime("2:64MiB")
def test_a_replica_knows_itself_and_waits_for_the_others() -> None:
    s = tf.distribute.MirroredStrategy()

    def step():
        c = ctx()
        assert c.strategy is s
        assert c.num_replicas_in_sync == 2
        assert c.replica_id_in_sync_group.dtype is tf.int32
        assert c.devices == (s.extended.worker_devices[rid()],)

        def merged(strategy, x, factor):
            assert strategy is s
            assert tf.distribute.in_cross_replica_context()
            assert threading.current_thread() is threading.main_thread()
            return {"total": strategy.reduce("SUM", x, axis=None) * factor, "own": x}

        return c.merge_call(merged, args=(own(),), kwargs={"factor": 10.0})

    made = s.run(step)
    assert made["total"].numpy() == 30.0
    assert [each.numpy() for each in made["own"].values] == [1.0, 2.0]
    nested = s.run(lambda: ctx().all_reduce("mean", (own(), [2 * own(), {"a": 1.0}])))
    assert nested[0].values[1].numpy() == 1.5
    assert nested[1][0].values[0].numpy() == 3.0
    assert nested[1][1]["a"].values[0].numpy() == 1.0
    assert s.run(lambda: ctx().all_reduce("SUM", [])) == []
    # A merged function may run replicas itself.
    inner = s.run(lambda: ctx().merge_call(lambda strategy: strategy.run(own)))
    assert [each.numpy() for each in inner.values] == [1.0, 2.0]


@pytest.mark.parametrize("name", ["one", "mirrored", "default"])
@runtime("2:64MiB")
def test_one_replica_needs_no_thread(name: str) -> None:
    threads = threading.active_count()
    s = {
        "one": lambda: tf.distribute.OneDeviceStrategy("gpu:1"),
        "mirrored": lambda: tf.distribute.MirroredStrategy(["gpu:1"]),
        "default": tf.distribute.get_strategy,
    }[name]()

    def step(x):
        assert threading.current_thread() is threading.main_thread()
        return (
            x
            + ctx().all_reduce("SUM", tf.constant(1.0))
            + ctx().merge_call(lambda strategy, y: y, args=(2.0,))
        )

    with tf.device("/GPU:1"):
        made = s.run(step, args=(tf.constant(4.0),))
    assert made.numpy() == 7.0
    assert made.device.endswith("GPU:1")
    assert rid() == 0
    assert s.num_replicas_in_sync == 1
    assert s.reduce("SUM", 3.0, axis=None) == 3.0
    assert s.reduce("MEAN", tf.constant([1.0, 2.0]), axis=0).numpy() == 1.5
    assert s.gather(tf.ones([2]), axis=0).shape == (2,)
    assert s.experimental_local_results(3) == (3,)
    assert threading.active_count() == threads
    error = raised(lambda: s.run(lambda: 1 / 0))
    assert type(error) is ZeroDivisionError
    assert not tf.distribute.has_strategy()


@runtime("2:64MiB")
def test_variables_of_a_strategy_of_one_device_are_there() -> None:
    s = tf.distribute.OneDeviceStrategy("gpu:1")
    assert s.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:GPU:1",)
    with s.scope():
        v = tf.Variable(1.0, name="v")
        w = tf.Variable(2.0, synchronization=tf.VariableSynchronization.ON_READ)
        assert tf.constant(1.0).device.endswith("GPU:0")  # the scope of devices is another thing
    assert v.device.endswith("GPU:1")
    assert str(v).startswith("<tf.Variable 'v:0'")
    assert isinstance(v, tf.Variable)
    assert v.trainable
    assert not w.trainable
    assert s.run(lambda: v.assign_add(1.0)).numpy() == 2.0
    default = tf.distribute.get_strategy()
    error = raised(lambda: default.extended.worker_devices)
    assert type(error) is RuntimeError
    assert "unsupported by default tf.distribute.Strategy" in str(error)


@runtime("2:64MiB")
def test_a_policy_and_numpys_settings_go_along() -> None:
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)
    s = tf.distribute.MirroredStrategy()
    variable.set(7)
    tf.config.experimental.set_device_policy("explicit")

    def step():
        assert variable.get() == 7
        assert np.geterr()["over"] == "raise"
        assert tf.config.experimental.get_device_policy() == "explicit"
        variable.set(8)

    with np.errstate(over="raise"):
        s.run(step)
    assert variable.get() == 7
    tf.config.experimental.set_device_policy("silent")
    s.run(lambda: [None for _ in [1] if tf.config.experimental.get_device_policy() != "silent"] and 1 / 0)


@runtime("2:64MiB")
def test_a_graph_cannot_run_replicas() -> None:
    s = tf.distribute.MirroredStrategy()
    with tf.Graph().as_default():
        error = raised(lambda: s.run(own))
    assert type(error) is NotImplementedError
    assert "eager" in str(error)
    assert "Available: " in str(raised(lambda: tf.distribute.TPUStrategy))  # type: ignore[attr-defined]


def test_the_logger_of_the_host_framework_is_told_once() -> None:
    out = run("""
import logging
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(name)s %(message)s")
s = tf.distribute.MirroredStrategy()
s.run(own)
s.run(own)
""")
    lines = [line for line in out.splitlines() if " tensorflow " in line]
    assert lines[0].startswith("INFO tensorflow Using MirroredStrategy with devices ('/job:localhost/")
    assert [line[:70] for line in lines[1:]] == [
        "WARNING tensorflow Using MirroredStrategy eagerly has significant over"
    ]


@runtime("2:64MiB")
def test_a_strategy_makes_no_variables_of_a_graph() -> None:
    v1 = tf.compat.v1
    for s in (tf.distribute.MirroredStrategy(), tf.distribute.OneDeviceStrategy("gpu:0")):
        name = type(s).__name__
        with tf.Graph().as_default() as graph:
            for call in (
                s.scope().__enter__,
                lambda: s.run(own),
                lambda: s.extended.call_for_each_replica(own),
            ):
                error = raised(call)
                assert type(error) is NotImplementedError
                assert f"{name} is for eager programs" in str(error)
            # Nothing is left behind.
            assert not tf.distribute.has_strategy()
            assert tf.Variable(1.0).graph is graph
        with s.scope(), tf.Graph().as_default() as graph:
            for make in (
                lambda: tf.Variable(1.0),
                lambda: v1.Variable(1.0),
                lambda: v1.get_variable("w", initializer=1.0),
                v1.train.get_or_create_global_step,
            ):
                error = raised(make)
                assert type(error) is NotImplementedError
                assert f"{name} is for eager programs" in str(error)
        with s.scope():
            assert float(tf.Variable(2.0)) == 2.0
