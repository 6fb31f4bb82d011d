"""What if: the same program under other policies."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from allotment._core import CachingReplay, Plan, find_limits, format_size, replay, replay_caching
from allotment._core import plan as search_plan
from allotment.trace.error import TraceError
from allotment.trace.reader import Trace
from allotment.trace.report import ReplayOptions

#: The largest limit of a pool: no program has more bytes live at once.
_AMPLE = (1 << 63) - 256

#: PyTorch's segments are multiples of this.
_SEGMENT_STEP = 2 << 20

#: ``max_split_size_mb`` and ``roundup_power2_divisions`` that are tried beside PyTorch's defaults.
_MAX_SPLIT_SIZE = 128 << 20
_DIVISIONS = 8

#: Page sizes of elastic pools that are tried: small ones of host memory, and those of CUDA.
_PAGE_SIZES = (64 << 10, 2 << 20)

#: A difference below this share of a limit is not worth a change.
_WORTH = 0.01


@dataclass(frozen=True, slots=True)
class Policy:
    """An allocator with settings, to replay a program with."""

    name: str
    #: Options of a pool; ``None`` for the model of PyTorch's allocator.
    options: ReplayOptions | None
    max_split_size: int | None = None
    roundup_divisions: int = 0
    expandable_segments: bool = False
    #: The setting that chooses it, for advice.
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """A program under one policy. Amounts are in bytes."""

    policy: Policy
    #: The smallest limit at which nothing was refused, of those that were tried.
    min_limit: int
    #: Whether every lower limit was tried, at steps of ``granularity``.
    complete: bool
    granularity: int
    #: The most bytes reserved at a limit that never binds; without growth at the smallest limit.
    peak_reserved: int
    #: How often a page received memory in the same replay; ``None`` for pools that are not elastic.
    commits: int | None
    ns_per_event: float

    def over(self, peak_live: int) -> float:
        """Return the smallest limit as a multiple of the peak of live bytes, 1 for an empty program."""
        return self.min_limit / peak_live if peak_live else 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A program under several policies."""

    trace: Trace
    rows: tuple[Compared, ...]
    #: The static plan of this very program with the smallest arena that was found.
    plan: Plan

    @property
    def verdict(self) -> tuple[str, ...]:
        """The result of the comparison in sentences with numbers, without settings that the recording already had."""
        peak = self.trace.program.peak_live
        if not peak:
            return ("The program allocates nothing.",)
        best = min(self.rows, key=lambda row: row.min_limit)
        incomplete = self.trace.origin.incomplete
        of_trace = (
            " of this trace, which is incomplete: the program needs at least that" if incomplete else ""
        )
        said = [
            f"{best.policy.name} needs the least: {format_size(best.min_limit)}, {best.over(peak):.3f} times the peak "
            f"of live bytes{of_trace}."
        ]
        plain = {False: self._row("TensorFlow"), True: self._row("PyTorch")}
        advised = {False: 0, True: 0}
        for row in self.rows:
            is_pytorch = row.policy.options is None
            base = plain[is_pytorch]
            saved = base.min_limit - row.min_limit
            worth = saved - advised[is_pytorch] > _WORTH * base.min_limit
            # A setting that saves no more than one before it is not advised.
            if row.policy.setting and worth and not self._is_set(row.policy):
                advised[is_pytorch] = saved
                said.append(
                    f"{row.policy.setting} saves {format_size(saved)} ({100 * saved / base.min_limit:.1f} %) against "
                    f"{base.policy.name}."
                )
        saved = best.min_limit - self.plan.arena
        if saved > _WORTH * best.min_limit:
            said.append(
                f"A static plan of this very program (allotment plan) needs {format_size(self.plan.arena)}: it saves "
                f"{format_size(saved)} ({100 * saved / best.min_limit:.1f} %) against {best.policy.name}."
            )
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name, for JSON."""
        peak = self.trace.program.peak_live
        return {
            "trace": self.trace.path,
            **({} if self.trace.origin.device is None else {"device": self.trace.origin.device}),
            "events": self.trace.program.events,
            "peak_live": peak,
            **self.trace.origin.completeness(),
            "compare": [
                {
                    "policy": row.policy.name,
                    "min_limit": row.min_limit,
                    "over_peak_live": row.over(peak),
                    "complete": row.complete,
                    "granularity": row.granularity,
                    "peak_reserved": row.peak_reserved,
                    "commits": row.commits,
                    "ns_per_event": row.ns_per_event,
                }
                for row in self.rows
            ]
            + [
                {
                    "policy": "plan",
                    "min_limit": self.plan.arena,
                    "over_peak_live": self.plan.arena / peak if peak else 1.0,
                    "complete": self.plan.optimal,
                    "granularity": self.plan.alignment,
                    "peak_reserved": self.plan.arena,
                    "commits": None,
                    "ns_per_event": None,
                }
            ],
            "verdict": list(self.verdict),
        }

    def _row(self, name: str) -> Compared:
        return next(row for row in self.rows if row.policy.name == name)

    def _is_set(self, policy: Policy) -> bool:
        """Whether the recorded allocator had the setting of a policy of PyTorch."""
        settings = self.trace.origin.settings
        divisions = settings.get("roundup_power2_divisions")
        if policy.max_split_size is not None:
            return settings.get("max_split_size", -1) != -1
        if policy.expandable_segments:
            return bool(settings.get("expandable_segments", False))
        return policy.roundup_divisions > 0 and isinstance(divisions, dict) and any(divisions.values())


def policies(options: ReplayOptions) -> tuple[Policy, ...]:
    """Return the policies of a comparison: pools with the other options as given, and PyTorch's allocator."""
    plain = replace(options, growth=True, policy="tensorflow", elastic=False, page_size=None)
    return (
        Policy("TensorFlow", plain),
        Policy("TensorFlow, no growth", replace(plain, growth=False), setting="growth=False"),
        Policy("tight", replace(plain, policy="tight"), setting='policy="tight"'),
        Policy(
            "tight, no growth",
            replace(plain, growth=False, policy="tight"),
            setting='growth=False, policy="tight"',
        ),
        *(
            Policy(
                f"elastic, {format_size(page_size)} pages",
                replace(plain, elastic=True, page_size=page_size),
                setting=f'elastic=True, page_size="{format_size(page_size)}"',
            )
            for page_size in _PAGE_SIZES
        ),
        Policy("PyTorch", None),
        Policy(
            "PyTorch, max_split_size",
            None,
            _MAX_SPLIT_SIZE,
            setting=f"max_split_size_mb:{_MAX_SPLIT_SIZE >> 20}",
        ),
        Policy("PyTorch, roundup", None, None, _DIVISIONS, setting=f"roundup_power2_divisions:{_DIVISIONS}"),
        Policy("PyTorch, expandable", None, expandable_segments=True, setting="expandable_segments:True"),
    )


def compare(
    trace: Trace,
    options: ReplayOptions | None = None,
    *,
    seconds: float = 60.0,
    progress: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Replay a program under each policy, find the smallest limit of each, and search for a static plan.

    Args:
        trace: The recorded program.
        options: Options of the pools; limit, growth, policy and pages are ignored.
        seconds: The most seconds that the searches take together.
        progress: Called with the number of policies done and of all, the plan among them.

    Raises:
        TraceError: A pool or the model of PyTorch's allocator refuses a request at every limit.
        ValueError: ``seconds`` is negative.
    """
    if not seconds >= 0:
        raise ValueError(f"seconds must be 0 or more, not {seconds}")
    chosen = policies(options or ReplayOptions())
    rows = []
    for done, policy in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen) + 1)
        share = seconds / (len(chosen) + 1)
        rows.append(
            _pool(trace, policy, policy.options, share) if policy.options else _caching(trace, policy, share)
        )
    if progress is not None:
        progress(len(chosen), len(chosen) + 1)
    plan = search_plan(trace.program, seconds=seconds / (len(chosen) + 1))
    return Comparison(trace, tuple(rows), plan)


def _pool(trace: Trace, policy: Policy, options: ReplayOptions, seconds: float) -> Compared:
    """Return the limits that a program needs in a pool under a policy."""
    settings = asdict(options)
    del settings["limit"]
    granularity = max(_granularity(trace), options.limit_step)
    try:
        limits = find_limits(trace.program, granularity=granularity, seconds=seconds, **settings)
    except ValueError as error:
        raise TraceError(f"{trace.path}: {error}") from error
    limit = _AMPLE if options.growth else max(limits.min_limit, 1)
    result = replay(trace.program, limit=limit, **settings)
    return Compared(
        policy,
        limits.min_limit,
        # Untried limits may lie above, in the range in which the search looks for a safe limit.
        limits.untried is None or limits.untried[0] > limits.min_limit,
        granularity,
        result.stats.peak_reserved,
        result.stats.num_commits if options.elastic else None,
        result.ns_per_event,
    )


def _caching(trace: Trace, policy: Policy, seconds: float) -> Compared:
    """Return the limits that a program needs in the model of PyTorch's allocator."""

    def run(limit: int) -> CachingReplay:
        return replay_model(trace, policy, limit)

    ample = run(_AMPLE)
    if ample.refused:
        raise TraceError(
            f"{trace.path}: {policy.name}: the model of PyTorch's allocator refuses a request at every limit: its "
            "segments have at most 1 PiB of addresses; --sweep and --min-limit take this trace"
        )
    step = max(_SEGMENT_STEP, _granularity(trace) // _SEGMENT_STEP * _SEGMENT_STEP)
    end = time.monotonic() + seconds
    # At the peak of an ample limit every decision is the same, but for the length of expandable segments.
    limit, complete = ample.peak_reserved, True
    while run(limit).refused:
        limit += step
    for lower in range(-(-trace.program.peak_live // step) * step, limit, step):
        if run(lower).refused == 0:
            limit = lower
            break
        if time.monotonic() > end:
            complete = False
            break
    return Compared(policy, limit, complete, step, ample.peak_reserved, None, ample.ns_per_event)


def replay_model(trace: Trace, policy: Policy, limit: int) -> CachingReplay:
    """Replay a program in the model of PyTorch's allocator with the settings of a policy."""
    return replay_caching(
        trace.program,
        limit=limit,
        stream=trace.stream,
        max_split_size=policy.max_split_size,
        roundup_divisions=policy.roundup_divisions,
        expandable_segments=policy.expandable_segments,
    )


def _granularity(trace: Trace) -> int:
    """Return the step between limits: 64 KiB, more for programs that are large."""
    step = 64 << 10
    while step * 4096 < trace.program.peak_live:
        step *= 2
    return step
