"""Threads that run replicas, kept for further steps when their replica has ended."""

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final


class Worker:
    """A thread that runs one job after another.

    It is a daemon thread: neither a replica that hangs nor an idle worker keeps a program from ending.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name="replica", daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int:
        """The thread's identifier, as in ``sys._current_frames``."""
        ident = self._thread.ident
        assert ident is not None, "it was started"
        return ident

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job after those submitted before. It must not raise."""
        self._jobs.put(job)

    def retire(self) -> None:
        """End the thread once its jobs are done."""
        self._jobs.put(None)


def _work(jobs: "SimpleQueue[Callable[[], None] | None]") -> None:
    process = os.getpid()
    # A child that a job forked has no other worker.
    while os.getpid() == process and (job := jobs.get()) is not None:
        job()
        # A reference here would keep the step's values alive while the thread waits.
        del job


#: Workers without a job. A deque's ends are safe for threads.
_idle: Final[deque[Worker]] = deque()

# A forked child has none of these threads.
os.register_at_fork(after_in_child=_idle.clear)


def take_worker() -> Worker:
    """Take an idle worker, or start one."""
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def give_back(worker: Worker) -> None:
    """Return a worker whose job has ended, or is about to."""
    _idle.append(worker)


__all__ = ["Worker", "give_back", "take_worker"]
