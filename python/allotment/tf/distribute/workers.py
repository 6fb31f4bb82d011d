"""The threads that replicas run on: kept between steps, and given up when they do not come back."""

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final


class Worker:
    """A thread that does one job after another.

    It is a daemon: a program ends with a replica that hangs, and with idle workers.
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

    def do(self, job: Callable[[], None]) -> None:
        """Do a job once the ones before are done. It must not raise."""
        self._jobs.put(job)

    def retire(self) -> None:
        """End the thread once its jobs are done."""
        self._jobs.put(None)


def _work(jobs: "SimpleQueue[Callable[[], None] | None]") -> None:
    process = os.getpid()
    # A child that a job forked has no other worker.
    while os.getpid() == process and (job := jobs.get()) is not None:
        job()
        # While it waits, it holds nothing of a step.
        del job


#: Workers without a job. A deque's ends are safe for threads.
_idle: Final[deque[Worker]] = deque()

# Threads do not come along into a forked child.
os.register_at_fork(after_in_child=_idle.clear)


def hire() -> Worker:
    """Take a worker that is idle, or a new one."""
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def dismiss(worker: Worker) -> None:
    """Give back a worker whose job is done, or as good as done."""
    _idle.append(worker)


__all__ = ["Worker", "dismiss", "hire"]
