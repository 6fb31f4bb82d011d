"""Replays in elastic pools: options, counted pages, smallest limits, comparisons."""

import json
import random
from array import array
from pathlib import Path

import pytest

from allotment._core import Program, find_limits, replay
from allotment.trace import ReplayOptions, Search, compare, read_trace, replay_at_min_limit, replay_trace
from allotment.trace import sweep as sweep_limits
from support.command import allotment, complaint, replay_json
from support.traces.trace_files import GNN, Events, write_trace

KIB, MIB = 1 << 10, 1 << 20


def random_events(seed: int, length: int = 300) -> Events:
    chosen, live = random.Random(seed), list[tuple[int, int]]()
    events: Events = []
    for name in range(length):
        if live and chosen.random() < 0.45:
            freed, size = live.pop(chosen.randrange(len(live)))
            events.append((2, freed, size))
        else:
            size = chosen.choice([1, 300, 5000, 70_000, 200_000])
            live.append((name, size))
            events.append((1, name, size))
    return events


def touched_pages(live: dict[int, tuple[int, int]], page_size: int) -> int:
    pages = set[int]()
    for offset, nbytes in live.values():
        pages.update(range(offset // page_size, (offset + nbytes - 1) // page_size + 1))
    return len(pages)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("page_size", [4 * KIB, 64 * KIB])
def test_a_request_is_refused_only_if_its_pages_and_those_of_all_blocks_exceed_the_limit(
    seed: int, page_size: int, tmp_path: Path
) -> None:
    events = random_events(seed)
    trace = read_trace(write_trace(tmp_path / "t.npz", events))
    limit = (trace.program.peak_live * 3 // 4) // page_size * page_size
    options = ReplayOptions(limit, elastic=True, page_size=page_size)
    done = replay_trace(trace, options, with_offsets=True)
    assert done.offsets is not None
    live: dict[int, tuple[int, int]] = {}
    refused = 0
    for (op, name, size), offset in zip(events, done.offsets.tolist(), strict=True):
        if op == 2:
            assert live.pop(name, (-1, 0))[0] == offset
        elif offset >= 0:
            nbytes = -(-size // 256) * 256
            assert all(offset + nbytes <= start or start + held <= offset for start, held in live.values())
            live[name] = offset, nbytes
            assert touched_pages(live, page_size) * page_size <= limit
        else:
            refused += 1
            own = -(-size // page_size)
            # A new range of addresses would have served it.
            assert (touched_pages(live, page_size) + own) * page_size > limit
    assert done.result.refused == refused > 0
    assert done.result.stats.peak_reserved <= limit


def test_the_smallest_limit_is_that_of_every_limit_tried(tmp_path: Path) -> None:
    trace = read_trace(write_trace(tmp_path / "t.npz", random_events(3)))
    for page_size in (4 * KIB, 64 * KIB):
        options = ReplayOptions(elastic=True, page_size=page_size)
        found = replay_at_min_limit(trace, options, Search(page_size))
        assert found.limits is not None
        limits = range(page_size, found.limits.safe_limit * 5 // 4 + 1, page_size)
        serving = [
            limit
            for limit in limits
            if replay_trace(trace, ReplayOptions(limit, elastic=True, page_size=page_size)).result.refused
            == 0
        ]
        assert (found.limits.min_limit, found.limits.complete) == (serving[0], True)
        assert serving[-len([one for one in limits if one >= found.limits.safe_limit]) :] == [
            one for one in limits if one >= found.limits.safe_limit
        ]
        # Within 2 % and a page for each block of what is live.
        assert found.limits.min_limit <= 1.02 * trace.program.peak_live + 150 * page_size


def test_the_command_counts_pages_that_received_memory() -> None:
    found = replay_json(GNN, "--elastic", "--page-size", "64KiB")
    # Addresses are plentiful: each page receives memory once, from the source.
    assert found["commits"] * 64 * KIB == found["peak_reserved"] == found["reserved"]
    assert (found["elastic"], found["page_size"], found["refused"]) == (True, 64 * KIB, 0)
    tight = replay_json(GNN, "--elastic", "--page-size", "64KiB", "--limit", "24MiB")
    assert tight["commits"] > found["commits"]
    assert tight["peak_reserved"] <= 24 * MIB
    assert "commits" not in replay_json(GNN)
    text = allotment("replay", GNN, "--elastic").stdout
    assert "elastic             pages of 2 MiB\n" in text
    assert "\ncommits " in text


def test_limits_are_searched_in_steps_of_a_page_and_64_kib_at_least() -> None:
    assert replay_json(GNN, "--elastic", "--min-limit")["granularity"] == 2 * MIB
    found = replay_json(GNN, "--elastic", "--page-size", "4KiB", "--min-limit", "--seconds", "0")
    assert found["granularity"] == 64 * KIB
    fine = replay_json(GNN, "--elastic", "--page-size", "64KiB", "--min-limit", "--granularity", "1MiB")
    assert fine["min_limit"] == 24 * MIB


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--page-size", "64KiB"], "'--page-size' is of '--elastic'"),
        (
            ["--elastic", "--page-size", "768"],
            "'--page-size' must be a power of two up to 1 GiB, not 768 bytes",
        ),
        (["--elastic", "--page-size", "2GiB"], "power of two up to 1 GiB, not 2147483648 bytes"),
        (["--elastic", "--page-size", "100"], "must be at least 256 bytes"),
        (["--elastic", "--limit", "1MiB"], "'--limit' must be at least a page of '--elastic', 2097152 bytes"),
    ],
)
@pytest.mark.parametrize("command", ["replay", "report"])
def test_pages_that_make_no_sense_are_refused(command: str, options: list[str], said: str) -> None:
    assert said in complaint(allotment(command, GNN, *options))


def test_functions_refuse_the_same() -> None:
    program = Program(*(array("q", [number]) for number in (1, 1, 1000)))
    with pytest.raises(ValueError, match="a page size is for elastic pools"):
        replay(program, limit="1MiB", page_size=4096)
    with pytest.raises(ValueError, match=r"page size 2097152 is not a power of two .* at most the limit"):
        replay(program, limit="1MiB", elastic=True)
    with pytest.raises(ValueError, match="page size 3000 is not a power of two"):
        find_limits(program, elastic=True, page_size=3000)
    with pytest.raises(ValueError, match="page size 0 is not a power of two"):
        find_limits(program, elastic=True, page_size=0)
    found = find_limits(program, elastic=True)
    assert (found.min_limit, found.safe_limit, found.complete) == (2 * MIB, 2 * MIB, True)


def test_a_comparison_has_elastic_pools_with_their_commits() -> None:
    trace = read_trace(GNN)
    rows = {row.policy.name: row for row in compare(trace, seconds=60).rows}
    assert rows["TensorFlow"].commits is rows["PyTorch"].commits is None
    for name, page_size in (("elastic, 64 KiB pages", 64 * KIB), ("elastic, 2 MiB pages", 2 * MIB)):
        row = rows[name]
        assert row.granularity == page_size
        assert row.min_limit < rows["TensorFlow"].min_limit
        assert row.commits is not None
        assert row.commits * page_size == row.peak_reserved
        at = ReplayOptions(row.min_limit, elastic=True, page_size=page_size)
        below = ReplayOptions(row.min_limit - page_size, elastic=True, page_size=page_size)
        assert replay_trace(trace, at).result.refused == 0
        assert replay_trace(trace, below).result.refused > 0
    figures = json.loads(allotment("replay", GNN, "--compare", "--seconds", "2", "--json").stdout)["compare"]
    commits = {row["policy"]: row["commits"] for row in figures}
    assert commits["elastic, 2 MiB pages"] == rows["elastic, 2 MiB pages"].commits
    assert commits["tight"] is None


def test_a_sweep_leaves_out_pools_that_a_limit_is_too_small_for() -> None:
    trace = read_trace(GNN)
    names = [policy.name for policy in sweep_limits(trace, limits=[MIB, 24 * MIB]).policies]
    assert "elastic, 64 KiB pages" in names
    assert "elastic, 2 MiB pages" not in names
    assert sweep_limits(trace, limits=[24 * MIB]).refused.shape == (10, 1)


def test_pictures_and_timelines_are_of_the_elastic_pool(tmp_path: Path) -> None:
    report = json.loads(allotment("report", GNN, "--elastic", "--page-size", "64KiB", "--json").stdout)
    plain = replay_json(GNN, "--elastic", "--page-size", "64KiB")
    assert report["peak_reserved"] == plain["peak_reserved"]
    table = tmp_path / "t.csv"
    part = write_trace(tmp_path / "t.npz", random_events(1))
    done = replay_json(part, "--elastic", "--page-size", "4KiB", "--timeline", table)
    reserved = [int(line.split(",")[3]) for line in table.read_text().splitlines()[1:]]
    assert max(reserved) == done["peak_reserved"]
    assert all(one % 4096 == 0 for one in reserved)


@pytest.mark.parametrize("events", [[], [(1, 1, 0), (2, 1, 0)]], ids=["no events", "zero bytes"])
def test_a_program_without_bytes_needs_no_page(tmp_path: Path, events: Events) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,lower,upper,size\n" + "b,0,1,0\n" * bool(events))
    for options in ((), ("--page-size", "64KiB")):
        figures = replay_json(path, "--min-limit", "--elastic", *options)
        assert (figures["events"], figures["min_limit"], figures["safe_limit"]) == (len(events), 0, 0)
        assert (figures["refused"], figures["peak_reserved"]) == (0, 0)
