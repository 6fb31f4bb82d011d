"""What if: PyTorch's allocator against a slow model of it, comparisons and sweeps against single replays.

Longer than 300 lines: most of them are the programs, the expected figures and the options of the command.
"""

import json
import random
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from allotment import Pool
from allotment._core import Program, replay_caching
from allotment.trace import Origin, ReplayOptions, Trace, compare, read_trace, replay_trace, sweep
from support.command import allotment, complaint
from support.traces.caching import MIB, Caching
from support.traces.expandable import CELL, Expandable
from support.traces.trace_files import GNN, Events, read_events, write_trace

SIZES = [
    1,
    512,
    513,
    100_000,
    MIB,
    MIB + 1,
    3 * MIB,
    9 * MIB,
    10 * MIB,
    11 * MIB,
    30 * MIB,
    41 * MIB,
    70 * MIB,
]


def program(events: Events) -> Program:
    return Program(*(array("q", column) for column in zip(*events, strict=True)))


def random_events(seed: int, length: int = 150, sizes: list[int] = SIZES) -> tuple[Events, list[int]]:
    chosen, live = random.Random(seed), list[tuple[int, int, int]]()
    events: Events = []
    streams: list[int] = []
    for name in range(length):
        if live and chosen.random() < 0.45:
            freed, size, stream = live.pop(chosen.randrange(len(live)))
            events.append((2, freed, size))
        else:
            size, stream = chosen.choice(sizes), chosen.choice([0, 0, 0, 5])
            live.append((name, size, stream))
            events.append((1, name, size))
        streams.append(stream)
    return events, streams


@pytest.mark.parametrize(
    ("max_split_size", "gc_threshold"),
    [(None, 0.0), (20 * MIB, 0.0), (40 * MIB, 0.0), (None, 0.5), (40 * MIB, 0.7)],
)
@pytest.mark.parametrize("limit", [120 * MIB, 300 * MIB, 1 << 40])
def test_the_model_of_pytorch_decides_as_the_slow_one(
    limit: int, max_split_size: int | None, gc_threshold: float
) -> None:
    for seed in range(15):
        events, streams = random_events(seed)
        slow, refused = Caching(limit, max_split_size, gc_threshold), []
        for number, ((op, name, size), stream) in enumerate(zip(events, streams, strict=True)):
            if op == 2:
                slow.free(name)
            elif not slow.allocate(name, size, stream):
                refused.append(number)
        done = replay_caching(
            program(events),
            limit=limit,
            stream=array("q", streams),
            max_split_size=max_split_size,
            gc_threshold=gc_threshold,
        )
        assert done.refused == len(refused), seed
        assert done.first_refused == (refused[0] if refused else None)
        assert (done.reserved, done.peak_reserved) == (slow.reserved, slow.peak_reserved)
        assert done.segments == len(slow.segments)


@pytest.mark.parametrize("limit", [120 * MIB, 300 * MIB, 1 << 30])
def test_expandable_segments_are_mapped_as_in_the_slow_model(limit: int) -> None:
    sizes = [MIB // 2, MIB, MIB + CELL, 3 * MIB, 9 * MIB, 10 * MIB, 11 * MIB, 19 * MIB, 30 * MIB, 41 * MIB]
    for seed in range(12):
        events, streams = random_events(seed, 120, sizes)
        slow, refused = Expandable(limit), []
        for number, ((op, name, size), stream) in enumerate(zip(events, streams, strict=True)):
            if op == 2:
                slow.free(name)
            elif not slow.allocate(name, size, stream):
                refused.append(number)
        done = replay_caching(
            program(events), limit=limit, stream=array("q", streams), expandable_segments=True
        )
        assert (done.refused, done.first_refused) == (len(refused), refused[0] if refused else None), seed
        assert (done.reserved, done.peak_reserved) == (slow.reserved, slow.peak_reserved), seed
        assert done.segments == slow.segments


#: A weight of 270 MiB takes a cached segment of 530 MiB, whose rest fits nothing.
PINNED: Events = [(1, 1, 530 * MIB), (2, 1, 530 * MIB), (1, 2, 270 * MIB), (1, 3, 530 * MIB)]


def trace_of(events: Events, origin: Origin | None = None) -> Trace:
    return Trace("t", None, program(events), origin or Origin("pytorch"))


def test_a_comparison_finds_the_limits_of_each_policy_and_names_the_setting() -> None:
    rows = {row.policy.name: row for row in compare(trace_of(PINNED)).rows}
    assert rows["PyTorch"].min_limit == 1060 * MIB
    assert rows["PyTorch, max_split_size"].min_limit == 800 * MIB
    assert rows["PyTorch, expandable"].min_limit == 800 * MIB
    assert rows["PyTorch"].peak_reserved == 1060 * MIB
    assert all(row.complete for row in rows.values())
    for name in ("TensorFlow", "TensorFlow, no growth", "tight", "tight, no growth"):
        row = rows[name]
        assert row.policy.options is not None
        at = replace(row.policy.options, limit=row.min_limit)
        assert replay_trace(trace_of(PINNED), at).result.refused == 0
        below = replace(row.policy.options, limit=row.min_limit - row.granularity)
        assert replay_trace(trace_of(PINNED), below).result.refused > 0
    said = compare(trace_of(PINNED)).verdict
    assert not any("growth=False" in text for text in said)
    assert any(
        text.startswith("max_split_size_mb:128 saves 260 MiB (24.5 %) against PyTorch") for text in said
    )


def test_a_comparison_has_a_plan_that_a_pool_follows() -> None:
    trace = read_trace(GNN)
    comparison = compare(trace, seconds=5)
    pool = Pool(comparison.plan.arena, plan=comparison.plan, source="address-space", growth=False)
    addresses = {}
    for op, block, size in read_events(GNN):
        if op == 1:
            addresses[block] = pool.malloc(size)
        else:
            pool.free(addresses.pop(block))
    assert pool.stats().peak_reserved == comparison.plan.arena
    assert comparison.as_dict()["compare"][-1]["min_limit"] == comparison.plan.arena
    best = min(row.min_limit for row in comparison.rows)
    is_worth = best - comparison.plan.arena > 0.01 * best
    assert is_worth == any("A static plan" in text for text in comparison.verdict)


def test_what_the_recorded_allocator_had_already_is_not_advised() -> None:
    origin = Origin("pytorch", settings={"max_split_size": 64 * MIB, "roundup_power2_divisions": {"1": 0}})
    assert not any("max_split_size" in text for text in compare(trace_of(PINNED, origin)).verdict)


def test_a_program_without_allocations_is_compared() -> None:
    nothing = Trace("t", None, Program(*(memoryview(array("q", [0]))[:0] for _ in range(3))))
    assert compare(nothing).verdict == ("The program allocates nothing.",)


def test_a_sweep_is_made_of_single_replays() -> None:
    trace = read_trace(GNN)
    limits = [8 * MIB, 24 * MIB, 64 * MIB]
    curve = sweep(trace, limits=limits)
    assert curve.refused.shape == (10, 3)
    for row, policy in enumerate(curve.policies):
        for column, limit in enumerate(limits):
            if policy.options is not None:
                single = replay_trace(trace, replace(policy.options, limit=limit)).result.refused
                assert curve.refused[row, column] == single
    assert (curve.refused[:, 2] == 0).all()
    with pytest.raises(ValueError, match="limit 0 is not positive"):
        sweep(trace, limits=[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limits", "1MiB:2MiB:3"], "'--limits' is of '--sweep'"),
        (["--sweep", "--limits", "1MiB:2MiB"], "'1MiB:2MiB': write FIRST:LAST:COUNT, two sizes and a number"),
        (["--sweep", "--limits", "1MiB:2MiB:1"], "a number from 2 to 1000, such as 1GiB:4GiB:13"),
        (["--sweep", "--limits", "2MiB:2MiB:3"], "the last limit must be above the first one"),
        (["--sweep", "--limits", "0:2MiB:3"], "'0': must be at least 1 byte"),
        (["--sweep", "--limits", "a:2MiB:3"], "'a'"),
    ],
)
def test_wrong_limits_are_named(tmp_path: Path, options: list[str], said: str) -> None:
    assert said in complaint(allotment("replay", write_trace(tmp_path / "t.npz", PINNED), *options))


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.npz", PINNED)
    done = allotment("replay", path, "--compare")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nPyTorch, max_split_size         800 MiB" in done.stdout
    figures = json.loads(allotment("replay", path, "--compare", "--json").stdout)
    assert [row["min_limit"] for row in figures["compare"] if row["policy"] == "PyTorch"] == [1060 * MIB]
    curves = json.loads(allotment("replay", path, path, "--sweep", "--json").stdout)["traces"]
    assert curves[0] == curves[1]
    assert {len(row) for row in curves[0]["refused"].values()} == {21}
    assert "refused requests, peak live 800 MiB" in allotment("replay", path, "--sweep").stdout
    shown = json.loads(allotment("replay", path, "--sweep", "--limits", "700MiB:1100MiB:5", "--json").stdout)
    assert shown["limits"] == [700 * MIB, 800 * MIB, 900 * MIB, 1000 * MIB, 1100 * MIB]
    assert shown == sweep(read_trace(path), limits=shown["limits"]).as_dict()
    assert shown["refused"]["PyTorch"][-2:] == [1, 0]
    assert "'--sweep' exclude each other" in complaint(allotment("replay", path, "--sweep", "--compare"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_split_size": 1}, "max_split_size must be at least 20 MiB"),
        ({"gc_threshold": 1.0}, "gc_threshold must be from 0 to less than 1, not 1"),
        ({"roundup_divisions": 3}, "roundup_divisions must be 0 or a power of two up to 64, not 3"),
        ({"stream": array("q", [1])}, "stream must have one number an event, that is 4"),
    ],
)
def test_settings_that_pytorch_does_not_have_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replay_caching(program(PINNED), limit=1 << 40, **options)  # type: ignore[arg-type]


def test_options_of_the_pools_hold_in_a_comparison() -> None:
    rows = compare(trace_of(PINNED), ReplayOptions(trim_on_oom=True)).rows
    assert all(row.policy.options is None or row.policy.options.trim_on_oom for row in rows)


def test_a_folder_stands_for_the_traces_in_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/z", "b/a", "c"):
        write_trace(tmp_path / name)
    write_trace(tmp_path / ".hidden")
    (tmp_path / "README.md").write_text("# Traces, of several programs\n")
    (tmp_path / "blank").write_text("\n\n")
    (tmp_path / "lives").write_text("id,lower,upper,size\nb,0,1,5\n")
    figures = json.loads(allotment("replay", tmp_path, "--json").stdout)["traces"]
    assert [Path(one["trace"]).relative_to(tmp_path).as_posix() for one in figures] == [
        "c",
        "lives",
        "b/a",
        "b/z",
    ]
    # A file that can be opened and not read is no reason to leave the others out.
    if Path("/proc/self/mem").exists():
        (tmp_path / "memory").symlink_to("/proc/self/mem")
        assert len(json.loads(allotment("replay", tmp_path, "--json").stdout)["traces"]) == 4
    (tmp_path / "none").mkdir()
    line = complaint(allotment("replay", tmp_path / "c", tmp_path / "none"))
    assert line.endswith("none: is a folder without traces")


@pytest.mark.parametrize("size", [1 << 56, 1 << 57])
def test_sizes_above_the_addresses_of_a_model_are_an_error_that_names_the_model(
    tmp_path: Path, size: int
) -> None:
    (tmp_path / "t").write_text(f"id,lower,upper,size\nb,0,1,{size}\n")
    line = complaint(allotment("replay", tmp_path / "t", "--compare", "--seconds", "1"))
    assert "t: PyTorch, expandable: " in line
    assert "at most 1 PiB of addresses" in line
    half = replace(read_trace(tmp_path / "t"), program=program([(1, 1, 1 << 49)]))
    # Pages have 20 MiB.
    assert compare(half, seconds=1).rows[-1].min_limit == -(-(1 << 49) // (20 * MIB)) * 20 * MIB


def test_times_and_limits_that_make_no_sense_are_named(tmp_path: Path) -> None:
    trace = read_trace(write_trace(tmp_path / "t"))
    for seconds in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"seconds must be 0 or more, not {seconds}"):
            compare(trace, seconds=seconds)
    assert sweep(trace, limits=["1MiB", 2 * MIB]).limits.tolist() == [MIB, 2 * MIB]
    with pytest.raises(ValueError, match="'much'"):
        sweep(trace, limits=["much"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--granularity", "1MiB"], "'--granularity' is of '--min-limit'"),
        (["--compare", "--granularity", "1MiB"], "'--granularity' is of '--min-limit'"),
        (["--seconds", "5"], "'--seconds' is of '--min-limit' and '--compare'"),
        (
            ["--elastic", "--gap", "256"],
            "'--gap', '--joined', '--apart', '--policy' and '--trim-on-oom' have no effect with '--elastic'",
        ),
        (
            ["--elastic", "--policy", "tight"],
            "'--policy' and '--trim-on-oom' have no effect with '--elastic'",
        ),
        (["--compare", "--elastic"], "'--compare' and '--sweep' choose '--limit', '--growth', '--policy'"),
        (["--elastic", "--trim-on-oom"], "'--policy' and '--trim-on-oom' have no effect with '--elastic'"),
        (["--compare", "--page-size", "4KiB"], "'--compare' and '--sweep' choose '--limit'"),
        (["--compare", "--limit", "64GiB"], "'--compare' and '--sweep' choose '--limit'"),
        (["--sweep", "--no-growth"], "'--compare' and '--sweep' choose '--limit'"),
        (
            ["--elastic", "--apart"],
            "'--gap', '--joined', '--apart', '--policy' and '--trim-on-oom' have no effect with '--elastic'",
        ),
        (
            ["--elastic", "--joined", "--min-limit"],
            "'--gap', '--joined', '--apart', '--policy' and '--trim-on-oom' have no effect",
        ),
    ],
)
def test_options_without_an_effect_are_refused(options: list[str], said: str) -> None:
    assert said in complaint(allotment("replay", GNN, *options))
