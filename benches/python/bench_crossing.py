"""How much time does an empty call into the compiled module take, and how much a pair of malloc and free?

The empty pair allocates and frees zero bytes: it converts arguments and results and takes the lock, but touches no
chunk. A pair of getters neither converts arguments nor takes the lock.
"""

from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool

PAIRS = 1000


def test_no_call(benchmark: BenchmarkFixture) -> None:
    """The empty loop, which the other figures include."""

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
