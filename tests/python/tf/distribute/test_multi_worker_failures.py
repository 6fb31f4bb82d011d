"""What processes say when one of them does not go on, or does something else. No test here may hang."""

import re

import pytest

from support.mpi import facts, run_processes


def test_a_step_that_fails_in_every_process_alike_can_be_tried_again() -> None:
    ran = run_processes(
        """
        allotment.testing.simulate_gpus("1:64MiB")
        strategy = strategy()
        context = tf.distribute.get_replica_context
        current = lambda: tf.config.experimental.get_memory_info("GPU:0")["current"]
        seen = []
        for mebibytes in (65, 4):
            before = current()
            try:
                strategy.run(lambda: context().all_reduce("SUM", tf.ones([mebibytes << 18])))
                seen.append("went well")
            except tf.errors.ResourceExhaustedError as error:
                seen.append(error.limit)
            seen.append(current() - before)
        try:
            strategy.run(lambda: context().all_reduce("SUM", tf.constant(True)))
        except tf.errors.InvalidArgumentError as error:
            seen.append(error.message)
        seen.append(int(strategy.reduce("SUM", strategy.run(lambda: tf.constant(1)), axis=None)))
        tell(rank=strategy.cluster_resolver.task_id, seen=seen)
        """,
        2,
    )
    assert ran.status == 0, ran.stderr
    for told in facts(ran.stdout):
        assert told["seen"] == [
            64 << 20,
            0,
            "went well",
            0,
            "Values of type bool cannot be reduced: they are no numbers.",
            2,
        ]


#: What rank 2 of 4 does instead of its third step, and what the others say of it.
FAILURES = """
strategy = strategy(timeout=1.5)
rank = strategy.cluster_resolver.task_id
context = tf.distribute.get_replica_context

def step(number):
    value = tf.constant(1.0)
    if number == 2 and rank == 2:
        act()
    return context().all_reduce("SUM", value)

for number in range(5):
    begun = time.monotonic()
    try:
        strategy.run(step, args=(number,))
    except tf.errors.OpError as error:
        tell(rank=rank, number=number, kind=type(error).__name__, seconds=time.monotonic() - begun)
        raise
"""
BLAMED = r"rank 2 of 4 \(PID \d+ on [^)]+\)"


@pytest.mark.parametrize(
    ("act", "kinds", "text"),
    [
        (
            "raise ValueError('of rank 2 alone')",
            {"UnavailableError"},
            f"do not work together any more. {BLAMED}: ValueError: of rank 2 alone",
        ),
        (
            "sys.exit(0)",
            {"UnavailableError"},
            f"do not work together any more. {BLAMED}: ",
        ),
        (
            "time.sleep(1000)",
            {"DeadlineExceededError", "UnavailableError"},
            f"waited 1.5 s for the other processes; {BLAMED} did not answer. rank 0 of 4",
        ),
        (
            "os.kill(os.getpid(), signal.SIGSTOP)",
            {"DeadlineExceededError", "UnavailableError"},
            f"waited 1.5 s for the other processes; {BLAMED} did not answer. rank 0 of 4",
        ),
    ],
    ids=["raises", "exits", "hangs", "is stopped"],
)
def test_a_process_that_does_not_go_on_is_named_by_the_others_in_time(
    act: str, kinds: set[str], text: str
) -> None:
    ran = run_processes(f"def act():\n    {act}\n" + FAILURES, 4)
    assert ran.status != 0
    assert re.search(text, ran.stderr), ran.stderr
    # Where it is stopped, it may wake up at the end and say something, too.
    told = [each for each in facts(ran.stdout) if each["rank"] != 2]
    assert {each["rank"] for each in told} == {0, 1, 3}
    for each in told:
        assert each["number"] == 2
        assert each["kind"] in kinds
        assert each["seconds"] < 10


def test_a_killed_process_is_named_by_mpirun_and_takes_the_others_with_it() -> None:
    ran = run_processes("def act():\n    os.kill(os.getpid(), signal.SIGKILL)\n" + FAILURES, 4)
    assert ran.status != 0
    assert re.search(r"process rank 2 with PID \d+ on node \S+ exited on\s+signal 9", ran.stderr), ran.stderr
    assert ran.seconds < 20


def test_processes_in_different_calls_are_told_which() -> None:
    ran = run_processes(
        """
        strategy = strategy()
        rank = strategy.cluster_resolver.task_id
        try:
            strategy.reduce("SUM", strategy.run(lambda: tf.ones([2 + rank])), axis=None)
        except RuntimeError as error:
            tell(rank=rank, text=str(error))
        assert float(strategy.reduce("MEAN", strategy.run(lambda: tf.constant(1.0 + rank)), axis=None)) == 1.5
        """,
        2,
    )
    assert ran.status == 0, ran.stderr
    for told in facts(ran.stdout):
        assert re.match(
            r"Processes wait for each other in different calls: rank 0 of 2 \(.*\) in all_reduce of float32\[2\]; "
            r"rank 1 of 2 \(.*\) in all_reduce of float32\[3\]\. Every process has to make the same calls",
            told["text"],
        )


def test_a_process_that_never_makes_its_strategy_is_named() -> None:
    ran = run_processes(
        """
        from mpi4py import MPI
        if MPI.COMM_WORLD.Get_rank() == 1:
            time.sleep(1000)
        strategy(timeout=1)
        """,
        3,
    )
    assert ran.status != 0
    assert (
        "the start of all processes: waited 1 s for the other processes; rank 1 of 3 did not answer."
        in ran.stderr
    )


def test_all_processes_must_have_the_same_number_of_devices() -> None:
    ran = run_processes(
        """
        from mpi4py import MPI
        allotment.testing.simulate_gpus(f"{MPI.COMM_WORLD.Get_rank() + 1}:64MiB")
        strategy()
        """,
        2,
    )
    assert ran.status != 0
    assert re.search(
        r"ValueError: all workers must have the same number of devices; rank 0 of 2 \(.*\) has 1, "
        r"rank 1 of 2 \(.*\) has 2",
        ran.stderr,
    ), ran.stderr
