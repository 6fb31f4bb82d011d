"""Formats measurements as a table."""

import io
import shutil
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allotment._core import one_line
from allotment.cli.bench.measure import LeftOut, Measured

#: Columns of the text where no terminal says its width.
_WIDTH = 120


def render(machine: str, found: Sequence[Measured], left_out: Sequence[LeftOut], stream: TextIO) -> str:
    """Format measurements as text for ``stream``."""
    width = max((len(result.allocator) for one in found for result in one.results), default=0)
    tables = [(one.name, _table(one, width, has_header=number == 0)) for number, one in enumerate(found)]
    notes = [
        "ns: nanoseconds of an event (an allocation or a free) of one thread, of a pair in calls from Python and on "
        "GPUs; the median of all rounds. spread: half the distance between the quartiles. times the first: the median "
        "of the ratios to the first allocator in the same round. No block is written to.",
        *(f"left out: {one.allocator}: {one_line(one.reason)}" for one in left_out),
    ]
    is_terminal = stream.isatty()
    output = io.StringIO()
    console = Console(
        file=output,
        width=shutil.get_terminal_size().columns if is_terminal else _WIDTH,
        force_terminal=is_terminal,
        legacy_windows=False,
    )
    console.print(Text(one_line(machine)))
    for name, table in tables:
        console.print()
        console.print(Text(one_line(name), style="bold"))
        console.print(table)
    console.print()
    for note in notes:
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def _table(one: Measured, width: int, *, has_header: bool) -> Table:
    """Return the figures of a workload; tables with the same width of names have their columns below each other."""
    table = Table(box=None, pad_edge=False, show_header=has_header, padding=(0, 2, 0, 0))
    table.add_column("allocator", min_width=width, overflow="fold")
    for heading, least in (("ns", 9), ("spread", 7), ("times the first", 15), ("rounds", 6)):
        table.add_column(heading, justify="right", min_width=least, no_wrap=True)
    for result in one.results:
        figures = ("refused", "", "", "")
        if result.ns is not None:
            figures = (
                f"{result.ns:,.1f}",
                "" if result.spread is None else f"± {result.spread:.0%}",
                "" if result.ratio is None else f"{result.ratio:.2f}",
                str(one.rounds),
            )
        # Texts, as a name may have what is markup to rich.
        table.add_row(Text(result.allocator), *figures)
    return table
