"""Data files of heaptrack, as its ``heaptrack_print`` and ``heaptrack_gui`` read them.

A line starts with the kind of its entry; numbers are hexadecimal and count from 1. The layout is that of
``src/interpret`` and ``src/analyze/accumulatedtracedata.cpp`` in heaptrack's source: strings (``s``), instruction
pointers (``i``: address, module, then function, file and line), nodes of the call tree (``t``: pointer, parent), kinds
of allocations (``a``: bytes, node), and then events: ``+`` and ``-`` with a kind, ``c`` with a time in milliseconds.
"""

from collections.abc import Iterator, Sequence

from allotment._core import one_line
from allotment.trace.exports.frames import Frame
from allotment.trace.exports.replayed import Output, ReplayedProgram, pieces

#: Versions of heaptrack and of its files.
_HEADER = b"v 10400 2\n"

_PAGE_BYTES = 4096


class _Writer:
    """Numbers what has been written so far."""

    def __init__(self, program: ReplayedProgram) -> None:
        self._program = program
        self._strings: dict[str, int] = {}
        self._pointers: dict[str, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._kinds: dict[tuple[int, int], int] = {}
        self._leaves: dict[int, int] = {}
        #: Entries that the next event needs.
        self.entries: list[str] = []

    def kind(self, group: int, size: int) -> int:
        """Return the number of a kind of allocations."""
        key = group, size
        if key not in self._kinds:
            if group not in self._leaves:
                node = 0
                for frame in reversed(self._program.frames(group)):
                    node = self._node(self._pointer(frame), node)
                self._leaves[group] = node
            self.entries.append(f"a {size:x} {self._leaves[group]:x}\n")
            self._kinds[key] = len(self._kinds)
        return self._kinds[key]

    def _node(self, pointer: int, parent: int) -> int:
        key = pointer, parent
        if key not in self._nodes:
            self.entries.append(f"t {pointer:x} {parent:x}\n")
            self._nodes[key] = len(self._nodes) + 1
        return self._nodes[key]

    def _pointer(self, frame: Frame) -> int:
        if frame.text not in self._pointers:
            module, name = self._string(self._program.title), self._string(frame.label)
            place = f" {self._string(frame.file):x} {frame.line:x}" if frame.file else ""
            address = len(self._pointers) + 1
            self.entries.append(f"i {address:x} {module:x} {name:x}{place}\n")
            self._pointers[frame.text] = address
        return self._pointers[frame.text]

    def _string(self, text: str) -> int:
        if text not in self._strings:
            self.entries.append(f"s {one_line(text)}\n")
            self._strings[text] = len(self._strings) + 1
        return self._strings[text]


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write one program."""
    (program,) = programs
    for piece in pieces(_lines(program)):
        file.write(piece)


def _lines(program: ReplayedProgram) -> Iterator[bytes]:
    """Yield the lines of a heaptrack file."""
    yield _HEADER
    yield f"X {one_line(program.title)}\nI {_PAGE_BYTES:x} 0\n".encode("utf-8", "backslashreplace")
    writer = _Writer(program)
    now = 0
    rows = zip(program.change.data, program.group.data, program.times(1_000_000).data, strict=True)
    for change, group, time in rows:
        if not change:
            continue
        kind = writer.kind(group, abs(change))
        if writer.entries:
            yield "".join(writer.entries).encode("utf-8", "backslashreplace")
            writer.entries.clear()
        if time != now:
            now = time
            yield b"c %x\n" % now
        yield b"%c %x\n" % (43 if change > 0 else 45, kind)
    if program.events:
        yield b"c %x\n" % now
