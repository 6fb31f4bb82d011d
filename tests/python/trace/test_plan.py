"""Static plans of recorded programs: the search, the file, the command, and pools that follow them.

Longer than 300 lines: one rule after the other of one concept, with the same few helpers.
"""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from allotment._core import Plan
from allotment.cli import main
from allotment.trace import (
    TraceError,
    plan,
    plan_arrays,
    read_columns,
    read_plan,
    read_trace,
    write_plan,
    write_trace,
)

TRACES = Path(__file__).parents[2] / "traces"
GNN = TRACES / "torch_gnn_train.npz"
MIB = 1 << 20


def lifetimes(path: Path, count: int = 200, seed: int = 1) -> Path:
    """Write lifetimes that fill an arena of 1 MiB without a gap: six bands, each cut in two again and again."""
    random = np.random.default_rng(seed)
    edges = np.linspace(0, MIB // 256, 7).astype(int)
    open_pieces = [(int(low), int(high), 0, 4096) for low, high in pairwise(edges)]
    while len(open_pieces) < count:
        low, high, start, end = open_pieces.pop(int(random.integers(len(open_pieces))))
        if high - low > 1 and (end - start < 2 or random.integers(2)):
            cut = int(random.integers(low + 1, high))
            open_pieces += [(low, cut, start, end), (cut, high, start, end)]
        elif end - start > 1:
            cut = int(random.integers(start + 1, end))
            open_pieces += [(low, high, start, cut), (low, high, cut, end)]
        else:
            open_pieces.append((low, high, start, end))
    rows = [
        f"{i},{start},{end},{256 * (high - low)}" for i, (low, high, start, end) in enumerate(open_pieces)
    ]
    path.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
    return path


def assert_apart(found: Plan) -> None:
    """Check a plan block by block."""
    size, start, end, offset = plan_arrays(found)
    size = -(-size // found.alignment) * found.alignment
    for one in range(len(size)):
        alive = (start[:one] < end[one]) & (end[:one] > start[one])
        below = offset[:one] + size[:one] <= offset[one]
        above = offset[:one] >= offset[one] + size[one]
        assert (below | above)[alive].all(), f"block {one}"
    assert found.arena == (offset + size).max()


def play(pool: Pool, op: "np.ndarray", ids: "np.ndarray", sizes: "np.ndarray") -> list[int]:
    """Play the events of a trace; return the address of each request, -1 for a refusal."""
    live: dict[int, int] = {}
    addresses = []
    for kind, block, size in zip(op.tolist(), ids.tolist(), sizes.tolist(), strict=True):
        if kind == 2:
            pool.free(live.pop(block, 0))
            continue
        try:
            live[block] = pool.malloc(size)
        except OutOfMemoryError:
            addresses.append(-1)
            continue
        addresses.append(live[block])
    for address in live.values():
        pool.free(address)
    return addresses


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lifetimes_get_an_arena_near_the_lower_bound(tmp_path: Path, seed: int) -> None:
    found = plan(read_trace(lifetimes(tmp_path / "table.csv", seed=seed)), seconds=60, steps=2_000_000)
    assert found.lower_bound == MIB
    assert found.arena <= 1.05 * MIB
    assert_apart(found)


def test_a_training_step_replays_in_exactly_the_arena() -> None:
    trace, columns = read_trace(GNN), read_columns(GNN)
    found = plan(trace, seconds=60, steps=500_000)
    assert found.lower_bound <= found.arena <= 1.05 * found.lower_bound
    events = [np.asarray(column) for column in (columns.op, columns.id, columns.size)]
    sizes = plan_arrays(found).size
    assert np.array_equal(sizes, events[2][events[0] == 1])
    with Pool(found.arena, source="address-space", plan=found) as pool:
        addresses = np.array(play(pool, *events))
        assert np.array_equal(addresses - addresses.min(), plan_arrays(found).offset)
        stats = pool.stats()
        assert (stats.peak_reserved, stats.num_planned, stats.num_grants) == (found.arena, len(sizes), 1)
        # The plan begins again at its end.
        play(pool, *events)
        assert pool.stats().num_planned == 2 * len(sizes)


def test_memory_of_a_planned_pool_holds_what_is_written() -> None:
    found = Plan(
        *(np.array(column) for column in ([4096, 8192, 4096], [0, 1, 3], [2, 4, 5], [8192, 0, 8192]))
    )
    pool = Pool("4MiB", plan=found)
    assert pool.plan == found
    first, second = pool.allocate(4096), pool.allocate(8192)
    np.asarray(memoryview(first))[:] = 1
    np.asarray(memoryview(second))[:] = 2
    assert first.address - second.address == 8192
    # Not in the plan: the best fit, and the next one is back in it.
    other = pool.allocate(100_000)
    np.asarray(memoryview(other))[:] = 3
    first.free()
    third = pool.allocate(4096)
    assert third.address - second.address == 8192
    assert np.asarray(memoryview(second)).max() == 2
    stats = pool.stats()
    assert (stats.num_planned, stats.num_allocs) == (3, 4)
    in_use = [chunk for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use]
    assert sum(chunk.requested for chunk in in_use) == stats.requested == 4096 + 8192 + 100_000
    with pytest.raises(OutOfMemoryError) as refused:
        pool.allocate("4MiB")
    assert refused.value.largest_free == pool.stats().largest_free
    for allocation in (second, other, third):
        allocation.free()
    assert pool.trim() == pool.stats().peak_reserved


def test_options_that_do_not_go_with_a_plan() -> None:
    columns = [np.array([column]) for column in (1000, 0, 1, 0)]
    found = Plan(*columns)
    with pytest.raises(ValueError, match="a pool with a plan cannot have the option guard"):
        Pool("4MiB", plan=found, guard=True)
    with pytest.raises(ValueError, match="a pool with a plan cannot have the option elastic"):
        Pool("4MiB", plan=found, elastic=True)
    with pytest.raises(ValueError, match="a pool with a plan cannot have the option thread_caches"):
        Pool("4MiB", plan=found, thread_caches=True)
    with pytest.raises(ValueError, match="an arena of 1024 bytes, which is above the limit of 512 bytes"):
        Pool(512, plan=found)
    with pytest.raises(ValueError, match="an alignment of 8 bytes: a pool follows plans with 256 or more"):
        Pool("4MiB", plan=Plan(*columns, alignment=8))
    with pytest.raises(
        TypeError, match=r"plan must be a Plan or None, not 'plan\.npz': allotment\.trace\.read_plan"
    ):
        Pool("4MiB", plan="plan.npz")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (([1], [0], [1], [-1]), "buffer 0: offset -1 is negative"),
        (([1], [0], [0], [0]), "buffer 0: it ends at 0, which is not after its start 0"),
        (([1, 1], [0, 0], [1, 1], [0, 0]), "buffers 0 and 1 live at the same time and overlap at offset 0"),
        (([1, 1], [1, 0], [2, 1], [0, 0]), "buffer 1: it starts before buffer 0 does"),
        (([0], [0], [1], [0]), "buffer 0: 0 bytes are not between 1 and"),
        (([1], [0], [1], [128]), "buffer 0: offset 128 is not a multiple of the alignment, 256"),
        (([1, 2], [0], [1], [0]), "the columns differ in length"),
    ],
)
def test_numbers_that_are_no_plan_are_refused(columns: tuple[list[int], ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Plan(*(np.array(column) for column in columns))


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    trace = read_trace(lifetimes(tmp_path / "table.csv", 50))
    found = plan(trace, steps=20_000)
    write_plan(tmp_path / "plan.npz", found, name="bands")
    assert read_plan(tmp_path / "plan.npz") == found
    with np.load(tmp_path / "plan.npz", allow_pickle=False) as content:
        header = json.loads(str(content["header"]))
        assert (header["arena"], header["name"]) == (found.arena, "bands")
        assert np.array_equal(content["offset"], plan_arrays(found).offset)
    assert os.listdir(tmp_path) == ["plan.npz", "table.csv"] or len(os.listdir(tmp_path)) == 2


def damaged(path: Path, **changes: "np.ndarray | None") -> Path:
    """Write a plan's file again with some columns changed, or left out."""
    with np.load(path, allow_pickle=False) as content:
        members = {**content, **changes}
    np.savez(path, **{name: member for name, member in members.items() if member is not None})
    return path


def test_files_that_are_no_plans_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    found = Plan(*(np.array(column) for column in ([256, 256], [0, 0], [1, 1], [0, 256])))

    def refused(problem: str, **changes: "np.ndarray | None") -> None:
        write_plan(path, found)
        with pytest.raises(TraceError, match=problem) as error:
            read_plan(damaged(path, **changes))
        assert str(error.value).startswith(f"{path}: ")

    def header(**changes: object) -> "np.ndarray":
        write_plan(path, found)
        with np.load(path, allow_pickle=False) as content:
            return np.array(json.dumps(json.loads(str(content["header"])) | changes))

    refused("overlap at offset 0", offset=np.array([0, 0]))
    refused("column offset: is missing", offset=None)
    refused("the columns differ in length", offset=np.array([0]))
    refused("column offset: must be whole numbers", offset=np.array([0.0, 256.0]))
    refused("is not a plan", header=None)
    refused("is a plan of version 2; version 1 is read", header=header(version=2))
    refused("alignment 'large' is not a number", header=header(alignment="large"))
    refused("optimal 1 is neither true nor false", header=header(optimal=1))
    refused("header: optimal is False, but that of its blocks is True", header=header(optimal=False))
    refused("alignment 3 is not a power of two", header=header(alignment=3))
    refused("header: arena is 1, but that of its blocks is 512", header=header(arena=1))
    refused("header: over_lower_bound is 5, but that of its blocks is 1.0", header=header(over_lower_bound=5))
    with pytest.raises(TraceError, match="is not a plan"):
        read_plan(GNN)
    write_plan(path, found)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TraceError, match="damaged or truncated zip file"):
        read_plan(path)
    with pytest.raises(TraceError, match="cannot be read"):
        read_plan(tmp_path / "none.npz")


def test_what_a_search_has_proven_is_read_again(tmp_path: Path) -> None:
    table, path = tmp_path / "table.csv", tmp_path / "plan.npz"
    rows = [
        (2, 3, 4),
        (2, 5, 5),
        (3, 7, 5),
        (5, 8, 2),
        (5, 9, 3),
        (7, 9, 2),
        (8, 10, 1),
        (8, 12, 4),
        (9, 10, 5),
    ]
    lines = [f"{i},{start},{end},{256 * size}" for i, (start, end, size) in enumerate(rows)]
    table.write_text("\n".join(["id,lower,upper,size", *lines]))
    found = plan(read_trace(table), seconds=60)
    # No arena of the lower bound exists.
    assert (found.arena, found.lower_bound, found.optimal) == (11 * 256, 10 * 256, True)
    write_plan(path, found)
    read = read_plan(path)
    assert read.optimal
    assert read == found
    assert {read: 1}[found] == 1
    unproven = Plan(*plan_arrays(found))
    assert not unproven.optimal
    assert unproven != found
    write_plan(path, unproven)
    assert read_plan(path) == unproven


@pytest.mark.parametrize("name", ["steps", "seed"])
@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_numbers_out_of_range_are_named(name: str, value: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^{name} must be between 0 and 18446744073709551615, not {value}$"
    ):
        plan(read_trace(GNN), **{name: value})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{name} must be a whole number, not float: 1.5"):
        plan(read_trace(GNN), **{name: 1.5})  # type: ignore[arg-type]


def test_the_command_plans_reports_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, output = str(lifetimes(tmp_path / "table.csv", 60)), tmp_path / "plan.npz"
    assert main(["plan", table, "-o", str(output), "--steps", "200000"]) == 0
    text = capsys.readouterr().out
    assert "lower bound   1 MiB (1048576 bytes)" in text
    assert "checked       no two blocks" in text
    assert f"written       {output}" in text
    found = read_plan(output)

    assert main(["plan", table, "--steps", "200000", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["requests"], figures["arena"], figures["lower_bound"]) == (60, found.arena, MIB)
    # The same steps find the same plan.
    assert main(["plan", table, "-o", str(output), "--steps", "200000"]) == 0
    assert read_plan(output) == found
    capsys.readouterr()

    for arguments, problem in [
        ([str(tmp_path / "none")], "none: cannot be read"),
        ([table, "--alignment", "3"], "alignment 3 is not a power of two"),
        ([table, "-o", str(tmp_path / "no" / "plan")], "cannot be written"),
    ]:
        assert main(["plan", *arguments, "--seconds", "0"]) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert error.count("\n") == 1


def test_a_program_without_blocks_has_an_empty_plan(tmp_path: Path) -> None:
    write_trace(tmp_path / "empty.npz", [1, 2], [1, 1], [0, 0])
    found = plan(read_trace(tmp_path / "empty.npz"))
    assert (found.requests, found.arena, found.lower_bound, found.optimal) == (0, 0, 0, True)
    assert Pool("1MiB", plan=found).allocate(1000).size > 0


def test_a_search_can_be_interrupted(tmp_path: Path) -> None:
    trace = read_trace(lifetimes(tmp_path / "table.csv", 400))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(trace, progress=interrupt)


def test_the_command_plans_one_of_several_programs_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.npz"
    header = {"recorder": "allotment", "pools": ["first", "second"], "events": 3, "lost": 0}
    np.savez(
        tmp_path / "t",
        header=np.array(json.dumps(header)),
        op=np.array([1, 1, 1]),
        id=np.array([1, 2, 3]),
        size=np.array([300, 1000, 5000]),
        pool=np.array([0, 1, 1]),
        refused_at=np.zeros(0, np.int64),
        refused_size=np.zeros(0, np.int64),
        refused_pool=np.zeros(0, np.int64),
    )
    assert main(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert said == f"allotment: {path}: has 2 programs: choose one by --program, 'first', 'second'\n"
    for name, bound in [("first", 512), ("second", 1024 + 5120)]:
        assert main(["plan", str(path), "--program", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["arena"] == bound
    assert main(["plan", str(path), "--program", "third"]) == 2
    assert capsys.readouterr().err == f"allotment: --program third: {path} has 'first', 'second'\n"
    assert main(["plan", str(GNN), "--program", "x"]) == 2
    assert capsys.readouterr().err.endswith("has one program, without a name\n")
    assert main(["plan", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"allotment: {tmp_path}: is a folder\n"
