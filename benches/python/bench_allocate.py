"""How long do an allocation object and a read of the statistics take?"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool

TIMES = 1000


@pytest.fixture
def pool() -> Pool:
    pool = Pool("1GiB")
    pool.malloc(1024)
    return pool


def test_with_allocate(benchmark: BenchmarkFixture, pool: Pool) -> None:
    def blocks() -> None:
        for _ in range(TIMES):
            with pool.allocate(1024):
                pass

    benchmark(blocks)


def test_dropped_allocation(benchmark: BenchmarkFixture, pool: Pool) -> None:
    def allocations() -> None:
        for _ in range(TIMES):
            pool.allocate(1024)

    benchmark(allocations)


@pytest.mark.parametrize("holes", [0, 1_000, 100_000])
def test_stats(benchmark: BenchmarkFixture, pool: Pool, holes: int) -> None:
    blocks = [pool.malloc(256) for _ in range(2 * holes)]
    for block in blocks[::2]:
        pool.free(block)

    def questions() -> None:
        for _ in range(TIMES):
            pool.stats()

    benchmark(questions)
