"""Replays a trace and reports the results, for people and as JSON."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from allotment._core import Limits, Replay, find_limits, replay
from allotment.trace.error import TraceError
from allotment.trace.reader import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Step between limits, and page size of elastic pools over made-up addresses, unless an option says otherwise.
_LIMIT_STEP = 64 << 10
_PAGE_SIZE = 2 << 20


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of the pool that a trace is replayed into."""

    #: The most bytes that the pool may reserve.
    limit: int = 64 << 30
    #: Whether the pool starts with 2 MiB and doubles, or reserves the limit at first use.
    growth: bool = True
    #: Whether the pool releases wholly free regions and grows again before it refuses.
    trim_on_oom: bool = False
    #: Bytes between one region and the next, a multiple of 256.
    gap: int = 0
    #: Whether the pool joins adjacent regions; ``None``: if the gap is 0.
    joined: bool | None = None
    #: Split rule: TensorFlow's, or ``"tight"``, which splits off every remainder.
    policy: Literal["tensorflow", "tight"] = "tensorflow"
    #: Whether the pool is elastic: addresses are plentiful, and only pages in use have memory.
    elastic: bool = False
    #: Page size of an elastic pool in bytes, a power of two from 256 on; ``None``: 2 MiB.
    page_size: int | None = None

    @property
    def limit_step(self) -> int:
        """Step between limits that are worth a replay, in bytes: 64 KiB, of elastic pools at least a page."""
        return max(_LIMIT_STEP, self.page_bytes if self.elastic else 0)

    @property
    def page_bytes(self) -> int:
        """Page size of an elastic pool with these options, in bytes."""
        return _PAGE_SIZE if self.page_size is None else self.page_size

    @property
    def joins_regions(self) -> bool:
        """Whether the pool joins adjacent regions."""
        return self.gap == 0 if self.joined is None else self.joined


@dataclass(frozen=True, slots=True)
class Search:
    """Options of the search for the smallest limit."""

    #: Step between the limits tried, in bytes; a multiple of 256.
    granularity: int = _LIMIT_STEP
    #: The most seconds that the search may take.
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one replay, with its trace and options."""

    trace: Trace
    options: ReplayOptions
    result: Replay
    #: Options and result of the search for limits, if there was one; ``result`` is then at the smallest limit.
    search: Search | None = None
    limits: Limits | None = None
    #: Distance in bytes of each event's block from the first region's start, shape (events,); -1 for a refusal, for a
    #: block of zero bytes, and for the free of either.
    offsets: "NDArray[np.int64] | None" = None

    @property
    def lost_inside_chunks(self) -> int:
        """Peak bytes in use minus peak bytes requested: the memory lost to rounding and unsplit chunks."""
        return self.result.stats.peak_in_use - self.result.stats.peak_requested

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name, for JSON. Amounts are in bytes, ``ns_per_event`` is in nanoseconds."""
        stats = self.result.stats
        named = {} if self.trace.name is None else {"name": self.trace.name}
        return {
            "trace": self.trace.path,
            **named,
            "events": self.trace.program.events,
            "peak_live": self.trace.program.peak_live,
            **self._origin_figures(),
            **asdict(self.options),
            "joined": self.options.joins_regions,
            **({"commits": stats.num_commits} if self.options.elastic else {}),
            **self._search_figures(),
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

    def _origin_figures(self) -> dict[str, Any]:
        """Return the facts about the recording for the report in JSON."""
        origin = self.trace.origin
        if origin.kind in ("npz", "lifetimes"):
            return {"kind": origin.kind}
        reserved = {
            "reserved_at_end": origin.reserved_at_end,
            "recorded_peak_reserved": origin.recorded_peak_reserved,
        }
        return {
            "kind": origin.kind,
            "device": origin.device,
            "streams": origin.streams,
            "blocks_at_start": origin.blocks_at_start,
            "live_at_start": origin.live_at_start,
            "live_at_end": origin.live_at_end,
            **(reserved if origin.reserved_at_end is not None else {}),
            **origin.completeness(),
            "entries": dict(origin.entries),
            "annotations": dict(origin.annotations),
            "out_of_memory": [asdict(one) | {"text": one.text} for one in origin.refusals],
        }

    def _search_figures(self) -> dict[str, Any]:
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
    """Replay a trace into a new pool that has addresses but no memory.

    Args:
        trace: The recorded program.
        options: Options of the pool.
        with_offsets: Whether the report has the offset of each event's block.
    """
    if not with_offsets:
        return Report(trace, options, replay(trace.program, **asdict(options)))
    # The import takes longer than the replay of a small trace.
    import numpy as np

    offsets = np.empty(trace.program.events, np.int64)
    result = replay(trace.program, **asdict(options), offsets=offsets.data)
    return Report(trace, options, result, offsets=offsets)


def replay_at_min_limit(
    trace: Trace,
    options: ReplayOptions,
    search: Search | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Find the smallest limit at which the pool refuses nothing, and replay the trace at that limit.

    Args:
        trace: The recorded program.
        options: Options of the pool; ``limit`` is ignored.
        search: Options of the search; a minute in steps of :attr:`ReplayOptions.limit_step` unless given.
        progress: Called at intervals with the number of limits decided so far and the number of all limits.

    Raises:
        TraceError: The pool refuses a request at every limit.
    """
    search = search or Search(options.limit_step)
    settings = asdict(options)
    del settings["limit"]
    try:
        limits = find_limits(trace.program, **settings, **asdict(search), progress=progress)
    except ValueError as error:
        raise TraceError(f"{trace.path}: {error}") from error
    # The smallest limit of a program without allocations is 0, but a pool's limit is at least 1, or a page.
    least = options.page_bytes if options.elastic else 1
    found = replace(options, limit=max(limits.min_limit, least))
    return replace(replay_trace(trace, found), search=search, limits=limits)
