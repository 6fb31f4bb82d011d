"""Recorded programs as columns of numbers, with what their files say besides the events."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from allotment._core import Program, format_size, one_line
from allotment.trace.error import TraceError

Kind = Literal["npz", "recording", "pytorch", "lifetimes", "rmm", "tensorflow"]


@dataclass(frozen=True, slots=True)
class RecordedRefusal:
    """An out-of-memory error that the recorded program ran into."""

    #: Number of the event that it comes before, from 0 on.
    event: int
    #: Where the file has it, such as ``"entry 12"`` or ``"line 7"``.
    place: str
    #: Bytes asked for.
    requested: int
    #: Bytes live at that moment, as requested.
    live: int
    #: Bytes that the device had free; ``None`` if the file does not say.
    device_free: int | None = None
    #: Bytes that the recorded allocator held from the device; ``None`` if the file does not say.
    reserved: int | None = None
    #: The largest free block in the reserved bytes; ``None`` if the file does not say.
    largest_free: int | None = None
    #: The stack of the request, a frame in each line, the innermost first; ``None`` if the file does not say.
    stack: str | None = None

    @property
    def text(self) -> str:
        """The request and the reason of its failure, in sentences."""
        said = [f"{self.place}: {_size(self.requested)} asked for with {_size(self.live)} live"]
        if self.reserved is not None:
            said[0] += f" and {_size(self.reserved)} reserved"
        if self.device_free is not None:
            said[0] += f"; the device had {_size(self.device_free)} free"
        if self.device_free is not None and self.device_free >= self.requested:
            said.append(
                "The device's free memory was larger than the request: a limit of the process refused it, or the "
                "segment that the request needed was larger than the request"
            )
        elif self.reserved is not None:
            said.append(self._free_bytes(self.reserved))
        return ". ".join(said) + "."

    def _free_bytes(self, reserved: int) -> str:
        """Say what the bytes were that the allocator held, or the device had free, and no request had."""
        unused, on_device = max(reserved - self.live, 0), self.device_free or 0
        beside = f" and the {_size(on_device)} that the device had free" if on_device else ""
        if unused + on_device < self.requested:
            return f"The {_size(unused)} reserved and not live{beside} would not have sufficed: the memory was full"
        said = f"{_size(unused)} were reserved and not live"
        if self.largest_free is None:
            return (
                f"{said}, yet no piece of them served: they were fragmented, lost inside blocks that are larger than "
                "their requests, or belonged to another stream or pool"
            )
        if self.largest_free >= self.requested:
            return (
                f"{said}, and the largest free block has {_size(self.largest_free)}: it belonged to another stream or "
                "pool, or a split rule kept it"
            )
        if self.largest_free == 0:
            return f"{said}, and no block was free: they were lost inside blocks that are larger than their requests"
        return (
            f"{said}{beside}, in free blocks of at most {_size(self.largest_free)} and inside blocks that are "
            "larger than their requests: the memory was fragmented"
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Facts about a recorded program in its file, besides its events. Amounts are in bytes as requested."""

    kind: Kind
    #: The device, or TensorFlow's allocator; ``None`` if the file has one program only and does not say.
    device: str | None = None
    #: Blocks that were allocated before the first event: the program's first events, by address.
    blocks_at_start: int = 0
    live_at_start: int = 0
    live_at_end: int = 0
    #: Number of streams that blocks were allocated on.
    streams: int = 1
    #: Bytes that the recorded allocator had reserved from the device; ``None`` if the file does not say.
    reserved_at_end: int | None = None
    recorded_peak_reserved: int | None = None
    #: Sentences on what the file cannot tell; empty if it has every event of the program.
    missing: tuple[str, ...] = ()
    #: Entries of the file that neither allocate nor free, by kind, with their number.
    entries: Mapping[str, int] = field(default_factory=dict)
    #: Names of annotations, and texts of ``user_metadata``, each with the number of entries that have it.
    annotations: Mapping[str, int] = field(default_factory=dict)
    #: Settings of the recorded allocator.
    settings: Mapping[str, object] = field(default_factory=dict)
    refusals: tuple[RecordedRefusal, ...] = ()

    @property
    def incomplete(self) -> bool:
        """Whether events are missing, so that the program's peak is at least the one of the trace."""
        return bool(self.missing)

    def completeness(self) -> dict[str, object]:
        """Return whether the trace is incomplete, and what is missing, for JSON."""
        return {"incomplete": self.incomplete, "missing": list(self.missing)}

    def incomplete_lines(self) -> list[str]:
        """Return lines on what is missing for a table of peaks and limits, none if nothing is."""
        if not self.incomplete:
            return []
        said = "incomplete: the program's peak is at least the peak of this trace; it may need more than these limits."
        return [said, *(one_line(f"missing: {text}") for text in self.missing)]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a trace: buffers of 64-bit signed integers, each with one number per event."""

    #: The file's path as the caller gave it.
    path: str
    #: The program's name from the header; ``None`` without one.
    name: str | None
    #: 1 for an allocation, 2 for a free.
    op: "memoryview[int]"
    #: The recorded block's number; a free has that of its allocation.
    id: "memoryview[int]"
    #: Bytes requested.
    size: "memoryview[int]"
    #: The stream of each event, numbered from 0 on; ``None`` if the file has no streams.
    stream: "memoryview[int] | None" = None
    origin: Origin = field(default=Origin("npz"))
    #: The owner of each event's block as an index of ``owners``, -1 for none; ``None`` if the file has no owners.
    owner: "memoryview[int] | None" = None
    #: Texts of owners: a line of Python, or a stack with a frame in each line, the innermost first.
    owners: Sequence[str] = ()
    #: Nanoseconds of each event since the first one; ``None`` if the file has no times.
    t_ns: "memoryview[int] | None" = None
    #: A number for the thread of each event; ``None`` if the file has no threads.
    thread: "memoryview[int] | None" = None

    def with_rounded_sizes(self, multiple: int) -> "Columns":
        """Return the same program with each request rounded up to a multiple of some bytes."""
        sizes = array("q", (-(-size // multiple) * multiple for size in self.size))
        return replace(self, size=memoryview(sizes))

    def program(self, events: int | None = None) -> Program:
        """Check the events and return them as a program to replay.

        Args:
            events: Number of events to take from the start; all by default.

        Raises:
            TraceError: The events are inconsistent, such as a free of a block that was never allocated.
        """
        try:
            return Program(self.op[:events], self.id[:events], self.size[:events])
        except MemoryError as error:
            raise fault(self.path, f"its {len(self.op)} events do not fit into memory") from error
        except ValueError as error:
            raise fault(self.path, str(error)) from error


def fault(path: str, problem: str) -> TraceError:
    """Return the exception for a problem of a file."""
    return TraceError(one_line(f"{path}: {problem}"))


def _size(nbytes: int) -> str:
    return f"{format_size(nbytes)} ({nbytes} bytes)" if nbytes >= 1024 else format_size(nbytes)
