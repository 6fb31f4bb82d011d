"""Reads memory snapshots of PyTorch: pickles that ``torch.cuda.memory._dump_snapshot`` writes.

The layout is that of ``torch/csrc/cuda/memory_snapshot.cpp`` and of ``torch/cuda/memory.py`` in PyTorch's source: a
dictionary with ``segments`` (the allocator's memory at the end, with its blocks) and ``device_traces`` (for each
device a list of the last events). Sizes of events, and ``requested_size`` of blocks, are as the program asked for them.
A block is free again at ``free_completed``: from ``free_requested`` to then other streams may use it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from allotment._core import PickledRows, read_plain_pickle
from allotment.trace.blocks import counted
from allotment.trace.formats.pytorch_entries import RESERVE, DeviceTrace, StackTexts, integer, mapping
from allotment.trace.recording import Columns, Origin, fault

#: States of blocks in use. The last two are of a block whose free waits for other streams, by version of PyTorch.
_ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")

#: Entries that neither allocate nor free.
_SILENT = ("free_requested", "snapshot", "annotate", "user_defined")


@dataclass(slots=True)
class _Segments:
    """The memory of one device at the end."""

    #: Address, requested bytes, stream and frames of each block in use.
    active: list[tuple[int, int, object, object]]
    reserved: int = 0
    largest_free: int = 0
    #: Addresses of blocks in use for which the file has no requested bytes: their size is rounded up.
    rounded: set[int] = field(default_factory=set)
    #: Start, end and place in the file of each segment.
    ranges: list[tuple[int, int, str]] = field(default_factory=list)


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
    if not isinstance(traces, list) or not all(isinstance(trace, PickledRows) for trace in traces):
        raise fault(path, "device_traces: must be a list of lists")
    segments = _segments(path, snapshot["segments"])
    devices = sorted({device for device, rows in enumerate(traces) if rows} | segments.keys())
    if not devices:
        raise fault(path, "is a snapshot without events and segments")
    settings = snapshot.get("allocator_settings")
    annotations = _annotations(path, snapshot.get("external_annotations"))
    columns = []
    for device in devices:
        trace = DeviceTrace(path, device)
        if device < len(traces):
            trace.read(traces[device])
            # The pickle takes most of the memory: it goes with the last of its lists.
            traces[device] = None
        one = _device(trace, segments.get(device, _Segments([])))
        origin = replace(
            one.origin,
            settings=settings if isinstance(settings, dict) else {},
            annotations={**annotations.get(device, {}), **one.origin.annotations},
        )
        columns.append(replace(one, origin=origin))
    return columns


def _unpickle(path: str, content: bytes) -> Any:
    try:
        return read_plain_pickle(content, rows="device_traces")
    except MemoryError as error:
        raise fault(path, "does not fit into memory") from error
    except ValueError as error:
        raise fault(path, f"pickle: {error}") from error


def _segments(path: str, segments: list[Any]) -> dict[int, _Segments]:
    devices: dict[int, _Segments] = {}
    for number, segment in enumerate(segments):
        place = f"segments[{number}]"
        device = (
            integer(path, place, segment, "device", 0) if "device" in mapping(path, place, segment) else 0
        )
        found = devices.setdefault(device, _Segments([]))
        total = integer(path, place, segment, "total_size")
        found.reserved += total
        # Old versions give no addresses of blocks, which follow one another.
        start = address = integer(path, place, segment, "address")
        for index, block in enumerate(_list(path, place, segment, "blocks")):
            where = f"{place}: blocks[{index}]"
            size = integer(path, where, block, "size")
            if block.get("state") in _ACTIVE:
                stream = segment.get("stream", 0)
                requested = _requested(path, where, block)
                found.active.append(
                    (address, size if requested is None else requested, stream, block.get("frames"))
                )
                if requested is None:
                    found.rounded.add(address)
            else:
                found.largest_free = max(found.largest_free, size)
            address += size
        if address - start > total:
            raise fault(path, f"{place}: total_size is {total}, but its blocks have {address - start} bytes")
        found.ranges.append((start, start + total, place))
    for found in devices.values():
        found.ranges.sort()
        for (_, end, first), (start, _, second) in pairwise(found.ranges):
            if start < end:
                raise fault(
                    path, f"{second}: its address {start:#x} is inside {first}, which ends at {end:#x}"
                )
    return devices


def _requested(path: str, place: str, block: dict[str, Any]) -> int | None:
    """Return the requested bytes of a block: versions before 2.0 have them in its history, or not at all."""
    size = integer(path, place, block, "size")
    history = block.get("history")
    if "requested_size" in block:
        name, requested = "requested_size", integer(path, place, block, "requested_size")
    elif isinstance(history, list) and history:
        name, requested = "real_size", integer(path, f"{place}: history[0]", history[0], "real_size")
    else:
        return None
    if requested > size:
        raise fault(path, f"{place}: {name} is {requested}, more than its size {size}")
    return requested


def _device(trace: DeviceTrace, segments: _Segments) -> Columns:
    events, stacks, reserved = trace.events, trace.stacks, trace.reserved
    unexplained = events.add_survivors(
        (address, size, stream, stacks.number(frames)) for address, size, stream, frames in segments.active
    )
    missing = events.missing()
    active = {address: size for address, size, *_ in segments.active}
    differing = sum(
        block.size > active[address] if address in segments.rounded else block.size != active[address]
        for address, block in events.live.items()
        if address in active
    )
    vanished = [block.size for address, block in events.live.items() if address not in active]
    if unexplained:
        lost = counted(unexplained, "allocation", "is missing: its block is", "are missing: their blocks are")
        missing.append(f"{lost} in use at the end")
    if differing:
        blocks = counted(differing, "block", "has", "have")
        missing.append(f"{blocks} another size in the segments than in the events, which count")
    if vanished:
        size = f"of {counted(sum(vanished), 'byte')}"
        blocks = counted(len(vanished), "block", f"{size} is", f"{size} are")
        missing.append(f"{blocks} live by the events, but not in the segments")
    if not trace.has_entries:
        missing.append(
            "there are no events: the history was not recorded (torch.cuda.memory._record_memory_history)"
        )
    unknown = trace.entries.keys() - RESERVE.keys() - {*_SILENT, "oom"}
    if unknown:
        missing.append(f"kinds of entries that are not known were left out: {', '.join(sorted(unknown))}")
    before = events.live_before
    origin = Origin(
        "pytorch",
        f"device {trace.device}",
        blocks_at_start=len(events.before),
        live_at_start=before,
        live_at_end=before + events.live_bytes,
        streams=events.streams,
        reserved_at_end=segments.reserved,
        recorded_peak_reserved=segments.reserved - reserved + trace.peak,
        missing=tuple(missing),
        entries=trace.entries,
        annotations=trace.texts,
        refusals=tuple(
            replace(
                one,
                event=one.event + len(events.before),
                live=before + one.live,
                reserved=segments.reserved - reserved + (one.reserved or 0),
                # The segments are those of the end: they tell of the refusal if nothing came after it.
                largest_free=segments.largest_free if number > trace.last_change else None,
            )
            for number, one in trace.refusals
        ),
    )
    owners, times = events.owners()
    return Columns(
        trace.path,
        None,
        *events.columns(),
        origin,
        owners if len(stacks) else None,
        StackTexts(stacks),
        None if trace.first_time is None else times,
    )


def _annotations(path: str, annotations: Any) -> dict[int, Counter[str]]:
    """Count the annotations of each device by name: ``record_function`` and steps of the profiler, start and end."""
    counted: dict[int, Counter[str]] = {}
    for number, one in enumerate(annotations if isinstance(annotations, list) else []):
        place = f"external_annotations[{number}]"
        device = mapping(path, place, one).get("device", 0)
        if isinstance(device, int):
            name = one.get("name", "")
            if not isinstance(name, str):
                raise fault(path, f"{place}: name must be a text, is {type(name).__name__}")
            counted.setdefault(device, Counter())[name] += one.get("stage") != "END"
    return counted


def _list(path: str, place: str, value: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    items = value.get(key)
    if not isinstance(items, list):
        raise fault(path, f"{place}: {key} must be a list, is {type(items).__name__}")
    for index, item in enumerate(items):
        yield mapping(path, f"{place}: {key}[{index}]", item)
