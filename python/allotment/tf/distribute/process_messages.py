"""Short messages between the processes of a program, beside what they compute together."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mpi4py import MPI

#: A text that is longer is cut.
_LONGEST_BYTES = 4096


class Kind(IntEnum):
    """What a message says. The numbers are tags, which no other messages of a program are likely to have."""

    #: I am here: host and process number.
    HELLO = 28_101
    #: A step of mine failed, and I do not come to calls that belong to it: the number of my last call, the error.
    FAILED = 28_102
    #: I am beyond help, and wait for nobody any more: the number of my last call, the error.
    LOST = 28_103
    #: I reached the end of my program.
    LEFT = 28_104
    #: Who waits?
    ASKED = 28_105
    #: I wait: what for.
    WAITS = 28_106


class Message(NamedTuple):
    """What a process said."""

    process: int
    kind: Kind
    text: str


class Messages:
    """Sends and receives without ever waiting.

    Args:
        communicator: Whose processes talk.
    """

    def __init__(self, communicator: "MPI.Comm") -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._communicator = communicator
        #: What is on its way, with the bytes that must live until then.
        self._sent: list[tuple[Any, bytes]] = []

    def tell(self, kind: Kind, text: str, processes: Iterable[int]) -> None:
        """Send a message to each of some processes."""
        data = text.encode()[:_LONGEST_BYTES]
        for process in processes:
            self._sent.append((self._communicator.Isend([data, self._mpi.BYTE], process, kind), data))

    def heard(self) -> Iterator[Message]:
        """Take the messages that have arrived."""
        status = self._mpi.Status()
        for kind in Kind:
            while self._communicator.Iprobe(self._mpi.ANY_SOURCE, kind, status):
                data = bytearray(status.Get_count(self._mpi.BYTE))
                self._communicator.Recv([data, self._mpi.BYTE], status.Get_source(), kind)
                yield Message(status.Get_source(), kind, data.decode(errors="replace"))

    def are_sent(self) -> bool:
        """Whether nothing is on its way any more."""
        self._sent = [each for each in self._sent if not each[0].Test()]
        return not self._sent


__all__ = ["Kind", "Message", "Messages"]
