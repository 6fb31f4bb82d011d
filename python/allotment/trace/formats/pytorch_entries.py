"""Entries of a device's trace in snapshots of PyTorch, and checks of what a snapshot says."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, overload

from allotment._core import PickledRows, PickledStacks
from allotment.trace.blocks import MAX_BYTES, BlockEvents
from allotment.trace.recording import RecordedRefusal, fault

#: Entries that allocate or free a block.
_BLOCKS = ("alloc", "free_completed", "free")

#: Entries that change the reserved bytes, and how. Segments of ``expandable_segments`` are mapped in pieces.
RESERVE = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

#: Times from here on are none: 1 µs after them 64 bits of nanoseconds do not hold them.
_MAX_MICROSECONDS = 1 << 53


class StackTexts(Sequence[str]):
    """The texts of stacks, a frame in each line; each is made when it is asked for, as most are not."""

    def __init__(self, stacks: PickledStacks) -> None:
        self._stacks = stacks

    def __len__(self) -> int:
        return len(self._stacks)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self._stacks[number] for number in range(*place.indices(len(self))))
        return self._stacks[range(len(self))[place]]

    def __repr__(self) -> str:
        return f"<texts of {len(self)} stacks>"


class DeviceTrace:
    """Goes through the entries of a device's trace."""

    def __init__(self, path: str, device: int) -> None:
        self.path = path
        self.device = device
        self.has_entries = False
        self.events = BlockEvents()
        self.stacks = PickledStacks()
        #: Entries that neither allocate nor free, and texts of ``user_metadata``, with their numbers.
        self.entries: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        self.first_time: int | None = None
        self.refusals: list[tuple[int, RecordedRefusal]] = []
        #: Bytes reserved since the first entry, and their maximum.
        self.reserved = self.peak = 0
        #: The last entry that changed something.
        self.last_change = -1

    def read(self, rows: PickledRows) -> None:
        """Go through all entries. Only those that columns do not describe are made as objects."""
        self.has_entries = len(rows) > 0
        actions, kinds = _texts(rows, "action")
        blocks = {number: kind == "alloc" for number, kind in enumerate(kinds) if kind in _BLOCKS}
        reserves = {number: RESERVE[kind] for number, kind in enumerate(kinds) if kind in RESERVE}
        others = {number for number, kind in enumerate(kinds) if kind not in {*_BLOCKS, *RESERVE, "oom"}}
        addresses, has_address = rows.integers("addr", most=(1 << 64) - 1)
        sizes, has_size = rows.integers("size", most=MAX_BYTES)
        streams, has_stream = rows.integers("stream", most=(1 << 63) - 1)
        times, has_time = rows.integers("time_us", most=_MAX_MICROSECONDS - 1)
        allocations = bytes(blocks.get(kind, False) for kind in actions)
        stacks = rows.stacks("frames", self.stacks, allocations)
        for number, (kind, address, size, stream, time, a, s, t, timed, stack) in enumerate(
            zip(
                actions,
                *(memoryview(column).cast("Q") for column in (addresses, sizes, streams, times)),
                *(has_address, has_size, has_stream, has_time),
                memoryview(stacks).cast("i"),
                strict=True,
            )
        ):
            if kind in blocks and a and s and t:
                self._block(blocks[kind], address, size, stream, time if timed else None, stack)
                self.last_change = number
            elif kind in reserves and s:
                self._reserve(reserves[kind] * size)
                self.last_change = number
            elif kind not in others:
                self._whole(number, rows[number], time if timed else None)
        counts = Counter(actions)
        self.entries = {kind: counts[number] for number, kind in enumerate(kinds) if kind not in _BLOCKS}
        metadata, texts = _texts(rows, "user_metadata")
        counts = Counter(metadata)
        self.texts = {text: counts[number] for number, text in enumerate(texts) if text}

    def _block(
        self, is_new: bool, address: int, size: int, stream: object, time: int | None, stack: int
    ) -> None:
        if time is None:
            time = self.first_time or 0
        elif self.first_time is None:
            self.first_time = time
        nanoseconds = 1000 * max(time - (self.first_time or 0), 0)
        if is_new:
            self.events.allocate(address, size, stream, stack, nanoseconds)
        else:
            self.events.free(address, size, stream, nanoseconds)

    def _reserve(self, nbytes: int) -> None:
        self.reserved += nbytes
        self.peak = max(self.peak, self.reserved)

    def _whole(self, number: int, entry: Any, time: int | None) -> None:
        """Take an entry that is an out-of-memory error, or has a number that columns do not."""
        path, place = self.path, f"device_traces[{self.device}][{number}]"
        action = mapping(path, place, entry).get("action")
        if not isinstance(action, str):
            raise fault(path, f"{place}: action is {_shown(action)}, not a text")
        address = integer(path, place, entry, "addr") if action in _BLOCKS else 0
        size = integer(path, place, entry, "size")
        if action in RESERVE:
            self._reserve(RESERVE[action] * size)
            self.last_change = number
        elif action in _BLOCKS:
            stream = entry.get("stream", 0)
            stack = self.stacks.number(entry.get("frames"))
            if not isinstance(stream, int | str):
                raise fault(path, f"{place}: stream is {_shown(stream)}, not an integer")
            self._block(action == "alloc", address, size, stream, time, stack)
            self.last_change = number
        else:
            # Its stack is none of a block.
            stacks = PickledStacks()
            refused = RecordedRefusal(
                self.events.events,
                f"entry {number}" if self.device == 0 else f"entry {number} of device {self.device}",
                size,
                self.events.live_bytes,
                integer(path, place, entry, "device_free") if "device_free" in entry else None,
                self.reserved,
                stack=None if stacks.number(entry.get("frames")) < 0 else stacks[0],
            )
            self.refusals.append((number, refused))


def _shown(value: object) -> str:
    """Show a number, and of all else the type: a container may hold one value in very many places."""
    return repr(value) if value is None or isinstance(value, int | float) else f"a {type(value).__name__}"


def _texts(rows: PickledRows, key: str) -> "tuple[memoryview[int], list[str]]":
    numbers, texts = rows.texts(key)
    return memoryview(numbers).cast("i"), texts


def mapping(path: str, place: str, value: Any) -> dict[str, Any]:
    """Return a value that must be a dictionary.

    Raises:
        TraceError: It is something else; the text names the place in the file.
    """
    if isinstance(value, dict):
        return value
    raise fault(path, f"{place}: must be a dictionary, is {type(value).__name__}")


def integer(path: str, place: str, value: Any, key: str, least: int = 0) -> int:
    """Return the integer under a key of a dictionary: an address, or bytes from ``least`` on.

    Raises:
        TraceError: The value is no dictionary or has no such integer; the text names the place in the file.
    """
    number = mapping(path, place, value).get(key)
    if type(number) is not int:
        what = "is missing" if number is None else f"must be an integer, is {type(number).__name__}"
        raise fault(path, f"{place}: {key} {what}")
    most = 1 << 64 if key in ("addr", "address") else MAX_BYTES
    if not least <= number <= most:
        raise fault(path, f"{place}: {key} {number} is not between {least} and {most}")
    return number
