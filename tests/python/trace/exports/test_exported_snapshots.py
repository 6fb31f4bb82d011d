"""Traces that are exported as snapshots of PyTorch, read back."""

import pickle
import pickletools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from allotment.trace import ReplayOptions, export_trace, read_all_columns, read_columns, replay_trace
from allotment.trace.reader import checked
from support.traces.exported import MIB, cases, check_snapshot, microseconds, model
from support.traces.snapshots import Recorder
from support.traces.trace_files import Events, write_trace

#: Instructions that the page of PyTorch's viewer reads: torch/utils/viz/MemoryViz.js, `unpickle`.
VIEWER_READS = {
    "PROTO", "STOP", "APPEND", "APPENDS", "MARK", "SETITEM", "SETITEMS", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "NEWTRUE", "NEWFALSE", "NONE", "BININT", "BININT1", "BININT2", "LONG1",
    "BINFLOAT", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "MEMOIZE", "FRAME", "SHORT_BINUNICODE", "BINUNICODE",
}  # fmt: skip


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
            assert tuple(found.owners) == tuple(columns.owners)
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


def test_a_random_program_with_trims_is_a_snapshot_with_its_blocks_in_segments(tmp_path: Path) -> None:
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
