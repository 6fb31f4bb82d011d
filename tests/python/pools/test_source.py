"""Region sources written in Python: what they may do, and what happens when they do not behave."""

import gc
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from allotment import OutOfMemoryError, Pool
from support.pools.sources import MappedSource, NumberSource

MIB = 1 << 20


def test_it_is_asked_for_doubling_sizes_and_gets_them_back() -> None:
    source = MappedSource(1 << 30)
    pool = Pool("64MiB", source=source)
    blocks = [pool.malloc(2 * MIB) for _ in range(3)]
    assert source.asked == [2 * MIB, 4 * MIB]
    for block in blocks:
        pool.free(block)
    assert pool.trim() == 6 * MIB
    assert sorted(nbytes for _, nbytes in source.released) == [2 * MIB, 4 * MIB]


def test_a_refusal_is_followed_by_smaller_requests() -> None:
    # Allocator, section 22, T6: the sizes asked for shrink by a tenth, in single precision.
    source = MappedSource(734_003_200)
    Pool(1 << 30, growth=False, source=source).malloc(1000)
    assert source.asked == [1073741824, 966367744, 869731072, 782758144, 704482304]


def test_what_it_raises_is_the_cause() -> None:
    class BrokenError(Exception):
        pass

    def fail(nbytes: int) -> bool:
        raise BrokenError("no cable")

    source = NumberSource(fail)
    pool = Pool("64MiB", source=source)
    with pytest.raises(OutOfMemoryError, match="no cable") as raised:
        pool.malloc(1)
    assert isinstance(raised.value.__cause__, BrokenError)
    assert raised.value.verdict == "source"
    assert pool.stats().num_refused == 1
    source.before = lambda nbytes: True
    pool.free(pool.malloc(1))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_it_is_not_dressed_up(kind: type[BaseException]) -> None:
    def fail(nbytes: int) -> bool:
        raise kind

    with pytest.raises(kind):
        Pool("64MiB", source=NumberSource(fail)).malloc(1)


@pytest.mark.parametrize(
    "answer", [7, "text", (1,), (1, 2, 3), ("a", 256), (-256, 256), [4096, 256], (1.5, 2)]
)
def test_an_answer_that_is_no_grant_is_named(answer: object) -> None:
    source = SimpleNamespace(reserve=lambda nbytes, alignment: answer, release=lambda address, nbytes: None)
    pool = Pool("64MiB", source=source)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(1)
    assert isinstance(raised.value.__cause__, TypeError)
    assert repr(answer) in str(raised.value.__cause__)
    assert pool.stats().reserved == 0


@pytest.mark.parametrize(
    ("address", "nbytes", "said", "goes_back"),
    [
        (4096 + 1, 2 * MIB, "multiple of 256", True),
        (4096, 2 * MIB + 1, "multiple of 256", True),
        (4096, 0, "no bytes", True),
        (0, 2 * MIB, "not within", True),
        ((1 << 63) - 256, 2 * MIB, "not within", True),
    ],
)
def test_a_grant_that_cannot_be_a_region_goes_back(
    address: int, nbytes: int, said: str, goes_back: bool
) -> None:
    released = []
    source = SimpleNamespace(
        reserve=lambda n, a: (address, nbytes), release=lambda a, n: released.append((a, n))
    )
    pool = Pool("64MiB", source=source)
    with pytest.raises(RuntimeError, match=said):
        pool.malloc(1)
    assert released == [(address, nbytes)] * goes_back
    assert pool.stats().reserved == 0


def test_a_grant_inside_a_region_is_refused_and_the_region_unharmed() -> None:
    released: list[int] = []
    source = SimpleNamespace(reserve=lambda n, a: (4096, n), release=lambda a, n: released.append(a))
    pool = Pool("64MiB", source=source, joins_regions=False)
    kept = pool.malloc(2 * MIB)
    with pytest.raises(RuntimeError, match="overlaps"):
        pool.malloc(4 * MIB)
    assert released == []
    assert pool.stats().reserved == 2 * MIB
    pool.free(kept)
    pool.trim()
    assert released == [4096]


def test_the_limit_holds_when_it_grants_too_much() -> None:
    # Allocator, section 22, T12: the source rounds every block up to 2 MiB.
    out: dict[int, int] = {}

    def reserve(nbytes: int, alignment: int) -> tuple[int, int]:
        nbytes = -(-nbytes // (2 * MIB)) * 2 * MIB
        address = (len(out) + 1) * 64 * MIB
        out[address] = nbytes
        return address, nbytes

    source = SimpleNamespace(reserve=reserve, release=lambda address, nbytes: out.pop(address))
    pool = Pool(3 * MIB, source=source)
    pool.malloc(2 * MIB)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(1_000_000)
    assert raised.value.verdict == "source"
    assert pool.stats().reserved == 2 * MIB == sum(out.values())
    with pytest.raises(OutOfMemoryError):
        pool.malloc(50_000_000)


def test_it_may_free_and_allocate_what_fits_in_its_own_pool() -> None:
    served: list[int] = []

    def use_the_pool(nbytes: int) -> bool:
        if pool.stats().num_grants:
            pool.free(kept)
            served.append(pool.malloc(100))
        return True

    pool = Pool("64MiB", source=NumberSource(use_the_pool))
    kept = pool.malloc(1000)
    pool.malloc(4 * MIB)
    assert served == [kept]
    assert pool.stats().num_live == 2


@pytest.mark.parametrize("call", ["malloc", "trim", "close"])
def test_it_gets_an_error_where_it_would_wait_for_itself(call: str) -> None:
    def use_the_pool(nbytes: int) -> bool:
        if call == "malloc":
            pool.malloc(32 * MIB)
        else:
            getattr(pool, call)()
        return True

    pool = Pool("64MiB", source=NumberSource(use_the_pool))
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(1)
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert "its own pool" in str(raised.value.__cause__)
    assert pool.stats().reserved == 0


def test_others_go_on_while_it_is_slow() -> None:
    entered, go = threading.Event(), threading.Event()

    def wait(nbytes: int) -> bool:
        if nbytes > 2 * MIB:
            entered.set()
            assert go.wait(10)
        return True

    pool = Pool("64MiB", source=NumberSource(wait))
    kept = pool.malloc(1000)
    slow = threading.Thread(target=pool.malloc, args=(16 * MIB,))
    slow.start()
    assert entered.wait(10)
    start = time.monotonic()
    for _ in range(1000):
        pool.free(pool.malloc(1000))
    pool.free(kept)
    assert pool.stats().num_allocs == 1001
    assert time.monotonic() - start < 5
    assert slow.is_alive()
    go.set()
    slow.join(10)
    assert pool.stats().num_live == 1


def test_what_release_raises_is_reported_and_the_region_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(report.exc_value))
    source = NumberSource()
    source.release = lambda address, nbytes: 1 / 0  # type: ignore[method-assign,assignment]
    pool = Pool("64MiB", source=source)
    pool.free(pool.malloc(1))
    assert pool.trim() == 2 * MIB
    assert [type(report) for report in reports] == [ZeroDivisionError]
    assert pool.stats().reserved == 0


def test_its_regions_are_joined_if_it_says_so() -> None:
    class Adjacent(NumberSource):
        joins_regions = True

        def reserve(self, nbytes: int, alignment: int) -> tuple[int, int] | None:
            grant = super().reserve(nbytes, alignment)
            self.next -= 256
            return grant

    joined, apart = Pool("64MiB", source=Adjacent()), Pool("64MiB", source=Adjacent(), joins_regions=False)
    for pool in (joined, apart):
        pool.malloc(2 * MIB)
        pool.malloc(4 * MIB)
    assert (joined.stats().num_regions, apart.stats().num_regions) == (1, 2)


def test_b025_a_collection_at_any_moment_of_a_python_source() -> None:
    # Field report B025 (b), the Python callback: cycles die while the source runs.
    pool = Pool("8MiB", source=NumberSource())
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for step in range(20_000):
            cycle: list[object] = [pool.allocate(1 + step * 37 % 65_536)]
            cycle.append(cycle)
            if step % 100 == 0:
                pool.trim()
    finally:
        gc.set_threshold(*threshold)
    del cycle
    gc.collect()
    assert pool.stats().num_live == 0
    pool.trim()
    assert pool.stats().reserved == 0


def test_a_pool_that_dies_under_an_exception_leaves_the_exception_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(report.exc_value))
    source = NumberSource()

    def doomed() -> object:
        pool = Pool("64MiB", source=source)
        a = pool.allocate(10)
        pool.close()
        return a

    with pytest.raises(IndexError):
        print(doomed(), [][3])
    assert source.out == {}

    def broken(address: int, nbytes: int) -> None:
        raise RuntimeError("in release")

    source.release = broken  # type: ignore[method-assign]
    with pytest.raises(IndexError):
        print(doomed(), [][3])
    assert [type(report) for report in reports] == [RuntimeError]


def test_an_interrupt_during_release_is_raised_where_it_belongs() -> None:
    def interrupted(address: int, nbytes: int) -> None:
        raise KeyboardInterrupt

    source = NumberSource()
    source.release = interrupted  # type: ignore[method-assign]
    pool = Pool("64MiB", source=source)
    pool.free(pool.malloc(1))

    def trim_and_go_on() -> None:
        pool.trim()
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        trim_and_go_on()
    assert pool.stats().reserved == 0


def test_what_an_index_raises_is_passed_on() -> None:
    class Odd:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Pool("1MiB").malloc(Odd())
