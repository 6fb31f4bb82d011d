"""A page for browsers: one file that needs no network, drawn with Bokeh."""

import html
import os
from collections.abc import Sequence
from typing import Any, Final

from allotment._core import format_size, one_line
from allotment.arrays.optional_package import load_package
from allotment.trace.files import replace_file
from allotment.trace.pictures.drawing import Drawing, draw
from allotment.trace.pictures.page_figures import (
    addresses_figure,
    blocks_source,
    fragmentation_figure,
    memory_figure,
    points_source,
    sizes_figure,
)
from allotment.trace.pictures.page_scripts import FORMAT_SIZE, HOLDERS
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions

#: Groups of holders that are listed.
MOST_HOLDERS: Final = 12

_WIDTH: Final = "stretch_width"


def write_page(
    path: str | os.PathLike[str],
    programs: Sequence[Columns],
    options: ReplayOptions | None = None,
    *,
    events: tuple[int, int | None] = (0, None),
) -> list[Drawing]:
    """Replay programs and write a page with their memory over time, atomically; needs the extra ``viz``.

    The page has, for each program, curves of the bytes live, in use and reserved, each block as an area at its address
    over time, fragmentation over time, the holders of the memory at the peak and at any moment that is clicked, and the
    sizes of the requests. It needs no network.

    Args:
        path: The file's exact name. An existing file is replaced.
        programs: The traces, as :func:`read_all_columns` returns them.
        options: Options of the pool.
        events: The first event that is shown, and the first one behind them. All events before are replayed as well.

    Returns:
        What was drawn, for each program.

    Raises:
        ModuleNotFoundError: Bokeh is not installed.
        TraceError: The events are inconsistent.
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    load_package("bokeh", "pages with pictures need", "pip install 'allotment[viz]'")
    from bokeh.embed import file_html
    from bokeh.models import TabPanel, Tabs
    from bokeh.resources import INLINE

    drawings = [draw(columns, options, events=events) for columns in programs]
    bodies = [_program(drawing) for drawing in drawings]
    title = one_line(f"{os.path.basename(programs[0].path)}: device memory")
    if len(bodies) == 1:
        root = bodies[0]
    else:
        root = Tabs(
            tabs=[
                TabPanel(child=body, title=one_line(drawing.columns.origin.device or drawing.title))
                for body, drawing in zip(bodies, drawings, strict=True)
            ],
            sizing_mode=_WIDTH,
        )
    content = file_html(root, resources=INLINE, title=title).encode()
    replace_file(os.fspath(path), lambda file: file.write(content))
    return drawings


def _program(drawing: Drawing) -> Any:
    """Return the layout of one program."""
    from bokeh.layouts import column, row
    from bokeh.models import Div, Range1d

    first, last = drawing.picture.shown
    span = Range1d(first, max(last, first + 1), bounds="auto")
    points, blocks, owners = points_source(drawing), *blocks_source(drawing)
    memory = memory_figure(drawing, points, span)
    addresses = addresses_figure(drawing, blocks, owners, span)
    fragmentation = fragmentation_figure(points, span)
    at_peak = Div(text=_holders_at_peak(drawing), sizing_mode=_WIDTH)
    chosen = Div(
        text="<b>Click</b> on a moment to see who holds the memory then.", name="chosen", sizing_mode=_WIDTH
    )
    for figure in (memory, addresses, fragmentation):
        figure.xaxis.formatter.use_scientific = False
        figure.js_on_event("tap", _on_tap(blocks, points, owners, chosen, drawing))
    return column(
        Div(text=_heading(drawing), sizing_mode=_WIDTH),
        memory,
        addresses,
        fragmentation,
        row(at_peak, chosen, sizing_mode=_WIDTH),
        sizes_figure(drawing),
        sizing_mode=_WIDTH,
    )


def _heading(drawing: Drawing) -> str:
    """Return the summary above the pictures as HTML."""
    result, columns = drawing.picture.result, drawing.columns
    first, last = drawing.picture.shown
    facts = [
        f"events {first} to {last} of {len(columns.op)}",
        f"peak live {'at least ' * columns.origin.incomplete}{format_size(drawing.peak_live)}",
        f"peak in use {format_size(result.stats.peak_in_use)}",
        f"peak reserved {format_size(result.stats.peak_reserved)}",
        f"limit {format_size(drawing.options.limit)}",
        f"{result.refused} refused"
        + ("" if result.first_refused is None else f", the first at event {result.first_refused}"),
    ]
    if drawing.picture.shaded:
        facts.append(f"{drawing.picture.shaded} small or short blocks are shown as grey shares of the area")
    notes = [*(f"Missing: {text}" for text in columns.origin.missing)]
    notes += [f"Out of memory in the recording: {one.text}" for one in columns.origin.refusals]
    lines = [f"<b>{html.escape(one_line(drawing.title))}</b>", html.escape("; ".join(facts))]
    return "<br>".join(lines + [html.escape(one_line(note)) for note in notes])


def _on_tap(blocks: Any, points: Any, owners: Any, chosen: Any, drawing: Drawing) -> Any:
    from bokeh.models import CustomJS

    arguments = {
        "blocks": blocks,
        "points": points,
        "owners": owners,
        "chosen": chosen,
        "most": MOST_HOLDERS,
        "shaded": drawing.picture.shaded,
    }
    return CustomJS(args=arguments, code=FORMAT_SIZE + HOLDERS)


def _holders_at_peak(drawing: Drawing) -> str:
    """Return the holders at the peak as HTML, of all blocks."""
    holders = drawing.holders_at_peak()
    cells = [
        f"<tr><td style='text-align:right;padding-right:1em'>{format_size(one.nbytes)}</td>"
        f"<td style='text-align:right;padding-right:1em'>{one.blocks}</td>"
        f"<td style='white-space:pre'>{html.escape(one.name.partition(chr(10))[0])}</td></tr>"
        for one in holders[:MOST_HOLDERS]
    ]
    rest = holders[MOST_HOLDERS:]
    if rest:
        nbytes, blocks = sum(one.nbytes for one in rest), sum(one.blocks for one in rest)
        cells.append(f"<tr><td>{format_size(nbytes)}</td><td>{blocks}</td><td>{len(rest)} others</td></tr>")
    return (
        f"<b>Holders at the peak, event {drawing.picture.peak}</b>"
        f"<table><tr><th>bytes</th><th>blocks</th><th>holder</th></tr>{''.join(cells)}</table>"
    )
