"""Programs to export, what is live in them block by block, and slow readers of exported files."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import allotment
from allotment.trace import Columns, ReplayOptions, read_columns, replay_trace
from allotment.trace.reader import checked
from support.traces.trace_files import GNN, Events, write_trace

MIB = 1 << 20

#: Blocks that stay, a block of no bytes, an id that is used twice, and a request of 9 MiB that a small pool refuses.
MIXED: Events = [
    (1, 7, 3 * MIB),
    (1, 8, 0),
    (2, 7, 3 * MIB),
    (1, 7, 1000),
    (1, 9, 9 * MIB),
    (2, 8, 0),
    (1, 10, 2 * MIB),
    (2, 9, 9 * MIB),
    (1, 11, 500),
    (2, 10, 2 * MIB),
]
SMALL_POOL = ReplayOptions(8 * MIB)


@dataclass
class Model:
    """What a replay leaves live, block by block."""

    live: dict[int, tuple[int, int]] = field(default_factory=dict)
    curve: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    #: Sizes of all blocks, and (start, end) of each by event; the end is None if it is never freed.
    sizes: list[int] = field(default_factory=list)
    lives: dict[int, tuple[int, int | None]] = field(default_factory=dict)

    @property
    def peak(self) -> int:
        return max(self.curve, default=0)


def model(columns: Columns, options: ReplayOptions) -> Model:
    offsets = replay_trace(checked(columns), options, with_offsets=True).offsets
    assert offsets is not None
    found = Model()
    for event, (op, name, size) in enumerate(zip(columns.op, columns.id, columns.size, strict=True)):
        if op == 1 and size and offsets[event] < 0:
            found.refused.append(size)
        elif op == 1 and size:
            found.live[name] = size, event
            found.sizes.append(size)
            found.lives[event] = event, None
        elif op == 2 and name in found.live:
            _, start = found.live.pop(name)
            found.lives[start] = start, event
        found.curve.append(sum(size for size, _ in found.live.values()) if len(columns.op) < 99 else 0)
    if len(columns.op) >= 99:
        change = np.zeros(len(columns.op), np.int64)
        for start, end in found.lives.values():
            change[start] += columns.size[start]
            if end is not None:
                change[end] -= columns.size[start]
        found.curve = np.cumsum(change).tolist()
    return found


def microseconds(columns: Columns) -> list[int]:
    assert columns.t_ns is not None
    return [(time - columns.t_ns[0]) // 1000 for time in columns.t_ns]


def load(pool: allotment.Pool) -> int:
    return pool.malloc(3 * MIB)


def step(pool: allotment.Pool) -> int:
    return load(pool)


def recorded() -> Columns:
    """Record a program with stacks."""
    pool = allotment.Pool("64MiB", source="address-space")
    with pool.record(stacks=4) as recording:
        kept = [step(pool), load(pool)]
        pool.free(kept[0])
    (columns,) = recording.columns()
    return columns


def cases(tmp_path: Path) -> Iterator[tuple[Columns, ReplayOptions]]:
    mixed = write_trace(tmp_path / "mixed", MIXED)
    yield read_columns(mixed), ReplayOptions()
    yield read_columns(mixed), SMALL_POOL
    yield read_columns(mixed), ReplayOptions(8 * MIB, joined=False, trim_on_oom=True)
    yield read_columns(write_trace(tmp_path / "none", [])), ReplayOptions()
    yield read_columns(GNN, details=True), ReplayOptions()
    yield recorded(), ReplayOptions()


def read_heaptrack(content: bytes) -> tuple[int, int, int]:
    """Return the peak, what is live at the end, and the number of allocations, from the entries alone."""
    kinds: list[int] = []
    nodes = allocations = live = peak = time = 0
    for line in content.decode().splitlines():
        kind, *fields = line.split(" ")
        if kind == "t":
            nodes += 1
            assert int(fields[1], 16) < nodes
        elif kind == "a":
            assert int(fields[1], 16) <= nodes
            kinds.append(int(fields[0], 16))
        elif kind in "+-":
            live += kinds[int(fields[0], 16)] * (1 if kind == "+" else -1)
            allocations += kind == "+"
            peak = max(peak, live)
        elif kind == "c":
            assert int(fields[0], 16) >= time
            time = int(fields[0], 16)
    return peak, live, allocations


def check_snapshot(snapshot: dict[str, Any], device: int = 0) -> None:
    """Check that blocks are in segments and apart, at each event and at the end, going back from the end."""
    segments = {one["address"]: one["total_size"] for one in snapshot["segments"] if one["device"] == device}
    live: dict[int, int] = {}
    for segment in snapshot["segments"]:
        if segment["device"] == device:
            assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
            live |= {
                block["address"]: block["requested_size"]
                for block in segment["blocks"]
                if block["state"] == "active_allocated"
            }
    for entry in reversed(snapshot["device_traces"][device]):
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "alloc":
            assert live.pop(address) == size
        elif action == "free_completed":
            assert address not in live
            live[address] = size
        elif action == "segment_alloc":
            assert segments.pop(address) == size
        elif action == "segment_free":
            segments[address] = size
        elif action == "segment_map":
            # The end of the region that it was joined to.
            (start,) = [
                one for one, held in segments.items() if one + held == address + size and one < address
            ]
            segments[start] -= size
        else:
            assert action in ("free_requested", "oom")
        end = 0
        for start, held in sorted(live.items()):
            assert start >= end
            end = start + held
            assert any(one <= start and end <= one + length for one, length in segments.items())
