"""Short messages between the processes of a program, apart from their collective operations."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mpi4py import MPI

#: A text that is longer is cut.
_LONGEST_BYTES = 4096


class Kind(IntEnum):
    """The kind of a message. The numbers are MPI tags that a program is not likely to use."""

    #: The sender has started. Text: host and process number.
    HELLO = 28_101
    #: A step of the sender failed, so that it makes no more calls of the step. Text: number of its last call, error.
    FAILED = 28_102
    #: The sender has given up the group. Text: number of its last call, error.
    LOST = 28_103
    #: The sender has ended.
    FINISHED = 28_104
    #: The sender asks whether the receiver waits in a call.
    QUERY = 28_105
    #: The answer: the sender waits. Text: the call.
    WAITING = 28_106


class Message(NamedTuple):
    """A message that has arrived, and the rank of its sender."""

    process: int
    kind: Kind
    text: str


class Messages:
    """Sends and receives messages without waiting.

    Args:
        communicator: The MPI communicator.
    """

    def __init__(self, communicator: "MPI.Comm") -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._communicator = communicator
        #: The requests that are not complete, with their data, which must live as long.
        self._pending: list[tuple[Any, bytes]] = []

    def send(self, kind: Kind, text: str, processes: Iterable[int]) -> None:
        """Send a message to each of several processes."""
        data = text.encode()[:_LONGEST_BYTES]
        for process in processes:
            self._pending.append((self._communicator.Isend([data, self._mpi.BYTE], process, kind), data))

    def receive(self) -> Iterator[Message]:
        """Receive the messages that have arrived."""
        status = self._mpi.Status()
        for kind in Kind:
            while self._communicator.Iprobe(self._mpi.ANY_SOURCE, kind, status):
                data = bytearray(status.Get_count(self._mpi.BYTE))
                self._communicator.Recv([data, self._mpi.BYTE], status.Get_source(), kind)
                yield Message(status.Get_source(), kind, data.decode(errors="replace"))

    def remove_sent(self) -> None:
        """Drop the requests that are complete."""
        self._pending = [each for each in self._pending if not each[0].Test()]


__all__ = ["Kind", "Message", "Messages"]
