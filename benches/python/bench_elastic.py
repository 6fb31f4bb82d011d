"""What does an event of a recorded program cost in an elastic pool beside a plain one, and what does a pause cost?

At a limit that never binds, budget: 1.3 times the plain pool in the geometric mean. The smallest limit at which the
elastic pool refuses nothing stands beside it, with the time there, where pages move all the time. The best of several
plays counts; sides take turns, because the speed of shared machines drifts. With ``--pauses`` it measures instead a
pause of 1 GiB and the resume after it, beside a copy of the same bytes into new memory; the budget of the resume is 1.3
times that. This is a script, not a test.
"""

import argparse
import math
import statistics
from pathlib import Path
from time import perf_counter

import numpy as np

import allotment
from allotment._core import Program, find_limits, replay
from allotment.trace import TraceError, read_traces

KIB, MIB = 1 << 10, 1 << 20
ROOT = Path(__file__).resolve().parents[2]
PAGE_SIZES = (64 * KIB, 2 * MIB)
#: A limit that no program reaches.
AMPLE = 1 << 50


def nanoseconds(program: Program, plays: int) -> dict[int, float]:
    """Return the least nanoseconds an event at an ample limit, by page size; 0 is the plain pool."""
    best = dict.fromkeys((0, *PAGE_SIZES), math.inf)
    for turn in range(plays):
        for page_size in best if turn % 2 else reversed(best):
            options = {"elastic": True, "page_size": page_size} if page_size else {}
            done = replay(program, limit=AMPLE, **options)  # type: ignore[arg-type]
            best[page_size] = min(best[page_size], done.ns_per_event)
    return best


def pauses(page_size: int, rounds: int) -> tuple[float, float]:
    """Return the time of a pause and that of its end, by that of a copy into new memory: medians."""
    pool = allotment.Pool("2GiB", elastic=True, page_size=page_size)
    block = pool.allocate("1GiB")
    data = np.frombuffer(block, np.uint64)
    data[:] = np.arange(1, data.size + 1, dtype=np.uint64)
    expected = int(data.sum())
    paused, resumed = [], []
    for _ in range(rounds):
        start = perf_counter()
        copy = data.copy()
        copied = perf_counter() - start
        del copy
        start = perf_counter()
        pool.pause(keep="host")
        middle = perf_counter()
        pool.resume()
        resumed.append((perf_counter() - middle) / copied)
        paused.append((middle - start) / copied)
    if int(data.sum()) != expected:
        raise SystemExit("the content changed in a pause")
    return statistics.median(paused), statistics.median(resumed)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="files, or folders of .npz files")
    parser.add_argument("--plays", type=int, default=7, help="plays of each program and side")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of each search for a limit")
    parser.add_argument("--pauses", type=int, default=0, metavar="ROUNDS", help="measure pauses instead")
    arguments = parser.parse_args()
    if arguments.pauses:
        print("| by a copy into new memory | pause | resume |\n|---|---:|---:|")
        for page_size in PAGE_SIZES:
            ratios_of_copy = (f"{ratio:.2f}" for ratio in pauses(page_size, arguments.pauses))
            print(f"| pages of {page_size // KIB} KiB | {' | '.join(ratios_of_copy)} |", flush=True)
        return
    given = arguments.traces or [ROOT / "tests" / "traces"]
    paths = [path for one in given for path in (sorted(one.glob("*.npz")) if one.is_dir() else [one])]
    print(
        "| ns an event | events | plain | 64 KiB | ratio | 2 MiB | ratio | limit / peak, 64 KiB | ns there |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratios: dict[int, list[float]] = {page_size: [] for page_size in PAGE_SIZES}
    for path in paths:
        try:
            traces = read_traces(path)
        except TraceError as error:
            raise SystemExit(str(error)) from None
        for trace in traces:
            program = trace.program
            best = nanoseconds(program, arguments.plays)
            cells = []
            for page_size in PAGE_SIZES:
                ratios[page_size].append(best[page_size] / best[0])
                cells.append(f"{best[page_size]:.1f} | {ratios[page_size][-1]:.2f}")
            page_size = PAGE_SIZES[0]
            limit = find_limits(
                program, elastic=True, page_size=page_size, seconds=arguments.seconds
            ).min_limit
            tight = min(
                replay(program, limit=limit, elastic=True, page_size=page_size).ns_per_event
                for _ in range(max(1, arguments.plays // 3))
            )
            over = limit / program.peak_live
            print(
                f"| {path.stem} | {program.events:,} | {best[0]:.1f} | {' | '.join(cells)} | {over:.3f} "
                f"| {tight:.0f} |",
                flush=True,
            )
    means = (
        f"{math.exp(statistics.fmean(map(math.log, ratios[page_size]))):.2f}" for page_size in PAGE_SIZES
    )
    print("\ngeometric mean of the ratios, 64 KiB and 2 MiB: " + " and ".join(means))


if __name__ == "__main__":
    main()
