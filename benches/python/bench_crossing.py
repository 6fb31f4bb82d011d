"""What does an empty call into the compiled module cost, and what does a pair of calls add to it?

The empty pair takes and gives back zero bytes: arguments, lock and result, and no chunk. The pair of a getter and a
getter is less: no argument, no lock.
"""

from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool

PAIRS = 1000


def test_no_call(benchmark: BenchmarkFixture) -> None:
    """What the other figures hold of the loop around the pairs."""

    def pairs() -> None:
        for _ in range(PAIRS):
            pass

    benchmark(pairs)


def test_getter_pair(benchmark: BenchmarkFixture) -> None:
    pool = Pool("1GiB")

    def pairs() -> None:
        for _ in range(PAIRS):
            _ = pool.limit, pool.limit

    benchmark(pairs)


def test_empty_pair(benchmark: BenchmarkFixture) -> None:
    pool = Pool("1GiB")

    def pairs() -> None:
        for _ in range(PAIRS):
            pool.free(pool.malloc(0))

    benchmark(pairs)


def test_malloc_free_pair(benchmark: BenchmarkFixture) -> None:
    pool = Pool("1GiB")
    pool.malloc(1024)

    def pairs() -> None:
        for _ in range(PAIRS):
            pool.free(pool.malloc(1024))

    benchmark(pairs)
