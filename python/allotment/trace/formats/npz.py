"""Reads recorded allocations from an ``.npz`` file and reports what is invalid in it."""

import json
import re
import sys
from collections.abc import Sequence
from typing import IO, Any

from allotment.trace.formats.archive import Archive, Array
from allotment.trace.recording import Columns

#: Most events that a trace may have. A zip file of a few megabytes can decompress to columns larger than any
#: memory; the longest known recordings have a hundredth of this.
MAX_EVENTS = 100_000_000

#: Most bytes that the column ``header`` may have.
MAX_HEADER_BYTES = 16 << 20

#: Most bytes that the column ``tags`` of a recording may have: stacks are long.
MAX_TAGS_BYTES = 512 << 20

_COLUMNS = ("op", "id", "size")

#: For each most significant byte of a number with sign, the bytes that precede it in a longer number.
_SIGN_BYTES = bytes(128) + b"\xff" * 128


def read_npz(path: str, file: IO[bytes], *, details: bool = False) -> list[Columns]:
    """Read the columns ``op``, ``id`` and ``size`` of an open ``.npz`` file, and the name in its header.

    A recording of :mod:`allotment.trace` has the column ``pool``, too: it is a program for each pool.

    Args:
        path: The file's path, for messages.
        file: The file.
        details: Whether to read ``t_ns`` and ``thread``, too, if they are there.

    Raises:
        TraceError: The file is damaged, or lacks these columns.
    """
    with Archive(path, file) as archive:
        header = read_header(archive)
        op, ids, size = _columns(archive)
        if header.get("recorder") == "allotment" and archive.describe("pool") is not None:
            return _recorded(archive, header, op, ids, size)
        times, threads = (
            _optional(archive, name, len(op)) if details else None for name in ("t_ns", "thread")
        )
        owner, owners = _owners(archive, header, len(op))
        return [
            Columns(
                path,
                header.get("name"),
                op,
                ids,
                size,
                owner=owner,
                owners=owners,
                t_ns=times,
                thread=threads,
            )
        ]


def _owners(
    archive: Archive, header: dict[str, Any], events: int
) -> "tuple[memoryview[int] | None, tuple[str, ...]]":
    """Return the columns ``tag`` and ``tags`` if the header says that they are there: others may have these names."""
    if not isinstance(header.get("owners"), int):
        return None, ()
    owners, owner = _tags(archive), _optional(archive, "tag", events)
    if owner is not None and any(not -1 <= number < len(owners) for number in set(owner)):
        raise archive.fault(
            f"column tag: has a number that is neither -1 nor an index of tags, which has length {len(owners)}"
        )
    return owner, tuple(owners)


def _optional(archive: Archive, name: str, events: int) -> "memoryview[int] | None":
    """Read a column that traces need not have."""
    if archive.describe(name) is None:
        return None
    array = _describe_column(archive, name)
    if array.shape != (events,):
        raise archive.fault(f"column {name}: has {array.shape[0]} entries for {events} events")
    return _numbers(archive, array)


def _recorded(archive: Archive, header: dict[str, Any], *columns: "memoryview[int]") -> list[Columns]:
    """Read the programs of a file that a recording of pools wrote."""
    import numpy as np

    from allotment.trace.journal import LIVE_BEFORE, ROW, Events
    from allotment.trace.recorded import programs

    pool, at, refused_size, refused_pool = (
        _numbers(archive, _describe_column(archive, name))
        for name in ("pool", "refused_at", "refused_size", "refused_pool")
    )
    op, ids, size = (np.asarray(column) for column in columns)
    names, lost = header.get("pools"), header.get("lost")
    lengths = {len(op), len(pool)}, {len(at), len(refused_size), len(refused_pool)}
    if not isinstance(names, list) or not isinstance(lost, int) or any(len(length) > 1 for length in lengths):
        raise archive.fault("is a damaged recording: its header or the lengths of its columns do not fit")
    rows = np.zeros(len(op), np.dtype(list(ROW)))
    rows["op"], rows["id"], rows["size"], rows["pool"] = op, ids, size, np.asarray(pool)
    before = header.get("live_before", 0)  # Early versions wrote none.
    if type(before) is not int or not 0 <= before <= len(rows) or (rows["op"][:before] != 1).any():
        raise archive.fault(
            f"is a damaged recording: its header has live_before {before!r}, which is not a number of first allocations"
        )
    rows["op"][:before] = LIVE_BEFORE
    rows["tag"] = -1
    for name in ("t_ns", "tag", "thread"):
        if (values := _optional(archive, name, len(rows))) is not None:
            rows[name] = np.asarray(values)
    refusals = np.zeros(len(at), rows.dtype)
    refusals["op"], refusals["size"], refusals["pool"] = 3, np.asarray(refused_size), np.asarray(refused_pool)
    places = np.asarray(at)
    if len(places) and not 0 <= places.min() <= places.max() <= len(rows):
        raise archive.fault("column refused_at: names an event that is not there")
    error, unwritten = (header.get(name, 0) for name in ("error", "unwritten"))
    events = Events(
        np.insert(rows, places, refusals),
        _tags(archive),
        dict(enumerate(map(str, names))),
        lost,
        error=error if type(error) is int else 0,
        unwritten=unwritten if type(unwritten) is int else 0,
    )
    return programs(archive.path, events)


def _tags(archive: Archive) -> list[str]:
    """Return the texts of a recording's tags; an array of texts, as early versions wrote, counts as none."""
    array = archive.describe("tags")
    if array is None or array.shape != ():
        return []
    tags = _json(archive, array, MAX_TAGS_BYTES)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise archive.fault("column tags: must be a JSON list of texts")
    return tags


def read_header(archive: Archive) -> dict[str, Any]:
    """Return the header, empty without one. An invalid header is a ``TraceError``."""
    array = archive.describe("header")
    if array is None:
        return {}
    header = _json(archive, array, MAX_HEADER_BYTES)
    name = header.get("name") if isinstance(header, dict) else header
    if not (name is None or isinstance(name, str)) or not isinstance(header, dict):
        raise archive.fault("column header: must be a JSON object whose name is a text")
    return header


def _json(archive: Archive, array: Array, most_bytes: int) -> Any:
    """Return what a column of one JSON text says."""
    column = f"column {array.name}"
    if array.shape != () or array.kind not in "US" or array.nbytes > most_bytes:
        raise archive.fault(f"{column}: must be one text, is {_describe(array)}")
    content = archive.read(array)
    try:
        # NumPy pads texts with zeros.
        if array.kind == "U":
            codec = "utf-32-be" if array.big_endian else "utf-32-le"
            return json.loads(str(content, codec, "surrogatepass").rstrip("\0"))
        return json.loads(content.rstrip(b"\0"))
    except (ValueError, RecursionError) as error:
        raise archive.fault(f"{column}: is not JSON: {error}") from error


def _columns(archive: Archive) -> "list[memoryview[int]]":
    return read_numbers(archive, _COLUMNS, MAX_EVENTS, "events")


def read_numbers(archive: Archive, names: Sequence[str], most: int, what: str) -> "list[memoryview[int]]":
    """Return columns of whole numbers that all have the same length, at most ``most``.

    Raises:
        TraceError: A column is missing or is something else, or they differ in length.
    """
    arrays = [_describe_column(archive, name, names) for name in names]
    # The headers of all columns are read before any numbers, so that a column that is too long takes no memory.
    if len({array.shape for array in arrays}) > 1:
        lengths = ", ".join(f"{array.name} has {array.shape[0]}" for array in arrays)
        raise archive.fault(f"the columns differ in length: {lengths}")
    if arrays[0].shape[0] > most:
        raise archive.fault(f"has {arrays[0].shape[0]} {what}; at most {most} are read")
    return [_numbers(archive, array) for array in arrays]


def _describe_column(archive: Archive, name: str, names: Sequence[str] = _COLUMNS) -> Array:
    array = archive.describe(name)
    if array is None:
        what = "a trace" if names == _COLUMNS else "such a file"
        raise archive.fault(f"column {name}: is missing; {what} has {', '.join(names)}")
    if len(array.shape) != 1 or array.kind not in "iu":
        raise archive.fault(f"column {name}: must be whole numbers in one dimension, is {_describe(array)}")
    return array


def _describe(array: Array) -> str:
    return f"{array.type_name} of shape {array.shape}"


def _numbers(archive: Archive, array: Array) -> "memoryview[int]":
    """Read whole numbers of any length and byte order as 64-bit signed integers, without NumPy."""
    data, width = archive.read(array), array.itemsize
    if array.kind == "i" and width == 8 and array.big_endian == (sys.byteorder == "big"):
        return memoryview(data).cast("q")
    # One sequence for each byte of a number, the least significant first.
    parts = [data[place::width] for place in range(width)]
    if array.big_endian:
        parts.reverse()
    if array.kind == "i":
        parts += [parts[-1].translate(_SIGN_BYTES)] * (8 - width)
    elif width == 8 and (large := re.search(rb"[\x80-\xff]", parts[-1])) is not None:
        event = large.start()
        number = int.from_bytes(bytes(part[event] for part in parts), "little")
        place = f"column {array.name}: event {event}"
        raise archive.fault(f"{place}: {number} is more than 64 bits with sign can hold")
    numbers = bytearray(8 * array.shape[0])
    places = range(8) if sys.byteorder == "little" else range(7, -1, -1)
    for start, part in zip(places, parts, strict=False):
        numbers[start::8] = part
    return memoryview(numbers).cast("q")
