"""The processes of a program that MPI started, and their collective calls, which have deadlines.

MPI performs reductions, on the arrays in place. ``ProcessGroup`` adds deadlines, and errors that name the process to
blame: a process that fails tells the others, and a process whose deadline has passed asks which others wait, too.
Before they exchange values, the processes compare their calls.

    a step fails in every process, and none waits         all may go on
    a step fails in one process, and others wait for it   they raise, and the group is lost
    a process reaches its deadline, or ends               the others raise, and the group is lost

MPI cannot cancel a collective operation: a lost group stays lost, every call raises, and the end of a process ends all
others (``end.py``).

Longer than 300 lines: the states of the group and the waits that change them belong together.
"""

import logging
import os
import platform
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from allotment import errors
from allotment.tf.distribute.processes.messages import Kind, Message, Messages

if TYPE_CHECKING:
    from mpi4py import MPI

Array = np.ndarray[Any, Any]

_logger: Final = logging.getLogger("allotment.tf.distribute")

#: Seconds that a process waits for answers of others, and for the last operations of a process that has ended.
GRACE: Final = 1.0
#: The length in bytes of the description of a call when it is sent.
_DESCRIPTION_BYTES: Final = 512


class ProcessGroup:
    """All processes of the program, and the collective calls of this one.

    Args:
        mpi: The module ``mpi4py.MPI``.
    """

    def __init__(self, mpi: Any) -> None:
        world: MPI.Intracomm = mpi.COMM_WORLD
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._mpi = mpi
        #: The reason if the group is lost.
        self.lost: str | None = None
        #: The last call that can still be finished, because the process to blame has done its part.
        self._lost_after = -1
        #: The processes that have ended.
        self._finished: set[int] = set()
        #: The processes in which a step failed: the number of their last call, and the error.
        self._failed: dict[int, tuple[int, str]] = {}
        #: The number of this process's last call before a step failed.
        self._failed_after = -1
        self._others: Final = [each for each in range(self.size) if each != self.rank]
        #: Host and process number of the processes that have sent it.
        self._places = {self.rank: f"PID {os.getpid()} on {platform.node()}"}
        #: The calls that the processes wait in that have answered.
        self._waiting: dict[int, str] = {}
        #: The call that this process waits in; the number of its calls, and of those that are done.
        self._waits_in = ""
        self._calls = 0
        self._done = 0
        #: The requests and buffers that MPI may still write to.
        self._pinned: list[Any] = []
        self._messages = Messages(world)
        self._communicator: MPI.Intracomm

    def wait_for_all(self, deadline: float | None) -> None:
        """Wait for the other processes to make their groups.

        Raises:
            DeadlineExceededError: A process did not make its group in time.
            UnavailableError: A process failed before.
        """
        self._messages.send(Kind.HELLO, self._places[self.rank], self._others)
        try:
            self._wait(lambda: len(self._places) == self.size, "the start of all processes", deadline)
        except BaseException as error:
            self.declare_lost(error)
            raise
        self._communicator = self._mpi.COMM_WORLD.Dup()
        _logger.info("processes: %s", ", ".join(map(self.named, range(self.size))))

    def named(self, process: int) -> str:
        """Return the name of a process for messages; its rank is the one that ``mpirun`` uses."""
        place = f" ({self._places[process]})" if process in self._places else ""
        return f"rank {process} of {self.size}{place}"

    def all_reduce(self, arrays: Sequence[Array], what: str, deadline: float | None) -> None:
        """Add up arrays with those of the other processes, in place. Each process gets the same bits.

        Raises:
            RuntimeError: The processes are not in the same call, with the same shapes and types.
            DeadlineExceededError: A process does not take part in time.
            UnavailableError: A process failed, or has ended.
        """
        with self._call(f"{what} of {', '.join(map(_describe, arrays))}", deadline):
            summable = [_summable(each) for each in arrays]
            requests = [self._communicator.Iallreduce(self._mpi.IN_PLACE, each) for each in summable]
            self._wait_for(requests, summable, what, deadline)
            for array, total in zip(arrays, summable, strict=True):
                if total is not array:
                    array[...] = total

    def broadcast(self, array: Array, what: str, deadline: float | None) -> None:
        """Replace an array's elements by those of the first process. Raises as ``all_reduce`` does."""
        with self._call(f"{what} of {_describe(array)}", deadline):
            self._wait_for([self._communicator.Ibcast(_bytes(array), 0)], [array], what, deadline)

    def all_gather(
        self, array: Array, make: Callable[[int], Array], what: str, deadline: float | None
    ) -> list[Array]:
        """Return the arrays of all processes, of one axis each and of any length. Raises as ``all_reduce`` does.

        Args:
            array: The array of this process.
            make: Makes an array of that type and of a given length, for the arrays of all processes.
            what: The description of the call.
            deadline: The longest wait in seconds.
        """
        with self._call(f"{what} of {array.dtype}[...]", deadline):
            sizes = np.zeros(self.size, np.int64)
            sizes[self.rank] = array.size
            request = self._communicator.Iallgather(self._mpi.IN_PLACE, sizes)
            self._wait_for([request], [sizes], what, deadline)
            whole = make(int(sizes.sum()))
            parts = [_bytes(whole), sizes * array.itemsize]
            request = self._communicator.Iallgatherv(_bytes(array), parts)
            self._wait_for([request], [array, whole, sizes], what, deadline)
        return np.split(whole, np.cumsum(sizes)[:-1])

    def fail(self, error: BaseException) -> None:
        """Send the others the error of a step that failed here: processes that wait for this one in that step raise."""
        if self.lost is None:
            self._failed_after = self._done
            self._failed = {
                each: failure for each, failure in self._failed.items() if failure[0] != self._done
            }
            self._messages.send(Kind.FAILED, f"{self._done} {_error_text(error)}", self._others)

    def declare_lost(self, error: BaseException) -> None:
        """Give up the group because of an error in this process, and tell the others."""
        self._set_lost(self.rank, _error_text(error))

    def finish(self) -> None:
        """Send the others that this process ends, and wait until they end or the group is lost."""
        self._messages.send(Kind.FINISHED, "", self._others)
        while self.lost is None and len(self._finished) < len(self._others):
            self._receive()
            time.sleep(0.002)

    def abort(self) -> None:
        """End all processes, after a grace period in which they receive and report the reason."""
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            self._messages.remove_sent()
            time.sleep(0.01)
        self._mpi.COMM_WORLD.Abort(1)

    def is_finalized(self) -> bool:
        """Whether the program has finalized MPI itself."""
        finalized: bool = self._mpi.Is_finalized()
        return finalized

    @contextmanager
    def _call(self, what: str, deadline: float | None) -> Iterator[None]:
        """Compare a call with those of the other processes around a ``with`` block; an error in it loses the group."""
        self._calls += 1
        try:
            self._check(what)
            calls = self._compare(what, deadline)
            if not calls:
                yield
        except BaseException as error:
            self.declare_lost(error)
            raise
        self._done = self._calls
        if calls:
            calls_of_all = "; ".join(f"{self.named(process)} in {call}" for process, call in enumerate(calls))
            raise RuntimeError(
                f"Processes wait for each other in different calls: {calls_of_all}. Every process has to make the same "
                "calls, in the same order, with the same shapes and types."
            )

    def _compare(self, what: str, deadline: float | None) -> list[str]:
        """Return the calls of all processes if they differ, or an empty list."""
        number = zlib.crc32(what.encode())
        extremes = np.array([number, -number], np.int64)
        request = self._communicator.Iallreduce(self._mpi.IN_PLACE, extremes, self._mpi.MAX)
        self._wait_for([request], [extremes], what, deadline)
        if extremes[0] == -extremes[1]:
            return []
        calls = np.zeros((self.size, _DESCRIPTION_BYTES), np.uint8)
        text = np.frombuffer(what.encode()[:_DESCRIPTION_BYTES], np.uint8)
        calls[self.rank, : len(text)] = text
        request = self._communicator.Iallgather(self._mpi.IN_PLACE, calls)
        self._wait_for([request], [calls], what, deadline)
        return [bytes(call).rstrip(bytes(1)).decode(errors="replace") for call in calls]

    def _wait_for(self, requests: list[Any], buffers: list[Array], what: str, deadline: float | None) -> None:
        def done() -> bool:
            while requests and requests[0].Test():
                del requests[0]
            return not requests

        try:
            self._wait(done, what, deadline)
        except BaseException:
            self._pinned += [requests, buffers]
            raise

    def _wait(self, done: Callable[[], bool], what: str, deadline: float | None) -> None:
        self._waits_in = f"call {self._calls}, {what}"
        begun = time.monotonic()
        end = None if deadline is None else begun + deadline
        give_up_at = None
        try:
            while not done():
                self._receive()
                now = time.monotonic()
                self._check(what)
                if self._finished:
                    # If it took part in this call, its last message arrives soon.
                    give_up_at = give_up_at or now + GRACE
                    if now > give_up_at:
                        self._set_lost(min(self._finished), "reached the end of its program")
                if end is not None and now > end:
                    assert deadline is not None
                    if self._ask_others(done):
                        return
                    raise self._deadline_error(what, deadline)
                _back_off(now - begun)
        finally:
            self._waits_in = ""

    def _receive(self) -> None:
        for message in self._messages.receive():
            self._handle(message)

    def _handle(self, message: Message) -> None:
        process, kind, text = message
        if kind is Kind.HELLO:
            self._places[process] = text
        elif kind is Kind.FINISHED:
            self._finished.add(process)
        elif kind is Kind.QUERY:
            if self._waits_in:
                self._messages.send(Kind.WAITING, self._waits_in, [process])
        elif kind is Kind.WAITING:
            self._waiting[process] = text
        else:
            number, _, error = text.partition(" ")
            if kind is Kind.LOST:
                if self.lost is None:
                    self.lost, self._lost_after = error, int(number)
            elif int(number) != self._failed_after:
                # If the step failed here, too, no process waits for another.
                self._failed[process] = (int(number), error)

    def _check(self, what: str) -> None:
        """Check that the group is not lost.

        Raises:
            UnavailableError: It is.
        """
        for process, (number, error) in self._failed.items():
            if number < self._calls:
                self._set_lost(process, error)
        if self.lost is not None and self._lost_after < self._calls:
            raise errors.UnavailableError(
                None, None, f"{what}: the processes do not work together any more. {self.lost}"
            )

    def _ask_others(self, done: Callable[[], bool]) -> bool:
        """Ask the other processes what they wait in, and collect answers; returns early if the call is done."""
        self._waiting.clear()
        self._messages.send(Kind.QUERY, "", self._others)
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            if done():
                return True
            self._receive()
            time.sleep(0.001)
        return False

    def _deadline_error(self, what: str, deadline: float) -> errors.OpError:
        missing = [self.named(each) for each in self._others if each not in self._waiting]
        waiting = [f"{self.named(each)} waits in {text}" for each, text in sorted(self._waiting.items())]
        blamed = f"{', '.join(missing)} did not answer. " if missing else "all of them wait. "
        return errors.DeadlineExceededError(
            None,
            None,
            f"{what}: waited {deadline:g} s for the other processes; {blamed}"
            f"{'; '.join(waiting) + '. ' if waiting else ''}"
            "Set a longer deadline with CommunicationOptions(timeout_seconds=...), "
            "strategy.extended.replica_deadline or ALLOTMENT_REPLICA_DEADLINE, in seconds.",
        )

    def _set_lost(self, process: int, reason: str) -> None:
        """Mark the group as lost because of a process, once, and tell the others."""
        if self.lost is None:
            self.lost = f"{self.named(process)}: {reason}"
            self._messages.send(Kind.LOST, f"{self._done} {self.lost}", self._others)


def _back_off(waited: float) -> None:
    """Sleep between two checks, longer the longer the wait takes."""
    if waited < 0.002:
        time.sleep(0)
    else:
        time.sleep(0.0001 if waited < 0.1 else 0.001)


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _describe(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _summable(array: Array) -> Array:
    """Return the array, or a copy of a type that MPI can add up."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


__all__ = ["ProcessGroup"]
