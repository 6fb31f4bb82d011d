"""Formats replay reports as a table: as wide as the terminal, or plain and uncut without one."""

import io
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allotment._core import Limits, format_size
from allotment.text import one_line
from allotment.trace.report import Report, Search

#: Width in columns without a terminal: more than any table, so that no line is wrapped or cut.
_NO_WIDTH = 1_000_000


def render_table(reports: Sequence[Report], stream: TextIO) -> str:
    """Format reports as text for ``stream``: a single report in full, several with one line each.

    Several reports are printed in full if the terminal is too narrow for the lines. After a search for limits a note
    explains the limits.
    """
    # Not directly to the stream: rich would write to it, and our caller could not handle encoding errors.
    text = io.StringIO()
    if stream.isatty():
        console = Console(file=text, highlight=False, force_terminal=True)
    else:
        # Explicit options, because variables such as FORCE_COLOR would turn colours on in a file.
        console = Console(
            file=text, highlight=False, force_terminal=False, color_system=None, width=_NO_WIDTH
        )
    lines = _summary_table(reports)
    wanted = console.measure(lines, options=console.options.update(width=_NO_WIDTH)).maximum
    if len(reports) > 1 and wanted <= console.width:
        console.print(lines)
    else:
        for number, report in enumerate(reports):
            console.print("\n" * (number > 0), _full_table(report), sep="", end="")
    if (search := reports[0].search) is not None:
        out_of_time = any(report.limits is not None and report.limits.untried for report in reports)
        console.print(Text(_limits_note(search, out_of_time=out_of_time)))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _full_table(report: Report) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    # File names fold; figures are short.
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)

    def line(label: str, text: str, exact: str = "") -> None:
        table.add_row(label, Text(text), exact)

    def amount(label: str, nbytes: int) -> None:
        line(label, format_size(nbytes), f"{nbytes} bytes")

    options, result, stats = report.options, report.result, report.result.stats
    line("trace", one_line(report.trace.path))
    if report.trace.name is not None:
        line("name", one_line(report.trace.name))
    line("events", str(report.trace.program.events))
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
    amount("peak live", report.trace.program.peak_live)
    amount("peak in use", stats.peak_in_use)
    amount("peak reserved", stats.peak_reserved)
    amount("lost inside chunks", report.lost_inside_chunks)
    line("grants", str(stats.num_grants))
    line("regions", f"{stats.num_regions} at the end")
    line("fragmentation", f"{stats.fragmentation:.2f} at the end")
    line("refused", str(result.refused))
    line("first refused", _event(result.first_refused))
    line("time", f"{result.ns_per_event:.1f} ns an event")
    return table


def _summary_table(reports: Sequence[Report]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("trace", overflow="fold")
    limits = ["limit"] if reports[0].limits is None else ["smallest limit", "safe limit", "search"]
    figures = ["events", *limits, "peak live", "peak in use", "peak reserved", "regions", "grants", "refused"]
    for name in [*figures, "first refused", "ns/event"]:
        table.add_column(name, justify="right")
    for report in reports:
        result, stats, found = report.result, report.result.stats, report.limits
        sizes = [report.options.limit] if found is None else [found.min_limit, found.safe_limit]
        table.add_row(
            Text(one_line(report.trace.path)),
            str(report.trace.program.events),
            *map(format_size, sizes),
            *([] if found is None else [_search_state(found)]),
            format_size(report.trace.program.peak_live),
            format_size(stats.peak_in_use),
            format_size(stats.peak_reserved),
            str(stats.num_regions),
            str(stats.num_grants),
            str(result.refused),
            _event(result.first_refused),
            f"{result.ns_per_event:.1f}",
        )
    return table


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
