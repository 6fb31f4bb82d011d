"""Put the GPU memory of CuPy, PyTorch, RMM, Numba, cuda.core or Warp into a pool with a limit, and exceed the limit.

    python examples/gpu_libraries.py cupy
    python examples/gpu_libraries.py torch --limit 2GiB

It needs a GPU of NVIDIA's and the library; without them it says what is missing. It has not run on a GPU yet.
"""

import importlib
from collections.abc import Callable
from typing import Any

import click

import allotment

#: Elements of each array, of 4 bytes.
COUNT = 1 << 20


def use_cupy(limit: int) -> Any:
    """Add two arrays; then ask for more than the pool has."""
    import cupy

    a = cupy.arange(COUNT, dtype="f4")
    total = a + a
    assert float(total[3]) == 6.0
    yield total
    cupy.empty(limit // 4 + COUNT, "f4")


def use_torch(limit: int) -> Any:
    """Compute a gradient; then ask for more than the pool has."""
    import torch

    a = torch.arange(COUNT, device="cuda", dtype=torch.float32, requires_grad=True)
    (a * a).sum().backward()
    assert float(a.grad[3]) == 6.0
    yield a
    torch.empty(limit + (2 << 20), device="cuda", dtype=torch.uint8)


def use_rmm(limit: int) -> Any:
    """Allocate a buffer; then ask for more than the pool has."""
    import rmm

    yield rmm.DeviceBuffer(size=4 * COUNT)
    rmm.DeviceBuffer(size=limit + COUNT)


def use_numba(limit: int) -> Any:
    """Copy an array to the device and back; then ask for more than the pool has."""
    import numpy as np
    from numba import cuda

    a = cuda.to_device(np.arange(COUNT, dtype="f4"))
    assert a.copy_to_host()[3] == 3.0
    yield a
    cuda.device_array(limit // 4 + COUNT, "f4")


def use_cuda_core(limit: int) -> Any:
    """Allocate a buffer for work in a stream; then ask for more than the pool has."""
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    yield device.allocate(4 * COUNT, stream=stream)
    device.allocate(limit + COUNT, stream=stream)


def use_warp(limit: int) -> Any:
    """Fill an array; then ask for more than the pool has."""
    import warp

    a = warp.full(COUNT, 3.0, dtype=warp.float32, device="cuda:0")
    assert a.numpy()[3] == 3.0
    yield a
    warp.empty(limit // 4 + COUNT, dtype=warp.float32, device="cuda:0")


PROGRAMS: dict[str, Callable[[int], Any]] = {
    "cupy": use_cupy,
    "torch": use_torch,
    "rmm": use_rmm,
    "numba": use_numba,
    "cuda_core": use_cuda_core,
    "warp": use_warp,
}


@click.command()
@click.argument("library", type=click.Choice(list(PROGRAMS)))
@click.option("--limit", default="512MiB", show_default=True, help="The pool's limit.")
def main(library: str, limit: str) -> None:
    """Put the GPU memory of LIBRARY into a pool, use it, and exceed the pool's limit."""
    try:
        pool = allotment.Pool(limit, source="cuda:0", name=library)
    except (RuntimeError, ValueError) as missing:
        raise click.ClickException(str(missing)) from None
    pooled = importlib.import_module(f"allotment.integrations.{library}")
    try:
        pooled.install(pool)
    except ImportError as missing:
        raise click.ClickException(str(missing)) from None
    try:
        program = PROGRAMS[library](pool.limit)
        kept = next(program)
        print(f"in the pool: {pool.stats().in_use / 2**20:.1f} MiB of {limit}")
        try:
            next(program)
        except (MemoryError, RuntimeError) as refused:  # PyTorch's error is a RuntimeError
            print(f"refused with {type(refused).__name__}: {str(refused).splitlines()[0]}")
        else:
            raise AssertionError("the limit did not hold")
        del kept, program
    finally:
        pooled.uninstall()
    print(f"at most: {pool.stats().peak_in_use / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
