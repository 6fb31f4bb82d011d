"""Profiles in pprof's format: a message ``Profile`` of ``profile.proto``, packed by gzip.

A sample is a stack with six values: number and bytes of all allocations, of the blocks live at the peak, and of those
live at the end. Field numbers are those of ``proto/profile.proto`` in the repository google/pprof.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from allotment.trace.exports.frames import Frame
from allotment.trace.exports.replayed import Output, ReplayedProgram, pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Names and units of a sample's values, in order.
VALUES = (
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
)

#: The value that viewers show first.
_DEFAULT = "peak_space"


class _Tables:
    """Numbers of strings, functions and locations; what is new goes into :attr:`fields`."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {"": 0}
        self.fields: list[bytes] = []
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[str, int] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def location(self, frame: Frame) -> int:
        if frame.text not in self._locations:
            number = self._locations[frame.text] = len(self._locations) + 1
            line = _integer(1, self._function(frame.label, frame.file)) + _integer(2, frame.line)
            self.fields.append(_message(4, _integer(1, number) + _message(4, line)))
        return self._locations[frame.text]

    def _function(self, name: str, file: str) -> int:
        key = name, file
        if key not in self._functions:
            number = self._functions[key] = len(self._functions) + 1
            named, where = self.string(name), self.string(file)
            self.fields.append(
                _message(
                    5, _integer(1, number) + _integer(2, named) + _integer(3, named) + _integer(4, where)
                )
            )
        return self._functions[key]


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write one program."""
    (program,) = programs
    for piece in pieces(_fields(program)):
        file.write(piece)


def _fields(program: ReplayedProgram) -> Iterator[bytes]:
    """Yield the encoded fields of a profile: sample types, samples, then the tables that they refer to."""
    tables = _Tables()
    for name, unit in VALUES:
        yield _message(1, _integer(1, tables.string(name)) + _integer(2, tables.string(unit)))
    thread_key = tables.string("thread")
    for group, thread, values in _samples(program):
        locations = b"".join(_varint(tables.location(frame)) for frame in program.frames(group))
        label = (
            b""
            if thread is None
            else _message(3, _integer(1, thread_key) + _integer(2, tables.string(str(thread))))
        )
        yield _message(2, _message(1, locations) + _message(2, b"".join(map(_varint, values))) + label)
        yield from tables.fields
        tables.fields.clear()
    if program.has_times and program.events:
        yield _integer(10, int(program.times(1)[-1]))
    yield _integer(13, tables.string(f"allotment: {program.title}, {program.events} events"))
    yield _integer(14, tables.string(_DEFAULT))
    for text in tables.strings:
        yield _message(6, text.encode("utf-8", "replace"))


def _samples(program: ReplayedProgram) -> "Iterator[tuple[int, int | None, list[int]]]":
    """Yield group, thread and values of each sample; the thread is ``None`` where the trace has one at most."""
    import numpy as np

    threads = np.zeros(program.events, np.int64)
    if program.columns.thread is not None:
        # A block belongs to the thread that allocated it.
        first = np.where(program.op == 1, np.arange(program.events), program.partner)
        threads = np.asarray(program.columns.thread)[first]
    names, thread = np.unique(threads, return_inverse=True)
    key, place = np.unique(program.group * len(names) + thread, return_inverse=True)
    values = np.zeros((len(VALUES), len(key)), np.int64)
    allocations = program.allocations()
    ends = (program.peak_event + 1, program.events)
    counted: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = [
        (place[allocations], program.change[allocations]),
        *((place[:end], program.change[:end]) for end in ends),
    ]
    for number, (where, change) in enumerate(counted):
        np.add.at(values[2 * number], where, np.sign(change))
        np.add.at(values[2 * number + 1], where, change)
    for number, row in zip(key.tolist(), values.T.tolist(), strict=True):
        if row[0]:
            group, which = divmod(number, len(names))
            yield group, int(names[which]) if len(names) > 1 else None, row


def _varint(number: int) -> bytes:
    """Return a number that is not negative in protobuf's variable length."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _integer(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
