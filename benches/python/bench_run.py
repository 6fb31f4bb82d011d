"""What does a program cost under `allotment run`?

Programs run with and without it in turns. The figure is their processor time (user and system), the start of the
interpreter or compiler included; of all rounds the median of the ratios counts, and their middle half is shown. The
command itself is left out: it waits meanwhile.

    python benches/python/bench_run.py [ROUNDS]
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from allotment.cli.host import DEFAULT_KEEP, DEFAULT_THRESHOLD, LIBRARY

ARRAYS = """
import numpy as np
random = np.random.default_rng(1)
for _ in range(12):
    a = random.standard_normal((800, 1000))
    b = a.T @ a
    c = (a * 2 + 1) / 3
    d = np.sort(a.ravel())
    e = np.concatenate([a, c])
    f = e[e > 0]
    g = np.bincount((f * 10).astype(np.int64) % 97)
    h = np.where(a > 0, a, -a).sum(axis=0)
    parts = [np.zeros(20_000) for _ in range(50)]
    total = np.cumsum(f)
"""

TABLES = """
import numpy as np
random = np.random.default_rng(2)
keys = random.integers(0, 5_000, 400_000)
values = random.standard_normal((400_000, 4))
for _ in range(4):
    order = np.argsort(keys, kind="stable")
    grouped, starts = np.unique(keys[order], return_index=True)
    means = np.add.reduceat(values[order], starts) / np.diff(np.append(starts, len(keys)))[:, None]
    joined = means[np.searchsorted(grouped, keys)]
    kept = joined[joined[:, 0] > 0]
    text = np.char.mod("%.3f", kept[:20_000, 0])
"""

OBJECTS = """
import json
records = [{"id": i, "name": f"record {i}", "tags": [str(j) * 40 for j in range(i % 7)]} for i in range(60_000)]
for _ in range(2):
    text = json.dumps(records)
    records = json.loads(text)
    table = {one["name"]: one for one in records}
    words = sorted(tag for one in records for tag in one["tags"])
"""

SMALL_BLOCKS = r"""
#include <stdlib.h>
int main(void) {
    static void *slots[4096];
    unsigned long random = 88172645463325252UL;
    for (long i = 0; i < 12000000; i++) {
        random ^= random << 13; random ^= random >> 7; random ^= random << 17;
        int slot = random % 4096;
        free(slots[slot]);
        slots[slot] = malloc(16 + (random >> 20) % 1000);
        *(char *)slots[slot] = 1;
    }
    return 0;
}
"""


def processor_seconds(command: Sequence[str | Path], environment: Mapping[str, str]) -> float:
    """Run a program and return its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int) -> None:
    """Print a line for each program."""
    with tempfile.TemporaryDirectory() as folder:
        (source := Path(folder, "small_blocks.c")).write_text(SMALL_BLOCKS)
        small_blocks = Path(folder, "small_blocks")
        subprocess.run(["cc", "-O2", "-o", small_blocks, source], check=True)
        (numbers := Path(folder, "numbers")).write_text(
            "".join(f"{n * 7919 % 1_000_003}\n" for n in range(700_000))
        )
        statistics_folder = Path(folder, "statistics")
        statistics_folder.mkdir()
        plain = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        pooled = plain | {
            "LD_PRELOAD": LIBRARY,
            "ALLOTMENT_HOST_LIMIT": str(8 << 30),
            "ALLOTMENT_HOST_THRESHOLD": str(DEFAULT_THRESHOLD),
            "ALLOTMENT_HOST_KEEP": str(DEFAULT_KEEP),
            "ALLOTMENT_HOST_STATISTICS": str(statistics_folder),
            "ALLOTMENT_HOST_STARTER": str(os.getpid()),
            "ALLOTMENT_HOST_START": str(time.monotonic_ns()),
        }
        compiled: list[str | Path] = ["cc", "-O2", "-c", "-o", Path(folder, "object"), "-x", "c"]
        programs: dict[str, Sequence[str | Path]] = {
            "NumPy: arrays of 160 kB to 16 MB": [sys.executable, "-c", ARRAYS],
            "NumPy: groups and joins of a table": [sys.executable, "-c", TABLES],
            "Python: objects, JSON, dictionaries": [sys.executable, "-c", OBJECTS],
            "sort -n of 700,000 lines": ["sort", "-n", "--parallel=1", numbers],
            "cc -O2 of a program": [*compiled, Path(__file__).parents[2] / "tests/preload/random_blocks.c"],
            "C: malloc and free of small blocks alone": [small_blocks],
        }
        print(f"{'program':<42} {'plain':>8} {'pooled':>8} {'ratio':>7}   middle half")
        for name, command in programs.items():
            pairs = []
            for turn in range(rounds):
                order = [plain, pooled] if turn % 2 else [pooled, plain]
                seconds = {id(one): processor_seconds(command, one) for one in order}
                pairs.append((seconds[id(plain)], seconds[id(pooled)]))
            ratios = [after / before for before, after in pairs]
            low, middle, high = statistics.quantiles(ratios, n=4)
            shown = [statistics.median(one) for one in zip(*pairs, strict=True)]
            print(
                f"{name:<42} {shown[0]:7.3f}s {shown[1]:7.3f}s {middle:7.3f}   {low:.3f} to {high:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
