"""Reads traces in tables of comma-separated values: lifetimes of blocks, and RMM's log."""

import csv
import re
from collections import Counter
from collections.abc import Iterator

from allotment.trace.blocks import MAX_BYTES, BlockEvents
from allotment.trace.recording import Columns, Origin, RecordedRefusal, fault

#: Names of columns of lifetimes, by the names that MiniMalloc's converter takes for them.
_LIFETIME_NAMES = {
    "id": "id",
    "buffer": "id",
    "buffer_id": "id",
    "lower": "lower",
    "begin": "lower",
    "start": "lower",
    "upper": "upper",
    "end": "upper",
    "size": "size",
}

#: Optional columns that MiniMalloc reads, which change where a block may lie.
_ALIGNMENT, _GAPS = "alignment", "gaps"

#: The alignment of all addresses of a pool; plans have it by default.
_POOL_ALIGNMENT = 256

#: RMM's columns, in the order that its logging resource adaptor writes.
_RMM = ("Thread", "Time", "Action", "Pointer", "Size", "Stream")

#: Texts of the null pointer.
_NULL = ("(nil)", "nullptr", "null", "")

#: A time of day.
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?")
_DAY = 24 * 3600 * 10**9

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def is_table(first_line: str) -> bool:
    """Whether a file with this first line is a table that is read."""
    names = _names(first_line)
    return set(_RMM) <= set(names) or {_LIFETIME_NAMES.get(name.lower()) for name in names} >= {
        "id",
        "lower",
        "upper",
        "size",
    }


def read_table(path: str, text: str) -> list[Columns]:
    """Read a table. Its first line, which :func:`is_table` accepted, determines the kind.

    Raises:
        TraceError: A line is invalid; the text names it, counted from 1.
    """
    names = _names(text.partition("\n")[0])
    if len(set(names)) != len(names):
        raise fault(path, f"line 1: a column occurs twice: {', '.join(names)}")
    if not set(_RMM) <= set(names):
        return [_read_lifetimes(path, names, _rows(path, text, names))]
    # A program that was killed leaves a line that is cut off: the logger ends each one.
    lines, _, last = text.rpartition("\n")
    is_cut = last.strip() != "" and last.count(",") < len(names) - 1
    return [_read_rmm(path, _rows(path, lines if is_cut else text, names), is_cut=is_cut)]


def _names(first_line: str) -> list[str]:
    return [name.strip() for name in first_line.lstrip("\ufeff").rstrip("\r").split(",")]


def _rows(path: str, text: str, names: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line and its fields by column; blank lines are skipped."""
    lines = csv.reader(text.splitlines()[1:], strict=True)
    try:
        for row in lines:
            number = lines.line_num + 1
            if not row:
                continue
            if len(row) != len(names):
                raise fault(path, f"line {number}: has {len(row)} fields, the first line has {len(names)}")
            yield number, dict(zip(names, map(str.strip, row), strict=True))
    except csv.Error as error:
        raise fault(path, f"line {lines.line_num + 1}: {error}") from error


def _read_lifetimes(path: str, names: list[str], rows: Iterator[tuple[int, dict[str, str]]]) -> Columns:
    """Read blocks that live from one step to another: ``[lower, upper)``, or up to and with the step ``end``."""
    roles = {role: name for name in names if (role := _LIFETIME_NAMES.get(name.lower())) is not None}
    last_step = 1 if roles["upper"].lower() == "end" else 0
    special = {name.lower(): name for name in names if name.lower() in (_ALIGNMENT, _GAPS)}
    alignment = 1
    seen: dict[str, int] = {}
    changes: list[tuple[int, int, int, int]] = []
    for number, row in rows:
        name = row[roles["id"]]
        if name in seen:
            raise fault(path, f"line {number}: {roles['id']} {name!r} occurs in line {seen[name]}, too")
        seen[name] = number
        lower, upper, size = (
            _integer(path, number, roles[role], row[roles[role]]) for role in ("lower", "upper", "size")
        )
        if not 0 <= size <= MAX_BYTES:
            raise fault(path, f"line {number}: size {size} is not between 0 and {MAX_BYTES}")
        upper += last_step
        if lower >= upper:
            raise fault(
                path, f"line {number}: the block ends at step {upper}, which is not after its start {lower}"
            )
        if _GAPS in special and row[special[_GAPS]]:
            raise fault(
                path,
                f"line {number}: {special[_GAPS]} {row[special[_GAPS]]!r}: blocks with memory that others use for a "
                "while cannot be replayed or planned; without the column, each block has its memory from start to end",
            )
        if _ALIGNMENT in special:
            alignment = max(
                alignment, _alignment(path, number, special[_ALIGNMENT], row[special[_ALIGNMENT]])
            )
        # At one step, frees come before allocations, each in the order of the file.
        changes += [(lower, 1, number, size), (upper, 0, number, size)]
    changes.sort()
    events = BlockEvents()
    for _, starts, number, size in changes:
        if starts:
            events.allocate(number, size)
        else:
            events.free(number, size)
    op, ids, sizes, _ = events.columns()
    settings = {_ALIGNMENT: alignment} if alignment > 1 else {}
    return Columns(path, None, op, ids, sizes, origin=Origin("lifetimes", settings=settings))


def _alignment(path: str, line: int, name: str, text: str) -> int:
    """Return the alignment of a block, 1 for an empty field."""
    alignment = _integer(path, line, name, text) if text else 1
    if alignment < 1 or _POOL_ALIGNMENT % alignment:
        raise fault(
            path,
            f"line {line}: {name} {alignment}: blocks have addresses that are multiples of {_POOL_ALIGNMENT}, so that "
            f"powers of two from 1 to {_POOL_ALIGNMENT} are served; without the column, `allotment plan --alignment` "
            "gives all blocks a larger one",
        )
    return alignment


def _read_rmm(path: str, rows: Iterator[tuple[int, dict[str, str]]], *, is_cut: bool) -> Columns:
    """Read the log of RMM's ``logging_resource_adaptor``, of which the last line may have been left out."""
    events, unknown = BlockEvents(), Counter[str]()
    refusals: list[RecordedRefusal] = []
    clock, threads = _Clock(), dict[str, int]()
    for number, row in rows:
        time = clock.nanoseconds(row["Time"])
        thread = threads.setdefault(row["Thread"], len(threads))
        action, size = row["Action"], _integer(path, number, "Size", row["Size"])
        if not 0 <= size <= MAX_BYTES:
            raise fault(path, f"line {number}: Size {size} is not between 0 and {MAX_BYTES}")
        if action == "allocate failure":
            refusals.append(RecordedRefusal(events.events, f"line {number}", size, events.live_bytes))
        elif action in ("allocate", "free"):
            address = _pointer(path, number, row["Pointer"])
            if address == 0:
                continue  # Zero bytes have no block.
            if action == "allocate":
                events.allocate(address, size, row["Stream"], time=time, thread=thread)
            else:
                events.free(address, size, row["Stream"], time, thread)
        else:
            unknown[action] += 1
    missing = events.missing()
    if is_cut:
        missing.append(
            "the last line is cut off and was left out: the program was killed, or the log is in use"
        )
    if unknown:
        missing.append(f"kinds of entries that are not known were left out: {', '.join(sorted(unknown))}")
    before = events.live_before
    origin = Origin(
        "rmm",
        blocks_at_start=len(events.before),
        live_at_start=before,
        live_at_end=before + events.live_bytes,
        streams=events.streams,
        missing=tuple(missing),
        entries=dict(unknown),
        refusals=tuple(
            RecordedRefusal(one.event + len(events.before), one.place, one.requested, before + one.live)
            for one in refusals
        ),
    )
    _, times = events.owners()
    return Columns(
        path,
        None,
        *events.columns(),
        origin,
        t_ns=times if clock.has_times else None,
        thread=events.threads(),
    )


class _Clock:
    """Makes nanoseconds since the first event of times of day, as RMM writes them."""

    def __init__(self) -> None:
        #: Whether every time so far was one.
        self.has_times = True
        self._first: int | None = None
        self._last = 0

    def nanoseconds(self, text: str) -> int:
        """Return the time since the first one. One that is half a day before the last one is of the next day."""
        found = _TIME.fullmatch(text)
        if found is None:
            self.has_times = False
            return self._last
        hours, minutes, seconds = (int(found[part]) for part in (1, 2, 3))
        time = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((found[4] or "").ljust(9, "0"))
        if self._first is None:
            self._first = time
        time -= self._first
        while time < self._last - _DAY // 2:
            time += _DAY
        self._last = time
        return time


def _integer(path: str, line: int, name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise fault(path, f"line {line}: {name} {text!r} is not an integer")
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise fault(path, f"line {line}: {name} {number} is more than 64 bits with sign can hold")
    return number


def _pointer(path: str, line: int, text: str) -> int:
    if text in _NULL:
        return 0
    try:
        return int(text, 16)
    except ValueError:
        raise fault(path, f"line {line}: Pointer {text!r} is not a hexadecimal number") from None
