"""JSON of Valgrind's DHAT, version 2, as its viewer ``dh_view.html`` reads it.

The layout is that of ``dhat/dh_main.c`` in Valgrind's source. A program point (``pps``) is a stack with its totals; its
frames are indices of ``ftbl``, where the first entry is the root.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from allotment._core import one_line
from allotment.trace.exports.frames import Frame
from allotment.trace.exports.replayed import Output, ReplayedProgram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Lifetimes below so many units are shown as short.
_SHORT = 500


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write one program."""
    (program,) = programs
    # Without times the unit is an event.
    times = program.times(1000)
    end = int(times[-1]) if program.events else 0
    frames: dict[str, int] = {}
    table = ["[root]"]
    points = list[dict[str, Any]]()
    for point in _points(program, times, end):
        numbers = []
        for frame in program.frames(point.pop("group")):
            if frame.text not in frames:
                frames[frame.text] = len(table)
                table.append(_label(len(table), frame))
            numbers.append(frames[frame.text])
        points.append(point | {"fs": numbers})
    facts = {
        "dhatFileVersion": 2,
        "mode": "heap",
        "verb": "Allocated",
        "bklt": True,
        "bkacc": False,
        "tu": "µs" if program.has_times else "events",
        "Mtu": "s" if program.has_times else "Mevents",
        "tuth": _SHORT,
        "cmd": program.title,
        "pid": 0,
        "te": end,
        "tg": int(times[program.peak_event]) if program.peak_event >= 0 else 0,
        "pps": points,
        "ftbl": table,
    }
    for part in json.JSONEncoder(indent=1).iterencode(facts):
        file.write(part.encode())


def _points(program: ReplayedProgram, times: "NDArray[np.int64]", end: int) -> list[dict[str, Any]]:
    """Return the totals of each group that has an allocation."""
    import numpy as np

    allocations = program.allocations()
    groups = len(program.groups)
    total, blocks, lifetimes, most, most_blocks = np.zeros((5, groups), np.int64)
    where = program.group[allocations]
    np.add.at(total, where, program.change[allocations])
    np.add.at(blocks, where, 1)
    # An allocation that is never freed lives to the end.
    partner = program.partner[allocations]
    ends = np.where(partner < 0, end, times[partner])
    np.add.at(lifetimes, where, ends - times[allocations])
    # The events of a group follow one another, in their order.
    order = np.argsort(program.group, kind="stable")
    order = order[program.change[order] != 0]
    for group, run in groupby(order.tolist(), key=program.group.data.__getitem__):
        events = np.fromiter(run, np.int64)
        live = np.cumsum(program.change[events])
        count = np.cumsum(np.sign(program.change[events]))
        place = live.argmax()
        most[group], most_blocks[group] = live[place], count[place]
    at_peak, at_peak_blocks = program.lives(program.peak_event)
    at_end, at_end_blocks = program.lives(program.events - 1)
    figures = {
        "tb": total,
        "tbk": blocks,
        "tl": lifetimes,
        "mb": most,
        "mbk": most_blocks,
        "gb": at_peak,
        "gbk": at_peak_blocks,
        "eb": at_end,
        "ebk": at_end_blocks,
    }
    return [
        {"group": group} | {name: int(values[group]) for name, values in figures.items()}
        for group in np.flatnonzero(blocks).tolist()
    ]


def _label(number: int, frame: Frame) -> str:
    place = f" ({frame.file}:{frame.line})" if frame.file else ""
    return one_line(f"0x{number:X}: {frame.label}{place}")
