"""The figures of a page, drawn with Bokeh, and their data."""

import json
from typing import Any, Final

from allotment._core import format_size
from allotment.trace.pictures.drawing import POINT_COLUMNS, Drawing
from allotment.trace.pictures.groups import blocks_of
from allotment.trace.pictures.page_scripts import FORMAT_SIZE, OWNER, SIZE

#: Bytes of all owners' texts that a page has: those of the most blocks.
MAX_OWNER_BYTES: Final = 4 << 20

#: Refused requests that are marked one by one.
MAX_REFUSALS: Final = 2000

_NO_ROOM: Final = "(the page has no room for this owner's text)"
_TOOLS: Final = "pan,box_zoom,wheel_zoom,xwheel_zoom,reset,save"
_WIDTH: Final = "stretch_width"


def points_source(drawing: Drawing) -> Any:
    """Return the curves as a source of data."""
    import numpy as np
    from bokeh.models import ColumnDataSource

    points = np.frombuffer(drawing.picture.points, np.int64).reshape(-1, POINT_COLUMNS)
    event, least, live, in_use, reserved, free, largest = points.T.astype(np.float64)
    return ColumnDataSource(
        {
            "event": event,
            "least_live": least,
            "live": live,
            "in_use": in_use,
            "reserved": reserved,
            "fragmentation": (free - largest) / np.maximum(free, 1),
        }
    )


def blocks_source(drawing: Drawing) -> tuple[Any, Any]:
    """Return the blocks as a source of data, and another one with the texts of their groups."""
    import numpy as np
    from bokeh.models import ColumnDataSource

    blocks = blocks_of(drawing)
    source = ColumnDataSource(
        {
            "left": blocks.left.astype(np.int32),
            "right": blocks.right.astype(np.int32),
            "bottom": blocks.offset.astype(np.float64),
            "top": (blocks.offset + blocks.size).astype(np.float64),
            "start": blocks.start.astype(np.int32),
            "end": blocks.end.astype(np.int32),
            "size": blocks.size.astype(np.float64),
            "requested": blocks.requested.astype(np.float64),
            "group": blocks.group,
            "color": blocks.color,
        }
    )
    counts = np.bincount(blocks.group, minlength=len(blocks.texts)).tolist()
    # A source, so that the page has the texts once.
    return source, ColumnDataSource({"text": _with_room(blocks.texts, counts)})


def _with_room(texts: list[str], counts: list[int]) -> list[str]:
    """Leave out texts of the fewest blocks if all together are too long for a page."""
    kept, nbytes = [_NO_ROOM] * len(texts), 0
    for number in sorted(range(len(texts)), key=lambda number: -counts[number]):
        nbytes += len(json.dumps(texts[number]))
        if nbytes > MAX_OWNER_BYTES:
            break
        kept[number] = texts[number]
    return kept


def _figure(name: str, title: str, height: int, *, scroll: str = "xwheel_zoom", **options: Any) -> Any:
    from bokeh.plotting import figure

    return figure(
        name=name,
        title=title,
        height=height,
        sizing_mode=_WIDTH,
        tools=_TOOLS,
        active_scroll=scroll,
        output_backend="webgl",
        # Up to this number all glyphs are drawn while a picture moves.
        lod_threshold=40_000,
        **options,
    )


def _label_bytes(figure: Any) -> None:
    """Label the vertical axis with sizes, at multiples of powers of two."""
    from bokeh.models import AdaptiveTicker, CustomJSTickFormatter

    figure.yaxis.ticker = AdaptiveTicker(base=2, mantissas=[1], num_minor_ticks=0, min_interval=1)
    figure.yaxis.formatter = CustomJSTickFormatter(code=f"{FORMAT_SIZE} return format_size(tick);")


def memory_figure(drawing: Drawing, points: Any, span: Any) -> Any:
    """Return the curves of the bytes live, in use and reserved, with the refused requests at the limit."""
    from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, Span

    memory = _figure("memory", "bytes live, in use and reserved", 260, x_range=span)
    _label_bytes(memory)
    curves = []
    for name, text, color in (
        ("reserved", "reserved from the source", "#6f88a8"),
        ("in_use", "in use, in chunks", "#d98a1f"),
        ("live", "live, as requested", "#1f5a8a"),
    ):
        curves.append(memory.step("event", name, source=points, color=color, legend_label=text, mode="after"))
    memory.varea_step(
        "event", "least_live", "live", source=points, color="#1f5a8a", alpha=0.25, step_mode="after"
    )
    refusals = drawing.picture.refusals[:MAX_REFUSALS]
    # The limit is drawn where it matters: a default of 64 GiB would press all curves to the ground.
    if refusals or drawing.options.limit <= 2 * drawing.picture.result.stats.peak_reserved:
        memory.add_layout(
            Span(location=drawing.options.limit, dimension="width", line_color="#b5473c", line_dash="dashed")
        )
    if refusals:
        source = ColumnDataSource(
            {
                "event": [event for event, _ in refusals],
                "at": [float(drawing.options.limit)] * len(refusals),
                "bytes": [nbytes for _, nbytes in refusals],
            }
        )
        marks = memory.scatter(
            "event", "at", source=source, marker="x", size=9, color="#b5473c", legend_label="refused"
        )
        asked = [("refused at event", "@event"), ("asked for", "@bytes{custom}")]
        memory.add_tools(
            HoverTool(renderers=[marks], tooltips=asked, formatters={"@bytes": CustomJSHover(code=SIZE)})
        )
    names = ("live", "in_use", "reserved")
    memory.add_tools(
        HoverTool(
            renderers=[curves[-1]],
            mode="vline",
            tooltips=[
                ("event", "@event"),
                *((name.replace("_", " "), f"@{name}{{custom}}") for name in names),
            ],
            formatters={f"@{name}": CustomJSHover(code=SIZE) for name in names},
        )
    )
    memory.legend.location, memory.legend.click_policy = "top_left", "hide"
    memory.legend.background_fill_alpha = 0.6
    memory.y_range.start = 0
    return memory


def addresses_figure(drawing: Drawing, blocks: Any, owners: Any, span: Any) -> Any:
    """Return the picture of each block as an area at its address over time."""
    import numpy as np
    from bokeh.models import CustomJSHover, HoverTool

    first, last = drawing.picture.shown
    top = max(drawing.picture.top, 1)
    figure = _figure(
        "addresses",
        "blocks by address (distance from the first region's start)",
        460,
        scroll="wheel_zoom",
        x_range=span,
        y_range=(0, top),
    )
    _label_bytes(figure)
    if drawing.picture.shaded:
        share = np.frombuffer(drawing.picture.grid, np.uint8).reshape(drawing.picture.grid_shape)
        # Grey, as opaque as the cell is covered.
        grey = (np.uint32(0x707070) + (share.astype(np.uint32) << 24)).astype(np.uint32)
        figure.image_rgba([grey], x=first, y=0, dw=max(last - first, 1), dh=top)
    quads = figure.quad(
        "left", "right", "top", "bottom", source=blocks, fill_color="color", line_color=None, fill_alpha=0.9,
        hover_fill_alpha=1.0, hover_line_color="black",
    )  # fmt: skip
    size = CustomJSHover(code=SIZE)
    figure.add_tools(
        HoverTool(
            renderers=[quads],
            tooltips="""<div style="white-space:pre-wrap;max-width:60em">@group{custom}
<b>@requested{custom}</b> requested, chunk of @size{custom} at @bottom{custom}
events @start to @end{custom}</div>""",
            formatters={
                "@group": CustomJSHover(args={"owners": owners}, code=OWNER),
                "@requested": size,
                "@size": size,
                "@bottom": size,
                "@end": CustomJSHover(code="return value < 0 ? 'the end' : String(value);"),
            },
        )
    )
    return figure


def fragmentation_figure(points: Any, span: Any) -> Any:
    """Return the picture of the external fragmentation over time."""
    from bokeh.models import HoverTool

    fragmentation = _figure("fragmentation", "external fragmentation", 150, x_range=span, y_range=(0, 1))
    fragmentation.line("event", "fragmentation", source=points, color="#b5473c")
    fragmentation.add_tools(
        HoverTool(tooltips=[("event", "@event"), ("fragmentation", "@fragmentation{0.000}")], mode="vline")
    )
    fragmentation.xaxis.axis_label = "event"
    return fragmentation


def sizes_figure(drawing: Drawing) -> Any:
    """Return the histogram of the sizes of the requests."""
    from bokeh.models import HoverTool

    classes = drawing.size_classes()
    names = [format_size(most) for most, _, _ in classes]
    figure = _figure("sizes", "requests by size, up to", 220, x_range=names or ["none"])
    figure.vbar(x=names, top=[count for _, count, _ in classes], width=0.9, color="#1f5a8a")
    figure.add_tools(HoverTool(tooltips=[("up to", "@x"), ("requests", "@top")]))
    figure.xaxis.major_label_orientation = 0.7
    figure.y_range.start = 0
    return figure
