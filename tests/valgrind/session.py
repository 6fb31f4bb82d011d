"""A short session over the bindings, for a memory checker: every file with unsafe code is gone through."""

import contextvars
import ctypes
import gc
import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from allotment import HostMemory, InvalidFreeError, OutOfMemoryError, Pool
from allotment._core import ArrayMemory
from allotment.integrations import numpy as pooled

MIB = 1 << 20
Error = TypeVar("Error", bound=BaseException)


def raised(kind: type[Error], call: Callable[..., object], *arguments: object) -> Error:
    """What a call raises; it is an error if it does not."""
    try:
        call(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def blocks_and_buffers() -> None:
    """Memory from one end to the other, by address and through arrays that outlive everything else."""
    pool = Pool("16MiB", source=HostMemory("12MiB"))
    addresses = [pool.malloc(size) for size in (1, 256, 4096, 100_000, 3 * MIB)]
    ctypes.memset(addresses[-1], 0xA5, 3 * MIB)
    assert ctypes.string_at(addresses[-1] + 3 * MIB - 2, 2) == b"\xa5\xa5"
    for address in addresses:
        pool.free(address)
    with pool.allocate(4000, alignment=4096) as allocation:
        np.frombuffer(allocation, np.uint8)[:] = 7
    array = np.frombuffer(pool.allocate(4000), np.float32)[10:]
    refused = raised(OutOfMemoryError, pool.allocate, "13MiB")
    assert refused.verdict == "source"
    del pool, allocation
    array[:] = 1.5
    assert array.sum() == 990 * 1.5


def arrays_in_a_pool() -> None:
    """NumPy's memory handler: made, zeroed, grown, shrunk, refused."""
    pool = Pool("8MiB")

    def work() -> None:
        ArrayMemory(pool).install()
        zeros = np.zeros((1000, 10))
        assert not zeros.any()
        grown = np.arange(100)
        grown.resize(100_000, refcheck=False)
        grown.resize(10, refcheck=False)
        assert grown.sum() == 45
        raised(MemoryError, np.empty, 9 * MIB, np.uint8)
        assert isinstance(ArrayMemory.take_refusal(), OutOfMemoryError)

    contextvars.copy_context().run(work)
    assert pool.stats().num_live == 0


def arrays_in_every_thread() -> None:
    """NumPy's default handler replaced: data of before, small data kept back, data that outlives the serving."""
    pool = Pool("64MiB")
    before = [np.arange(size) for size in (1, 100, 100_000)]
    pooled.install(pool, process_wide=True)
    kept = [np.arange(size) for size in (1, 100, 300_000)]
    for size in range(1, 2000, 7):
        assert not np.zeros(size, np.uint8).any()
    for array in (*before, *kept):
        array.resize(200_000, refcheck=False)
    pooled.uninstall()
    del before, kept, array
    assert pool.stats().num_live == 0


class Source:
    """A source written in Python that calls its pool, and refuses in the end."""

    def __init__(self) -> None:
        self.next = MIB

    def reserve(self, nbytes: int, alignment: int) -> tuple[int, int] | None:
        """Grant up to 4 MiB."""
        gc.collect()
        if nbytes > 4 * MIB:
            raise ValueError(nbytes)
        self.next += 64 * MIB
        return self.next, nbytes

    def release(self, address: int, nbytes: int) -> None:
        """Take it back."""


def a_source_and_misuse() -> None:
    """Callbacks, exceptions on their way through the core, wrong arguments."""
    pool = Pool("64MiB", source=Source())
    cycle: list[object] = [pool.allocate(MIB)]
    cycle.append(cycle)
    del cycle
    kept = pool.malloc(MIB)
    refused = raised(OutOfMemoryError, pool.malloc, 16 * MIB)
    assert isinstance(refused.__cause__, ValueError)
    raised(InvalidFreeError, pool.free, kept + 1)
    raised(InvalidFreeError, pool.free, -1)
    pool.free(kept)
    assert pool.snapshot().summary()
    assert pool.snapshot().to_json()
    pool.close()


def threads() -> None:
    """Allocations that die on other threads than their own."""
    pool = Pool("16MiB")
    boxes: list[list[object]] = [[], [], []]

    def fill(index: int) -> None:
        for step in range(200):
            boxes[index].append(pool.allocate(1 + step * 97 % 5000))
            if step % 10 == 0:
                boxes[(index + 1) % 3].clear()

    workers = [threading.Thread(target=fill, args=(index,)) for index in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    boxes.clear()
    assert pool.stats().num_live == 0


if __name__ == "__main__":
    blocks_and_buffers()
    arrays_in_a_pool()
    arrays_in_every_thread()
    a_source_and_misuse()
    threads()
