"""The memory after each event, against the reference allocator and single replays."""

import csv
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from allotment.trace import ReplayOptions, read_all_columns, read_columns, read_trace, replay_trace, timeline
from support.command import allotment, complaint
from support.traces import snapshots
from support.traces.best_fit import BestFit
from support.traces.trace_files import Events, read_events, write_trace

MIB = 1 << 20
EVENTS: Events = [
    (1, 1, 100),
    (1, 2, 3 * MIB),
    (2, 1, 100),
    (1, 3, 7 * MIB),
    (1, 4, 300),
    (2, 2, 3 * MIB),
    (2, 3, 7 * MIB),
]


@pytest.mark.parametrize(
    "options",
    [ReplayOptions(9 * MIB), ReplayOptions(64 * MIB, gap=512), ReplayOptions(16 * MIB, growth=False)],
)
def test_each_event_has_the_figures_of_the_reference(tmp_path: Path, options: ReplayOptions) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    found = timeline(read_columns(path), options)
    model = BestFit(options.limit, growth=options.growth, gap=options.gap)
    live: dict[int, tuple[int | None, int]] = {}
    for event, (op, name, size) in enumerate(read_events(path)):
        if op == 1:
            live[name] = model.allocate(size), size
            assert found.refused[event] == (live[name][0] is None)
        elif (offset := live.pop(name)[0]) is not None:
            model.free(offset)
        served = sum(size for offset, size in live.values() if offset is not None)
        figures = found.live[event], found.in_use[event], found.reserved[event]
        assert figures == (served, model.in_use, model.reserved)


def test_the_peaks_are_those_of_a_replay(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    options = ReplayOptions(64 * MIB)
    for chosen in (options, replace(options, policy="tight")):
        found, stats = (
            timeline(read_columns(path), chosen),
            replay_trace(read_trace(path), chosen).result.stats,
        )
        peaks = [int(np.max(column)) for column in (found.live, found.in_use, found.reserved)]
        assert peaks == [stats.peak_requested, stats.peak_in_use, stats.peak_reserved]


def test_the_command_writes_a_table(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    done = allotment("replay", path, "--limit", "9MiB", "--timeline", tmp_path / "o.csv")
    assert (done.returncode, done.stderr) == (3, "")
    with (tmp_path / "o.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["refused"] for row in rows] == ["0", "0", "0", "1", "0", "0", "0"]
    assert [int(row["live"]) for row in rows][:2] == [100, 100 + 3 * MIB]
    assert "is the TRACE itself" in complaint(allotment("replay", path, "--timeline", path))
    line = complaint(allotment("replay", path, "--timeline", tmp_path / "none" / "o.csv"))
    assert line.endswith("cannot be written: No such file or directory")


def test_a_file_of_several_devices_has_a_table_with_the_device_first(tmp_path: Path) -> None:
    path = tmp_path / "s.pickle"
    first = [snapshots.event("alloc", 512, 100), snapshots.event("free_completed", 512, 100)]
    path.write_bytes(pickle.dumps(snapshots.snapshot([], first, [snapshots.event("alloc", 512, 3 * MIB)])))
    done = allotment("replay", path, "--timeline", tmp_path / "o.csv")
    assert (done.returncode, done.stderr) == (0, "")
    with (tmp_path / "o.csv").open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    expected = []
    for columns in read_all_columns(path):
        found = timeline(columns)
        for number, figures in enumerate(zip(found.live, found.in_use, found.reserved, strict=True)):
            expected.append((columns.origin.device, *map(str, (number, *figures, 0))))
    assert rows == expected
    assert [row[:3] for row in rows] == [
        ("device 0", "0", "100"),
        ("device 0", "1", "0"),
        ("device 1", "0", str(3 * MIB)),
    ]
