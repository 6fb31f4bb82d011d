"""Files of Valgrind's Massif, as ``ms_print`` and massif-visualizer read them.

The layout is that of ``massif/ms_main.c`` in Valgrind's source: a header of three lines, then snapshots, of which some
have a tree of what was live. A node of a tree has its children right behind it, indented by one space more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from allotment._core import one_line
from allotment.trace.exports.frames import Frame
from allotment.trace.exports.replayed import Output, ReplayedProgram

#: Most snapshots of a file, as Massif's own option ``--max-snapshots`` has it.
MAX_SNAPSHOTS = 100

#: Every so many snapshots one has a tree, as with Massif's own option ``--detailed-freq``.
_DETAILED = 10

#: Groups with fewer than one byte in so many of the live ones are counted together; Massif's own threshold is 1 %.
_THRESHOLD = 100


@dataclass(slots=True)
class _Node:
    """Live bytes of a frame and of what calls it."""

    frame: Frame | None
    size: int = 0
    callers: dict[str, "_Node"] = field(default_factory=dict)


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write one program."""
    (program,) = programs
    for line in _lines(program):
        file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _lines(program: ReplayedProgram) -> Iterator[str]:
    """Yield the lines of a Massif file: the snapshots of a program in order."""
    # A time in ms is shown as such, and events as instructions, of which Massif counts i.
    times = program.times(1_000_000)
    yield f"desc: allotment, {program.events} events"
    yield f"cmd: {_text(program.title)}"
    yield f"time_unit: {'ms' if program.has_times else 'i'}"
    for number, event in enumerate(_snapshot_events(program)):
        is_peak = event >= 0 and event == program.peak_event
        detailed = is_peak or (number % _DETAILED == _DETAILED - 1)
        yield "#-----------"
        yield f"snapshot={number}"
        yield "#-----------"
        # Without times event 0 is at 1, as the start is at 0.
        yield f"time={0 if event < 0 else int(times[event]) + (not program.has_times)}"
        yield f"mem_heap_B={0 if event < 0 else int(program.live[event])}"
        yield "mem_heap_extra_B=0"
        yield "mem_stacks_B=0"
        yield f"heap_tree={'peak' if is_peak else 'detailed' if detailed else 'empty'}"
        if detailed:
            yield from _tree(program, event)


def _snapshot_events(program: ReplayedProgram) -> list[int]:
    """Return the events after which a snapshot is: the start (-1), the end, the peak, and others at equal distances."""
    steps = min(MAX_SNAPSHOTS - 2, program.events)
    chosen = {-1, *(program.events * step // steps - 1 for step in range(1, steps + 1))}
    return sorted(chosen | {program.peak_event})


def _tree(program: ReplayedProgram, event: int) -> Iterator[str]:
    """Yield the lines of a snapshot's tree: live bytes by the frames that allocated them."""
    root = _Node(None)
    for group, size in enumerate(program.lives(event)[0].tolist()):
        if size:
            node = root
            node.size += size
            for frame in program.frames(group):
                node = node.callers.setdefault(frame.text, _Node(frame))
                node.size += size
    # The stack of a recursive program is deeper than Python's.
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        shown = [one for one in node.callers.values() if one.size * _THRESHOLD >= root.size]
        shown.sort(key=lambda one: -one.size)
        small = [one for one in node.callers.values() if one.size * _THRESHOLD < root.size]
        children = len(shown) + bool(small)
        yield f"{' ' * depth}n{children}: {node.size} {_label(node)}"
        if small:
            rest = _Node(_rest(len(small)), sum(one.size for one in small))
            waiting.append((rest, depth + 1))
        waiting += [(one, depth + 1) for one in reversed(shown)]


def _rest(places: int) -> Frame:
    """Return a frame that stands for groups below the threshold."""
    text = f"in {places} place{'s' * (places != 1)}, below massif's threshold ({100 / _THRESHOLD:.2f}%)"
    return Frame(text, text, "", 0)


def _label(node: _Node) -> str:
    if node.frame is None:
        return "(requests of the trace)"
    place = f" ({node.frame.file}:{node.frame.line})" if node.frame.file else ""
    return _text(f"{node.frame.label}{place}")


def _text(text: str) -> str:
    """Return a text of one line. ``ms_print`` takes what follows a number sign for a comment."""
    return one_line(text).replace("#", "~")
