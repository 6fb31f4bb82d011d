"""Steps that fail: which error is raised, that other replicas stop, that memory is freed and the next step works.

Longer than 300 lines: one failure after the other of a step, each checked by the same function.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import allotment.tf as tf
from allotment.testing import runtime
from allotment.tf.distribute.reductions.members import Member
from support.tf.replicas import MIB, ctx, in_use, note, own, pools, raised, rid, run


def started() -> Any:
    """Return a strategy whose replicas have their threads."""
    strategy = tf.distribute.MirroredStrategy()
    strategy.extended.replica_deadline = 20.0
    strategy.run(lambda: ctx().all_reduce("SUM", own()))
    return strategy


@pytest.fixture(name="s")
def fixture_s() -> Iterator[Any]:
    """Make a strategy of four replicas, the last of them on a GPU of 4 MiB."""
    with runtime("3:64MiB,1:4MiB"):
        yield started()


def fails(s: Any, step: Callable[[], Any]) -> BaseException:
    """Return what a step raises, and check that nothing of the step is left."""
    gc.disable()
    try:
        before, threads = in_use(), threading.active_count()
        began = time.monotonic()
        error = raised(lambda: s.run(step))
        assert time.monotonic() - began < 10, "it waited for a deadline"
        assert in_use() == before
        assert threading.active_count() == threads
    finally:
        gc.enable()
    assert not tf.distribute.has_strategy()
    assert s.run(lambda: ctx().all_reduce("SUM", own())).values[3].numpy() == 10.0
    return error


@pytest.mark.parametrize("when", ["before", "after", "between", "within"])
@pytest.mark.parametrize("who", [0, 2])
def test_an_error_is_the_replicas_own(s: Any, when: str, who: int) -> None:
    class MineError(Exception):
        pass

    mine = MineError("mine", 3)

    def step() -> Any:
        x = tf.ones([1000]) * own()
        if when == "before" and rid() == who:
            raise mine
        y = ctx().all_reduce("SUM", x)
        if when == "between" and rid() == who:
            raise mine
        z = ctx().all_reduce("SUM", object() if when == "within" and rid() == who else y)
        if rid() == who:
            raise mine
        return x, y, z

    error = fails(s, step)
    if when == "within":
        assert type(error) is ValueError
        assert "unsupported type" in str(error)
    else:
        assert error is mine
        assert error.args == ("mine", 3)
    first, *others = note(error).splitlines()
    assert (
        f"MirroredStrategy.run: raised by replica {who} on /job:localhost/replica:0/task:0/device:GPU:{who}"
        in first
    )
    assert len(others) == 3
    assert all(any(f"device:GPU:{i} " in line for line in others) for i in range(4) if i != who)


@pytest.mark.parametrize("who", [0, 2])
def test_values_that_cannot_be_reduced_are_an_error_of_all(s: Any, who: int) -> None:
    error = fails(s, lambda: ctx().all_reduce("SUM", "a text" if rid() == who else own()))
    assert type(error) is tf.errors.InvalidArgumentError
    assert "string" in str(error)
    assert "raised for all replicas, not by one of them" in note(error)


def test_others_are_told_of_with_their_lines(s: Any) -> None:
    def wait() -> Any:
        return ctx().all_reduce("MEAN", [tf.ones([10]), tf.ones([20])])

    def step() -> Any:
        if rid() == 1:
            time.sleep(0.3)
            raise KeyError("mine")
        if rid() == 2:
            return tf.ones([10])
        return wait()

    lines = note(fails(s, step)).splitlines()
    this = f"{__file__}, line"
    assert lines[0].endswith("raised by replica 1 on /job:localhost/replica:0/task:0/device:GPU:1")
    assert "replica 0 on" in lines[1]
    assert f"waited in all_reduce(MEAN) of 2 tensors, at wait in {this}" in lines[1]
    assert f", called by step in {this}" in lines[1]
    assert lines[1].endswith("; it was stopped")
    assert lines[2].endswith("GPU:2 had returned")
    assert lines[3].endswith("; it was stopped")


def test_of_several_errors_the_first_replicas_is_raised(s: Any) -> None:
    for _ in range(5):
        error = fails(s, lambda: 1 / 0 if rid() in (1, 3) else int("x") if rid() == 2 else None)
        assert type(error) is ZeroDivisionError
        assert "raised by replica 1" in note(error)
        assert "GPU:2 raised ValueError: invalid literal" in note(error)

    def step(kind: type[BaseException]) -> None:
        if rid() == 1:
            raise kind("mine")
        ctx().all_reduce("SUM", own())

    for kind in (SystemExit, StopIteration, GeneratorExit):
        with pytest.raises(kind) as caught:
            s.run(step, args=(kind,))
        assert caught.value.args == ("mine",)


def allocates(w: Any) -> None:
    x: Any = tf.ones([200 << 10])
    y = x + x
    z = x * y if rid() == 3 else x
    ctx().all_reduce("SUM", tf.ones([1]))
    big = tf.ones([2 << 20])
    assert z is not big


def reduces(w: Any) -> None:
    ctx().all_reduce("SUM", tf.ones([700 << 10]))


def assigns(w: Any) -> None:
    w.assign(tf.ones([400 << 10]))
    w.assign_add(tf.ones([400 << 10]))
    w.assign_add(w + w)


def makes_a_variable(w: Any) -> None:
    tf.Variable(lambda: tf.ones([2 << 20]))


@pytest.mark.parametrize("step", [allocates, reduces, assigns, makes_a_variable])
def test_a_device_without_memory_ends_the_step(s: Any, step: Callable[[Any], None]) -> None:
    # The last GPU holds 4 MiB.
    with s.scope():
        w = tf.Variable(tf.zeros([400 << 10]), aggregation=tf.VariableAggregation.SUM)
    error = fails(s, lambda: step(w))
    assert type(error) is tf.errors.ResourceExhaustedError
    assert "GPU:3 by allocator GPU_3_bfc" in str(error)
    assert error.limit == 4 * MIB
    assert error.requested
    assert "MirroredStrategy.run: raised " in note(error)
    assert "GPU:3" in note(error)
    assert pools()[3].stats().in_use < 4 * MIB


@runtime("3:64MiB,1:17MiB")
def test_a_device_without_memory_ends_a_reduction_of_large_values(monkeypatch: pytest.MonkeyPatch) -> None:
    # Replicas help with those: it is one of them, and not the thread that waits for them, that finds no memory.
    helped: list[bool] = []
    compute: Any = Member.compute

    def noted(self: Any, function: Any, *args: Any) -> Any:
        helped.append(threading.current_thread() is not threading.main_thread())
        return compute(self, function, *args)

    monkeypatch.setattr(Member, "compute", noted)
    s = started()
    x = s.run(lambda: tf.ones([2 << 20]))
    error = fails(s, lambda: ctx().all_reduce("SUM", x.values[rid()]))
    assert any(helped)
    assert type(error) is tf.errors.ResourceExhaustedError
    assert "GPU:3 by allocator GPU_3_bfc" in str(error)
    assert "raised for all replicas" in note(error)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            lambda v: ctx().all_reduce("SUM", own()) if rid() else None,
            [
                "Some replicas made a different number",
                "GPU:0 had returned",
                "GPU:1 waited in all_reduce(SUM)",
            ],
        ),
        (
            lambda v: [ctx().all_reduce("SUM", own()) for _ in range(1 + (rid() == 2))],
            ["different number", "GPU:2 waited in all_reduce(SUM)", "GPU:3 had returned"],
        ),
        (
            lambda v: ctx().all_reduce("SUM" if rid() else "MEAN", own()),
            ["in different calls", "GPU:0 waited in all_reduce(MEAN)", "GPU:1 waited in all_reduce(SUM)"],
        ),
        (
            lambda v: ctx().all_reduce("SUM", own()) if rid() else ctx().all_gather([1.0], axis=0),
            ["GPU:0 waited in all_gather(axis=0)"],
        ),
        (
            lambda v: ctx().all_gather(tf.ones([1, 1]), axis=rid() % 2),
            ["all_gather(axis=0)", "all_gather(axis=1)"],
        ),
        (lambda v: ctx().all_reduce("SUM", [own()] * (1 + rid())), ["of 1 tensor,", "of 2 tensors,"]),
        (
            lambda v: v.assign(tf.ones([1000])) if rid() else v.assign_add(tf.ones([1000])),
            [
                "GPU:0 waited in assign_add of variable 'Variable:0' with aggregation MEAN",
                "waited in assign of",
            ],
        ),
        (lambda v: ctx().merge_call((lambda s: 1) if rid() else (lambda s: 2)), ["merge_call("]),
        (
            lambda v: ctx().merge_call(lambda s: 1) if rid() else ctx().all_reduce("SUM", own()),
            ["merge_call(", "all_reduce"],
        ),
    ],
)
def test_replicas_that_disagree_are_named(s: Any, step: Callable[[Any], Any], words: list[str]) -> None:
    with s.scope():
        v = tf.Variable(tf.ones([1000]), aggregation=tf.VariableAggregation.MEAN)
    error = fails(s, lambda: step(v))
    assert type(error) is RuntimeError
    for word in words:
        assert word in str(error)
    assert "Every replica has to make the same calls" in str(error)


def merged(strategy: Any, x: Any) -> None:
    raise LookupError("merged")


def test_an_error_of_what_all_wait_for_is_nobodys_own(s: Any) -> None:
    error = fails(s, lambda: ctx().merge_call(merged, args=(own(),)))
    assert type(error) is LookupError
    assert "raised for all replicas, not by one of them" in note(error)
    assert note(error).count("waited in merge_call(merged)") == 4


def test_a_replica_that_catches_everything_is_stopped_all_the_same(s: Any) -> None:
    caught = []

    def step() -> Any:
        if rid() == 3:
            raise KeyError("mine")
        for _ in range(3):
            try:
                ctx().all_reduce("SUM", own())
            except BaseException as error:
                caught.append(type(error))
        return own()

    assert type(fails(s, step)) is KeyError
    assert [each.__name__ for each in caught] == ["ReplicaStopped"] * 9
    assert not any(issubclass(each, Exception) for each in caught)


def test_structures_whose_keys_differ_are_not_added_up_by_position() -> None:
    run(
        """
s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
def step():
    a, b = tf.constant(1.0), tf.constant(10.0)
    return ctx().all_reduce("SUM", {"a": a, "b": b} if rid() else {"a": a, "c": b})
error = raised(lambda: s.run(step))
assert type(error) is RuntimeError
assert "all_reduce(SUM) of 2 tensors in {'a': ·, 'c': ·}" in str(error), error
assert "all_reduce(SUM) of 2 tensors in {'a': ·, 'b': ·}" in str(error), error
for one, other in (
    ({"a": [1.0, 2.0], "b": 3.0}, {"a": 1.0, "b": [2.0, 3.0]}),
    ([1.0, 2.0], (1.0, 2.0)),
    ([1.0], 1.0),
):
    for reduce in (
        lambda value: ctx().all_reduce("MEAN", value),
        lambda value: ctx().all_gather(tf.nest.map_structure(lambda x: [x], value), 0),
    ):
        assert type(raised(lambda: s.run(lambda: reduce(other if rid() else one)))) is RuntimeError
# In which order keys came to be does not matter.
def agreeing():
    a, b = own(), own() * 10
    with tf.GradientTape() as tape:
        tape.watch(a)
        made = ctx().all_reduce("SUM", {"b": b, "a": a} if rid() else {"a": a, "b": b})
    return made, tape.gradient(made["a"], a)
made, slope = s.run(agreeing)
assert [each.numpy() for each in made["a"].values] == [3, 3]
assert [each.numpy() for each in made["b"].values] == [30, 30]
assert [each.numpy() for each in slope.values] == [2, 2]
""",
        "2:16MiB",
    )


def test_a_replica_that_has_ended_waits_for_nobody() -> None:
    run(
        """
s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
s.extended.replica_deadline = None
contexts = s.experimental_local_results(s.run(ctx))
def use():
    return contexts[1].all_reduce("SUM", tf.constant(1.0))
for call in (use, lambda: contexts[0].merge_call(lambda strategy: None)):
    error = raised(call)
    assert type(error) is RuntimeError and "has ended" in str(error), error
assert "replica 1 on /job:localhost/replica:0/task:0/device:GPU:1" in str(raised(use))
# In a later step it is over as well, and so it is after one that failed.
assert type(raised(lambda: s.run(lambda: rid() == 1 and use()))) is RuntimeError
def failing():
    contexts.append(ctx())
    raise ZeroDivisionError
contexts = list(contexts)
raised(lambda: s.run(failing))
assert type(raised(lambda: contexts[-1].all_reduce("SUM", tf.constant(1.0)))) is RuntimeError
""",
        "2:16MiB",
    )


def test_an_error_that_is_raised_again_tells_of_the_latest_step_only() -> None:
    run(
        """
s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
error = ValueError("the same one")
error.add_note("of the program")
def step(which):
    if rid() == which:
        raise error
for which in (0, 1, 1):
    try:
        s.run(step, args=(which,))
    except ValueError as caught:
        assert caught is error
    mine, note = error.__notes__
    assert mine == "of the program"
    assert f"raised by replica {which} on" in note, note
""",
        "2:16MiB",
    )
