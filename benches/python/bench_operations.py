"""How long do operations on a million elements and training steps take, compared with TensorFlow's?

Budget: 0.7 of TensorFlow's time, as geometric mean over all operations. Both packages compute on one thread, each in
its own interpreter. They alternate operation by operation, and the least CPU time of all rounds counts.
benches/README.md lists the operations that take more than 3 times as long, with the reasons. Compared with TensorFlow's
training step as a ``tf.function``, that of an MLP may take 1.5 times as long, that of a convolutional network 2 times.

    ALLOTMENT_TENSORFLOW=python-with-tensorflow .venv/bin/python benches/python/bench_operations.py [part of a name ...]
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from math import exp, inf, log
from pathlib import Path
from statistics import fmean, median

BUDGET = 0.7
#: Budgets of the training steps, which are not part of the mean.
STEPS = {"step of an MLP": 1.5, "step of a convolutional network": 2.0}
CASES = Path(__file__).with_name("operation_cases.py")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Side:
    """A child interpreter that times operations of one package."""

    def __init__(self, python: str, package: str, stack: ExitStack) -> None:
        """Start the interpreter; closing the stack ends it."""
        environment = {**os.environ, **ONE_THREAD, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = stack.enter_context(
            subprocess.Popen(
                [python, str(CASES), package],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if package == "tensorflow" else None,
                text=True,
                env=environment,
            )
        )
        self.names = self._answer().split("\t")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the interpreter ended: {self._process.args!r}")
        return line.rstrip("\n")

    def time(self, name: str, seconds: float) -> tuple[float, float]:
        """Time an operation for about ``seconds``; return the least and the median microseconds per call."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\t{seconds}\n")
        self._process.stdin.flush()
        least, middle = map(float, self._answer().split())
        return least, middle

    def close(self) -> None:
        """Make the interpreter end, by closing its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.close()


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return exp(fmean(map(log, ratios)))


def main() -> int:
    """Measure, print, and return 1 if the mean is above the budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", help="measure only the operations whose name contains one of these texts"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=0.03, help="time of one operation in one round, for each package"
    )
    parser.add_argument("--worst", type=int, default=20, help="number of the slowest to print at the end")
    options = parser.parse_args()
    tensorflow = os.environ.get("ALLOTMENT_TENSORFLOW")
    if not tensorflow:
        print("ALLOTMENT_TENSORFLOW names no Python with TensorFlow")
        return 2
    rows: list[tuple[float, str]] = []
    with ExitStack() as stack:
        ours, theirs = Side(sys.executable, "allotment.tf", stack), Side(tensorflow, "tensorflow", stack)
        assert ours.names == theirs.names
        for name in ours.names:
            if options.parts and not any(part in name for part in options.parts):
                continue
            rounds = [
                (ours.time(name, options.seconds), theirs.time(name, options.seconds))
                for _ in range(options.rounds)
            ]
            (mine, mine_middle), (its, its_middle) = (
                (min(side[0] for side in sides), median(side[1] for side in sides))
                for sides in zip(*rounds, strict=True)
            )
            rows.append((mine / its, name))
            middle = mine_middle / its_middle
            print(
                f"{name:36} {mine:10.1f} us {its:10.1f} us {mine / its:7.2f}  (medians {middle:.2f})",
                flush=True,
            )
        ours.close()
        theirs.close()
    if not rows:
        parser.error("no operation has such a name")
    print("\nSlowest:")
    for ratio, name in sorted(rows, reverse=True)[: options.worst]:
        print(f"  {name:36} {ratio:6.2f}")
    slow = [name for ratio, name in rows if ratio > STEPS.get(name, inf)]
    for ratio, name in rows:
        if name in STEPS:
            print(f"\n{name}: {ratio:.2f} (budget {STEPS[name]})")
    rows = [row for row in rows if row[1] not in STEPS]
    mean = geometric_mean([ratio for ratio, _ in rows]) if rows else 0.0
    print(f"\nGeometric mean of {len(rows)}: {mean:.3f} (budget {BUDGET})")
    print(f"More than 3 times as long: {sum(ratio > 3 for ratio, _ in rows)}")
    return int(bool(slow) or (mean > BUDGET and not options.parts))


if __name__ == "__main__":
    sys.exit(main())
