"""Exported traces, read by slow readers of the formats, against a dictionary of what is live."""

import gzip
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment.trace import (
    EXPORT_FORMATS,
    Columns,
    ReplayOptions,
    TraceError,
    export_trace,
    read_all_columns,
    read_columns,
)
from support.command import allotment as command
from support.command import complaint
from support.traces.exported import (
    MIXED,
    SMALL_POOL,
    cases,
    check_snapshot,
    microseconds,
    model,
    read_heaptrack,
    recorded,
)
from support.traces.profile_proto import read_profile
from support.traces.trace_files import GNN, write_trace


def test_heaptrack_has_the_peak_and_every_block(tmp_path: Path) -> None:
    for columns, options in cases(tmp_path):
        export_trace(columns, "heaptrack", tmp_path / "o", options)
        wanted = model(columns, options)
        last = wanted.curve[-1] if wanted.curve else 0
        assert read_heaptrack((tmp_path / "o").read_bytes()) == (wanted.peak, last, len(wanted.sizes))


def test_massif_has_the_peak_and_at_most_100_snapshots_with_trees_that_add_up(tmp_path: Path) -> None:
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


def test_stacks_are_frames_in_every_format(tmp_path: Path) -> None:
    columns = recorded()
    for name in EXPORT_FORMATS:
        export_trace(columns, name, tmp_path / name)
    chain = ("load", "step")
    snapshot = pickle.loads((tmp_path / "pytorch").read_bytes())
    frames = next(one for one in snapshot["device_traces"][0] if one["action"] == "alloc")["frames"]
    assert [frame["name"] for frame in frames[:2]] == list(chain)
    assert frames[0]["filename"].endswith("exported.py")
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
