"""Variables of strategies: a copy on each device, and what an assignment changes.

Longer than 300 lines: one rule after the other of variables with copies, with the same few helpers.
"""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import MIB, in_use, own, raised, rid

A, S = tf.VariableAggregation, tf.VariableSynchronization


def new(strategy: tf.distribute.Strategy, *args: Any, **kwargs: Any) -> Any:
    """Make a variable of a strategy."""
    with strategy.scope():
        return tf.Variable(*args, **kwargs)


def numbers(variable: Any) -> list[Any]:
    """The value of each copy."""
    return [each.numpy().tolist() for each in variable.values]


@runtime("2:64MiB")
def test_a_variable_has_a_copy_on_each_device() -> None:
    s = tf.distribute.MirroredStrategy()
    before = in_use()
    v = new(s, tf.ones([256 << 10]), name="w")
    assert [each.name for each in v.values] == ["w:0", "w/replica_1:0"]
    assert [each.device[-5:] for each in v.values] == ["GPU:0", "GPU:1"]
    assert [used - was for used, was in zip(in_use(), before, strict=False)] == [MIB, MIB]
    assert isinstance(v, tf.Variable)
    assert v.name == "w:0"
    assert v.shape == (256 << 10,)
    assert v.dtype is tf.float32
    assert v.distribute_strategy is s  # type: ignore[attr-defined]
    assert s.extended.variable_created_in_scope(v)
    del v
    assert in_use() == before
    calls = []
    v = new(
        s,
        lambda: calls.append(tf.distribute.in_cross_replica_context()) or tf.random.uniform([3]),  # type: ignore[func-returns-value]
        trainable=False,
    )
    assert calls == [True]
    assert numbers(v)[0] == numbers(v)[1]
    assert not v.trainable
    assert str(new(s, 1.0)) == (
        "MirroredVariable:{\n  0: <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>,\n"
        "  1: <tf.Variable 'Variable/replica_1:0' shape=() dtype=float32, numpy=1.0>\n}"
    )
    assert not hasattr(tf.Variable(1.0), "values")


@runtime("2:64MiB")
def test_each_replica_reads_its_own_copy() -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, [0.0, 0.0])
    s.run(lambda: v.assign(tf.ones([2]) * own()))
    assert numbers(v) == [[1, 1], [2, 2]]
    made = s.run(
        lambda: (v + 0.0, v.read_value(), v[0], float(v[1]), v.numpy().sum(), v.device, np.asarray(v)[0])
    )
    assert [each.numpy().tolist() for each in made[0].values] == [[1, 1], [2, 2]]
    assert [each.numpy() for each in made[2].values] == [1, 2]
    assert made[3].values == (1.0, 2.0)
    assert [each[-5:] for each in made[5].values] == ["GPU:0", "GPU:1"]
    # Outside of run it is the copy on the device of the scope, or the first.
    assert v.numpy().tolist() == [1, 1]
    with tf.device("/GPU:1"):
        assert v.numpy().tolist() == [2, 2]
        assert (v + 0.0).device.endswith("GPU:1")
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
        assert tape.gradient(y, v).numpy().tolist() == [4, 4]
    with tf.device("/CPU:0"):
        assert v.numpy().tolist() == [1, 1]
    assert s.run(lambda x: x is v, args=(v,))
    assert s.run(lambda: v) is v


@runtime("2:64MiB")
def test_assigning_outside_of_run_changes_all_copies() -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, 1.0)
    made = v.assign(3.0)
    assert str(made) == (
        "Mirrored:{\n  0: tf.Tensor(3.0, shape=(), dtype=float32),\n  1: tf.Tensor(3.0, shape=(), dtype=float32)\n}"
    )
    assert (made + 1.0).numpy() == 4.0
    v.assign_add(2.0)
    v.assign_sub(tf.constant(1.0))
    assert numbers(v) == [4, 4]
    assert v.assign(0.0, read_value=False) is None
    v.assign(s.run(own))
    assert numbers(v) == [1, 2]
    with s.scope():
        v.assign(5.0)
    assert numbers(v) == [5, 5]
    w = new(s, [1.0, 2.0])
    w[0].assign(7.0)
    assert numbers(w) == [[7, 2], [7, 2]]
    error = raised(lambda: v.assign([1.0, 2.0]))
    assert type(error) is ValueError
    assert "Shape mismatch" in str(error)


@pytest.mark.parametrize("kind", ["AUTO", "ON_READ"])
@runtime("2:64MiB")
def test_places_of_a_variable_with_copies_are_not_changed_in_the_first_copy_alone(kind: str) -> None:
    s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    with s.scope():
        v = tf.Variable(
            [1.0, 2.0],
            synchronization=tf.VariableSynchronization[kind],
            aggregation=tf.VariableAggregation.MEAN,
        )
    v1 = tf.compat.v1
    methods = [v.scatter_nd_add, v.scatter_nd_sub, v.scatter_nd_update]
    functions = [getattr(v1, name) for name in dir(v1) if name.startswith("scatter_")]
    functions = [each for each in functions if each is not v1.scatter_nd]
    assert len(functions) == 10, functions
    for each in methods + [lambda i, u, f=f: f(v, i, u) for f in functions]:
        for call in (lambda: each([[0]], [1.0]), lambda: s.run(lambda: each([[0]], [1.0]))):
            error = raised(call)
            assert type(error) is NotImplementedError
            assert "tf.tensor_scatter_nd_add" in str(error)
    assert [each.numpy().tolist() for each in v.values] == [[1, 2]] * 2  # type: ignore[attr-defined]
    # What is offered changes all.
    v1.assign(v, [3.0, 4.0])
    v1.assign_add(v, [1.0, 1.0])
    v1.assign_sub(v, [0.0, 1.0])
    assert [each.numpy().tolist() for each in v.values] == [[4, 4]] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(("aggregation", "value"), [("MEAN", 1.5), ("SUM", 3.0), ("ONLY_FIRST_REPLICA", 1.0)])
@runtime("2:64MiB")
def test_what_replicas_assign_to_a_part_becomes_one_value(aggregation: str, value: float) -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, [0.0, 0.0], aggregation=tf.VariableAggregation[aggregation])
    made = s.run(lambda: v[1].assign(own()))
    assert numbers(v) == [[0, value]] * 2, numbers(v)
    assert [each.numpy().tolist() for each in made.values] == [[0, value]] * 2

    def elsewhere():
        v[rid()].assign(1.0)

    assert type(raised(lambda: s.run(elsewhere))) is RuntimeError
    assert numbers(v) == [[0, value]] * 2


@runtime("2:64MiB")
def test_a_part_is_assigned_to_all_copies_that_go_their_own_ways_unless_they_are_added_up() -> None:
    s = tf.distribute.MirroredStrategy()

    def summed(aggregation):
        return new(s, [1.0, 2.0], synchronization=tf.VariableSynchronization.ON_READ, aggregation=aggregation)

    v = summed(tf.VariableAggregation.MEAN)
    assert v[0].assign(5.0).numpy().tolist() == [5, 2]
    assert numbers(v) == [[5, 2]] * 2
    w = summed(tf.VariableAggregation.SUM)
    error = raised(lambda: w[0].assign(5.0))
    assert type(error) is ValueError
    assert "`variable[...].assign`" in str(error)
    assert numbers(w) == [[1, 2]] * 2
    s.run(lambda: w[0].assign(own()))
    assert numbers(w) == [[1, 2], [2, 2]]


@runtime("2:64MiB")
def test_all_copies_learn_more_of_their_shape() -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, [1.0, 2.0], shape=tf.TensorShape([None]))
    v.set_shape([2])
    assert v.shape == [2]
    assert all(each.shape == [2] for each in v.values)


@runtime("2:64MiB")
def test_a_replica_without_aggregation_changes_its_own_copy_and_waits_for_nobody() -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, [0.0, 0.0])

    def step():
        if rid() == 0:
            return
        v.assign_add([1.0, 1.0])
        v[0].assign(5.0)

    s.run(step)
    assert numbers(v) == [[0, 0], [5, 1]]


@runtime("2:64MiB")
def test_what_replicas_assign_becomes_one_value() -> None:
    s = tf.distribute.MirroredStrategy()
    for aggregation, value in ((A.SUM, 3.0), (A.MEAN, 1.5), (A.ONLY_FIRST_REPLICA, 1.0)):
        v = new(s, 10.0, aggregation=aggregation)
        made = s.run(lambda: v.assign(own()))
        assert numbers(v) == [value] * 2, aggregation
        assert [each.numpy() for each in made.values] == [value] * 2
        assert [each.device[-5:] for each in made.values] == ["GPU:0", "GPU:1"]
        s.run(lambda: v.assign_add(own()))
        s.run(lambda: v.assign_sub(2 * own(), read_value=False))
        assert numbers(v) == [0.0] * 2, aggregation
    v = new(s, 0.0, aggregation=A.SUM)
    error = raised(lambda: s.run(lambda: v.assign(1.0)))
    assert type(error) is ValueError
    assert str(error) == (
        "A non-DistributedValues value 1.0 cannot be reduced with the given reduce op ReduceOp.SUM."
    )
    v = new(s, 0.0, aggregation=A.MEAN)
    s.run(lambda: v.assign(1.0))
    assert numbers(v) == [1.0] * 2
    assert v.aggregation is A.MEAN
    assert v.synchronization is S.ON_WRITE
    other = tf.distribute.MirroredStrategy()
    error = raised(lambda: other.run(lambda: v.assign(own())))
    assert type(error) is RuntimeError
    assert "Mixing different" in str(error)


@runtime("2:64MiB")
def test_how_copies_belong_together_must_be_known() -> None:
    s = tf.distribute.MirroredStrategy()
    assert "`NONE` variable synchronization mode is not supported" in str(
        raised(lambda: new(s, 1.0, synchronization=S.NONE))
    )
    assert "Invalid variable aggregation mode: sum" in str(raised(lambda: new(s, 1.0, aggregation="sum")))
    assert "Invalid variable synchronization mode: 3" in str(raised(lambda: new(s, 1.0, synchronization=3)))
    assert "aggregation=MEAN and a non-floating dtype" in str(raised(lambda: new(s, 1, aggregation=A.MEAN)))
    assert "must be specified" in str(raised(lambda: new(s)))


@runtime("2:64MiB")
def test_replicas_make_a_variable_together() -> None:
    s = tf.distribute.MirroredStrategy()
    v = s.run(lambda: tf.Variable(own(), name="made"))
    assert numbers(v) == [1.0, 1.0]
    assert v.values[1].name == "made/replica_1:0"
    error = raised(lambda: s.run(lambda: tf.Variable(1.0) if rid() else None))
    assert "making of variable 'Variable'" in str(error)


@runtime("2:64MiB")
def test_copies_of_counters_go_their_own_ways_until_they_are_read() -> None:
    s = tf.distribute.MirroredStrategy()

    def count(v):
        s.run(lambda: v.assign_add(own()))
        return v

    for aggregation, value in ((A.SUM, 3.0), (A.MEAN, 1.5), (A.ONLY_FIRST_REPLICA, 1.0)):
        v = count(new(s, 0.0, synchronization=S.ON_READ, aggregation=aggregation))
        assert numbers(v) == [1.0, 2.0]
        assert not v.trainable
        assert v.synchronization is S.ON_READ
        assert (v.numpy(), float(v), (v + 0.0).numpy(), np.asarray(v), v.read_value().numpy()) == (value,) * 5  # type: ignore[comparison-overlap]
        assert [each.numpy() for each in s.run(lambda: v.read_value()).values] == [1.0, 2.0]
        assert s.reduce("SUM", v, axis=None).numpy() == 3.0
        assert str(v).startswith("SyncOnReadVariable:{")
        v.assign(4.0)
        assert numbers(v) == [2.0 if aggregation is A.SUM else 4.0] * 2
        assert v.numpy() == 4.0
        if aggregation is A.SUM:
            error = raised(lambda: v.assign_add(1.0))
            assert type(error) is ValueError
            assert "does not support `assign_add` in cross-replica context" in str(error)
        else:
            assert v.assign_add(1.0).numpy() == 5.0
            assert v.assign_sub(2.0).numpy() == 3.0
            assert numbers(v) == [3.0, 3.0]
    v = count(new(s, 0.0, synchronization=S.ON_READ))
    for call in (v.read_value, lambda: v.assign(1.0)):
        assert "VariableAggregation.NONE" in str(raised(call))


@runtime("2:64MiB")
def test_a_function_updates_each_copy() -> None:
    s = tf.distribute.MirroredStrategy()
    v = new(s, 1.0)
    seen = []

    def add(copy, x):
        seen.append(
            (copy.name, tf.constant(0.0).device[-5:], float(x), tf.distribute.in_cross_replica_context())
        )
        return copy.assign_add(x)

    s.extended.update(v, add, args=(s.run(own),))
    assert seen == [("Variable:0", "GPU:0", 1.0, True), ("Variable/replica_1:0", "GPU:1", 2.0, True)]
    assert numbers(v) == [2.0, 3.0]
    made = s.run(lambda: s.extended.update(v, add, kwargs={"x": own()}, group=False))
    assert numbers(v) == [3.0, 5.0]
    assert len(made) == 2
    totals = s.extended.batch_reduce_to("SUM", [(s.run(own), v), (s.run(own), "gpu:1")])
    assert [each.device[-5:] for each in totals[0].values] == ["GPU:0", "GPU:1"]
    assert totals[1].device.endswith("GPU:1")
    assert totals[1].numpy() == 3.0
    assert [each.device[-5:] for each in s.extended.broadcast_to(tf.constant(1.0), v).values] == [
        "GPU:0",
        "GPU:1",
    ]


@runtime("2:64MiB")
def test_variables_copy_and_do_not_pickle() -> None:
    s = tf.distribute.MirroredStrategy()
    import copy
    import pickle

    v = new(s, 1.0)
    same, other = copy.copy(v), copy.deepcopy(v)
    v.assign(2.0)
    assert numbers(same) == [2.0, 2.0]
    assert numbers(other) == [1.0, 1.0]
    assert [each.device[-5:] for each in other.values] == ["GPU:0", "GPU:1"]
    assert type(raised(lambda: pickle.dumps(v))) is NotImplementedError


@runtime("2:64MiB")
def test_updates_return_values_part_by_part_as_tensorflow_does() -> None:
    s = tf.distribute.MirroredStrategy()
    update = s.extended.update
    v = new(s, 1.0)

    def parts(copy):
        return {"twice": copy * 2.0, "same": 7}, copy.assign_add(1.0)

    made, variable = update(v, parts)
    assert isinstance(made["twice"], tf.distribute.DistributedValues)
    assert made["same"] == 7
    assert [each.numpy() for each in made["twice"].values] == [2, 2]
    assert [each.device[-5:] for each in made["twice"].values] == ["GPU:0", "GPU:1"]
    assert [tf.is_tensor(each) and each.numpy() for each in variable.values] == [2, 2]
    made, variable = update(v, parts, group=False)
    assert made["same"] == (7,)
    assert [each.numpy() for each in made["twice"]] == [4, 4]
    assert len(variable) == 2
    assert [float(each) for each in variable] == [3, 3]
    # What is no tensor is of no use to anybody who waits for all copies.
    assert update(v, lambda copy: copy.name) is None
    assert update(v, lambda copy: copy.name, group=False) == ("Variable:0", "Variable/replica_1:0")
    assert update(v, lambda copy: None) is None
    assert numbers(v) == [3, 3]
