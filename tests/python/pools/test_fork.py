"""Forked children of a process with pools (field report B026: tensorflow#57877, pytorch#17357).

The documented rule: in the child, every call of a pool of the parent is a `RuntimeError`, memory written
before stays readable, finalisers do nothing, and new pools work.

Longer than 300 lines: every state of a pool in which its process forks, with the same helper.
"""

import os
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from allotment import Allocation, Pool
from allotment.integrations import numpy as pooled
from support.child import run_program
from support.devices import run_on_gpus

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    # Forking a process with threads is what is tested here.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; its exit status, or a failure if it takes ten seconds."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


def test_b026_a_child_reads_drops_is_refused_and_ends() -> None:
    pool = Pool("64MiB")
    a = pool.allocate("16MiB")
    data = np.frombuffer(a, np.uint8)
    data[:] = 77
    stop = threading.Event()
    rounds = [0]

    def churn() -> None:
        while not stop.is_set():
            with pool.allocate(1 + rounds[0] % 100_000):
                rounds[0] += 1

    thread = threading.Thread(target=churn)
    thread.start()

    held: list[object] = [a, data]
    del a, data

    def child() -> None:
        a, data = held
        assert isinstance(a, Allocation)
        assert isinstance(data, np.ndarray)
        assert (data == 77).all()
        address = a.address
        calls: list[Callable[[], object]] = [
            lambda: pool.malloc(1),
            lambda: pool.allocate(1),
            lambda: pool.free(address),
            pool.stats,
            pool.snapshot,
            pool.reset_peaks,
            pool.trim,
            pool.close,
            lambda: pool.can_allocate(1),
            lambda: pooled.install(pool),
            lambda: pooled.install(pool, process_wide=True),
            lambda: pooled.use(pool),
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match=r"forked.*spawn"):
                call()
        data[:] = 1
        held.clear()
        del a, data, calls
        own = Pool("1MiB")
        with own.allocate(1000) as b:
            np.frombuffer(b, np.uint8)[:] = 5
        assert own.stats().num_live == 0

    try:
        for _ in range(20):
            assert in_child(child) == 0
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
    assert isinstance(held[1], np.ndarray)
    assert (held[1] == 77).all()
    assert rounds[0] > 0
    stats = pool.stats()
    assert (stats.num_live, stats.num_allocs) == (1, rounds[0] + 1)
    held.clear()
    assert pool.trim() > 0
    assert pool.stats().reserved == 0


def test_a_child_forked_while_a_source_is_asked_does_not_hang() -> None:
    entered, go = threading.Event(), threading.Event()

    class Slow:
        def reserve(self, nbytes: int, alignment: int) -> tuple[int, int]:
            entered.set()
            go.wait(20)
            return 1 << 20, nbytes

        def release(self, address: int, nbytes: int) -> None:
            pass

    pool = Pool("64MiB", source=Slow())
    thread = threading.Thread(target=pool.malloc, args=(1,))
    thread.start()
    assert entered.wait(10)

    def child() -> None:
        with pytest.raises(RuntimeError, match="fork"):
            pool.trim()

    assert in_child(child) == 0
    go.set()
    thread.join(10)
    assert pool.stats().num_live == 1


def test_a_child_that_ends_by_itself_says_nothing_and_does_not_disturb_the_parent() -> None:
    done = run_program(
        """
        import os, sys
        import numpy as np
        from allotment import Allocation, Pool
        pool = Pool("64MiB")
        a = np.frombuffer(pool.allocate(1 << 20), np.uint8)
        raw = pool.malloc(1000)
        a[:] = 9
        pid = os.fork()
        if pid == 0:
            sys.exit(int(a.sum() != 9 << 20))
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (a == 9).all()
        assert pool.stats().num_live == 2
        pool.free(raw)
        """
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_a_child_forked_from_c_is_noticed_before_any_hook() -> None:
    done = run_program(
        """
        import ctypes, os, threading, warnings
        # Python warns of forks beside threads from 3.12 on.
        warnings.simplefilter("ignore")
        answers = []
        os.register_at_fork(after_in_child=lambda: answers.append(ask()))
        from allotment import HostMemory, Pool
        memory = HostMemory("64MiB")
        pool = Pool("64MiB", source=memory)
        blocks = [pool.malloc(256) for _ in range(20_000)]
        def ask():
            try:
                pool.stats()
            except RuntimeError:
                return "refused"
        def busy():
            while True:
                pool.snapshot()
        threading.Thread(target=busy, daemon=True).start()
        for fork in (os.fork, ctypes.PyDLL(None).fork):
            for _ in range(20):
                pid = fork()
                if pid == 0:
                    own = Pool("32MiB", source=memory)
                    own.malloc("16MiB")
                    os._exit(0 if ask() == "refused" and "refused" in [*answers, "refused"] else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_forked_while_all_pools_are_asked_makes_and_counts_its_own() -> None:
    done = run_program(
        """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        from allotment import Pool
        from allotment._core import all_stats
        pools = [Pool("1MiB") for _ in range(200)]
        def busy():
            while True:
                all_stats()
        for _ in range(3):
            threading.Thread(target=busy, daemon=True).start()
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                own = Pool("1MiB", name="own")
                os._exit([name for name, _, _ in all_stats()] != ["own"])
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_process_started_by_fork_makes_its_own_pool() -> None:
    done = run_program(
        """
        import multiprocessing
        from allotment import Allocation, Pool
        pool = Pool("64MiB")
        kept = pool.allocate(1000)
        def work(size):
            with Pool("64MiB").allocate(size) as a:
                return len(memoryview(a))
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as workers:
                assert workers.map(work, range(1, 200)) == list(range(1, 200))
            assert pool.stats().num_live == 1
        """
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_the_events_of_a_recording_are_an_error_in_a_child() -> None:
    pool = Pool("1MiB")
    recording = pool.record(events=100)
    pool.free(pool.malloc(10))

    def read() -> None:
        # Another thread may hold the buffer's lock when the process forks.
        for reading in (lambda: recording.lost, recording.columns):
            with pytest.raises(RuntimeError, match="fork"):
                reading()
        recording.stop()

    assert in_child(read) == 0
    assert recording.lost == 0


#: Blocks in which a program forks, by name.
BLOCKS = {
    "pool": "pool",
    "pool in guard mode": "guarded",
    "pool that is trimmed when idle": "Pool('1MiB', idle_trim_seconds=0.001)",
    "scope": "pool.scope('step')",
    "scope of every thread": "pool.scope('step', limit=1000, every_thread=True)",
    "scope of all devices": "allotment.experimental.memory_scope('step')",
    "scope of a device": "allotment.experimental.memory_scope('step', 'GPU:0', limit=1000)",
    "allocation": "pool.allocate(1000)",
    "allocation with a view": "viewed",
    "arrays": "pooled.use(pool)",
    "device": "tf.device('GPU:1')",
    "tape": "tf.GradientTape()",
    "strategy": "strategy.scope()",
    "session": "tf.compat.v1.Session(graph=tf.Graph())",
    "all of them": "pool, pool.scope('a'), pool.scope('b'), pool.allocate(5), pooled.use(guarded)",
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    ("end", "status"), [("sys.exit(7)", 7), ("return", 5), ("raise ValueError('mine')", 1)]
)
def test_b215_the_end_of_a_block_in_a_child_is_the_program_s_own(block: str, end: str, status: int) -> None:
    done = run_on_gpus(
        "2:16MiB",
        f"""
        import os, sys
        import numpy as np
        import allotment
        import allotment.tf as tf
        from allotment import Pool
        from allotment.integrations import numpy as pooled
        pool, guarded = Pool("1MiB"), Pool("1MiB", guard=True)
        guarded.malloc(10)
        viewed = pool.allocate(1000)
        array = np.frombuffer(viewed, np.uint8)
        strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
        strategy.run(lambda: tf.ones([2]))
        def fork():
            pid = os.fork()
            if pid == 0:
                {end}
            else:
                print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
                os._exit(0)
        with {BLOCKS[block]}:
            fork()
        sys.exit(5)
        """,
    )
    assert done.stdout == f"{status}\n", done.stderr
    assert "RuntimeError" not in done.stderr


@pytest.mark.parametrize(
    "end", ["sys.exit(7)", "return 1", "raise ValueError('mine')", "return context.all_reduce('SUM', one)"]
)
def test_a_child_that_a_replica_forks_ends(end: str) -> None:
    # It has no thread but this one: no other replica comes, and nothing waits for this one.
    done = run_on_gpus(
        "2:16MiB",
        f"""
        import os, sys
        import allotment
        import allotment.tf as tf
        def step():
            context = tf.distribute.get_replica_context()
            one = tf.ones([2])
            if context.replica_id_in_sync_group == 0:
                pid = os.fork()
                if pid == 0:
                    {end}
                os.waitpid(pid, 0)
            return context.all_reduce("SUM", one)
        print(tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]).run(step).values[0].numpy()[0])
        """,
    )
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


def test_a_child_trims_idle_pools_of_its_own() -> None:
    kept = [Pool("1MiB", idle_trim_seconds=86400) for _ in range(10)]

    def child() -> None:
        pool = Pool("64MiB", idle_trim_seconds=0.005)
        pool.free(pool.malloc("8MiB"))
        end = time.monotonic() + 8
        while pool.stats().reserved:
            assert time.monotonic() < end
            time.sleep(0.005)
        kept.clear()

    for _ in range(5):
        assert in_child(child) == 0
    assert len(kept) == 10
