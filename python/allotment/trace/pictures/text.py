"""What a page shows, as text for terminals, and the same figures for JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from allotment._core import format_size, one_line
from allotment.trace.pictures.drawing import POINT_COLUMNS, Drawing, rows

#: Columns and lines of the curve.
CHART_COLUMNS = 64
_CHART_LINES = 10

#: Groups of holders and refusals that are listed.
_MOST_HOLDERS = 12
_MOST_REFUSALS = 5

#: Characters of the longest bar of a size.
_BAR = 40


def report_text(drawing: Drawing) -> str:
    """Return the report of a replay: memory over time, holders at the peak, sizes, fragmentation, refusals.

    Args:
        drawing: What :func:`draw` returned, with ``points=CHART_COLUMNS``.
    """
    picture, columns, origin = drawing.picture, drawing.columns, drawing.columns.origin
    stats, result = picture.result.stats, picture.result
    at_peak = "" if picture.peak is None else f", event {picture.peak}"
    lines = [
        f"{one_line(drawing.title)}: {len(columns.op)} events, limit {format_size(drawing.options.limit)}",
        f"peak live {'at least ' * origin.incomplete}{_exact(drawing.peak_live)}"
        + (f", of which {_exact(stats.peak_requested)} were served" if result.refused else ""),
        f"peak in use {_exact(stats.peak_in_use)}, peak reserved {_exact(stats.peak_reserved)}",
        f"live at the end {_exact(stats.requested)} in {stats.num_live} blocks",
        "",
        *_chart(drawing),
        "",
        f"holders at the peak{at_peak}, by {'size' if columns.owner is None else 'owner'}",
        *_holders(drawing),
        "",
        "requests by size",
        *_sizes(drawing),
        "",
        f"external fragmentation {stats.fragmentation:.3f} at the end, {_worst_fragmentation(drawing):.3f} at most",
    ]
    lines += _refusals(drawing, result.refused)
    lines += [f"out of memory in the recording: {one_line(one.text)}" for one in origin.refusals]
    lines += [f"missing: {one_line(text)}" for text in origin.missing]
    return "\n".join(lines) + "\n"


def report_figures(drawing: Drawing) -> dict[str, Any]:
    """Return the figures of the report by name, for JSON. Amounts are in bytes."""
    picture, columns = drawing.picture, drawing.columns
    device = columns.origin.device
    return {
        "trace": columns.path,
        **({} if device is None else {"device": device}),
        "events": len(columns.op),
        "limit": drawing.options.limit,
        "peak_live": drawing.peak_live,
        "peak_event": picture.peak,
        "peak_in_use": picture.result.stats.peak_in_use,
        "peak_reserved": picture.result.stats.peak_reserved,
        "refused": picture.result.refused,
        "first_refused": picture.result.first_refused,
        "incomplete": columns.origin.incomplete,
        "missing": list(columns.origin.missing),
        "out_of_memory": [asdict(one) | {"text": one.text} for one in columns.origin.refusals],
        "holders_at_peak": [asdict(one) for one in drawing.holders_at_peak()],
        "sizes": [
            {"up_to": most, "requests": count, "nbytes": nbytes}
            for most, count, nbytes in drawing.size_classes()
        ],
        "curve": [
            {"event": event, "live": live, "in_use": in_use, "reserved": reserved}
            for event, _, live, in_use, reserved, _, _ in rows(picture.points, POINT_COLUMNS)
        ],
    }


def _exact(nbytes: int) -> str:
    return f"{format_size(nbytes)} ({nbytes} bytes)" if nbytes >= 1024 else format_size(nbytes)


def _chart(drawing: Drawing) -> Iterator[str]:
    """Yield the lines of a curve: ``#`` is live, ``-`` reserved above it, each column the most of its events."""
    points = list(rows(drawing.picture.points, POINT_COLUMNS))
    if not points:
        return
    most = max(max(reserved, live) for _, _, live, _, reserved, _, _ in points) or 1
    first, last = drawing.picture.shown
    yield "memory over time: # live, - reserved"
    labels = {_CHART_LINES: format_size(most), _CHART_LINES // 2: format_size(most // 2)}
    width, wide = max(map(len, labels.values())), CHART_COLUMNS // len(points)
    for line in range(_CHART_LINES, 0, -1):
        # A column reaches a line if it has more than the line below it.
        below = most * (line - 1) // _CHART_LINES
        cells = (
            ("#" if live > below else "-" if reserved > below else " ") * wide
            for _, _, live, _, reserved, _, _ in points
        )
        yield f"{labels.get(line, ''):>{width}} |{''.join(cells)}".rstrip()
    yield f"{0:>{width}} +{'-' * wide * len(points)}"
    start = f"event {first}"
    yield " " * (width + 2) + start + f"{last - 1}".rjust(max(wide * len(points) - len(start), 2))


def _holders(drawing: Drawing) -> Iterator[str]:
    holders = drawing.holders_at_peak()
    for one in holders[:_MOST_HOLDERS]:
        name = one_line(one.name.partition("\n")[0])
        yield f"  {format_size(one.nbytes):>12}  {one.blocks:>8}  {name}"
    if rest := holders[_MOST_HOLDERS:]:
        nbytes, blocks = sum(one.nbytes for one in rest), sum(one.blocks for one in rest)
        yield f"  {format_size(nbytes):>12}  {blocks:>8}  {len(rest)} others"


def _sizes(drawing: Drawing) -> Iterator[str]:
    classes = drawing.size_classes()
    most = max((count for _, count, _ in classes), default=1)
    for up_to, count, nbytes in (one for one in classes if one[1]):
        bar = "#" * -(-_BAR * count // most)
        yield f"  up to {format_size(up_to):>8}  {count:>8}  {format_size(nbytes):>12}  {bar}".rstrip()


def _worst_fragmentation(drawing: Drawing) -> float:
    """Return the highest fragmentation after the events that end the columns of the curve."""
    shares = [
        (free - largest) / free for *_, free, largest in rows(drawing.picture.points, POINT_COLUMNS) if free
    ]
    return max(shares, default=0.0)


def _refusals(drawing: Drawing, refused: int) -> Iterator[str]:
    if not refused:
        yield "nothing was refused"
        return
    shown = drawing.picture.refusals[:_MOST_REFUSALS]
    for event, nbytes in shown:
        yield f"refused at event {event}: {_exact(nbytes)}"
    if refused > len(shown):
        yield f"refused in all: {refused}"
