"""What does an empty call into the compiled module cost, and what does a pair of calls add to it?"""

from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool


def test_empty_pair(benchmark: BenchmarkFixture) -> None:
    pool = Pool("1GiB")

    def pair() -> None:
        pool.free(pool.malloc(0))

    benchmark(pair)


def test_malloc_free_pair(benchmark: BenchmarkFixture) -> None:
    pool = Pool("1GiB")
    pool.malloc(1024)

    def pair() -> None:
        pool.free(pool.malloc(1024))

    benchmark(pair)
