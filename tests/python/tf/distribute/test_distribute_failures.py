"""Steps that fail: whose error it is, that the others are stopped, that memory goes back and the next step works."""

import pytest

from support.tf.replicas import run

#: Four replicas, one of them on a small GPU; what each test leaves is looked at here.
CHECKED = """
from contextlib import contextmanager
s = tf.distribute.MirroredStrategy()
s.extended.replica_deadline = 20.0
with s.scope():
    v = tf.Variable(tf.ones([1000]), aggregation=tf.VariableAggregation.MEAN)
s.run(lambda: ctx().all_reduce("SUM", own()))

def fails(step):
    # What a step raises, and that nothing of it is left.
    gc.disable()
    before, threads = in_use(), threading.active_count()
    started = time.monotonic()
    error = raised(lambda: s.run(step))
    assert time.monotonic() - started < 10, "it waited for a deadline"
    assert in_use() == before, (before, in_use())
    assert threading.active_count() == threads
    gc.enable()
    assert not tf.distribute.has_strategy()
    assert s.run(lambda: ctx().all_reduce("SUM", own())).values[3].numpy() == 10.0
    return error
"""

GPUS = "3:64MiB,1:4MiB"


@pytest.mark.parametrize("when", ["before", "after", "between", "within"])
@pytest.mark.parametrize("who", [0, 2])
def test_an_error_is_the_replicas_own(when: str, who: int) -> None:
    run(
        CHECKED
        + f"""
class Mine(Exception):
    pass
mine = Mine("mine", 3)
def step():
    x = tf.ones([1000]) * own()
    if {when!r} == "before" and rid() == {who}:
        raise mine
    y = ctx().all_reduce("SUM", x)
    if {when!r} == "between" and rid() == {who}:
        raise mine
    z = ctx().all_reduce("SUM", object() if {when!r} == "within" and rid() == {who} else y)
    if rid() == {who}:
        raise mine
    return x, y, z
error = fails(step)
if {when!r} == "within":
    assert type(error) is ValueError and "unsupported type" in str(error), error
else:
    assert error is mine and error.args == ("mine", 3)
text = note(error)
assert "MirroredStrategy.run: raised by replica {who} on /job:localhost/replica:0/task:0/device:GPU:{who}" in text
others = [line for line in text.splitlines()[1:]]
assert len(others) == 3 and all(f"device:GPU:{{i}} " in text for i in range(4) if i != {who}), text
""",
        GPUS,
    )


@pytest.mark.parametrize("who", [0, 2])
def test_values_that_cannot_be_reduced_are_an_error_of_all(who: int) -> None:
    run(
        CHECKED
        + f"""
error = fails(lambda: ctx().all_reduce("SUM", "a text" if rid() == {who} else own()))
assert type(error) is tf.errors.InvalidArgumentError and "string" in str(error), error
assert "raised for all replicas, not by one of them" in note(error)
""",
        GPUS,
    )


def test_others_are_told_of_with_their_lines() -> None:
    out = run(
        CHECKED
        + """
def wait():
    return ctx().all_reduce("MEAN", [tf.ones([10]), tf.ones([20])])          # line 1
def step():
    if rid() == 1:
        time.sleep(0.3)
        raise KeyError("mine")
    if rid() == 2:
        return tf.ones([10])
    return wait()
error = fails(step)
print(note(error))
""",
        GPUS,
    )
    lines = out.splitlines()
    assert lines[0].endswith("raised by replica 1 on /job:localhost/replica:0/task:0/device:GPU:1")
    assert "replica 0 on" in lines[1]
    assert "waited in all_reduce(MEAN) of 2 tensors, at wait in <string>, line" in lines[1]
    assert ", called by step in <string>, line" in lines[1]
    assert lines[1].endswith("; it was stopped")
    assert lines[2].endswith("GPU:2 had returned")
    assert lines[3].endswith("; it was stopped")


def test_of_several_errors_the_first_replicas_is_raised() -> None:
    run(
        CHECKED
        + """
for _ in range(5):
    error = fails(lambda: 1 / 0 if rid() in (1, 3) else int("x") if rid() == 2 else None)
    assert type(error) is ZeroDivisionError
    assert "raised by replica 1" in note(error) and "GPU:2 raised ValueError: invalid literal" in note(error)
for kind in (SystemExit, StopIteration, GeneratorExit):
    def step():
        if rid() == 1:
            raise kind("mine")
        ctx().all_reduce("SUM", own())
    try:
        s.run(step)
    except kind as error:
        assert error.args == ("mine",)
    else:
        assert False, kind
""",
        GPUS,
    )


@pytest.mark.parametrize("when", ["alone", "in the reduction", "assigning", "making a variable"])
def test_a_device_without_memory_ends_the_step(when: str) -> None:
    # The last GPU holds 4 MiB.
    steps = {
        "alone": "def step():\n    x = tf.ones([200 << 10]); y = x + x\n"
        '    z = x * y if rid() == 3 else x\n    ctx().all_reduce("SUM", tf.ones([1]))\n    big = tf.ones([2 << 20])\n',
        "in the reduction": 'def step():\n    x = tf.ones([700 << 10])\n    ctx().all_reduce("SUM", x)\n',
        "assigning": "def step():\n    w.assign(tf.ones([400 << 10]) if rid() else tf.ones([400 << 10]))\n"
        "    w.assign_add(tf.ones([400 << 10]))\n    w.assign_add(w + w)\n",
        "making a variable": "def step():\n    tf.Variable(lambda: tf.ones([2 << 20]))\n",
    }
    run(
        CHECKED
        + "with s.scope():\n    w = tf.Variable(tf.zeros([400 << 10]), aggregation=tf.VariableAggregation.SUM)\n"
        + steps[when]
        + """
error = fails(step)
assert type(error) is tf.errors.ResourceExhaustedError, error
assert "GPU:3 by allocator GPU_3_bfc" in str(error) and error.limit == 4 * MIB and error.requested > 0
assert "MirroredStrategy.run: raised " in note(error) and "GPU:3" in note(error)
assert pools()[3].stats().in_use < 4 * MIB
""",
        GPUS,
    )


def test_a_device_without_memory_ends_a_reduction_of_large_values() -> None:
    # Replicas help with those: it is one of them, and not the thread that waits for them, that finds no memory.
    run(
        CHECKED
        + """
helped = []
from allotment.tf.distribute.reductions.members import Member
compute = Member.compute
def noted(self, function, *args):
    helped.append(threading.current_thread() is not threading.main_thread())
    return compute(self, function, *args)
Member.compute = noted
x = s.run(lambda: tf.ones([2 << 20]))
def step(x):
    return ctx().all_reduce("SUM", x)
error = fails(lambda: step(x.values[rid()]))
assert any(helped)
assert type(error) is tf.errors.ResourceExhaustedError and "GPU:3 by allocator GPU_3_bfc" in str(error), error
assert "raised for all replicas" in note(error)
""",
        "3:64MiB,1:17MiB",
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            "ctx().all_reduce('SUM', own()) if rid() else None",
            [
                "Some replicas made a different number",
                "GPU:0 had returned",
                "GPU:1 waited in all_reduce(SUM)",
            ],
        ),
        (
            "[ctx().all_reduce('SUM', own()) for _ in range(1 + (rid() == 2))]",
            ["different number", "GPU:2 waited in all_reduce(SUM)", "GPU:3 had returned"],
        ),
        (
            "ctx().all_reduce('SUM' if rid() else 'MEAN', own())",
            ["in different calls", "GPU:0 waited in all_reduce(MEAN)", "GPU:1 waited in all_reduce(SUM)"],
        ),
        (
            "ctx().all_reduce('SUM', own()) if rid() else ctx().all_gather([1.0], axis=0)",
            ["GPU:0 waited in all_gather(axis=0)"],
        ),
        ("ctx().all_gather(tf.ones([1, 1]), axis=rid() % 2)", ["all_gather(axis=0)", "all_gather(axis=1)"]),
        ("ctx().all_reduce('SUM', [own()] * (1 + rid()))", ["of 1 tensor,", "of 2 tensors,"]),
        (
            "v.assign(tf.ones([1000])) if rid() else v.assign_add(tf.ones([1000]))",
            [
                "GPU:0 waited in assign_add of variable 'Variable:0' with aggregation MEAN",
                "waited in assign of",
            ],
        ),
        ("ctx().merge_call((lambda s: 1) if rid() else (lambda s: 2))", ["merge_call("]),
        (
            "ctx().merge_call(lambda s: 1) if rid() else ctx().all_reduce('SUM', own())",
            ["merge_call(", "all_reduce"],
        ),
    ],
)
def test_replicas_that_disagree_are_named(step: str, words: list[str]) -> None:
    run(
        CHECKED
        + f"""
error = fails(lambda: {step})
assert type(error) is RuntimeError, error
for words in {words!r}:
    assert words in str(error), (words, str(error))
assert "Every replica has to make the same calls" in str(error)
""",
        GPUS,
    )


def test_an_error_of_what_all_wait_for_is_nobodys_own() -> None:
    run(
        CHECKED
        + """
def merged(strategy, x):
    raise LookupError("merged")
error = fails(lambda: ctx().merge_call(merged, args=(own(),)))
assert type(error) is LookupError and "raised for all replicas, not by one of them" in note(error)
assert note(error).count("waited in merge_call(merged)") == 4
""",
        GPUS,
    )


def test_a_replica_that_catches_everything_is_stopped_all_the_same() -> None:
    run(
        CHECKED
        + """
caught = []
def step():
    if rid() == 3:
        raise KeyError("mine")
    for _ in range(3):
        try:
            ctx().all_reduce("SUM", own())
        except Exception:
            assert False, "a stop is no Exception"
        except BaseException as error:
            caught.append(type(error).__name__)
    return own()
error = fails(step)
assert type(error) is KeyError and caught == ["ReplicaStopped"] * 9, caught
""",
        GPUS,
    )


@pytest.mark.parametrize(
    "where", ["time.sleep(4)", "lock.acquire(timeout=4)", "time.sleep(4); ctx().all_reduce('SUM', x)"]
)
def test_a_replica_that_hangs_is_left_to_itself(where: str) -> None:
    run(
        f"""
s = tf.distribute.MirroredStrategy()
s.extended.replica_deadline = 0.5
lock = threading.Lock()
lock.acquire()
def step():
    x = tf.ones([1000])
    if rid() == 1:
        {where}
    return ctx().all_reduce("SUM", x) if rid() != 1 else x
before, threads = in_use(), threading.active_count()
started = time.monotonic()
error = raised(lambda: s.run(step))
assert 0.4 < time.monotonic() - started < 3, time.monotonic() - started
assert type(error) is tf.errors.DeadlineExceededError, error
text = str(error)
assert "no replica sent news for 0.5 s. replica 1 on" in text and "GPU:1 is at step in <string>, line" in text
assert "GPU:0 waited in all_reduce(SUM)" in text and "ALLOTMENT_REPLICA_DEADLINE" in text
assert "GPU:1 was at step" in note(error) and "it did not stop, and its thread goes on" in note(error)
assert in_use()[0] == before[0]
# The next step works while the thread hangs, and what it comes back with is dropped.
assert s.run(lambda: ctx().all_reduce("SUM", own())).values[1].numpy() == 3.0
for _ in range(60):
    if in_use() == before:
        break
    time.sleep(0.1)
assert in_use() == before
assert threading.active_count() == 3, threading.enumerate()      # this one and two workers: the third is gone
assert s.run(lambda: ctx().all_reduce("SUM", own())).values[1].numpy() == 3.0
""",
        "2:64MiB",
    )


def test_replicas_that_all_hang_are_all_named() -> None:
    run("""
s = tf.distribute.MirroredStrategy()
s.extended.replica_deadline = 0.3
error = raised(lambda: s.run(lambda: time.sleep(2)))
assert type(error) is tf.errors.DeadlineExceededError and str(error).count(" is at ") == 2
# One that comes to a meeting now and then takes as long as it likes.
s.extended.replica_deadline = 1.0
def step():
    for _ in range(4):
        time.sleep(0.4)
        x = ctx().all_reduce("SUM", own())
    return x
assert s.run(step).values[0].numpy() == 3.0
""")


def test_the_deadline_is_the_environments_or_the_strategys() -> None:
    program = """
s, other = tf.distribute.MirroredStrategy(), tf.distribute.MirroredStrategy()
print(s.extended.replica_deadline)
s.extended.replica_deadline = None
assert s.extended.replica_deadline is None and other.extended.replica_deadline != 0
for bad in (0, -1, 1e9, float("nan")):
    def set_it():
        s.extended.replica_deadline = bad
    assert type(raised(set_it)) is ValueError
"""
    assert run(program).strip() == "600.0"
    assert run(program, ALLOTMENT_REPLICA_DEADLINE="2.5").strip() == "2.5"
    assert run(program, ALLOTMENT_REPLICA_DEADLINE="0").strip() == "None"
    assert run(program, ALLOTMENT_REPLICA_DEADLINE="soon").strip() == "600.0"


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
