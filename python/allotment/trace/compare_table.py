"""Formats comparisons and sweeps as tables."""

from collections.abc import Sequence

from allotment._core import format_size, one_line
from allotment.trace.compare import Comparison
from allotment.trace.reader import Trace
from allotment.trace.sweep import Sweep

_GAP = "  "


def render_comparisons(comparisons: Sequence[Comparison]) -> str:
    """Format comparisons as text: a table and sentences for each."""
    parts = []
    for comparison in comparisons:
        peak = comparison.trace.program.peak_live
        rows = [["policy", "smallest limit", "over peak live", "peak reserved", "commits", "ns/event"]]
        for row in comparison.rows:
            limit = ("" if row.complete else "<= ") + format_size(row.min_limit)
            rows.append(
                [
                    row.policy.name,
                    limit,
                    f"{row.over(peak):.3f}",
                    format_size(row.peak_reserved),
                    "-" if row.commits is None else str(row.commits),
                    f"{row.ns_per_event:.1f}",
                ]
            )
        arena = format_size(comparison.plan.arena)
        rows.append(
            [
                "plan",
                arena if comparison.plan.optimal else f"<= {arena}",
                f"{comparison.plan.arena / peak if peak else 1:.3f}",
                arena,
                "-",
                "-",
            ]
        )
        title = f"{one_line(comparison.trace.title)}: {comparison.trace.program.events} events"
        lines = [f"{title}, {_peak(comparison.trace)}", "", *_aligned(rows), "", *comparison.verdict]
        lines += comparison.trace.origin.incomplete_lines()
        lines.append(
            "ns/event of PyTorch's rows is the time of a model of its allocator, not of the allocator."
        )
        lines.append("commits: how often a page of an elastic pool received memory.")
        if not all(row.complete for row in comparison.rows):
            lines.append("<=: the time did not suffice to try every lower limit; more --seconds do.")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def render_sweeps(sweeps: Sequence[Sweep]) -> str:
    """Format sweeps as text: a line for each limit, with the refusals of each policy."""
    parts = []
    for sweep in sweeps:
        rows = [["limit", *(policy.name for policy in sweep.policies)]]
        rows += [
            [format_size(limit), *map(str, refused)]
            for limit, refused in zip(sweep.limits.tolist(), sweep.refused.T.tolist(), strict=True)
        ]
        title = f"{one_line(sweep.trace.title)}: refused requests, {_peak(sweep.trace)}"
        parts.append("\n".join([title, "", *_aligned(rows), *sweep.trace.origin.incomplete_lines()]) + "\n")
    return "\n".join(parts)


def _peak(trace: Trace) -> str:
    at_least = "at least " if trace.origin.incomplete else ""
    return f"peak live {at_least}{format_size(trace.program.peak_live)}"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]) for first, *others in rows
    ]
