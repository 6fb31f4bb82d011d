"""Smallest and safe limits: what the command says of them, and whether live pools keep to it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment
from allotment import HostMemory, Pool
from allotment._core import Program, find_limits, replay
from support.command import allotment as command
from support.command import complaint, replay_json
from support.terminal import on_a_terminal
from support.traces.trace_files import GNN, RECORDED, Events, columns, read_events, write_trace

KIB = 1 << 10
SEGMENTATION = RECORDED / "torch_seg_train_varsize.npz"
RESNET = Path(allotment.__file__).parent / "trace" / "data" / "torch_resnet50_train_b16.npz"

#: The default pool of each source, and how a replay has to place regions to stand for it.
SOURCES: dict[str, tuple[Any, bool]] = {
    "host": ("host", False),
    "host of a size": (HostMemory("1TiB"), False),
    "address-space": ("address-space", True),
}


def program_of(events: Events) -> Program:
    return Program(*(column.astype(np.int64).data for column in columns(events).values()))


def refused_live(pool: Pool, events: Events) -> int:
    """Play the events into a pool; count its refusals."""
    addresses: dict[int, int] = {}
    refused = 0
    for op, name, size in events:
        if op == 2:
            pool.free(addresses.pop(name))
            continue
        try:
            addresses[name] = pool.malloc(size)
        except allotment.OutOfMemoryError:
            addresses[name] = 0
            refused += 1
    for address in addresses.values():
        pool.free(address)
    return refused


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "path", [GNN, SEGMENTATION, RECORDED / "tf_eager_gan_gp.npz"], ids=lambda path: path.stem
)
def test_the_default_pool_of_each_source_refuses_nothing_at_the_safe_limit(path: Path, source: str) -> None:
    chosen, joined = SOURCES[source]
    events = read_events(path)
    found = find_limits(program_of(events), joined=joined)
    assert found.complete
    steps = found.safe_limit // 65536
    for step in (steps, steps + 1, steps * 9 // 8, steps * 5 // 4):
        with Pool(step * 65536, source=chosen) as pool:
            assert refused_live(pool, events) == 0, step


def test_where_the_joined_limit_is_too_little_for_a_pool_over_host_memory() -> None:
    figures = replay_json(SEGMENTATION, "--min-limit")
    assert figures["min_limit"] == figures["safe_limit"] == 181_665_792
    with Pool(figures["safe_limit"], source="host") as pool:
        assert refused_live(pool, read_events(SEGMENTATION)) > 0
    assert replay_json(SEGMENTATION, "--min-limit", "--apart")["min_limit"] > 181_665_792


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_as_if_every_limit_was_tried(seed: int) -> None:
    random = np.random.default_rng(seed)
    events: Events = []
    live: list[tuple[int, int]] = []
    sizes = random.integers(1, 1 << int(random.integers(9, 21)), 6).tolist()
    for name in range(150):
        if live and random.random() < 0.45:
            events.append((2, *live.pop(int(random.integers(len(live))))))
        else:
            size = sizes[random.integers(6)] if seed % 2 else int(random.integers(1, 1 << 19))
            events.append((1, name, size))
            live.append((name, size))
    program = program_of(events)
    step = max(256, program.peak_live // 200 // 256 * 256)
    options: dict[str, Any] = {"growth": seed % 3 > 0, "policy": ("tensorflow", "tight")[seed // 2 % 2]}

    def serves(count: int) -> bool:
        return replay(program, limit=count * step, **options).refused == 0

    smallest = next(count for count in range(-(-program.peak_live // step), 1 << 20) if serves(count))
    safe = count = smallest
    while count * 4 <= safe * 5:
        safe = safe if serves(count) else count + 1
        count += 1
    found = find_limits(program, granularity=step, **options)
    assert (found.min_limit, found.safe_limit) == (smallest * step, safe * step)
    assert (found.complete, found.untried) == (True, None)


# --- the command


def test_two_limits_in_words_and_in_json() -> None:
    figures = replay_json(GNN, "--min-limit")
    assert (figures["min_limit"], figures["safe_limit"]) == (27_918_336, 30_212_096)
    assert (figures["complete"], figures["untried"], figures["granularity"]) == (True, None, 65536)
    assert (figures["joined"], figures["policy"], figures["limit"]) == (True, "tensorflow", 27_918_336)
    # The step below the safe limit refuses: a search by bisection does not see that.
    assert replay_json(GNN, "--limit", "30146560", status=3)["refused"] > 0
    done = command("replay", GNN, "--min-limit")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^smallest limit +26\.62 MiB +27918336 bytes$", done.stdout, flags=re.M)
    assert re.search(r"^safe limit +28\.81 MiB +30212096 bytes$", done.stdout, flags=re.M)
    assert re.search(r"^search +complete$", done.stdout, flags=re.M)
    assert "safe limit: from there up to 1.25 times it, nothing is refused" in done.stdout
    assert "out of time" not in done.stdout


def test_without_a_search_there_are_no_limits_found() -> None:
    figures = replay_json(GNN)
    assert not figures.keys() & {"min_limit", "safe_limit", "complete", "untried", "granularity"}
    assert "safe limit" not in command("replay", GNN).stdout


def test_time_that_is_over_is_said(tmp_path: Path) -> None:
    figures = replay_json(RESNET, "--min-limit", "--granularity", "256", "--seconds", "0.01")
    first, last = figures["untried"]
    assert figures["complete"] is False
    assert figures["peak_live"] <= first <= last < figures["safe_limit"]
    assert figures["refused"] == 0
    done = command("replay", RESNET, "--min-limit", "--granularity", "256", "--seconds", "0.01")
    assert done.returncode == 0
    assert re.search(r"^search +out of time: \d+ to \d+ bytes not tried$", done.stdout, flags=re.M)
    assert "--seconds" in done.stdout


def test_granularity_is_what_limits_are_multiples_of(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, 3 * 65536 + 1)])
    for granularity, limit in (("256", 3 * 65536 + 256), ("4KiB", 3 * 65536 + 4096), ("1MiB", 1 << 20)):
        figures = replay_json(trace, "--min-limit", "--granularity", granularity)
        assert figures["min_limit"] == figures["safe_limit"] == limit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--granularity", "1000"], "'1000': must be a multiple of 256 bytes"),
        (["--granularity", "0"], "'0': must be at least 256 bytes"),
        (["--seconds", "-1"], "-1.0 is not in the range x>=0"),
        (["--seconds", "soon"], "'soon' is not a valid float"),
        (["--policy", "loose"], "'loose' is not one of 'tensorflow', 'tight'"),
    ],
)
def test_bad_options_are_named(options: list[str], message: str) -> None:
    assert message in complaint(command("replay", str(GNN), "--min-limit", *options))


def test_bad_arguments_are_named() -> None:
    program = program_of([(1, 1, 100)])
    for seconds, said in ((-1.5, "-1.5"), (float("nan"), "NaN")):
        with pytest.raises(ValueError, match=f"seconds must be 0 or more, not {said}"):
            find_limits(program, seconds=seconds)
    for granularity in (0, 100, 1 << 61):
        with pytest.raises(
            ValueError, match=f"multiple of 256 bytes up to 1152921504606846976, not {granularity}"
        ):
            find_limits(program, granularity=granularity)
    assert find_limits(program, seconds=float("inf")).min_limit == 65536


def test_regions_joined_or_apart_and_the_policy_are_rows(tmp_path: Path) -> None:
    rows = {
        (): ("joined", "tensorflow"),
        ("--apart",): ("kept apart", "tensorflow"),
        ("--gap", "256"): ("kept apart", "tensorflow"),
        ("--gap", "256", "--joined", "--policy", "tight"): ("joined", "tight"),
    }
    for options, (regions, policy) in rows.items():
        text = command("replay", GNN, *options).stdout
        assert re.search(rf"^regions that touch +{regions}$", text, flags=re.M), options
        assert re.search(rf"^policy +{policy}$", text, flags=re.M), options
    # What is split off in full leaves nothing to lose.
    trace = write_trace(
        tmp_path / "t.npz", [(1, 1, (1 << 20) + 256), (2, 1, (1 << 20) + 256), (1, 2, 1 << 20)]
    )
    assert replay_json(trace, "--limit", "2MiB")["lost_inside_chunks"] > 900 * KIB
    assert replay_json(trace, "--limit", "2MiB", "--policy", "tight")["lost_inside_chunks"] == 0


def test_an_exception_of_the_progress_function_ends_the_search() -> None:
    def fail(known: int, of: int) -> None:
        raise KeyError((known, of))

    with pytest.raises(KeyError):
        find_limits(program_of(read_events(GNN)), progress=fail)


def test_progress_is_shown_on_a_terminal() -> None:
    status, shown, stdout = on_a_terminal("replay", RESNET, "--min-limit", "--json", stream="stderr")
    assert status == 0
    assert "replaying" in shown
    assert json.loads(stdout)["complete"] is True
