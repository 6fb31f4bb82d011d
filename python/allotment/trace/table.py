"""Formats replay reports as a table: as wide as the terminal, or plain and uncut without one."""

import os
import shutil
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import click

from allotment._core import Limits, format_size, one_line
from allotment.trace.blocks import counted
from allotment.trace.recording import Origin
from allotment.trace.report import Report, Search

#: Blanks between two columns.
_GAP = "  "

#: Kinds of entries and annotations that are listed.
_MOST_NAMES = 8


def render_table(reports: Sequence[Report], stream: TextIO) -> str:
    """Format reports as text for ``stream``: a single report in full, several with one line each.

    Several reports are printed in full if the terminal is too narrow for the lines. After a search for limits a note
    explains the limits.
    """
    # Without a terminal no line is wrapped or cut.
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    styled = stream.isatty() and os.environ.get("TERM") != "dumb"
    bold: Callable[[str], str] = (lambda text: click.style(text, bold=True)) if styled else str
    lines = _summary_table(reports)
    if len(reports) == 1 or (width is not None and max(map(_cells, lines)) > width):
        lines = []
        for report in reports:
            lines += [""] * bool(lines) + _full_table(report, width, bold)
    else:
        lines[0] = bold(lines[0])
        if any(report.trace.origin.incomplete for report in reports):
            lines.append(">=: the trace is incomplete: the program's peak is at least this one.")
    if (search := reports[0].search) is not None:
        out_of_time = any(report.limits is not None and report.limits.untried for report in reports)
        for line in _limits_note(search, out_of_time=out_of_time).splitlines():
            lines += [line] if width is None else textwrap.wrap(line, width)
    return "\n".join(lines) + "\n"


def _full_table(report: Report, width: int | None, bold: Callable[[str], str]) -> list[str]:
    """Return the lines of a report on one replay."""
    rows: list[tuple[str, str, str]] = []

    def line(label: str, text: str, exact: str = "") -> None:
        rows.append((label, text, exact))

    def amount(label: str, nbytes: int) -> None:
        line(label, format_size(nbytes), counted(nbytes, "byte"))

    options, result, stats = report.options, report.result, report.result.stats
    origin = report.trace.origin
    line("trace", one_line(report.trace.title))
    if report.trace.name is not None:
        line("name", one_line(report.trace.name))
    line("events", str(report.trace.program.events))
    if origin.blocks_at_start:
        line("blocks at start", f"{origin.blocks_at_start}: the first events, by address")
    if origin.streams > 1:
        line("streams", f"{origin.streams}: one pool serves them all")
    if report.limits is None:
        amount("limit", options.limit)
    else:
        amount("smallest limit", report.limits.min_limit)
        amount("safe limit", report.limits.safe_limit)
        line("search", _search_state(report.limits))
    line("growth", "on" if options.growth else "off")
    line("trim on oom", "on" if options.trim_on_oom else "off")
    amount("gap", options.gap)
    line("regions that touch", "joined" if options.joins_regions else "kept apart")
    line("policy", options.policy)
    if options.elastic:
        line("elastic", f"pages of {format_size(options.page_bytes)}")
    if origin.kind not in ("npz", "lifetimes"):
        amount("live at start", origin.live_at_start)
    amount("peak live, at least" if origin.incomplete else "peak live", report.trace.program.peak_live)
    if origin.kind not in ("npz", "lifetimes"):
        amount("live at end", origin.live_at_end)
    if origin.reserved_at_end is not None and origin.recorded_peak_reserved is not None:
        amount("reserved in the file", origin.reserved_at_end)
        amount("its peak in the file", origin.recorded_peak_reserved)
    amount("peak in use", stats.peak_in_use)
    amount("peak reserved", stats.peak_reserved)
    amount("lost inside chunks", report.lost_inside_chunks)
    if options.elastic:
        line("commits", f"{stats.num_commits} pages received memory, from the source or from free pages")
    line("grants", str(stats.num_grants))
    line("regions", f"{stats.num_regions} at the end")
    line("fragmentation", f"{stats.fragmentation:.2f} at the end")
    line("refused", str(result.refused))
    line("first refused", _event(result.first_refused))
    line("time", f"{result.ns_per_event:.1f} ns an event")
    for name, text in _recorded_facts(origin):
        line(name, one_line(text))

    labels = max(len(label) for label, _, _ in rows)
    texts = max(len(text) for _, text, exact in rows if exact)
    exacts = max(len(exact) for _, _, exact in rows)
    lines = []
    for label, text, exact in rows:
        start = bold(label) + " " * (labels - len(label)) + _GAP
        if exact:
            lines.append(f"{start}{text:<{texts}}{_GAP}{exact:>{exacts}}")
            continue
        # Long texts, such as the names of files, are continued in the lines below.
        parts = [text] if width is None else _fold(text, max(width - labels - len(_GAP), 1))
        lines += [start + parts[0], *(" " * labels + _GAP + part for part in parts[1:])]
    return lines


def _recorded_facts(origin: Origin) -> Iterator[tuple[str, str]]:
    """Yield labels and texts of what the file says besides the events: refusals, kinds of entries, what is missing."""
    for refusal in origin.refusals:
        yield "out of memory", refusal.text
    for label, counts in (("other entries", origin.entries), ("annotations", origin.annotations)):
        if counts:
            most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
            named = ", ".join(f"{name} {count}" for name, count in most[:_MOST_NAMES])
            yield label, named + (f", and {len(most) - _MOST_NAMES} more" if len(most) > _MOST_NAMES else "")
    if origin.incomplete:
        yield "incomplete", "the program's peak is at least the peak of this trace"
    for text in origin.missing:
        yield "missing", text


def _summary_table(reports: Sequence[Report]) -> list[str]:
    """Return the lines of a table with a row for each replay."""
    limits = ["limit"] if reports[0].limits is None else ["smallest limit", "safe limit", "search"]
    figures = ["events", *limits, "peak live", "peak in use", "peak reserved", "regions", "grants", "refused"]
    rows = [["trace", *figures, "first refused", "ns/event"]]
    for report in reports:
        result, stats, found = report.result, report.result.stats, report.limits
        sizes = [report.options.limit] if found is None else [found.min_limit, found.safe_limit]
        rows.append(
            [
                one_line(report.trace.title),
                str(report.trace.program.events),
                *map(format_size, sizes),
                *([] if found is None else [_search_state(found)]),
                (">= " if report.trace.origin.incomplete else "")
                + format_size(report.trace.program.peak_live),
                format_size(stats.peak_in_use),
                format_size(stats.peak_reserved),
                str(stats.num_regions),
                str(stats.num_grants),
                str(result.refused),
                _event(result.first_refused),
                f"{result.ns_per_event:.1f}",
            ]
        )
    widths = [max(map(_cells, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join([path + " " * (widths[0] - _cells(path)), *map(str.rjust, figures, widths[1:])])
        for path, *figures in rows
    ]


def _search_state(limits: Limits) -> str:
    if limits.untried is None:
        return "complete"
    first, last = limits.untried
    return f"out of time: {first} to {last} bytes not tried"


def _limits_note(search: Search, *, out_of_time: bool) -> str:
    step = format_size(search.granularity)
    text = (
        f"smallest limit: nothing is refused, and no smaller multiple of {step} serves; a larger one may refuse.\n"
        f"safe limit: from there up to 1.25 times it, nothing is refused at any multiple of {step}.\n"
        "The other figures are of a replay at the smallest limit."
    )
    if out_of_time:
        text += (
            "\nA search was out of time: both limits serve, and smaller ones may do so, too. It is complete with\n"
            "more --seconds or a larger --granularity."
        )
    return text


def _event(number: int | None) -> str:
    return "never" if number is None else f"event {number}"


def _cells(text: str) -> int:
    """Return the number of columns that a terminal uses for ``text``: two for a wide character of East Asia."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _fold(text: str, width: int) -> list[str]:
    """Cut ``text`` into parts of at most ``width`` columns of a terminal, at least one part."""
    parts = [""]
    for character in text:
        if parts[-1] and _cells(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts
