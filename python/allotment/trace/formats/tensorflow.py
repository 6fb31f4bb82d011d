"""Reads memory events of TensorFlow's profiler: ``*.xplane.pb``, and ``*.trace.json.gz`` of versions that write them.

An allocator emits ``MemoryAllocation`` and ``MemoryDeallocation`` under its lock, with the address, the bytes requested
and granted, and its running total (``tensorflow/core/profiler/lib/scoped_memory_debug_annotation.h`` and
``xla/tsl/framework/bfc_allocator.cc``; names of figures in ``xla/tsl/profiler/utils/xplane_schema.cc``).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allotment.trace.blocks import MAX_BYTES, BlockEvents, counted
from allotment.trace.formats.protobuf import Message, ProtobufError
from allotment.trace.recording import Columns, Origin, fault

_ALLOCATION, _DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

#: Figures of an event that are read: address, requested bytes, bytes of the chunk, running total of chunks in use.
#: Times from here on are none; the sum of two in nanoseconds fits into 64 bits.
_MAX_MICROSECONDS = 1 << 52

_FIGURES = ("addr", "requested_bytes", "allocation_bytes", "bytes_allocated")


@dataclass(frozen=True, slots=True)
class _Event:
    """One memory event."""

    picoseconds: int
    allocates: bool
    allocator: str
    #: The operation that the event is of; empty if the profile does not say.
    operation: str
    thread: int
    addr: int
    requested_bytes: int
    allocation_bytes: int
    bytes_allocated: int


def read_json(path: str, content: bytes) -> list[Columns]:
    """Read a trace in Chrome's JSON format: one program for each allocator.

    Raises:
        TraceError: It is not JSON, or has no memory events, as those of recent versions.
    """
    try:
        trace = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise fault(path, f"is not JSON: {error}") from error
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise fault(path, "is JSON, but no trace: it has no list traceEvents")
    found = []
    for number, event in enumerate(events):
        name = event.get("name") if isinstance(event, dict) else None
        if name in (_ALLOCATION, _DEALLOCATION):
            place, figures = f"traceEvents[{number}]", event.get("args")
            time = event.get("ts")
            if (
                not isinstance(figures, dict)
                or not isinstance(time, int | float)
                or not abs(time) < _MAX_MICROSECONDS
            ):
                raise fault(path, f"{place}: needs a number ts and figures in args")
            thread = event.get("tid")
            thread = thread if isinstance(thread, int) else 0
            found.append(_event(path, place, round(time * 1_000_000), name, figures, thread))
    if not found:
        raise fault(
            path,
            f"has no event {_ALLOCATION}: TensorFlow leaves memory events out of its JSON; the *.xplane.pb beside it "
            "has them, if the profiler ran at host tracer level 2 and the allocator is TensorFlow's BFC allocator",
        )
    return _programs(path, found)


def read_xplane(path: str, content: bytes) -> list[Columns]:
    """Read an ``XSpace`` (``xla/tsl/profiler/protobuf/xplane.proto``): one program for each allocator.

    Raises:
        TraceError: It is damaged, or has no memory events.
    """
    try:
        found = list(_xplane_events(path, Message(content)))
    except ProtobufError as error:
        raise fault(path, f"is not a profile of TensorFlow, or is damaged: {error}") from error
    if not found:
        raise fault(
            path, f"is a profile without events {_ALLOCATION}: they come from TensorFlow's BFC allocator only"
        )
    return _programs(path, found)


def _xplane_events(path: str, space: Message) -> Iterator[_Event]:
    """Yield the allocator's events in a profile."""
    for number, plane in enumerate(space.messages(1)):
        names = {entry.integer(1): entry.message(2).text(2) for entry in plane.messages(4)}
        if not {_ALLOCATION, _DEALLOCATION} & set(names.values()):
            continue
        figures = {entry.integer(1): entry.message(2).text(2) for entry in plane.messages(5)}
        for line in plane.messages(3):
            start = line.integer(3) * 1000
            for index, event in enumerate(line.messages(4)):
                name = names.get(event.integer(1))
                if name not in (_ALLOCATION, _DEALLOCATION):
                    continue
                stats = {
                    figures.get(stat.integer(1), ""): _value(stat, figures) for stat in event.messages(4)
                }
                place = f"plane {number}: line {line.integer(1)}: event {index}"
                yield _event(path, place, start + event.integer(2), name, stats, line.integer(1))


def _value(stat: Message, texts: dict[int, str]) -> int | str:
    """Return the integer or text of a statistic; a text may be the name of a statistic."""
    if stat.has(7):
        return texts.get(stat.integer(7), "")
    return stat.text(5) if stat.has(5) else stat.integer(4) or stat.integer(3)


def _event(
    path: str, place: str, picoseconds: int, name: str, figures: dict[str, Any], thread: int
) -> _Event:
    """Return an event of the allocator, after a check of its figures."""
    numbers = []
    for key in _FIGURES:
        try:
            number = int(figures[key])
        except (KeyError, TypeError, ValueError):
            raise fault(
                path, f"{place}: {name} needs a whole number {key}, has {figures.get(key)!r}"
            ) from None
        if key == "addr":
            number %= 1 << 64
        elif not 0 <= number <= MAX_BYTES:
            raise fault(path, f"{place}: {key} {number} is not between 0 and {MAX_BYTES}")
        numbers.append(number)
    allocator, operation = (str(figures.get(key, "")) for key in ("allocator_name", "tf_op"))
    return _Event(picoseconds, name == _ALLOCATION, allocator, operation, thread, *numbers)


def _programs(path: str, found: list[_Event]) -> list[Columns]:
    # Threads have lines of their own. The allocator's lock gives an order, and the times repeat it.
    found.sort(key=lambda event: event.picoseconds)
    allocators = sorted({event.allocator for event in found})
    return [_program(path, name, [one for one in found if one.allocator == name]) for name in allocators]


def _program(path: str, allocator: str, found: list[_Event]) -> Columns:
    """Make the program of one allocator from its events."""
    events = BlockEvents()
    in_use = None
    out_of_order = 0
    chunks: dict[int, int] = {}
    chunks_before = 0
    owners: dict[str, int] = {}
    # The system's numbers of threads are long.
    threads: dict[int, int] = {}
    for event in found:
        thread = threads.setdefault(event.thread, len(threads))
        time = (event.picoseconds - found[0].picoseconds) // 1000
        change = event.allocation_bytes if event.allocates else -event.allocation_bytes
        out_of_order += in_use is not None and in_use + change != event.bytes_allocated
        in_use = event.bytes_allocated
        if event.allocates:
            owner = owners.setdefault(event.operation, len(owners)) if event.operation else -1
            events.allocate(event.addr, event.requested_bytes, owner=owner, time=time, thread=thread)
            chunks[event.addr] = event.allocation_bytes
        else:
            # Deallocations give the requested bytes as allocations do.
            events.free(event.addr, event.requested_bytes, time=time, thread=thread)
            chunks_before += event.allocation_bytes if chunks.pop(event.addr, None) is None else 0
    first = found[0]
    at_start = first.bytes_allocated - (
        first.allocation_bytes if first.allocates else -first.allocation_bytes
    )
    missing = events.missing()
    if out_of_order:
        wrong = counted(out_of_order, "event", "does not", "do not")
        missing.append(f"{wrong} continue the allocator's running total: events are missing")
    if at_start > chunks_before:
        missing.append(
            f"{at_start - chunks_before} bytes of chunks were in use from before the first event to the end: no event "
            "names their blocks, and the replay is without them"
        )
    before = events.live_before
    op, ids, size, _ = events.columns()
    origin = Origin(
        "tensorflow",
        allocator or None,
        blocks_at_start=len(events.before),
        live_at_start=before,
        live_at_end=before + events.live_bytes,
        missing=tuple(missing),
    )
    owner_column, times = events.owners()
    return Columns(
        path,
        None,
        op,
        ids,
        size,
        origin=origin,
        owner=owner_column if owners else None,
        owners=tuple(owners),
        t_ns=times,
        thread=events.threads(),
    )
