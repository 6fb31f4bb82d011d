"""What does a buffer in a pool cost beside pyopencl's own MemoryPool, and how much of it is OpenCL?

Nanoseconds of a pair, a buffer that is made and dropped, of the thread's processor time; the sides take turns in one
process. ``parts`` and ``host`` are pools over a context and over host memory. Below them, what no allocator of buffers
can save: the sub-buffer alone through pyopencl, and the object of Python around one that exists.

    python benches/python/bench_opencl.py [--rounds 9] [--bytes 1024]
"""

import argparse
import os
import statistics
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

#: Pairs of one round.
PAIRS = 20_000


def sides(nbytes: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the calls to measure, with their arguments; each returns what is dropped at once."""
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    import pyopencl as cl
    import pyopencl.tools

    from allotment import Pool
    from allotment.integrations import opencl as pooled

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    print(f"{queue.device.name.strip()}, pyopencl {cl.VERSION_TEXT}, buffers of {nbytes} bytes")
    theirs = pyopencl.tools.MemoryPool(pyopencl.tools.ImmediateAllocator(queue))
    parts = pooled.allocator(Pool("64MiB", source=pooled.source(context)), queue)
    host = pooled.allocator(Pool("64MiB"), queue)
    parent = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64 << 20)
    part = parent.get_sub_region(4096, nbytes)
    kept.extend([parts(nbytes), host(nbytes), theirs.allocate(nbytes), parent, part])
    plain: tuple[Any, ...] = (context, cl.mem_flags.READ_WRITE, nbytes)
    return {
        "pyopencl's MemoryPool": (theirs.allocate, (nbytes,)),
        "pool: parts": (parts, (nbytes,)),
        "pool: host": (host, (nbytes,)),
        "a buffer without a pool": (cl.Buffer, plain),
        "a sub-buffer alone": (parent.get_sub_region, (4096, nbytes)),
        "an object around a buffer": (cl.Buffer.from_int_ptr, (part.int_ptr, True)),
    }


kept: list[Any] = []


def pair(call: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """Return the nanoseconds of a pair."""
    start = thread_time_ns()
    for _ in range(PAIRS):
        call(*arguments)
    return (thread_time_ns() - start) / PAIRS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bytes", type=int, default=1024)
    options = parser.parse_args()
    try:
        measured = sides(options.bytes)
    except ImportError as error:
        raise SystemExit(f'skipped: {error}: pip install "pyopencl[pocl]"') from error
    rounds = [{side: pair(*call) for side, call in measured.items()} for _ in range(options.rounds)]
    theirs = statistics.median(figures["pyopencl's MemoryPool"] for figures in rounds)
    for side in measured:
        median = statistics.median(figures[side] for figures in rounds)
        print(f"{side:<28}{median:7.0f} ns{median / theirs:7.2f} of MemoryPool's")


if __name__ == "__main__":
    main()
