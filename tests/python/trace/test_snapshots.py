"""Memory snapshots of PyTorch: totals, what was there before, what the file cannot tell, refusals."""

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

from allotment.trace import Columns, TraceError, read_all_columns, read_trace, read_traces
from support.command import allotment, complaint, replay_json
from support.traces.snapshots import MIB, Recorder, block, event, segment, snapshot


def write(path: Path, content: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


def read(path: Path, content: Any) -> Columns:
    (columns,) = read_all_columns(write(path / "s.pickle", content))
    columns.program()
    return columns


def rejected(path: Path, content: Any) -> str:
    with pytest.raises(TraceError) as caught:
        read_traces(write(path / "s.pickle", content))
    return str(caught.value).removeprefix(f"{path}/s.pickle: ")


#: A block of 4 MiB that no event names, one of 6 MiB that is freed, and one of 8 MiB that comes and goes.
BEFORE = snapshot(
    [segment(0x1000000, [block(4 * MIB, 4 * MIB), block(16 * MIB, 1 * MIB, "inactive")])],
    [
        event("free_completed", 0x1400000, 6 * MIB),
        event("alloc", 0x1400000, 8 * MIB),
        event("free_completed", 0x1400000, 8 * MIB),
    ],
)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("packed", [False, True])
def test_blocks_from_before_the_recording_count_in_every_protocol(
    tmp_path: Path, protocol: int, packed: bool
) -> None:
    path = tmp_path / "any.name"
    content = pickle.dumps(BEFORE, protocol)
    path.write_bytes(gzip.compress(content) if packed else content)
    figures = replay_json(path)
    assert figures["live_at_start"] == 10 * MIB
    assert figures["peak_live"] == 12 * MIB
    assert figures["live_at_end"] == 4 * MIB
    assert figures["reserved_at_end"] == 20 * MIB
    assert (figures["blocks_at_start"], figures["events"]) == (2, 5)
    assert figures["incomplete"] is True
    assert figures["missing"] == [
        "2 blocks of 10485760 bytes were there before the first event: the peak before it is not known"
    ]


def test_the_table_says_that_a_peak_is_a_lower_bound(tmp_path: Path) -> None:
    shown = allotment("replay", write(tmp_path / "s", BEFORE)).stdout
    assert "\npeak live, at least " in shown
    assert "\nincomplete " in shown
    whole = snapshot(
        [segment(512, [block(512, 5, "inactive")])], [event("alloc", 512, 5), event("free_completed", 512, 5)]
    )
    shown = allotment("replay", write(tmp_path / "s", whole)).stdout
    assert "at least" not in shown


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ring", [1, 50, 10_000])
def test_totals_are_those_of_the_program_that_was_recorded(tmp_path: Path, ring: int, seed: int) -> None:
    recorder = Recorder(ring)
    recorder.run(300, seed)
    columns = read(tmp_path, recorder.snapshot())
    origin = columns.origin
    kept = list(recorder.events)
    assert origin.live_at_start == kept[0][1]
    assert origin.live_at_end == recorder.live_bytes
    allocations = [before + entry["size"] for entry, before in kept if entry["action"] == "alloc"]
    assert columns.program().peak_live == max([origin.live_at_start, *allocations])
    assert origin.reserved_at_end == sum(one["total_size"] for one in recorder.snapshot()["segments"])
    assert origin.recorded_peak_reserved == origin.reserved_at_end  # nothing was released
    assert origin.incomplete is (origin.blocks_at_start > 0)
    # A free has the stream of its allocation, and blocks from before that of their segment or their free.
    assert columns.stream is not None
    streams = dict(zip(columns.id, columns.stream, strict=True))
    assert [streams[name] for name in columns.id] == list(columns.stream)


def test_segments_that_come_and_go_give_the_peak_of_reserved_bytes(tmp_path: Path) -> None:
    trace = [
        event("segment_alloc", 0, 20 * MIB),
        event("segment_map", 1 << 40, 2 * MIB),
        event("segment_free", 0, 20 * MIB),
        event("segment_unmap", 1 << 40, 2 * MIB),
        event("segment_map", 1 << 40, 4 * MIB),
    ]
    origin = read(
        tmp_path, snapshot([segment(1 << 40, [block(4 * MIB, 1, "inactive")], is_expandable=True)], trace)
    ).origin
    assert (origin.reserved_at_end, origin.recorded_peak_reserved) == (4 * MIB, 22 * MIB)
    assert origin.entries == {"segment_alloc": 1, "segment_map": 2, "segment_free": 1, "segment_unmap": 1}


def test_each_device_is_a_program(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s",
        snapshot(
            [segment(512, [block(512, 300)], device=2)],
            [event("alloc", 512, 100), event("free_completed", 512, 100)],
            [],
        ),
    )
    first, second = read_traces(path)
    assert (first.title, second.title) == (f"{path} (device 0)", f"{path} (device 2)")
    assert (first.program.peak_live, second.program.peak_live) == (100, 300)
    assert second.origin.missing[-1].startswith("there are no events")
    assert [one["device"] for one in replay_json(path)["traces"]] == ["device 0", "device 2"]
    with pytest.raises(TraceError, match="has 2 programs, of device 0, device 2: read_traces reads them all"):
        read_trace(path)
    line = complaint(allotment("replay", path, "--offsets", tmp_path / "o.npy"))
    assert line.endswith("has 2")
    assert not (tmp_path / "o.npy").exists()


def test_old_snapshots_have_segments_alone_and_sizes_in_a_history(tmp_path: Path) -> None:
    blocks = [
        {"size": 1024, "state": "active_allocated", "history": [{"addr": 512, "real_size": 700}]},
        {"size": 512, "state": "active_awaiting_free"},
        {"size": 512, "state": "inactive"},
    ]
    origin = read(tmp_path, [{"address": 512, "total_size": 2048, "blocks": blocks}]).origin
    assert (origin.live_at_start, origin.live_at_end, origin.reserved_at_end) == (1212, 1212, 2048)


def test_annotations_and_metadata_are_counted_by_name(tmp_path: Path) -> None:
    marks = [
        {"stage": stage, "name": "step", "device": 0, "time_us": 5} for stage in ("START", "END", "START")
    ]
    trace = [
        event("alloc", 512, 10, user_metadata="layer 3"),
        event("free_completed", 512, 10, user_metadata=""),
    ]
    origin = read(tmp_path, snapshot([], trace, external_annotations=marks)).origin
    assert origin.annotations == {"step": 2, "layer 3": 1}


@pytest.mark.parametrize(
    ("device_free", "blocks", "said"),
    [
        (
            1 * MIB,
            [
                block(4 * MIB, 4 * MIB),
                block(3 * MIB, 0, "inactive"),
                block(1 * MIB, MIB),
                block(2 * MIB, 0, "inactive"),
            ],
            "entry 0: 4 MiB (4194304 bytes) asked for with 5 MiB (5242880 bytes) live and 10 MiB (10485760 bytes) "
            "reserved; the device had 1 MiB (1048576 bytes) free. 5 MiB (5242880 bytes) were reserved and not live "
            "and the 1 MiB (1048576 bytes) that the device had free, in free blocks of at most 3 MiB (3145728 bytes) "
            "and inside blocks that are larger than their requests: the memory was fragmented.",
        ),
        (
            # What the device has free counts, as pages of expandable segments would hold both: 3 + 2 of 4 MiB.
            2 * MIB,
            [block(3 * MIB, 3 * MIB), block(3 * MIB, 0, "inactive")],
            "entry 0: 4 MiB (4194304 bytes) asked for with 3 MiB (3145728 bytes) live and 6 MiB (6291456 bytes) "
            "reserved; the device had 2 MiB (2097152 bytes) free. 3 MiB (3145728 bytes) were reserved and not live "
            "and the 2 MiB (2097152 bytes) that the device had free, in free blocks of at most 3 MiB (3145728 bytes) "
            "and inside blocks that are larger than their requests: the memory was fragmented.",
        ),
        (
            # No block is free: the bytes are inside one that is larger than its request.
            1 * MIB,
            [block(16 * MIB, 9 * MIB)],
            "entry 0: 4 MiB (4194304 bytes) asked for with 9 MiB (9437184 bytes) live and 16 MiB (16777216 bytes) "
            "reserved; the device had 1 MiB (1048576 bytes) free. 7 MiB (7340032 bytes) were reserved and not live, "
            "and no block was free: they were lost inside blocks that are larger than their requests.",
        ),
        (
            0,
            [block(8 * MIB, 8 * MIB), block(2 * MIB, 0, "inactive")],
            "entry 0: 4 MiB (4194304 bytes) asked for with 8 MiB (8388608 bytes) live and 10 MiB (10485760 bytes) "
            "reserved; the device had 0 B free. The 2 MiB (2097152 bytes) reserved and not live would not have "
            "sufficed: the memory was full.",
        ),
        (
            4 * MIB,
            [block(2 * MIB, 2 * MIB)],
            "entry 0: 4 MiB (4194304 bytes) asked for with 2 MiB (2097152 bytes) live and 2 MiB (2097152 bytes) "
            "reserved; the device had 4 MiB (4194304 bytes) free. The device's free memory was larger than the "
            "request: a limit of the process refused it, or the segment that the request needed was larger than "
            "the request.",
        ),
    ],
)
def test_an_out_of_memory_error_says_what_was_asked_for_and_why_it_failed(
    tmp_path: Path, device_free: int, blocks: list[dict[str, Any]], said: str
) -> None:
    content = snapshot([segment(512, blocks)], [event("oom", device_free, 4 * MIB)])
    (refusal,) = read(tmp_path, content).origin.refusals
    assert refusal.text == said
    shown = replay_json(tmp_path / "s.pickle")["out_of_memory"]
    assert [one["text"] for one in shown] == [said]


def test_the_segments_do_not_tell_of_an_error_that_events_follow(tmp_path: Path) -> None:
    trace = [event("oom", 0, 1 * MIB), event("free_completed", 512, 3 * MIB)]
    content = snapshot([segment(512, [block(4 * MIB, 0, "inactive")])], trace)
    (refusal,) = read(tmp_path, content).origin.refusals
    assert (refusal.event, refusal.live, refusal.largest_free) == (1, 3 * MIB, None)
    assert refusal.text.endswith(
        "no piece of them served: they were fragmented, lost inside blocks that are larger than their requests, or "
        "belonged to another stream or pool."
    )


def shared(depth: int) -> list[Any]:
    """Return a list in lists that a pickle keeps once each, and that is written out 2**depth times."""
    value: list[Any] = ["x"]
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (5, "is a pickle, but no memory snapshot of PyTorch: it has no list of segments"),
        ({"segments": 5}, "is a pickle, but no memory snapshot of PyTorch: it has no list of segments"),
        ({"segments": [], "device_traces": [5]}, "device_traces: must be a list of lists"),
        (snapshot([], []), "is a snapshot without events and segments"),
        ({"segments": [5]}, "segments[0]: must be a dictionary, is int"),
        (snapshot([{"address": 1}]), "segments[0]: total_size is missing"),
        (
            snapshot([{**segment(512, [block(512, 7)]), "total_size": 256}]),
            "segments[0]: total_size is 256, but its blocks have 512 bytes",
        ),
        (
            snapshot([segment(512, [block(512, 513)])]),
            "segments[0]: blocks[0]: requested_size is 513, more than its size 512",
        ),
        (
            [
                {
                    "address": 512,
                    "total_size": 512,
                    "blocks": [{"size": 512, "state": "active_allocated", "history": [{"real_size": 513}]}],
                }
            ],
            "segments[0]: blocks[0]: real_size is 513, more than its size 512",
        ),
        (snapshot([], [{"action": 5}]), "device_traces[0][0]: action is 5, not a text"),
        (snapshot([], [{"action": shared(60)}]), "device_traces[0][0]: action is a list, not a text"),
        (
            snapshot([], [{"action": "alloc", "addr": 512, "size": 512, "stream": shared(60), "time_us": 1}]),
            "device_traces[0][0]: stream is a list, not an integer",
        ),
        (
            {
                **snapshot([], [event("alloc", 512, 512)]),
                "external_annotations": [{"name": shared(60), "device": 0}],
            },
            "external_annotations[0]: name must be a text, is list",
        ),
        (
            snapshot([], [{"action": "alloc", "addr": "x"}]),
            "device_traces[0][0]: addr must be an integer, is str",
        ),
        (
            snapshot([], [event("alloc", 1, -1)]),
            "device_traces[0][0]: size -1 is not between 0 and 144115188075855872",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused_with_the_place(tmp_path: Path, content: Any, said: str) -> None:
    assert rejected(tmp_path, content) == said
