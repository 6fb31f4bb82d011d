"""Replays a trace and says what came of it, in names that other programs can read."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from allotment._core import Limits, Replay, find_limits, replay
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
    #: Bytes between one region and the next, a multiple of 256.
    gap: int = 0
    #: Join regions that touch; by default when the gap is 0.
    joined: bool | None = None
    #: When the remainder of a chunk is split off.
    policy: Literal["tensorflow", "tight"] = "tensorflow"

    @property
    def joins_regions(self) -> bool:
        """Whether regions that touch are joined."""
        return self.gap == 0 if self.joined is None else self.joined


@dataclass(frozen=True, slots=True)
class Search:
    """How limits are searched for."""

    #: Limits are multiples of this, in bytes; itself a multiple of 256.
    granularity: int = 64 << 10
    #: When the search ends at the latest.
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one replay."""

    trace: Trace
    options: ReplayOptions
    result: Replay
    #: How limits were searched for, if they were, and what was found. The replay then is that at the smallest.
    search: Search | None = None
    limits: Limits | None = None
    #: Where each event's block lies, from the first region's start: -1 for a refusal and for the free of a
    #: refused block.
    offsets: NDArray[np.int64] | None = None

    @property
    def lost_inside_chunks(self) -> int:
        """Bytes of chunks that were not asked for: what was in use at its peak less what was asked for at its own."""
        return self.result.stats.peak_in_use - self.result.stats.peak_requested

    def as_dict(self) -> dict[str, Any]:
        """Every figure under its name, for JSON. Amounts are bytes."""
        stats = self.result.stats
        named = {} if self.trace.name is None else {"name": self.trace.name}
        return {
            "trace": self.trace.path,
            **named,
            "events": self.trace.program.events,
            "peak_live": self.trace.program.peak_live,
            **asdict(self.options),
            "joined": self.options.joins_regions,
            **self._found(),
            "refused": self.result.refused,
            "first_refused": self.result.first_refused,
            "regions": stats.num_regions,
            "grants": stats.num_grants,
            "peak_requested": stats.peak_requested,
            "peak_in_use": stats.peak_in_use,
            "peak_reserved": stats.peak_reserved,
            "lost_inside_chunks": self.lost_inside_chunks,
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

    def _found(self) -> dict[str, Any]:
        if self.search is None or self.limits is None:
            return {}
        return {
            "granularity": self.search.granularity,
            "min_limit": self.limits.min_limit,
            "safe_limit": self.limits.safe_limit,
            "complete": self.limits.complete,
            "untried": self.limits.untried,
        }


def replay_trace(trace: Trace, options: ReplayOptions, *, with_offsets: bool = False) -> Report:
    """Replay a trace into a fresh pool."""
    offsets = np.empty(trace.program.events, np.int64) if with_offsets else None
    result = replay(trace.program, **asdict(options), offsets=None if offsets is None else offsets.data)
    return Report(trace, options, result, offsets=offsets)


def replay_at_min_limit(
    trace: Trace,
    options: ReplayOptions,
    search: Search | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Search the smallest limit at which nothing is refused, and replay at that, not at ``options.limit``.

    Args:
        trace: What is replayed.
        options: The pool, apart from its limit.
        search: How to search; by default as :class:`Search` says.
        progress: Called now and then with the number of limits that are known to serve or not, and of all.

    Raises:
        TraceError: No limit serves the program.
    """
    search = search or Search()
    settings = asdict(options)
    del settings["limit"]
    try:
        limits = find_limits(trace.program, **settings, **asdict(search), progress=progress)
    except ValueError as error:
        raise TraceError(f"{trace.path}: {error}") from error
    # A program that asks for nothing fits into nothing, but no pool has a limit of nothing.
    found = replace(options, limit=max(limits.min_limit, 1))
    return replace(replay_trace(trace, found), search=search, limits=limits)
