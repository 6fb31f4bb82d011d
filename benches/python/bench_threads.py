"""How much time does contention cost when two threads allocate from and free to one pool?"""

import threading

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from allotment import Pool

PAIRS = 20_000


@pytest.mark.parametrize("threads", [1, 2])
def test_pairs(benchmark: BenchmarkFixture, threads: int) -> None:
    pool = Pool("1GiB")

    def work() -> None:
        for _ in range(PAIRS // threads):
            pool.free(pool.malloc(1024))

    def run() -> None:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    benchmark.pedantic(run, rounds=20, warmup_rounds=2)  # type: ignore[no-untyped-call]
