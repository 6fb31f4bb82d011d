"""Reads memory snapshots of PyTorch: pickles that ``torch.cuda.memory._dump_snapshot`` writes.

The layout is that of ``torch/csrc/cuda/memory_snapshot.cpp`` and of ``torch/cuda/memory.py`` in PyTorch's source: a
dictionary with ``segments`` (the allocator's memory at the end, with its blocks) and ``device_traces`` (for each
device a list of the last events). Sizes of events, and ``requested_size`` of blocks, are as the program asked for them.
A block is free again at ``free_completed``: from ``free_requested`` to then other streams may use it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from allotment._core import read_plain_pickle
from allotment.trace.blocks import MAX_BYTES, BlockEvents
from allotment.trace.formats.stacks import Stacks, stack_text
from allotment.trace.recording import Columns, Origin, RecordedRefusal, fault

#: States of blocks in use. The last two are of a block whose free waits for other streams, by version of PyTorch.
_ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")

#: Entries that change the reserved bytes, and how. Segments of ``expandable_segments`` are mapped in pieces.
_RESERVE = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

#: Times from here on are none: 1 µs after them 64 bits of nanoseconds do not hold them.
_MAX_MICROSECONDS = 1 << 53

#: Entries that neither allocate nor free.
_SILENT = ("free_requested", "snapshot", "annotate", "user_defined")


@dataclass(slots=True)
class _Segments:
    """The memory of one device at the end."""

    #: Address, requested bytes, stream and frames of each block in use.
    active: list[tuple[int, int, object, object]]
    reserved: int = 0
    largest_free: int = 0


def read_snapshot(path: str, content: bytes) -> list[Columns]:
    """Read a snapshot: one program for each device that has events or segments.

    Raises:
        TraceError: The content is not a snapshot, or is damaged.
    """
    snapshot = _unpickle(path, content)
    # torch.cuda.memory_snapshot() and old versions: segments alone.
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("segments"), list):
        raise fault(path, "is a pickle, but no memory snapshot of PyTorch: it has no list of segments")
    traces = snapshot.get("device_traces") or []
    if not isinstance(traces, list) or not all(isinstance(trace, list) for trace in traces):
        raise fault(path, "device_traces: must be a list of lists")
    segments = _segments(path, snapshot["segments"])
    devices = sorted({device for device, trace in enumerate(traces) if trace} | segments.keys())
    if not devices:
        raise fault(path, "is a snapshot without events and segments")
    settings = snapshot.get("allocator_settings")
    annotations = _annotations(path, snapshot.get("external_annotations"))
    columns = []
    for device in devices:
        trace = traces[device] if device < len(traces) else []
        one = _device(path, device, trace, segments.get(device, _Segments([])))
        origin = replace(
            one.origin,
            settings=settings if isinstance(settings, dict) else {},
            annotations={**annotations.get(device, {}), **one.origin.annotations},
        )
        columns.append(replace(one, origin=origin))
    return columns


def _unpickle(path: str, content: bytes) -> Any:
    try:
        return read_plain_pickle(content)
    except MemoryError as error:
        raise fault(path, "does not fit into memory") from error
    except ValueError as error:
        raise fault(path, f"pickle: {error}") from error


def _segments(path: str, segments: list[Any]) -> dict[int, _Segments]:
    """Return the segments of a snapshot by device."""
    devices: dict[int, _Segments] = {}
    for number, segment in enumerate(segments):
        place = f"segments[{number}]"
        device = (
            _integer(path, place, segment, "device", 0) if "device" in _mapping(path, place, segment) else 0
        )
        found = devices.setdefault(device, _Segments([]))
        found.reserved += _integer(path, place, segment, "total_size")
        # Old versions give no addresses of blocks, which follow one another.
        address = _integer(path, place, segment, "address")
        for index, block in enumerate(_list(path, place, segment, "blocks")):
            where = f"{place}: blocks[{index}]"
            size = _integer(path, where, block, "size")
            if block.get("state") in _ACTIVE:
                stream = segment.get("stream", 0)
                found.active.append((address, _requested(path, where, block), stream, block.get("frames")))
            else:
                found.largest_free = max(found.largest_free, size)
            address += size
    return devices


def _requested(path: str, place: str, block: dict[str, Any]) -> int:
    """Return the requested bytes of a block: versions before 2.0 have them in its history, or not at all."""
    if "requested_size" in block:
        return _integer(path, place, block, "requested_size")
    history = block.get("history")
    if isinstance(history, list) and history:
        return _integer(path, f"{place}: history[0]", history[0], "real_size")
    return _integer(path, place, block, "size")


def _device(path: str, device: int, trace: list[Any], segments: _Segments) -> Columns:
    """Read the events of one device from its entries in a snapshot's trace."""
    events, entries, texts, stacks = BlockEvents(), Counter[str](), Counter[str](), Stacks()
    first_time: int | None = None
    refusals: list[tuple[int, RecordedRefusal]] = []
    # Bytes reserved since the first entry, and their maximum.
    reserved = peak = 0
    last_change = -1
    for number, entry in enumerate(trace):
        place = f"device_traces[{device}][{number}]"
        action = _mapping(path, place, entry).get("action")
        if action == "alloc" or action in ("free_completed", "free"):
            address, size = _integer(path, place, entry, "addr"), _integer(path, place, entry, "size")
            time = entry.get("time_us")
            if type(time) is not int or not 0 <= time < _MAX_MICROSECONDS:
                time = first_time or 0
            elif first_time is None:
                first_time = time
            nanoseconds = 1000 * max(time - (first_time or 0), 0)
            stream = entry.get("stream", 0)
            if action == "alloc":
                owner = stacks.number(entry.get("frames"))
                events.allocate(address, size, stream, owner, nanoseconds)
            else:
                events.free(address, size, stream, nanoseconds)
            last_change = number
        elif action == "oom":
            refused = RecordedRefusal(
                events.events,
                f"entry {number}" if device == 0 else f"entry {number} of device {device}",
                _integer(path, place, entry, "size"),
                events.live_bytes,
                _integer(path, place, entry, "device_free") if "device_free" in entry else None,
                reserved,
                stack=stack_text(entry.get("frames")),
            )
            refusals.append((number, refused))
            entries[action] += 1
        elif isinstance(action, str):
            entries[action] += 1
            if action in _RESERVE:
                reserved += _RESERVE[action] * _integer(path, place, entry, "size")
                peak = max(peak, reserved)
                last_change = number
        else:
            raise fault(path, f"{place}: action is {action!r}, not a text")
        if text := entry.get("user_metadata"):
            texts[str(text)] += 1
    unexplained = events.add_survivors(
        (address, size, stream, stacks.number(frames)) for address, size, stream, frames in segments.active
    )
    missing = events.missing()
    active = {address for address, *_ in segments.active}
    vanished = [block.size for address, block in events.live.items() if address not in active]
    if unexplained:
        missing.append(f"{unexplained} allocations are missing: their blocks are in use at the end")
    if vanished:
        missing.append(
            f"{len(vanished)} blocks of {sum(vanished)} bytes are live by the events, but not in the segments"
        )
    if not trace:
        missing.append(
            "there are no events: the history was not recorded (torch.cuda.memory._record_memory_history)"
        )
    unknown = entries.keys() - _RESERVE.keys() - {*_SILENT, "oom"}
    if unknown:
        missing.append(f"kinds of entries that are not known were left out: {', '.join(sorted(unknown))}")
    before = events.live_before
    origin = Origin(
        "pytorch",
        f"device {device}",
        blocks_at_start=len(events.before),
        live_at_start=before,
        live_at_end=before + events.live_bytes,
        streams=events.streams,
        reserved_at_end=segments.reserved,
        recorded_peak_reserved=segments.reserved - reserved + peak,
        missing=tuple(missing),
        entries=dict(entries),
        annotations=dict(texts),
        refusals=tuple(
            replace(
                one,
                event=one.event + len(events.before),
                live=before + one.live,
                reserved=segments.reserved - reserved + (one.reserved or 0),
                # The segments are those of the end: they tell of the refusal if nothing came after it.
                largest_free=segments.largest_free if number > last_change else None,
            )
            for number, one in refusals
        ),
    )
    owners, times = events.owners()
    return Columns(
        path,
        None,
        *events.columns(),
        origin,
        owners if stacks.texts else None,
        tuple(stacks.texts),
        None if first_time is None else times,
    )


def _annotations(path: str, annotations: Any) -> dict[int, Counter[str]]:
    """Count the annotations of each device by name: ``record_function`` and steps of the profiler, start and end."""
    counted: dict[int, Counter[str]] = {}
    for number, one in enumerate(annotations if isinstance(annotations, list) else []):
        place = f"external_annotations[{number}]"
        device = _mapping(path, place, one).get("device", 0)
        if isinstance(device, int):
            counted.setdefault(device, Counter())[str(one.get("name", ""))] += one.get("stage") != "END"
    return counted


def _mapping(path: str, place: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise fault(path, f"{place}: must be a dictionary, is {type(value).__name__}")


def _list(path: str, place: str, value: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    items = value.get(key)
    if not isinstance(items, list):
        raise fault(path, f"{place}: {key} must be a list, is {type(items).__name__}")
    for index, item in enumerate(items):
        yield _mapping(path, f"{place}: {key}[{index}]", item)


def _integer(path: str, place: str, value: Any, key: str, least: int = 0) -> int:
    number = _mapping(path, place, value).get(key)
    if type(number) is not int:
        what = "is missing" if number is None else f"must be an integer, is {type(number).__name__}"
        raise fault(path, f"{place}: {key} {what}")
    most = 1 << 64 if key in ("addr", "address") else MAX_BYTES
    if not least <= number <= most:
        raise fault(path, f"{place}: {key} {number} is not between {least} and {most}")
    return number
