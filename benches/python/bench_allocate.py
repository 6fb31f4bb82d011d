"""What does an allocation object cost beside a plain address, and what do the counters cost?"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool


@pytest.fixture
def pool() -> Pool:
    pool = Pool("1GiB")
    pool.malloc(1024)
    return pool


def test_with_allocate(benchmark: BenchmarkFixture, pool: Pool) -> None:
    def block() -> None:
        with pool.allocate(1024):
            pass

    benchmark(block)


def test_dropped_allocation(benchmark: BenchmarkFixture, pool: Pool) -> None:
    benchmark(lambda: pool.allocate(1024))


@pytest.mark.parametrize("holes", [0, 1_000, 100_000])
def test_stats(benchmark: BenchmarkFixture, pool: Pool, holes: int) -> None:
    blocks = [pool.malloc(256) for _ in range(2 * holes)]
    for block in blocks[::2]:
        pool.free(block)
    benchmark(pool.stats)
