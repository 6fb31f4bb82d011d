"""Measures contenders in turns, so that a machine that becomes slower does so for all of them."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: Rounds of a workload: at least so many, even if the time is over, and at most so many.
MIN_ROUNDS = 5
MAX_ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An allocator that is not measured."""

    allocator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison."""

    name: str
    #: Plays the workload once and returns the nanoseconds that it took. Raises ``MemoryError`` if it is refused.
    play: Callable[[], float]
    #: Events, or pairs of calls, that the nanoseconds are divided by.
    count: int


@dataclass(frozen=True, slots=True)
class Workload:
    """A program that all contenders run; the first contender is the one that others are compared with."""

    name: str
    #: The unit of the figures: an event, or a pair of calls.
    unit: str
    contenders: Sequence[Contender]
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a contender; ``None`` if it refused a request."""

    allocator: str
    #: Nanoseconds of an event or a pair: the median of all rounds, and the two quartiles.
    ns: float | None
    quartiles: tuple[float, float] | None
    #: Times as long as the first contender takes: the median of the ratios of each round.
    ratio: float | None

    @property
    def spread(self) -> float | None:
        """Half the distance of the quartiles as a share of the median."""
        if self.ns is None or self.quartiles is None or self.ns <= 0:
            return None
        return (self.quartiles[1] - self.quartiles[0]) / 2 / self.ns


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of each contender in a workload. It does not keep the workload, as its pools hold memory."""

    name: str
    unit: str
    threads: int
    results: Sequence[Result]
    rounds: int
    #: Seconds that it took to measure.
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name, for JSON."""
        return {
            "workload": self.name,
            "unit": self.unit,
            "threads": self.threads,
            "rounds": self.rounds,
            "results": [
                {
                    "allocator": one.allocator,
                    "ns": one.ns,
                    "quartiles": one.quartiles,
                    "ratio": one.ratio,
                    "refused": one.ns is None,
                }
                for one in self.results
            ],
        }


def measure(workload: Workload, seconds: float) -> Measured:
    """Play a workload with each contender in turns until the time is over.

    Args:
        workload: The workload.
        seconds: Seconds for all contenders together. Each is played :data:`MIN_ROUNDS` times in any case, and once
            before.
    """
    begin = time.perf_counter()
    collects = gc.isenabled()
    # A collection would be counted to the contender that is on.
    gc.disable()
    try:
        able = [one for one in workload.contenders if _serves(one)]
        times: dict[str, list[float]] = {one.name: [] for one in able}
        rounds = 0
        while able and rounds < MAX_ROUNDS and (rounds < MIN_ROUNDS or time.perf_counter() < begin + seconds):
            # Another one begins each round, as what comes first may find other caches.
            first = rounds % len(able)
            for contender in [*able[first:], *able[:first]]:
                times[contender.name].append(contender.play() / contender.count)
            rounds += 1
    finally:
        if collects:
            gc.enable()
    base = times.get(workload.contenders[0].name, [])
    results = [_result(one.name, times.get(one.name, []), base) for one in workload.contenders]
    seconds = time.perf_counter() - begin
    return Measured(workload.name, workload.unit, workload.threads, results, rounds, seconds)


def _serves(contender: Contender) -> bool:
    """Play once, which also warms up; return whether all requests were served."""
    try:
        contender.play()
    except MemoryError:
        return False
    return True


def _result(name: str, times: Sequence[float], base: Sequence[float]) -> Result:
    if not times:
        return Result(name, None, None, None)
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    ratios = [one / other for one, other in zip(times, base, strict=True) if other > 0] if base else []
    return Result(name, middle, (low, high), statistics.median(ratios) if ratios else None)
