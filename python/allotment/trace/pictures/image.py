"""A picture of a replay as a PNG file, drawn with matplotlib."""

import os
from typing import Any

from allotment._core import format_size, one_line
from allotment.arrays.optional_package import load_package
from allotment.trace.files import replace_file
from allotment.trace.pictures.drawing import POINT_COLUMNS, Drawing, draw
from allotment.trace.pictures.groups import blocks_of
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions

#: Points of each curve, and blocks: more are smaller than a pixel.
_POINTS = 1600
_BLOCKS = 20_000


def write_image(
    path: str | os.PathLike[str],
    columns: Columns,
    options: ReplayOptions | None = None,
    *,
    events: tuple[int, int | None] = (0, None),
) -> Drawing:
    """Replay a trace and write a picture of its memory over time as a PNG, atomically; needs the extra ``viz``.

    Args:
        path: The file's exact name. An existing file is replaced.
        columns: The trace, as :func:`read_columns` returns it.
        options: Options of the pool.
        events: The first event that is shown, and the first one behind them. All events before are replayed as well.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        TraceError: The events are inconsistent.
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    load_package("matplotlib", "pictures need", "pip install 'allotment[viz]'")
    from matplotlib.figure import Figure

    drawing = draw(columns, options, events=events, points=_POINTS, blocks=_BLOCKS)
    figure = Figure(figsize=(12, 9), layout="constrained")
    curves, addresses, fragmentation = figure.subplots(3, height_ratios=(3, 5, 1), sharex=True)
    _draw_curves(drawing, curves, fragmentation)
    _draw_blocks(drawing, addresses)
    first, last = drawing.picture.shown
    curves.set_xlim(first, max(last, first + 1))
    fragmentation.set_xlabel("event")
    figure.suptitle(one_line(drawing.title).replace("$", r"\$"))
    replace_file(os.fspath(path), lambda file: figure.savefig(file, format="png", dpi=110))
    return drawing


def _draw_curves(drawing: Drawing, curves: Any, fragmentation: Any) -> None:
    """Draw the memory over time: reserved, in use, live, and fragmentation."""
    import numpy as np

    points = np.frombuffer(drawing.picture.points, np.int64).reshape(-1, POINT_COLUMNS)
    event, _, live, in_use, reserved, free, largest = points.T
    for values, text, color in (
        (reserved, "reserved from the source", "#c9d6e8"),
        (in_use, "in use, in chunks", "#e8a33d"),
        (live, "live, as requested", "#2b5c8a"),
    ):
        curves.fill_between(event, values, step="post", color=color, label=text, linewidth=0)
    refusals = [at for at, _ in drawing.picture.refusals]
    if refusals:
        limit = drawing.options.limit
        curves.axhline(limit, color="#b5473c", linestyle="dashed", linewidth=1)
        curves.plot(refusals, [limit] * len(refusals), "x", color="#b5473c", label=f"{len(refusals)} refused")
    curves.set_ylim(0, None)
    curves.legend(loc="lower right", fontsize="small")
    _label_bytes(curves)
    fragmentation.step(event, (free - largest) / np.maximum(free, 1), where="post", color="#b5473c")
    fragmentation.set_ylim(0, 1)
    fragmentation.set_ylabel("fragmentation")


def _draw_blocks(drawing: Drawing, axes: Any) -> None:
    """Draw the blocks in memory over time, each by itself or as shades."""
    import numpy as np
    from matplotlib.collections import PolyCollection

    first, last = drawing.picture.shown
    top = max(drawing.picture.top, 1)
    share = np.frombuffer(drawing.picture.grid, np.uint8).reshape(drawing.picture.grid_shape)
    if drawing.picture.shaded:
        extent = (first, max(last, first + 1), 0, top)
        axes.imshow(share, cmap="Greys", vmin=0, vmax=500, origin="lower", aspect="auto", extent=extent)
    blocks = blocks_of(drawing)
    low, high = blocks.offset, blocks.offset + blocks.size
    corners = ((blocks.left, low), (blocks.right, low), (blocks.right, high), (blocks.left, high))
    areas = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    colors = blocks.color.astype(">u4").view(np.uint8).reshape(-1, 4) / 255
    axes.add_collection(PolyCollection(list(areas), facecolors=colors, linewidths=0), autolim=False)
    axes.set_ylim(0, top)
    axes.set_ylabel("distance from the first region's start")
    _label_bytes(axes)


def _label_bytes(axes: Any) -> None:
    """Label the vertical axis with sizes, at multiples of a power of two: 4 to 8 of them."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    most = max(int(axes.get_ylim()[1]), 8)
    axes.yaxis.set_major_locator(MultipleLocator(1 << (most.bit_length() - 3)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda nbytes, _: format_size(max(int(nbytes), 0))))
