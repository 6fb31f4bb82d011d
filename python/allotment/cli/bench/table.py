"""Formats measurements as a table."""

import io
import shutil
from collections.abc import Sequence
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from allotment._core import one_line
from allotment.cli.bench.measure import LeftOut, Measured

#: Columns of the text where no terminal says its width.
_WIDTH = 120


def render(machine: str, found: Sequence[Measured], left_out: Sequence[LeftOut], stream: TextIO) -> str:
    """Format measurements as text for ``stream``."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("workload", overflow="fold")
    table.add_column("allocator", overflow="fold")
    for heading in ("ns", "spread", "times the first", "rounds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        for number, result in enumerate(one.results):
            first = number == 0
            figures = ("refused", "", "", "")
            if result.ns is not None:
                figures = (
                    f"{result.ns:,.1f}",
                    "" if result.spread is None else f"± {result.spread:.0%}",
                    "" if result.ratio is None else f"{result.ratio:.2f}",
                    str(one.rounds),
                )
            # Texts, as a name may have what is markup to rich.
            name = Text(one_line(one.name) if first else "")
            table.add_row(name, Text(result.allocator), *figures, end_section=number == len(one.results) - 1)
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
    console.print(table)
    for note in notes:
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"
