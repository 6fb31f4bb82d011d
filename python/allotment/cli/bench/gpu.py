"""Pairs of an allocation and a free in the memory of a GPU, in the default stream."""

import importlib
from collections.abc import Callable
from typing import Any

from allotment import Pool
from allotment._core import cuda_devices
from allotment.cli.bench.measure import Contender, LeftOut, Workload
from allotment.cli.bench.python_calls import timed

#: Sizes of the pairs of a round, in bytes.
_SIZES = [1024 << (number % 10) for number in range(2_000)]

_LIMIT = 1 << 30


def gpu_workloads() -> tuple[list[Workload], list[LeftOut]]:
    """Return the workload of GPU 0, none without a GPU, and what is not measured, with the reason."""
    try:
        devices = cuda_devices()
    except RuntimeError as error:
        return [], [LeftOut("GPU", str(error))]
    if not devices:
        return [], [
            LeftOut("GPU", "there is no CUDA driver" if devices is None else "the driver lists no GPU")
        ]
    contenders, left_out = [], []
    for name, prepare in (("pool", _pool), ("CuPy", _cupy), ("PyTorch", _torch), ("RMM", _rmm)):
        try:
            contenders.append(Contender(name, timed(prepare()), len(_SIZES)))
        except Exception as error:  # without its libraries a package raises whatever they raise
            left_out.append(LeftOut(f"{name} on a GPU", f"{type(error).__name__}: {error}"))
    return [Workload("memory of GPU 0, pairs of 1 KiB to 512 KiB", "pair", contenders)], left_out


def _loop(pair: Callable[[int], object]) -> Callable[[], None]:
    def loop() -> None:
        for size in _SIZES:
            pair(size)

    return loop


def _pool() -> Callable[[], None]:
    pool = Pool(_LIMIT, source="cuda:0")
    return _loop(lambda size: pool.free_on_stream(pool.malloc_on_stream(size, 0), 0))


def _cupy() -> Callable[[], None]:
    # Memory is freed with the object.
    return _loop(_module("cupy").cuda.MemoryPool().malloc)


def _torch() -> Callable[[], None]:
    cuda = _module("torch").cuda
    if not cuda.is_available():
        raise RuntimeError("PyTorch can use no GPU")
    return _loop(lambda size: cuda.caching_allocator_delete(cuda.caching_allocator_alloc(size)))


def _rmm() -> Callable[[], None]:
    memory = _module("rmm").mr
    pool = memory.PoolMemoryResource(memory.CudaMemoryResource(), _LIMIT // 16, _LIMIT)
    return _loop(lambda size: pool.deallocate(pool.allocate(size), size))


def _module(name: str) -> Any:
    return importlib.import_module(name)
