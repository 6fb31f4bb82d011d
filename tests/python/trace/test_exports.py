"""Exported traces, read by slow readers of the formats, against a dictionary of what is live."""

import gzip
import json
import pickle
import pickletools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment
from allotment.trace import (
    EXPORT_FORMATS,
    Columns,
    ReplayOptions,
    TraceError,
    export_trace,
    read_all_columns,
    read_columns,
    replay_trace,
)
from allotment.trace.reader import checked
from support.command import allotment as command
from support.command import complaint
from support.traces.profile_proto import read_profile
from support.traces.snapshots import Recorder
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


def test_heaptrack_has_the_peak_and_every_block(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "heaptrack", tmp_path / "o", options)
        wanted = model(columns, options)
        last = wanted.curve[-1] if wanted.curve else 0
        assert read_heaptrack((tmp_path / "o").read_bytes()) == (wanted.peak, last, len(wanted.sizes))


def test_massif_has_the_peak_and_at_most_100_snapshots_whose_trees_add_up(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "massif", tmp_path / "o", options)
        wanted = model(columns, options)
        text = (tmp_path / "o").read_text()
        heaps = [int(line[11:]) for line in text.splitlines() if line.startswith("mem_heap_B=")]
        assert max(heaps) == wanted.peak
        assert heaps[0] == 0
        assert heaps[-1] == (wanted.curve[-1] if wanted.curve else 0)
        assert 1 <= len(heaps) <= 100
        assert text.count("heap_tree=peak") == (wanted.peak > 0)
        check_trees(text)


def check_trees(text: str) -> None:
    """Check that the children of each node have its bytes, as far as the node has children."""
    for tree in text.split("heap_tree=")[1:]:
        lines = [line for line in tree.splitlines()[1:] if line.lstrip().startswith("n")]
        children: dict[int, list[int]] = {}
        for line in reversed(lines):
            depth = len(line) - len(line.lstrip())
            head, size, *_ = line.split()
            below = children.pop(depth + 1, [])
            assert len(below) == int(head[1:-1])
            assert not below or sum(below) == int(size)
            children.setdefault(depth, []).append(int(size))
        assert set(children) <= {0}


def test_dhat_has_totals_peaks_and_lifetimes_of_each_group(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "dhat", tmp_path / "o", options)
        found = json.loads((tmp_path / "o").read_bytes())
        wanted = model(columns, options)
        points = found["pps"]
        sums = {name: sum(point[name] for point in points) for name in ("tb", "tbk", "tl", "gb", "eb", "ebk")}
        assert (sums["tb"], sums["tbk"]) == (sum(wanted.sizes), len(wanted.sizes))
        assert (sums["gb"], sums["ebk"]) == (wanted.peak, len(wanted.live))
        assert sums["eb"] == (wanted.curve[-1] if wanted.curve else 0)
        times = microseconds(columns) if columns.t_ns else list(range(len(columns.op)))
        assert found["te"] == (times[-1] if times else 0)
        ends = ((start, len(times) - 1 if end is None else end) for start, end in wanted.lives.values())
        assert sums["tl"] == sum(times[end] - times[start] for start, end in ends)
        for point in points:
            assert point["tb"] >= point["mb"] >= max(point["gb"], point["eb"]) >= 0
            assert point["tbk"] >= point["mbk"] > 0
            assert all(0 < number < len(found["ftbl"]) for number in point["fs"])
        # The viewer refuses a stack that comes twice.
        assert len({tuple(point["fs"]) for point in points}) == len(points)


def test_pprof_has_all_allocations_the_peak_and_the_end(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "pprof", tmp_path / "o", options)
        wanted = model(columns, options)
        names, samples = read_profile(tmp_path / "o")
        sums = dict(zip(names, np.sum([[0] * 6] + [values for _, values, _ in samples], axis=0), strict=True))
        assert sums["alloc_space"] == sum(wanted.sizes)
        assert sums["alloc_objects"] == len(wanted.sizes)
        assert sums["peak_space"] == wanted.peak
        assert sums["inuse_space"] == (wanted.curve[-1] if wanted.curve else 0)
        assert sums["inuse_objects"] == len(wanted.live)


def test_chrome_has_a_pair_of_asynchronous_events_for_each_block(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "chrome", tmp_path / "o", options)
        events = json.loads((tmp_path / "o").read_bytes())["traceEvents"]
        wanted = model(columns, options)
        open_blocks: dict[str, dict[str, Any]] = {}
        sizes, closed, refused, live = [], 0, [], [0]
        for event in events:
            if event["ph"] == "b":
                assert event["id"] not in open_blocks
                open_blocks[event["id"]] = event
                sizes.append(event["args"]["size"])
            elif event["ph"] == "e":
                start = open_blocks.pop(event["id"])
                assert (start["name"], start["cat"]) == (event["name"], event["cat"])
                assert start["ts"] <= event["ts"]
                closed += 1
            elif event["ph"] == "i":
                refused.append(event["args"]["size"])
            elif event["ph"] == "C":
                assert event["args"]["reserved"] >= event["args"]["live"]
                live.append(event["args"]["live"])
            else:
                assert event["ph"] == "M"
        assert (sizes, refused) == (wanted.sizes, wanted.refused)
        assert len(open_blocks) == len(wanted.live)
        assert (max(live), live[-1]) == (wanted.peak, wanted.curve[-1] if wanted.curve else 0)


#: Instructions that the page of PyTorch's viewer reads: torch/utils/viz/MemoryViz.js, `unpickle`.
VIEWER_READS = {
    "PROTO", "STOP", "APPEND", "APPENDS", "MARK", "SETITEM", "SETITEMS", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "NEWTRUE", "NEWFALSE", "NONE", "BININT", "BININT1", "BININT2", "LONG1",
    "BINFLOAT", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE", "FRAME", "SHORT_BINUNICODE", "BINUNICODE",
}  # fmt: skip


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


def test_a_snapshot_of_pytorch_reads_back_with_equal_totals(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "pytorch", tmp_path / "o", options)
        content = (tmp_path / "o").read_bytes()
        wanted = model(columns, options)
        assert {code.name for code, _, _ in pickletools.genops(content)} <= VIEWER_READS
        snapshot = pickle.loads(content)
        if len(columns.op) < 99:
            check_snapshot(snapshot)
        if not columns.op:
            continue
        (found,) = read_all_columns(tmp_path / "o")
        assert found.program().peak_live == wanted.peak
        assert found.origin.live_at_end == sum(size for size, _ in wanted.live.values())
        assert [one.requested for one in found.origin.refusals] == wanted.refused
        assert not found.origin.missing
        stats = replay_trace(checked(columns), options).result.stats
        assert found.origin.reserved_at_end == stats.reserved
        assert found.origin.recorded_peak_reserved == stats.peak_reserved
        sizes = [size for op, size in zip(found.op, found.size, strict=True) if op == 1]
        assert sizes == wanted.sizes
        if columns.owner is not None:
            assert found.owners == columns.owners
            assert list(found.owner or []) == list(columns.owner)
        if columns.t_ns is not None:
            assert [time // 1000 for time in found.t_ns or []] == microseconds(columns)


@pytest.mark.parametrize("seed", range(6))
def test_a_snapshot_keeps_what_was_live_before_its_first_event(tmp_path: Path, seed: int) -> None:
    recorder = Recorder(ring=60)
    recorder.run(400, seed)
    (tmp_path / "s").write_bytes(pickle.dumps(recorder.snapshot()))
    (columns,) = read_all_columns(tmp_path / "s")
    export_trace(columns, "pytorch", tmp_path / "o")
    (found,) = read_all_columns(tmp_path / "o")
    assert columns.origin.blocks_at_start > 0
    for name in ("blocks_at_start", "live_at_start", "live_at_end"):
        assert getattr(found.origin, name) == getattr(columns.origin, name)
    assert found.program().peak_live == columns.program().peak_live
    check_snapshot(pickle.loads((tmp_path / "o").read_bytes()))


def test_a_random_program_with_trims_is_a_snapshot_whose_blocks_are_in_segments(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    live: dict[int, int] = {}
    events: Events = []
    for name in range(200):
        # Phases of small and of large requests, with all of the former freed: their regions give way.
        if name % 20 == 0:
            events += [(2, one, size) for one, size in live.items()]
            live.clear()
        size = int(generator.integers(MIB, 13 * MIB) if name // 20 % 2 else generator.integers(1, MIB // 4))
        live[name] = size
        events.append((1, name, size))
        if generator.random() < 0.3:
            chosen = int(generator.choice(list(live)))
            events.append((2, chosen, live.pop(chosen)))
    columns = read_columns(write_trace(tmp_path / "t", events))
    options = ReplayOptions(14 * MIB, trim_on_oom=True, joined=False)
    export_trace(columns, "pytorch", tmp_path / "o", options)
    snapshot = pickle.loads((tmp_path / "o").read_bytes())
    actions = Counter(entry["action"] for entry in snapshot["device_traces"][0])
    assert actions["segment_free"] > 0
    assert actions["oom"] > 0
    check_snapshot(snapshot)


def test_stacks_are_frames_in_every_format(tmp_path: Path) -> None:
    columns = recorded()
    for name in EXPORT_FORMATS:
        export_trace(columns, name, tmp_path / name)
    chain = ("load", "step")
    snapshot = pickle.loads((tmp_path / "pytorch").read_bytes())
    frames = next(one for one in snapshot["device_traces"][0] if one["action"] == "alloc")["frames"]
    assert [frame["name"] for frame in frames[:2]] == list(chain)
    assert frames[0]["filename"].endswith("test_exports.py")
    found = json.loads((tmp_path / "dhat").read_bytes())
    first = [found["ftbl"][number] for number in found["pps"][0]["fs"][:2]]
    assert [text.split()[1] for text in first] == list(chain)
    _, samples = read_profile(tmp_path / "pprof")
    assert sorted(named[0] for named, _, _ in samples) == ["load", "load"]
    heaptrack = (tmp_path / "heaptrack").read_text()
    assert "s load\n" in heaptrack
    massif = (tmp_path / "massif").read_text()
    assert massif.index(" load (") < massif.index(" step (")
    events = json.loads((tmp_path / "chrome").read_bytes())["traceEvents"]
    stack = next(event for event in events if event["ph"] == "b")["args"]["stack"]
    assert [line.split()[-1] for line in stack.splitlines()[:2]] == list(chain)


def test_threads_of_a_trace_are_labels_and_tracks(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path / "t",
        [(1, 1, 100), (1, 2, 100), (2, 1, 100)],
        t_ns=np.array([5, 2005, 9005]),
        thread=np.array([3, 4, 4], np.int32),
    )
    assert read_columns(path).thread is None
    columns = read_columns(path, details=True)
    export_trace(columns, "pprof", tmp_path / "p")
    _, samples = read_profile(tmp_path / "p")
    assert sorted(labels for _, _, labels in samples) == [["3"], ["4"]]
    export_trace(columns, "chrome", tmp_path / "c")
    events = json.loads((tmp_path / "c").read_bytes())["traceEvents"]
    blocks = [(event["ph"], event["tid"], event["ts"]) for event in events if event["ph"] in "be"]
    assert blocks == [("b", 3, 0.0), ("b", 4, 2.0), ("e", 4, 9.0)]


def test_damaged_details_are_an_error_only_if_they_are_asked_for(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", MIXED, t_ns=np.array([1, 2]))
    assert read_columns(path).t_ns is None
    with pytest.raises(TraceError, match="column t_ns: has 2 entries for 10 events"):
        read_columns(path, details=True)
    assert "column t_ns" in complaint(command("replay", path, "--export", f"dhat={tmp_path}/o"))


def test_names_that_the_formats_give_a_meaning_stay_one_name(tmp_path: Path) -> None:
    columns = read_columns(write_trace(tmp_path / "t", [(1, 1, 100), (1, 2, 300)]))
    odd = 'a#b:7 f<"\\">::{lambda()#1}\nünï.py:99999999999 \ud800'
    owned = Columns(
        "odd\npath#1",
        None,
        columns.op,
        columns.id,
        columns.size,
        owner=memoryview(np.array([0, -1])),
        owners=(odd,),
    )
    for name in EXPORT_FORMATS:
        export_trace(owned, name, tmp_path / name)
    assert read_heaptrack((tmp_path / "heaptrack").read_bytes()) == (400, 400, 2)
    massif = (tmp_path / "massif").read_text()
    assert all(line.startswith("#---") for line in massif.splitlines() if "#" in line)
    (found,) = read_all_columns(tmp_path / "pytorch")
    assert found.owners[0].startswith("a#b:7 f<")
    assert list(found.owner or []) == [0, -1]
    json.loads((tmp_path / "dhat").read_bytes())
    json.loads((tmp_path / "chrome").read_bytes())


def test_the_same_trace_gives_the_same_bytes_and_gz_packs_them(tmp_path: Path) -> None:
    columns = read_columns(GNN, details=True)
    for name in EXPORT_FORMATS:
        export_trace(columns, name, tmp_path / "a")
        export_trace(columns, name, tmp_path / "b.gz")
        plain, packed = (tmp_path / "a").read_bytes(), (tmp_path / "b.gz").read_bytes()
        assert (plain == packed) if name == "pprof" else (gzip.decompress(packed) == plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.gz"]


def test_what_cannot_be_exported_says_so_and_leaves_the_file(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", MIXED)
    columns = read_columns(path)
    kept = tmp_path / "kept"
    kept.write_text("before")
    with pytest.raises(
        ValueError, match="format 'speedscope' is not known: write one of pytorch, heaptrack, dhat"
    ):
        export_trace(columns, "speedscope", kept)
    with pytest.raises(ValueError, match="elastic pools have pages: replay without elastic"):
        export_trace(columns, "pytorch", kept, ReplayOptions(elastic=True))
    with pytest.raises(ValueError, match="is of one program, not of 2"):
        export_trace([columns, columns], "massif", kept)
    with pytest.raises(ValueError, match="is of one program, not of 0"):
        export_trace([], "chrome", kept)
    assert kept.read_text() == "before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept", "t"]


def test_several_programs_are_devices_and_processes(tmp_path: Path) -> None:
    columns = read_columns(write_trace(tmp_path / "t", MIXED))
    export_trace([columns, columns], "pytorch", tmp_path / "p")
    first, second = read_all_columns(tmp_path / "p")
    assert (first.origin.device, second.origin.device) == ("device 0", "device 1")
    assert list(first.size) == list(second.size)
    check_snapshot(pickle.loads((tmp_path / "p").read_bytes()), 1)
    export_trace([columns, columns], "chrome", tmp_path / "c")
    events = json.loads((tmp_path / "c").read_bytes())["traceEvents"]
    assert Counter(event["pid"] for event in events if event["ph"] == "b") == {1: 5, 2: 5}


def test_the_command_writes_several_files(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", MIXED)
    files = [argument for name in EXPORT_FORMATS for argument in ("--export", f"{name}={tmp_path}/{name}")]
    done = command("replay", path, "--limit", "8MiB", *files)
    assert (done.returncode, done.stderr) == (3, "")
    for name in EXPORT_FORMATS:
        export_trace(read_columns(path), name, tmp_path / "same", SMALL_POOL)
        assert (tmp_path / name).read_bytes() == (tmp_path / "same").read_bytes()
    for value, words in {
        "speedscope=x": "format 'speedscope' is not known: write one of pytorch, heaptrack, dhat, massif, pprof",
        "dhat": "write FORMAT=FILE, with one of the formats pytorch",
        "dhat=": "write FORMAT=FILE",
        f"dhat={path}": "is the TRACE itself",
        f"dhat={tmp_path}/none/o": "cannot be written: No such file or directory",
    }.items():
        assert words in complaint(command("replay", path, "--export", value))
    both = ("--export", f"dhat={tmp_path}/o", "--export", f"massif={tmp_path}/o")
    assert "are the same file" in complaint(command("replay", path, *both))
    assert "'--export' is of one TRACE" in complaint(command("replay", path, GNN, *both[:2]))
    elastic = command("replay", path, "--elastic", "--export", f"pytorch={tmp_path}/o")
    assert "replay without elastic" in complaint(elastic)
