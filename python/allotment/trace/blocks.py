"""Makes a program of events that name blocks by address, some of which began before the recording."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

#: Most bytes that a request of a trace may have; that of a recorded program.
MAX_BYTES = 1 << 57


@dataclass(slots=True)
class Block:
    """A block: its number in the program, its bytes as requested, the numbers of its stream and its owner."""

    id: int
    size: int
    stream: int
    owner: int = -1


class BlockEvents:
    """Collects allocations and frees by address.

    A block that is freed without an allocation was there before the first event, unless an event before its free named
    its address: then its allocation is missing, and is taken to come just before the free.
    """

    def __init__(self) -> None:
        self.op = array("q")
        self.id = array("q")
        self.size = array("q")
        self.stream = array("q")
        #: The number of each event's owner, -1 for none, its time in nanoseconds, and its thread.
        self.owner = array("q")
        self.time = array("q")
        self.thread = array("q")
        #: Blocks from before the recording, by address and number.
        self.before: dict[tuple[int, int], Block] = {}
        self.live: dict[int, Block] = {}
        #: Bytes live by the events alone: negative once more was freed than allocated.
        self.live_bytes = 0
        #: Allocations at an address that was in use: the free in between is not in the file.
        self.frees_missing = 0
        #: Frees at an address that was free again: the allocation in between is not in the file.
        self.allocations_missing = 0
        #: Frees with another size than their allocation's.
        self.sizes_differing = 0
        self._streams: dict[object, int] = {}
        self._seen: set[int] = set()
        self._next = 0

    @property
    def events(self) -> int:
        """Number of events so far, without those of blocks from before."""
        return len(self.op)

    @property
    def streams(self) -> int:
        """Number of streams so far."""
        return max(len(self._streams), 1)

    def allocate(
        self, address: int, size: int, stream: object = 0, owner: int = -1, time: int = 0, thread: int = 0
    ) -> None:
        """Add an allocation. A block that is live at the address is freed first, and counted."""
        if (lost := self.live.pop(address, None)) is not None:
            self.frees_missing += 1
            self._add(2, lost, time, thread)
        block = self._block(size, stream, owner)
        self.live[address] = block
        self._seen.add(address)
        self._add(1, block, time, thread)

    def free(self, address: int, size: int, stream: object = 0, time: int = 0, thread: int = 0) -> None:
        """Add a free of ``size`` bytes. See the class for one without an allocation."""
        block = self.live.pop(address, None)
        if block is None and address in self._seen:
            # A block from before would have been in use together with those that had its address.
            self.allocations_missing += 1
            block = self._block(size, stream)
            self._add(1, block, time, thread)
        elif block is None:
            block = self._block(size, stream)
            self.before[address, block.id] = block
            self._seen.add(address)
        elif block.size != size:
            self.sizes_differing += 1
        self._add(2, block, time, thread)

    def add_before(self, address: int, size: int, stream: object, owner: int) -> None:
        """Add a block that is live before the first event."""
        block = self._block(size, stream, owner)
        self.live[address] = self.before[address, block.id] = block

    def add_survivors(self, survivors: Iterable[tuple[int, int, object, int]]) -> int:
        """Add blocks that are live at the end, as (address, size, stream, owner), if no event names them.

        Returns the number of blocks whose address other events have: their allocation is missing, and they are
        added at the end.
        """
        unexplained = 0
        for address, size, stream, owner in survivors:
            if address in self.live:
                continue
            if address in self._seen:
                unexplained += 1
                self.allocate(address, size, stream, owner, self.time[-1] if self.time else 0)
            else:
                self.add_before(address, size, stream, owner)
        return unexplained

    @property
    def live_before(self) -> int:
        """Bytes of the blocks from before."""
        return sum(block.size for block in self.before.values())

    def columns(self) -> "tuple[memoryview[int], memoryview[int], memoryview[int], memoryview[int]]":
        """Return kinds, numbers, sizes and streams of all events: blocks from before come first, by address."""
        first = [self.before[key] for key in sorted(self.before)]
        return (
            _whole([1] * len(first), self.op),
            _whole((block.id for block in first), self.id),
            _whole((block.size for block in first), self.size),
            _whole((block.stream for block in first), self.stream),
        )

    def owners(self) -> "tuple[memoryview[int], memoryview[int]]":
        """Return owners and times of all events, in the order of :meth:`columns`."""
        first = [self.before[key].owner for key in sorted(self.before)]
        return _whole(first, self.owner), _whole(self.time[:1] * len(first), self.time)

    def threads(self) -> "memoryview[int]":
        """Return the threads of all events, in the order of :meth:`columns`. Blocks from before have the first one."""
        return _whole(self.thread[:1] * len(self.before), self.thread)

    def missing(self) -> list[str]:
        """Return sentences on what the file does not have."""
        said = []
        if self.before:
            size = f"of {counted(self.live_before, 'byte')}"
            blocks = counted(len(self.before), "block", f"{size} was", f"{size} were")
            said.append(f"{blocks} there before the first event: the peak before it is not known")
        if self.frees_missing:
            missing = counted(self.frees_missing, "free", "is missing", "are missing")
            said.append(f"{missing} between two allocations of one address")
        if self.allocations_missing:
            missing = counted(self.allocations_missing, "allocation", "is missing", "are missing")
            said.append(f"{missing} between two frees of one address")
        if self.sizes_differing:
            said.append(f"{counted(self.sizes_differing, 'free')} had another size than the allocation")
        return said

    def _block(self, size: int, stream: object, owner: int = -1) -> Block:
        number = self._streams.setdefault(stream, len(self._streams))
        self._next += 1
        return Block(self._next, size, number, owner)

    def _add(self, op: int, block: Block, time: int, thread: int) -> None:
        self.op.append(op)
        self.id.append(block.id)
        self.size.append(block.size)
        self.stream.append(block.stream)
        self.owner.append(block.owner)
        self.time.append(time)
        self.thread.append(thread)
        self.live_bytes += block.size if op == 1 else -block.size


def _whole(first: Iterable[int], part: "array[int]") -> "memoryview[int]":
    whole = array("q", first)
    whole.extend(part)
    return memoryview(whole)


def counted(number: int, noun: str, one: str = "", more: str = "") -> str:
    """Return a number with its noun, and a verb that fits it.

    Args:
        number: The number.
        noun: The noun for one; more get an ``s``.
        one: The verb for one, such as ``was``.
        more: The verb for all other numbers, such as ``were``.
    """
    text, verb = (f"{number} {noun}", one) if number == 1 else (f"{number} {noun}s", more)
    return f"{text} {verb}" if verb else text
