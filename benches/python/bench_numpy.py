"""How fast are NumPy expressions with their arrays in a pool, compared with NumPy's memory and tuned glibc?

Budgets: at 16, 64 and 256 MiB 1.75 times as fast as with NumPy's own memory in the geometric mean, and at no size below
0.97. The side ``floor`` shows the largest possible gain: the same work in preallocated arrays. Each figure is the
median over new processes, which alternate, because the speed of shared machines drifts. An elastic
pool may take 3 % longer than the plain one. This is a script, not a test,
because the memory that one measurement leaves behind would affect the next one in the same process.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter_ns, process_time_ns

import numpy as np

KIB, MIB = 1 << 10, 1 << 20
SIZES = [64, 256, KIB, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]
HEADLINE = [16 * MIB, 64 * MIB, 256 * MIB]
#: Setting of glibc's allocator to never return memory to the system, and to use huge pages.
TUNED = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:glibc.malloc.hugetlb=1"
#: Most columns of the two-dimensional arrays.
COLUMNS = 1024

#: Nanoseconds of wall time and CPU time of each process, by expression, bytes and side.
Figures = dict[tuple[str, int, str], list[tuple[float, float]]]


def expressions(nbytes: int) -> dict[str, Callable[[], object]]:
    """Return the expressions over arrays of ``nbytes`` bytes by name."""
    n = max(nbytes // 8, 1)
    columns = min(COLUMNS, math.isqrt(n))
    a, b, c = (np.full(n, value) for value in (1.5, 2.5, 3.5))
    rows = np.linspace(0.0, 1.0, n)[: n // columns * columns].reshape(-1, columns)
    side = min(256, math.isqrt(n))
    tall, square = a[: n // side * side].reshape(-1, side), np.full((side, side), 0.5)

    def filled() -> None:
        np.empty(n).fill(1.0)

    def accumulated() -> None:
        total = np.zeros(n)
        total += a

    def softmax() -> None:
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        powers / powers.sum(axis=1, keepdims=True)

    def standardise() -> None:
        (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1.0)

    return {
        "a + b": lambda: a + b,
        "a * b + c": lambda: a * b + c,
        "empty, fill": filled,
        "astype(float32)": lambda: a.astype(np.float32),
        "zeros, += a": accumulated,
        "softmax": softmax,
        "standardise": standardise,
        "matmul": lambda: tall @ square,
        "empty, dropped": lambda: np.empty(n),
        "zeros, dropped": lambda: np.zeros(n),
    }


def without_memory(nbytes: int) -> dict[str, Callable[[], object]]:
    """Return the expressions of the budget, computed step by step in preallocated arrays."""
    n = nbytes // 8
    a, b, c = (np.full(n, value) for value in (1.5, 2.5, 3.5))
    rows = np.linspace(0.0, 1.0, n)[: n // COLUMNS * COLUMNS].reshape(-1, COLUMNS)
    total, narrow, first, second = np.ones(n), np.ones(n, np.float32), np.ones_like(rows), np.ones_like(rows)

    def multiplied() -> None:
        np.multiply(a, b, out=total)
        np.add(total, c, out=total)

    def accumulated() -> None:
        total.fill(0.0)
        np.add(total, a, out=total)

    def softmax() -> None:
        np.subtract(rows, rows.max(axis=1, keepdims=True), out=first)
        np.exp(first, out=second)
        np.divide(second, second.sum(axis=1, keepdims=True), out=first)

    def standardise() -> None:
        mean = rows.mean(axis=0)
        np.subtract(rows, mean, out=first)
        # `std` computes the mean again.
        np.subtract(rows, rows.mean(axis=0), out=second)
        np.multiply(second, second, out=second)
        np.divide(first, np.sqrt(second.sum(axis=0) / len(rows)) + 1.0, out=second)

    return {
        "a + b": lambda: np.add(a, b, out=total),
        "a * b + c": multiplied,
        "empty, fill": lambda: total.fill(1.0),
        "astype(float32)": lambda: np.copyto(narrow, a, casting="unsafe"),
        "zeros, += a": accumulated,
        "softmax": softmax,
        "standardise": standardise,
    }


def measure(side: str, nbytes: int, name: str, seconds: float) -> tuple[float, float]:
    """Time an expression in this process; return nanoseconds of wall time and of CPU time per call."""
    if side in ("pool", "process", "elastic", "floor"):
        import allotment
        from allotment.integrations import numpy as pooled

        pool = allotment.Pool("16GiB", elastic=side == "elastic")
        pooled.install(pool, process_wide=side == "process")
    call = (without_memory if side == "floor" else expressions)(nbytes)[name]
    call()
    start = perf_counter_ns()
    call()
    once = max(perf_counter_ns() - start, 1)
    calls = max(3, min(200_000, int(seconds * 1e9 / once)))
    walls, cpus = [], []
    for _ in range(5):
        wall, cpu = perf_counter_ns(), process_time_ns()
        for _ in range(max(1, calls // 5)):
            call()
        cpus.append(process_time_ns() - cpu)
        walls.append(perf_counter_ns() - wall)
    each = max(1, calls // 5)
    return statistics.median(walls) / each, statistics.median(cpus) / each


def in_fresh_process(side: str, nbytes: int, name: str, seconds: float) -> tuple[float, float]:
    """Time an expression in a new process; see ``measure``."""
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if side == "tuned":
        environ["GLIBC_TUNABLES"] = TUNED
    arguments = ["--one", side, str(nbytes), name, str(seconds)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env=environ, check=True, capture_output=True, text=True
    )
    wall, cpu = json.loads(done.stdout)
    return wall, cpu


def in_budget(name: str, nbytes: int) -> bool:
    """Whether an expression at a size counts for the budget of large arrays."""
    return nbytes in HEADLINE and "dropped" not in name and name != "matmul"


def text(nbytes: int) -> str:
    """Format a size in bytes with its unit."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if nbytes >= unit:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


def ratio(figures: Figures, name: str, nbytes: int, side: str, clock: int) -> float:
    """Return how many times as fast as with NumPy's own memory a side is; ``clock`` 0 is wall time, 1 CPU time."""
    own, theirs = (
        statistics.median(pair[clock] for pair in figures[name, nbytes, each]) for each in ("own", side)
    )
    return own / theirs


def report(figures: Figures, sides: list[str]) -> None:
    """Print how many times as fast as with NumPy's own memory each side is, in CPU time and in wall time."""
    names = list(dict.fromkeys(name for name, _, _ in figures))
    sizes = list(dict.fromkeys(nbytes for _, nbytes, _ in figures))
    for side in sides:
        for clock, index in (("CPU", 1), ("wall", 0)):
            print(f"\n| {side}, {clock} | " + " | ".join(map(text, sizes)) + " |")
            print("|---|" + "---:|" * len(sizes))
            headline = []
            for name in names:
                cells = []
                for nbytes in sizes:
                    if (name, nbytes, side) not in figures:
                        cells.append("")
                        continue
                    times = ratio(figures, name, nbytes, side, index)
                    cells.append(f"{times:.2f}")
                    if in_budget(name, nbytes):
                        headline.append(times)
                print(f"| `{name}` | " + " | ".join(cells) + " |")
            if headline:
                mean = math.exp(statistics.fmean(map(math.log, headline)))
                print(f"\ngeometric mean at 16, 64 and 256 MiB, without `matmul`: {mean:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes for each figure")
    parser.add_argument("--seconds", type=float, default=0.05, help="seconds of each")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes of an array")
    parser.add_argument("--names", nargs="*", default=list(expressions(64)), help="expressions")
    parser.add_argument(
        "--sides",
        nargs="*",
        default=["pool", "process", "elastic", "tuned", "floor"],
        help="sides to compare",
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        side, nbytes, name, seconds = arguments.one
        print(json.dumps(measure(side, int(nbytes), name, float(seconds))))
        return
    figures: Figures = {}
    for name in arguments.names:
        for nbytes in arguments.sizes:
            beside = [side for side in arguments.sides if side != "floor" or in_budget(name, nbytes)]
            sides = ["own", *beside]
            for turn in range(arguments.rounds):
                # Alternate the order, so that no side always runs first.
                for side in sides if turn % 2 else reversed(sides):
                    pair = in_fresh_process(side, nbytes, name, arguments.seconds)
                    figures.setdefault((name, nbytes, side), []).append(pair)
            ratios = (f"{side} {ratio(figures, name, nbytes, side, 1):.2f}" for side in beside)
            print(f"{name}, {text(nbytes)}:", *ratios, file=sys.stderr)
    report(figures, arguments.sides)


if __name__ == "__main__":
    main()
