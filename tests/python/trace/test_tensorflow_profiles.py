"""Memory events of TensorFlow's profiler, judged by what its own protobuf classes read."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from allotment.trace import TraceError, read_all_columns, read_columns
from support.command import replay_json
from support.traces.trace_files import RECORDED

PROFILE = RECORDED / "tf_eager_loop.xplane.pb"


def rejected(path: Path, content: bytes) -> str:
    (path / "t").write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read_all_columns(path / "t")
    return str(caught.value).removeprefix(f"{path}/t: ")


def test_a_recorded_profile_has_the_totals_that_tensorflow_reads() -> None:
    figures = replay_json(PROFILE)
    assert (figures["kind"], figures["device"]) == ("tensorflow", "bfc_cpu_allocator_for_gpu")
    # 110 memory events, two of which free blocks from before.
    assert (figures["events"], figures["blocks_at_start"]) == (112, 2)
    assert (figures["live_at_start"], figures["peak_live"], figures["live_at_end"]) == (
        170_000,
        2_282_100,
        2_036_084,
    )
    # 210,688 bytes of chunks were in use before; 170,496 of them are those of the two blocks.
    assert figures["missing"][1].startswith(
        "40192 bytes of chunks were in use from before the first event to the end"
    )


def test_a_profile_has_the_operations_times_and_threads_of_its_events() -> None:
    (columns,) = read_all_columns(PROFILE)
    assert columns.owners == ("Fill", "MatMul", "AddV2", "Relu")
    assert columns.t_ns is not None
    assert list(columns.t_ns) == sorted(columns.t_ns)
    assert columns.t_ns[-1] > 10**6
    assert columns.thread is not None
    assert set(columns.thread) == {0}


def test_the_profile_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(gzip.compress(PROFILE.read_bytes()))
    assert read_columns(tmp_path / "t").size == read_columns(PROFILE).size


def test_a_damaged_profile_is_refused_or_read_wherever_it_is_cut(tmp_path: Path) -> None:
    content = PROFILE.read_bytes()
    for length in range(1, len(content), 977):
        assert "is not a profile of TensorFlow, or is damaged: " in rejected(tmp_path, content[:length])
    for place in range(0, len(content), 1013):
        (tmp_path / "t").write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        with suppress(TraceError):
            read_all_columns(tmp_path / "t")


def memory(
    name: str, time: float, addr: int, requested: int, chunk: int, in_use: int, **more: Any
) -> dict[str, Any]:
    """Make an event as older versions wrote it to JSON: figures are texts."""
    figures = {
        "addr": str(addr),
        "requested_bytes": str(requested),
        "allocation_bytes": str(chunk),
        "bytes_allocated": str(in_use),
        "allocator_name": "GPU_0_bfc",
        **more,
    }
    return {"name": name, "ph": "X", "pid": 1, "tid": 2, "ts": time, "dur": 0.1, "args": figures}


def write(path: Path, *events: dict[str, Any]) -> Path:
    (path / "t").write_text(
        json.dumps({"displayTimeUnit": "ns", "traceEvents": [{}, {"name": "MatMul"}, *events]})
    )
    return path / "t"


def test_a_trace_in_json_has_a_program_for_each_allocator_in_order_of_time(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        memory("MemoryDeallocation", 3.0, 768, 100, 256, 512),
        memory("MemoryAllocation", 1.0, 256, 500, 512, 512),
        memory("MemoryAllocation", 2.0, 768, 100, 256, 768),
        memory("MemoryAllocation", 2.5, 256, 7, 256, 256, allocator_name="cpu"),
    )
    gpu, cpu = read_all_columns(path)
    assert (gpu.origin.device, cpu.origin.device) == ("GPU_0_bfc", "cpu")
    assert list(zip(gpu.op, gpu.size, strict=True)) == [(1, 500), (1, 100), (2, 100)]
    assert not gpu.origin.incomplete
    assert cpu.size.tolist() == [7]


def test_events_that_do_not_continue_the_running_total_are_said_to_be_missing(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        memory("MemoryAllocation", 1.0, 256, 500, 512, 512),
        memory("MemoryAllocation", 2.0, 2048, 100, 256, 1024),
    )
    (columns,) = read_all_columns(path)
    assert columns.origin.missing == (
        "1 event does not continue the allocator's running total: events are missing",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"traceEvents": [', "is not JSON: "),
        (b'{"events": []}', "is JSON, but no trace: it has no list traceEvents"),
        (
            b'{"traceEvents": [{"name": "MatMul"}]}',
            "has no event MemoryAllocation: TensorFlow leaves memory events out",
        ),
        (
            b'{"traceEvents": [{"name": "MemoryAllocation", "ts": 1, "args": {"addr": "x"}}]}',
            "traceEvents[0]: MemoryAllocation needs a whole number addr, has 'x'",
        ),
        (
            b'{"traceEvents": [{"name": "MemoryAllocation", "args": {}}]}',
            "traceEvents[0]: needs a number ts and figures in args",
        ),
        (b"\n\x00", "is a profile without events MemoryAllocation: "),
    ],
)
def test_what_is_no_memory_trace_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    assert rejected(tmp_path, content).startswith(said)
