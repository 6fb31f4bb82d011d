"""Memory snapshots of PyTorch with events and segments that contradict each other."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from allotment.trace import Columns, TraceError, read_all_columns, read_columns
from support.traces.snapshots import block, event, segment, snapshot


def read(path: Path, content: Any) -> Columns:
    (path / "t").write_bytes(pickle.dumps(content, 4))
    columns = read_columns(path / "t")
    columns.program()
    return columns


def test_what_events_and_segments_disagree_on_is_said(tmp_path: Path) -> None:
    trace = [
        event("alloc", 512, 10),
        event("alloc", 512, 20),
        event("free_completed", 512, 30),
        event("alloc", 1024, 40),
        event("polished", 0, 0),
    ]
    origin = read(tmp_path, snapshot([segment(512, [block(512, 7)])], trace)).origin
    assert origin.missing == (
        "1 free is missing between two allocations of one address",
        "1 free had another size than the allocation",
        "1 allocation is missing: its block is in use at the end",
        "1 block of 40 bytes is live by the events, but not in the segments",
        "kinds of entries that are not known were left out: polished",
    )
    assert origin.entries == {"polished": 1}


@pytest.mark.parametrize(
    ("requested", "event_size", "differs"),
    [
        (700, 700, False),
        (700, 701, True),
        (700, 512, True),
        # Old versions do not say what was asked for: the block is as large as the request, or larger.
        (None, 700, False),
        (None, 1024, False),
        (None, 1025, True),
    ],
)
def test_a_block_with_another_size_in_the_segments_is_said(
    tmp_path: Path, requested: int | None, event_size: int, differs: bool
) -> None:
    one = block(1024, requested or 0)
    if requested is None:
        del one["requested_size"]
    columns = read(tmp_path, snapshot([segment(512, [one])], [event("alloc", 512, event_size)]))
    said = ("1 block has another size in the segments than in the events, which count",)
    assert columns.origin.missing == (said if differs else ())
    assert columns.program().peak_live == event_size


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("start", "overlaps"), [(1024, True), (1535, True), (1536, False)])
def test_segments_that_overlap_are_refused(tmp_path: Path, order: int, start: int, overlaps: bool) -> None:
    segments = [segment(512, [block(1024, 1024)]), segment(start, [block(2048, 2048)])][::order]
    # Devices have addresses of their own.
    segments.append(segment(512, [block(4096, 4096)], device=1))
    path = tmp_path / "t"
    if not overlaps:
        path.write_bytes(pickle.dumps(snapshot(segments), 4))
        assert sum(one.origin.live_at_end for one in read_all_columns(path)) == 1024 + 2048 + 4096
        return
    with pytest.raises(TraceError) as caught:
        read(tmp_path, snapshot(segments))
    second, first = (1, 0) if order == 1 else (0, 1)
    assert str(caught.value) == (
        f"{path}: segments[{second}]: its address {start:#x} is inside segments[{first}], which ends at 0x600"
    )
