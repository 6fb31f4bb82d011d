"""Replicas that do not reply: the deadline of a step ends it, and names them."""

import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import run


@pytest.mark.parametrize(
    "where",
    ["time.sleep(4)", "lock.acquire(timeout=60)", "lock.acquire(timeout=60); ctx().all_reduce('SUM', x)"],
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
lock.release()
for _ in range(200):
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
error = raised(lambda: s.run(lambda: time.sleep(1)))
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


@pytest.mark.parametrize(("environ", "deadline"), [(None, 600.0), ("2.5", 2.5), ("0", None), ("soon", 600.0)])
def test_the_deadline_is_the_environments_or_the_strategys(
    environ: str | None, deadline: float | None
) -> None:
    with runtime("2:64MiB", **({} if environ is None else {"ALLOTMENT_REPLICA_DEADLINE": environ})):
        s, other = tf.distribute.MirroredStrategy(), tf.distribute.MirroredStrategy()
        assert s.extended.replica_deadline == other.extended.replica_deadline == deadline
        s.extended.replica_deadline = 7.0
        assert (s.extended.replica_deadline, other.extended.replica_deadline) == (7.0, deadline)
        s.extended.replica_deadline = None
        assert s.extended.replica_deadline is None
        for bad in (0, -1, 1e9, float("nan")):
            with pytest.raises(ValueError, match="deadline"):
                s.extended.replica_deadline = bad
