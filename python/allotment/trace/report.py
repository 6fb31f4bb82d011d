"""Replays a trace and says what came of it, in names that other programs can read."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment._core import Replay, min_limit, replay
from allotment.trace.error import TraceError
from allotment.trace.reader import Trace


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The pool that a trace is replayed into."""

    #: The most it may reserve, in bytes.
    limit: int = 64 << 30
    #: Start with 2 MiB and double, or reserve the limit at first use.
    growth: bool = True
    #: Before refusing, give wholly free regions back and grow again.
    trim_on_oom: bool = False
    #: Bytes between one region and the next, a multiple of 256; regions are joined when it is 0.
    gap: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one replay."""

    trace: Trace
    options: ReplayOptions
    result: Replay
    #: The smallest limit at which nothing is refused, if it was searched for.
    min_limit: int | None = None
    #: Where each event's block lies, from the first region's start: -1 for a refusal and for the free of a
    #: refused block.
    offsets: NDArray[np.int64] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Every figure under its name, for JSON. Amounts are bytes."""
        stats = self.result.stats
        named = {} if self.trace.name is None else {"name": self.trace.name}
        found = {} if self.min_limit is None else {"min_limit": self.min_limit}
        return {
            "trace": self.trace.path,
            **named,
            "events": self.trace.program.events,
            "peak_live": self.trace.program.peak_live,
            **asdict(self.options),
            **found,
            "refused": self.result.refused,
            "first_refused": self.result.first_refused,
            "regions": stats.num_regions,
            "grants": stats.num_grants,
            "peak_requested": stats.peak_requested,
            "peak_in_use": stats.peak_in_use,
            "peak_reserved": stats.peak_reserved,
            "requested": stats.requested,
            "in_use": stats.in_use,
            "reserved": stats.reserved,
            "free": stats.free,
            "largest_free": stats.largest_free,
            "fragmentation": stats.fragmentation,
            "largest_requested": stats.largest_requested,
            "num_allocs": stats.num_allocs,
            "num_live": stats.num_live,
            "ns_per_event": self.result.ns_per_event,
        }


def replay_trace(trace: Trace, options: ReplayOptions, *, with_offsets: bool = False) -> Report:
    """Replay a trace into a fresh pool."""
    offsets = np.empty(trace.program.events, np.int64) if with_offsets else None
    result = replay(trace.program, **asdict(options), offsets=None if offsets is None else offsets.data)
    return Report(trace, options, result, offsets=offsets)


def replay_at_min_limit(trace: Trace, options: ReplayOptions) -> Report:
    """Search the smallest limit at which nothing is refused, and replay at that, not at ``options.limit``.

    Raises:
        TraceError: No limit serves the program.
    """
    try:
        limit = min_limit(
            trace.program, growth=options.growth, trim_on_oom=options.trim_on_oom, gap=options.gap
        )
    except ValueError as error:
        raise TraceError(f"{trace.path}: {error}") from error
    # A program that asks for nothing fits into nothing, but no pool has a limit of nothing.
    found = replace(options, limit=max(limit, 1))
    return replace(replay_trace(trace, found), min_limit=limit)
