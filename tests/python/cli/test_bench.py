"""`allotment bench`: what it plays is played, what it says follows from the times, and its peers are optional."""

import ctypes
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from allotment import Pool
from allotment._core import Program, time_functions, time_pool
from allotment.cli.bench import workloads
from allotment.cli.bench.allocators import find_allocators
from allotment.cli.bench.measure import MAX_ROUNDS, MIN_ROUNDS, Contender, LeftOut, Workload, measure
from support.command import allotment, complaint
from support.cuda import check, run_on_stand_in
from support.documents import ROOT
from support.traces.trace_files import GNN, Events, write_trace

#: Two blocks before, a pair, a block that stays, and one of no bytes.
EVENTS: Events = [(1, 1, 100), (1, 2, 300), (1, 3, 50), (2, 3, 50), (2, 1, 100), (1, 4, 0), (1, 5, 9000)]


def program(events: Events) -> Program:
    op, ids, size = np.array(events, np.int64).T.copy()
    return Program(op.data, ids.data, size.data)


class Malloc:
    """Functions of C that write down what they are asked for, and refuse from a number of bytes on."""

    def __init__(self, refused: int = 1 << 40) -> None:
        self.asked: list[int] = []
        self.live: set[int] = set()

        def allocate(nbytes: int) -> int | None:
            self.asked.append(nbytes)
            if nbytes >= refused or nbytes == 0:
                return None
            address = 0x1000 * len(self.asked)
            self.live.add(address)
            return address

        def free(address: int | None) -> None:
            if address is not None:
                self.live.remove(address)

        self._kept = (
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(allocate),
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free),
        )
        self.addresses = tuple(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self._kept)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("setup", [0, 2, len(EVENTS)])
def test_functions_get_every_event_of_each_thread_and_all_is_freed(threads: int, setup: int) -> None:
    functions = Malloc()
    found = time_functions(program(EVENTS), *functions.addresses, setup=setup, threads=threads)
    assert found >= 0
    assert sorted(functions.asked) == sorted([size for op, _, size in EVENTS if op == 1] * threads)
    assert functions.live == set()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("setup", [0, len(EVENTS)])
def test_a_refusal_is_a_memory_error_and_all_is_freed(threads: int, setup: int) -> None:
    functions = Malloc(refused=9000)
    with pytest.raises(MemoryError, match="event 6: the request was refused"):
        time_functions(program(EVENTS), *functions.addresses, setup=setup, threads=threads)
    assert functions.live == set()
    pool = Pool(4096, source="address-space")
    with pytest.raises(MemoryError, match="event 6: the request was refused"):
        time_pool(program(EVENTS), pool, setup=setup, threads=threads)
    assert pool.stats().num_live == 0


@pytest.mark.parametrize("caches", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_pool_gets_every_event_of_each_thread_and_all_is_freed(threads: int, caches: bool) -> None:
    pool = Pool("1MiB", source="address-space", thread_caches=caches)
    for _ in range(2):
        assert time_pool(program(EVENTS), pool, setup=2, threads=threads) > 0
    stats = pool.stats()
    assert stats.num_allocs == 2 * threads * sum(op == 1 and size > 0 for op, _, size in EVENTS)
    assert (stats.num_live, stats.requested) == (0, 0)


def test_the_time_is_that_of_the_measured_events() -> None:
    pool = Pool("1GiB", source="address-space")
    pairs = [event for number in range(100_000) for event in ((1, number, 999), (2, number, 999))]
    long = program(pairs)
    whole = min(time_pool(long, pool) for _ in range(3))
    tenth = min(time_pool(long, pool, setup=180_000) for _ in range(3))
    assert 0 < tenth < whole / 2


def test_arguments_that_make_no_sense_are_named() -> None:
    pool = Pool("1MiB", source="address-space")
    with pytest.raises(ValueError, match="threads must be between 1 and 256, not 0"):
        time_pool(program(EVENTS), pool, threads=0)
    with pytest.raises(ValueError, match="threads must be between 1 and 256, not 257"):
        time_pool(program(EVENTS), pool, threads=257)
    with pytest.raises(ValueError, match="setup must be at most the number of events, 7, not 8"):
        time_pool(program(EVENTS), pool, setup=8)
    with pytest.raises(ValueError, match="addresses of functions, not 0"):
        time_functions(program(EVENTS), 0, 1)


def scripted(name: str, times: list[float], order: list[str]) -> Contender:
    """Return a contender that takes these times in turn, after a first one that must not count."""
    waiting = iter([1e9, *times, *[times[-1]] * MAX_ROUNDS])

    def play() -> float:
        order.append(name)
        return next(waiting)

    return Contender(name, play, 10)


def refusing() -> float:
    raise MemoryError


def test_figures_are_medians_of_rounds_in_turns() -> None:
    order: list[str] = []
    sides = [
        scripted("a", [100, 200, 300, 400, 500], order),
        scripted("b", [300, 400, 450, 400, 1000], order),
    ]
    found = measure(Workload("w", "event", [*sides, Contender("c", refusing, 1)]), 0)
    assert found.rounds == MIN_ROUNDS == 5
    a, b, c = found.results
    assert (a.ns, a.quartiles, a.ratio, a.spread) == (30.0, (20.0, 40.0), 1.0, 1 / 3)
    # The median of 3, 2, 1.5, 1 and 2.
    assert (b.ns, b.ratio) == (40.0, 2.0)
    assert (c.ns, c.quartiles, c.ratio, c.spread) == (None, None, None, None)
    assert order == ["a", "b", *"abbaabbaab"]


def test_without_the_first_there_are_times_and_no_ratios() -> None:
    order: list[str] = []
    found = measure(Workload("w", "event", [Contender("c", refusing, 1), scripted("b", [300], order)]), 0)
    assert [(one.ns, one.ratio) for one in found.results] == [(None, None), (30.0, None)]
    assert measure(Workload("w", "event", [Contender("c", refusing, 1)]), 1e9).rounds == 0


def test_time_makes_more_rounds_up_to_a_maximum() -> None:
    assert measure(Workload("w", "event", [scripted("a", [1], [])]), 1e9).rounds == MAX_ROUNDS


@pytest.mark.parametrize(
    "make", [workloads.pairs, workloads.holes, workloads.churn, lambda: workloads.threads(4)]
)
def test_workloads_are_the_same_in_each_run(make: Callable[[], Iterator[workloads.Played]]) -> None:
    first, second = (
        [(one.name, one.setup, one.threads, one.program.events, one.program.peak_live) for one in make()]
        for _ in range(2)
    )
    assert first == second
    assert len({name for name, *_ in first}) == len(first) > 0
    # What is measured leaves as much live as it found: pairs, and churn that frees one for each new one.
    assert all(events - setup == workloads.EVENTS for _, setup, _, events, _ in first)


def test_threads_are_two_and_the_most() -> None:
    assert {one.threads for one in workloads.threads(1)} == set()
    assert {one.threads for one in workloads.threads(2)} == {2}
    assert {one.threads for one in workloads.threads(8)} == {2, 8}


def test_libraries_that_are_missing_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ctypes.CDLL

    def broken(name: str | None) -> ctypes.CDLL:
        if name is None:
            return real(None)
        raise OSError(
            f"{name}: wrong ELF class" if "jemalloc" in name else f"{name}: No such file or directory"
        )

    monkeypatch.setattr(ctypes, "CDLL", broken)
    allocators, left_out = find_allocators()
    assert [one.name for one in allocators] == ["pool", "pool, thread caches", "malloc (libc.so.6)"]
    assert left_out == [
        LeftOut("mimalloc", "no library is installed"),
        LeftOut("jemalloc", "libjemalloc.so: wrong ELF class"),
        LeftOut("tcmalloc", "no library is installed"),
    ]


def test_the_command_prints_figures_of_each_allocator(tmp_path: Path) -> None:
    done = allotment("bench", "pairs", "python", "--trace", GNN, "--seconds", "0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    names = [one["workload"] for one in found["workloads"]]
    assert names[0] == f"replay of {GNN}"
    assert names[1:4] == ["pairs of 1 KiB", "pairs of 256 B to 16 KiB", "pairs of 1 MiB"]
    assert found["machine"]["cores"] >= 1
    for one in found["workloads"]:
        assert one["rounds"] == MIN_ROUNDS
        assert one["results"][0]["ratio"] == 1
        for result in one["results"]:
            low, high = result["quartiles"]
            assert 0 < low <= result["ns"] <= high
            assert not result["refused"]
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+)`", page[page.index("## JSON") :])
    parts = [found, found["workloads"][0], found["workloads"][0]["results"][0], *found["left_out"]]
    printed = {key for part in parts for key in part} | {"allocator", "reason"}
    assert set(named) <= printed <= set(named) | {"machine"}
    assert [one["allocator"] for one in found["workloads"][0]["results"]][:3] == [
        "pool",
        "pool, thread caches",
        "malloc (libc.so.6)",
    ]


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "[red]odd", EVENTS)
    done = allotment("bench", "--trace", path, "--seconds", "0")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("allotment ")
    assert (
        sum(
            re.fullmatch(r"allocator +ns +spread +times the first +rounds", line) is not None
            for line in lines
        )
        == 1
    )
    assert f"replay of {path}" in lines
    assert any("malloc (libc.so.6)" in line for line in lines)
    # A trace alone is measured alone.
    assert "pairs of" not in done.stdout


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("no trace")
    assert "is not a trace" in complaint(allotment("bench", "--trace", tmp_path / "bad"))
    assert "has no events" in complaint(allotment("bench", "--trace", write_trace(tmp_path / "none", [])))
    assert "'pears' is not one of" in complaint(allotment("bench", "pears"))
    assert "0 is not in the range" in complaint(allotment("bench", "--threads", "0"))
    assert (
        "no GPU" in allotment("bench", "gpu").stdout or "no CUDA driver" in allotment("bench", "gpu").stdout
    )


def test_on_a_gpu_pools_and_the_libraries_that_are_there_are_measured() -> None:
    done = run_on_stand_in(
        """
        import types
        cupy, torch, rmm = (types.ModuleType(name) for name in ("cupy", "torch", "rmm"))
        calls = []
        class MemoryPool:
            def malloc(self, size):
                calls.append(size)
        cupy.cuda = types.SimpleNamespace(MemoryPool=MemoryPool)
        torch.cuda = types.SimpleNamespace(is_available=lambda: False)
        class Pool:
            def __init__(self, upstream, initial, most): self.live = {}
            def allocate(self, size): self.live[id(size)] = size; return id(size)
            def deallocate(self, address, size): assert self.live.pop(address) == size
        rmm.mr = types.SimpleNamespace(CudaMemoryResource=object, PoolMemoryResource=Pool)
        sys.modules |= {"cupy": cupy, "torch": torch, "rmm": rmm}
        from allotment.cli.bench.gpu import gpu_workloads
        from allotment.cli.bench.measure import measure
        (workload,), left_out = gpu_workloads()
        found = measure(workload, 0)
        assert [one.allocator for one in found.results] == ["pool", "CuPy", "RMM"]
        assert all(one.ns > 0 for one in found.results)
        assert len(calls) == 6 * 2000
        assert [(one.allocator, one.reason) for one in left_out] == [
            ("PyTorch on a GPU", "RuntimeError: PyTorch can use no GPU")
        ]
        """
    )
    check(done)
