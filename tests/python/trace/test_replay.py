"""Replays against worked examples and against a slow best fit: offsets, peaks, regions, refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command import replay_json
from support.traces.best_fit import BestFit, replay
from support.traces.trace_files import GNN, RECORDED, Events, read_events, write_trace

SEGMENTATION = RECORDED / "torch_seg_train_varsize.npz"

MIB = 1 << 20


def offsets_of(trace: Path, folder: Path, *options: str, status: int = 0) -> tuple[list[int], dict[str, Any]]:
    """Replay by the command; return the offsets file and the figures."""
    file = folder / "offsets.npy"
    figures = replay_json(trace, *options, "--offsets", file, status=status)
    offsets = np.load(file, allow_pickle=False)
    assert offsets.dtype == np.dtype("<i8")
    assert offsets.ndim == 1
    return offsets.tolist(), figures


# Examples from the description of TensorFlow 2.21's allocator, observed on the original: events, options,
# offsets, and what is reserved at the end.
WORKED: dict[str, tuple[Events, list[str], list[int], int]] = {
    "basics": (
        [
            (1, 1, 1),
            (1, 2, 300),
            (1, 3, 512),
            (1, 4, 1000),
            (2, 2, 300),
            (1, 5, 200),
            (2, 1, 1),
            (2, 5, 200),
            (1, 6, 513),
        ],
        ["--limit", "1048576", "--no-growth"],
        [0, 256, 768, 1280, 256, 256, 0, 256, 0],
        1_048_576,
    ),
    "regions double and lie apart": (
        [(1, 1, 100), (1, 2, 2_097_152), (1, 3, 3_000_000), (1, 4, 20_000_000), (1, 5, 40_000_000)],
        ["--limit", "64MiB", "--gap", "256"],
        # Observed without a gap and without joining; each region is one gap further here.
        [0, 2_097_152 + 256, 6_291_456 + 512, 14_680_064 + 768, -1],
        48_234_496,
    ),
    "regions that touch are joined": (
        [
            (1, 1, 100),
            (1, 2, 2_097_152),
            (1, 3, 3_000_000),
            (2, 1, 100),
            (2, 2, 2_097_152),
            (2, 3, 3_000_000),
        ],
        ["--limit", "64MiB"],
        [0, 256, 2_097_408, 0, 256, 2_097_408],
        6_291_456,
    ),
    "free regions are given back": (
        [(1, 1, 256), (1, 2, 3_000_000), (2, 2, 3_000_000), (1, 3, 5_000_000)],
        ["--limit", "8388608", "--gap", "256", "--trim-on-oom"],
        [0, 2_097_152 + 256, 2_097_152 + 256, 6_291_456 + 512],
        8_388_608,
    ),
    "free regions are kept": (
        [(1, 1, 256), (1, 2, 3_000_000), (2, 2, 3_000_000), (1, 3, 5_000_000), (2, 3, 5_000_000)],
        ["--limit", "8388608", "--gap", "256"],
        [0, 2_097_152 + 256, 2_097_152 + 256, -1, -1],
        6_291_456,
    ),
    "smallest fit, then lowest address": (
        [
            (1, 1, 1024),
            (1, 2, 256),
            (1, 3, 1024),
            (1, 4, 256),
            (1, 5, 768),
            (1, 6, 256),
            (2, 3, 1024),
            (2, 1, 1024),
            (2, 5, 768),
            (1, 7, 700),
            (1, 8, 769),
            (1, 9, 1024),
        ],
        ["--limit", "1048576", "--no-growth"],
        [0, 1024, 1280, 2304, 2560, 3328, 1280, 0, 2560, 2560, 0, 1280],
        1_048_576,
    ),
    "a limit in odd bytes": (
        [(1, 1, 999_937), (1, 2, 999_936)],
        ["--limit", "1000001", "--no-growth"],
        [-1, 0],
        999_936,
    ),
}


@pytest.mark.parametrize("case", WORKED)
def test_worked_examples(tmp_path: Path, case: str) -> None:
    events, options, expected, reserved = WORKED[case]
    trace = write_trace(tmp_path / "t.npz", events)
    status = (
        3 if any(op == 1 and where == -1 for (op, _, _), where in zip(events, expected, strict=True)) else 0
    )
    offsets, figures = offsets_of(trace, tmp_path, *options, status=status)
    assert offsets == expected
    assert figures["reserved"] == reserved


@pytest.mark.parametrize("case", WORKED)
def test_the_slow_model_knows_the_worked_examples(case: str) -> None:
    events, options, expected, reserved = WORKED[case]
    limit = {"64MiB": 64 * MIB}.get(options[1]) or int(options[1])
    gap = 256 if "--gap" in options else 0
    model = BestFit(
        limit, growth="--no-growth" not in options, trim_on_oom="--trim-on-oom" in options, gap=gap
    )
    assert replay(model, events).offsets == expected
    assert model.reserved == reserved


@pytest.mark.parametrize("trace", [GNN, SEGMENTATION], ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("growth", "trim_on_oom", "gap"),
    [(True, False, 0), (True, False, 4096), (False, False, 0), (True, True, 256)],
)
@pytest.mark.parametrize("share", [1.0, 4.0], ids=["tight", "ample"])
def test_a_recorded_program_lands_where_the_slow_model_puts_it(
    tmp_path: Path, trace: Path, growth: bool, trim_on_oom: bool, gap: int, share: float
) -> None:
    events = read_events(trace)[:8000]
    part = write_trace(tmp_path / "part.npz", events)
    limit = int(share * peak_live(events))
    expected = replay(BestFit(limit, growth=growth, trim_on_oom=trim_on_oom, gap=gap), events)
    options = [
        "--growth" if growth else "--no-growth",
        "--trim-on-oom" if trim_on_oom else "--no-trim-on-oom",
    ]
    offsets, figures = offsets_of(
        part,
        tmp_path,
        "--limit",
        str(limit),
        "--gap",
        str(gap),
        *options,
        status=3 if expected.refused else 0,
    )
    # The tight cases are there for their refusals.
    assert (expected.refused > 0) == (share == 1.0)
    assert offsets == expected.offsets
    for name in ("refused", "first_refused", "peak_in_use", "peak_reserved", "regions", "grants"):
        assert figures[name] == getattr(expected, name), name
    assert figures["peak_live"] == peak_live(events)


def test_a_whole_recorded_program_lands_where_the_slow_model_puts_it(tmp_path: Path) -> None:
    events = read_events(GNN)
    expected = replay(BestFit(64 << 30), events)
    offsets, figures = offsets_of(GNN, tmp_path)
    assert offsets == expected.offsets
    assert figures["peak_reserved"] == expected.peak_reserved
    assert (figures["in_use"], figures["num_live"]) == (0, 0)


def test_zero_bytes_are_no_refusal(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, 0), (1, 2, 5), (2, 1, 0), (2, 2, 5)])
    offsets, figures = offsets_of(trace, tmp_path)
    assert offsets == [-1, 0, -1, 0]
    assert (figures["refused"], figures["num_allocs"]) == (0, 1)


def peak_live(events: Events) -> int:
    live = peak = 0
    for op, _, nbytes in events:
        live += nbytes if op == 1 else -nbytes
        peak = max(peak, live)
    return peak


# --- the smallest limit


@pytest.mark.parametrize(
    "options", [[], ["--no-growth"], ["--gap", "256"], ["--trim-on-oom", "--gap", "512"]]
)
@pytest.mark.parametrize("trace", [GNN, RECORDED / "tf_eager_gan_gp.npz"], ids=lambda path: path.stem)
def test_the_smallest_limit_serves_everything_and_one_step_less_does_not(
    trace: Path, options: list[str]
) -> None:
    found = replay_json(trace, "--min-limit", *options)
    limit = found["min_limit"]
    assert limit % 65536 == 0
    assert found["peak_live"] <= limit + 65535
    assert limit <= 8 * found["peak_live"]
    # The other figures are those of a replay at that limit.
    same = replay_json(trace, "--limit", str(limit), *options)
    timeless = {"ns_per_event", "min_limit", "safe_limit", "complete", "untried", "granularity"}
    assert {name: found[name] for name in found.keys() - timeless} == {
        name: same[name] for name in same.keys() - timeless
    }
    assert same["refused"] == 0
    less = replay_json(trace, "--limit", str(limit - 65536), *options, status=3)
    assert less["refused"] > 0


def test_the_smallest_limit_of_small_blocks_is_above_eight_times_their_bytes(tmp_path: Path) -> None:
    """Each byte takes a granule of 256: 10,000 of them need 2,560,000 bytes, that is 40 steps of 64 KiB."""
    trace = write_trace(tmp_path / "t.npz", [(1, name, 1) for name in range(10_000)])
    assert replay_json(trace, "--min-limit", "--no-growth")["min_limit"] == 40 * 65536


def test_the_smallest_limit_of_one_block_is_its_granules(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, 3 * 65536 + 1)])
    assert replay_json(trace, "--min-limit")["min_limit"] == 4 * 65536


def test_the_smallest_limit_of_nothing_is_nothing(tmp_path: Path) -> None:
    for events in ([], [(1, 1, 0)]):
        figures = replay_json(write_trace(tmp_path / "t.npz", events), "--min-limit")
        assert (figures["min_limit"], figures["refused"], figures["reserved"]) == (0, 0, 0)


# --- other facts that a replay must get right


def test_figures_of_a_recorded_program_agree_with_its_own_header(tmp_path: Path) -> None:
    for path in RECORDED.glob("*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(str(arrays["header"]))
        figures = replay_json(path)
        assert figures["events"] == header["events"]
        assert figures["peak_live"] == figures["peak_requested"] == header["peak_live_bytes"]
        assert figures["num_allocs"] == header["allocs"]
        assert figures["num_live"] == header["final_live_count"]
        assert figures["requested"] == header["final_live_bytes"]
        assert figures["largest_requested"] == header["size_max"]
        assert figures["ns_per_event"] > 0
        assert figures["peak_live"] <= figures["peak_in_use"] <= figures["peak_reserved"] <= figures["limit"]
        assert figures["free"] == figures["reserved"] - figures["in_use"]
