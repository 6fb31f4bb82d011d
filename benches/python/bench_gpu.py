"""On a GPU: what does a pool cost beside CuPy's and PyTorch's allocators, and how much does it reserve for a program?

    make test-gpu      # the tests that need a GPU, and then this, which writes its figures to benches/README.md
    .venv/bin/python benches/python/bench_gpu.py

A library that is not installed is left out, with the reason. Nothing here has run on a GPU yet: without one the parts
that need no library are tested with a driver that stands in for NVIDIA's.

Longer than 300 lines: each measurement with the program of its child process, and the page that has them all.
"""

import argparse
import datetime
import gc
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from allotment import Pool
from allotment._core import cuda_devices, cuda_memory_info

MIB = 1 << 20
#: The heading of the figures in benches/README.md.
HEADING = "## On a GPU"
#: Status of `--check` without a GPU.
NO_GPU = 3
ROUNDS = 7


class Row(NamedTuple):
    """A figure of ours, and the same of another allocator."""

    what: str
    ours: str
    theirs: str


def reason_without_gpu() -> str | None:
    """Return why nothing can be measured; ``None`` with a GPU."""
    try:
        devices = cuda_devices()
    except RuntimeError as error:
        return str(error)
    if not devices:
        return "there is no CUDA driver" if devices is None else "the CUDA driver lists no GPU"
    return None


def medians(*sides: Callable[[], None]) -> list[float]:
    """Return the median nanoseconds of each side, measured in turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for side, found in zip(sides, times, strict=True):
            start = time.perf_counter_ns()
            side()
            found.append(time.perf_counter_ns() - start)
    return [statistics.median(found) for found in times]


def limit_against_driver(source: str) -> Row:
    """Fill a pool to its limit and compare with the memory that the driver says is gone."""
    warm = Pool("2MiB", source=source)
    kept = warm.allocate(1)  # the context, and what the driver takes for itself
    before, _ = cuda_memory_info(0)
    pool = Pool(256 * MIB, source=source)
    parts = []
    try:
        while True:
            parts.append(pool.allocate(8 * MIB))
    except MemoryError:
        pass
    after, _ = cuda_memory_info(0)
    reserved = pool.stats().reserved
    taken = before - after
    # The driver rounds each region to its own unit.
    if not reserved <= taken <= reserved + pool.stats().num_regions * 2 * MIB:
        raise AssertionError(f"{source}: the pool reserved {reserved} bytes, the driver gave {taken}")
    parts.clear()
    gc.collect()
    pool.trim()
    left, _ = cuda_memory_info(0)
    if before - left > 2 * MIB:
        raise AssertionError(f"{source}: {before - left} bytes did not go back to the driver")
    kept.free()
    return Row(f"full pool of 256 MiB over `{source}`", f"{reserved / MIB:.0f} MiB", f"{taken / MIB:.0f} MiB")


def pairs(count: int = 2000) -> list[Row]:
    """Time a pair of an allocation and a free in the default stream: CuPy's arrays in ours and in CuPy's pool."""
    sizes = [1024 << (number % 10) for number in range(count)]
    pool = Pool("1GiB", source="cuda:0")

    def raw() -> None:
        for size in sizes:
            pool.free_on_stream(pool.malloc_on_stream(size, 0), 0)

    raw()
    (address,) = medians(raw)
    rows = [Row("pair of addresses", f"{address / count:.0f} ns", "")]
    try:
        cupy = importlib.import_module("cupy")
        from allotment.arrays.cupy import PoolAllocator

        theirs = cupy.cuda.MemoryPool().malloc
        ours = PoolAllocator(pool, 0)
    except ImportError as missing:
        return [*rows, Row("pair of CuPy's memory", "", f"left out: {missing}")]

    def play(allocate: Callable[[int], Any]) -> Callable[[], None]:
        def side() -> None:
            for size in sizes:
                allocate(size)

        side()
        return side

    mine, own = medians(play(ours), play(theirs))
    return [
        *rows,
        Row("pair of CuPy's memory", f"{mine / count:.0f} ns", f"{own / count:.0f} ns (CuPy's pool)"),
    ]


def program(count: int = 4000) -> list[tuple[int, int]]:
    """Make allocations and frees of sizes that change, as with batches of varying length: (number, bytes or -1)."""
    numbers = random.Random(5)
    events: list[tuple[int, int]] = []
    live: list[int] = []
    for number in range(count):
        growth = 1 + 2 * number // count
        events.append((number, int(numbers.lognormvariate(13, 1.6)) * growth % (48 * MIB) + 1))
        live.append(number)
        while len(live) > 40 + numbers.randrange(20):
            events.append((live.pop(numbers.randrange(len(live))), -1))
    return events


def fragmentation() -> Row:
    """Play a program of changing sizes; compare what is reserved with what is live at most."""
    pool = Pool("8GiB", source="cuda-vmm:0")
    addresses: dict[int, int] = {}
    for number, size in program():
        if size < 0:
            pool.free_on_stream(addresses.pop(number), 0)
        else:
            addresses[number] = pool.malloc_on_stream(size, 0)
    stats = pool.stats()
    for address in addresses.values():
        pool.free_on_stream(address, 0)
    ours = f"{stats.peak_reserved / MIB:.0f} MiB for {stats.peak_requested / MIB:.0f} MiB live"
    return Row("reserved for a program of changing sizes", ours, in_child("fragmentation", "own"))


def training() -> list[Row]:
    """Train a small model in PyTorch, in our pool and with PyTorch's own allocator: equal losses, and the time."""
    found = {}
    for side in ("pool", "own"):
        text = in_child("training", side)
        if not text.startswith("{"):
            return [Row("training in PyTorch", "", text)]
        found[side] = json.loads(text)
    if found["pool"]["losses"] != found["own"]["losses"]:
        raise AssertionError(f"losses differ: {found}")
    return [
        Row(
            "a step of training in PyTorch", *(f"{found[side]['step_us']:.0f} µs" for side in ("pool", "own"))
        ),
        Row(
            "reserved for the training",
            *(f"{found[side]['reserved'] / MIB:.0f} MiB" for side in ("pool", "own")),
        ),
    ]


def in_child(part: str, side: str) -> str:
    """Run a part that needs PyTorch in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", part, side],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{part} {side}: {done.stderr}")
    return done.stdout.strip()


def child(part: str, side: str) -> str:
    """Run a part and print what it measured: the program of the process that `in_child` starts."""
    try:
        torch = importlib.import_module("torch")
    except Exception as missing:  # a PyTorch whose libraries are missing raises whatever they raise
        return f"left out: {type(missing).__name__}: {missing}"
    if not torch.cuda.is_available():
        return "left out: PyTorch can use no GPU"
    return _fragmentation_of_torch(torch) if part == "fragmentation" else _training_of_torch(torch, side)


def _fragmentation_of_torch(torch: Any) -> str:
    tensors: dict[int, Any] = {}
    for number, size in program():
        if size < 0:
            del tensors[number]
        else:
            tensors[number] = torch.empty(size, dtype=torch.uint8, device="cuda")
    stats = torch.cuda.memory_stats()
    reserved, live = (stats[f"{name}_bytes.all.peak"] for name in ("reserved", "requested"))
    return f"{reserved / MIB:.0f} MiB for {live / MIB:.0f} MiB live (PyTorch)"


def _training_of_torch(torch: Any, side: str) -> str:
    from allotment.integrations import torch as pooled

    torch.use_deterministic_algorithms(True)
    pool = Pool("4GiB", source="cuda:0")
    if side == "pool":
        pooled.install(pool)
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(4096, 512, device="cuda")
    wanted = torch.randint(10, (4096,), device="cuda")
    losses, times = [], []
    for step in range(60):
        batch = slice(None, 2048 + step * 32)  # sizes change
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(model(inputs[batch]), wanted[batch])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits
        times.append(time.perf_counter() - start)
    if not losses[-1] < losses[0]:
        raise AssertionError(f"nothing was learned: {losses}")
    reserved = torch.cuda.max_memory_reserved()
    if side == "pool":
        reserved = pool.stats().peak_reserved
        if pool.stats().peak_requested == 0:
            raise AssertionError("PyTorch took no memory from the pool")
        del model, optimizer, inputs, wanted, loss
        pooled.uninstall()
    return json.dumps(
        {"losses": losses, "step_us": 1e6 * statistics.median(times[10:]), "reserved": reserved}
    )


def section(rows: list[Row], card: str) -> str:
    """Return the figures as a section of benches/README.md."""
    table = "\n".join(f"| {row.what} | {row.ours} | {row.theirs} |" for row in rows)
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{HEADING}\n\n{card}, {today}: `make test-gpu`, after its tests have passed. Medians of {ROUNDS} rounds in "
        "turns.\n\n"
        f"| | ours | beside it |\n|---|---|---|\n{table}\n"
    )


def with_section(text: str, new: str) -> str:
    """Return a page with the section under `HEADING` replaced, or added at the end."""
    before, found, rest = text.partition(HEADING + "\n")
    if not found:
        return text.rstrip() + "\n\n" + new
    _, following, after = rest.partition("\n## ")
    return before + new + (following + after if following else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help=f"say why there is no GPU, and end with {NO_GPU}"
    )
    parser.add_argument("--write", type=Path, help="the page whose section to replace")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(child(*arguments.child))
        return
    if reason := reason_without_gpu():
        print(reason)
        sys.exit(NO_GPU)
    if arguments.check:
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # equal results of equal programs
    rows = [
        *(limit_against_driver(source) for source in ("cuda:0", "cuda-vmm:0")),
        *pairs(),
        fragmentation(),
        *training(),
    ]
    devices = cuda_devices()
    assert devices
    found = section(rows, devices[0][0])
    print(found)
    if arguments.write:
        arguments.write.write_text(
            with_section(arguments.write.read_text(encoding="utf-8"), found), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
