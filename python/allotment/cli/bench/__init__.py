"""The ``bench`` command: how long allocators take, measured in turns in one run on the user's own machine."""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from allotment._core import __version__, one_line
from allotment.cli.bench.allocators import Allocator, find_allocators
from allotment.cli.bench.gpu import gpu_workloads
from allotment.cli.bench.measure import LeftOut, Measured, Workload, measure
from allotment.cli.bench.python_calls import python_workloads
from allotment.cli.bench.table import render
from allotment.cli.bench.workloads import Played, churn, holes, pairs, threads
from allotment.cli.command import BadInput, Outcome
from allotment.cli.progress import progress
from allotment.trace import TraceError, read_traces


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine on which a benchmark ran."""

    allotment: str
    python: str
    system: str
    processor: str
    #: Cores that the process may use.
    cores: int

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores != 1)}"
        return f"allotment {self.allotment}, {cores} of {self.processor}, {self.system}, Python {self.python}"


def run_bench(
    kinds: Sequence[str], traces: Sequence[str], seconds: float, most_threads: int | None, *, as_json: bool
) -> Outcome:
    """Measure workloads, and return a table or JSON.

    Args:
        kinds: The kinds of workloads, all if there are none; those of traces are always measured.
        traces: Trace files to replay.
        seconds: Seconds for all workloads together, but that each is played several times in any case.
        most_threads: The most threads; the number of cores if ``None``.
        as_json: Whether to return JSON.

    Raises:
        BadInput: A trace cannot be read.
    """
    cores = len(os.sched_getaffinity(0))
    allocators, left_out = find_allocators()
    workloads = [_workload(played, allocators) for played in _replays(traces)]
    # Traces alone, if nothing else is asked for.
    chosen = set(kinds) or (set() if traces else {"pairs", "holes", "churn", "threads", "python", "gpu"})
    makers: dict[str, Callable[[], Iterator[Played]]] = {
        "pairs": pairs,
        "holes": holes,
        "churn": churn,
        "threads": lambda: threads(most_threads or cores),
    }
    for kind, make in makers.items():
        if kind in chosen:
            workloads += [_workload(played, allocators) for played in make()]
    if "python" in chosen:
        workloads += python_workloads()
    if "gpu" in chosen:
        on_gpu, missing = gpu_workloads()
        workloads += on_gpu
        left_out += missing
    found: list[Measured] = []
    with progress(len(workloads), long=True) as steps:
        while workloads:
            steps.begin(f"measuring {one_line(workloads[0].name)}")
            # The time that a workload does not use goes to the others.
            share = max(seconds - sum(one.seconds for one in found), 0) / len(workloads)
            found.append(measure(workloads.pop(0), share))
    machine = Machine(
        __version__,
        platform.python_version(),
        f"{platform.system()} {platform.release()}",
        _processor(),
        cores,
    )
    if as_json:
        return Outcome(json.dumps(_as_dict(machine, found, left_out, seconds), indent=2) + "\n")
    return Outcome(render(str(machine), found, left_out, sys.stdout))


def _replays(paths: Sequence[str]) -> list[Played]:
    try:
        traces = [trace for path in paths for trace in read_traces(path)]
    except TraceError as error:
        raise BadInput(str(error)) from error
    empty = next((trace for trace in traces if not trace.program.events), None)
    if empty is not None:
        raise BadInput(f"{empty.title}: has no events to replay")
    return [Played(f"replay of {trace.title}", trace.program) for trace in traces]


def _workload(played: Played, allocators: Sequence[Allocator]) -> Workload:
    contenders = [allocator.contender(played) for allocator in allocators]
    return Workload(played.name, "event", contenders, threads=played.threads)


def _processor() -> str:
    """Return the processor's name, or its architecture where the system does not say the name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def _as_dict(
    machine: Machine, found: Sequence[Measured], left_out: Sequence[LeftOut], seconds: float
) -> dict[str, Any]:
    return {
        "machine": asdict(machine),
        "seconds": seconds,
        "workloads": [one.as_dict() for one in found],
        "left_out": [asdict(one) for one in left_out],
    }
