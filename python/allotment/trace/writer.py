"""Writes traces as ``.npz`` files: columns that NumPy alone can read."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from allotment._core import Program
from allotment.trace.files import replace_file
from allotment.trace.journal import LIVE_BEFORE, Events, read_journal_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


#: Columns that readers use, and the largest number in them.
_WHOLE, _MOST = ("op", "id", "size", "t_ns", "thread", "tag"), (1 << 63) - 1


def write_trace(
    path: str | os.PathLike[str],
    op: "ArrayLike",
    id: "ArrayLike",  # noqa: A002 - the column's name
    size: "ArrayLike",
    *,
    t_ns: "ArrayLike | None" = None,
    thread: "ArrayLike | None" = None,
    tag: "ArrayLike | None" = None,
    tags: Sequence[str] = (),
    name: str | None = None,
    header: Mapping[str, Any] | None = None,
    **columns: "ArrayLike",
) -> None:
    """Write a trace, atomically. :func:`read_trace` reads it, as does NumPy alone.

    Args:
        path: The file's exact name; no suffix is added. An existing file is replaced.
        op: 1 for an allocation, 2 for a free, shape (events,), as all columns.
        id: Number of the block; a free has that of its allocation.
        size: Bytes requested; a free repeats them.
        t_ns: Nanoseconds since the first event.
        thread: Number of the thread that made the call.
        tag: Who made the allocation, as an index of ``tags``; -1 for unknown.
        tags: Texts of owners: a name, or a stack with a frame in each line, ``file:line name``, the innermost first.
        name: Name of the program.
        header: Further entries of the header, which must be JSON. Counts of events and bytes are added to it.
        columns: Further columns, which readers ignore.

    Raises:
        ValueError: An event makes no sense, such as a free without an allocation; columns differ in length; one
            that readers use has other entries than whole numbers; or a tag is not an index of ``tags``.
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    # The import takes longer than the replay of a small trace.
    import numpy as np

    given = {"op": op, "id": id, "size": size, "t_ns": t_ns, "thread": thread, "tag": tag, **columns}
    arrays = {key: np.asarray(value) for key, value in given.items() if value is not None}
    arrays |= {key: _whole(key, arrays[key]) for key in _WHOLE if key in arrays}
    whole = [np.ascontiguousarray(arrays[key], np.int64) for key in ("op", "id", "size")]
    program = Program(*(one.data for one in whole))
    wrong = [key for key, value in arrays.items() if value.shape[:1] != whole[0].shape]
    if wrong:
        raise ValueError(f"column {wrong[0]} has shape {arrays[wrong[0]].shape}, not one entry an event")
    if tag is None and tags:
        raise ValueError("tags needs the column tag, which says the tag of each event")
    if tag is not None:
        outside = arrays["tag"][(arrays["tag"] < -1) | (arrays["tag"] >= len(tags))]
        if outside.size:
            raise ValueError(
                f"tag {outside[0]} is neither -1 nor an index of tags, which has length {len(tags)}"
            )
    allocated = whole[2][whole[0] == 1]
    facts = {
        **({} if name is None else {"name": name}),
        "events": len(whole[0]),
        "allocs": len(allocated),
        "frees": len(whole[0]) - len(allocated),
        "peak_live_bytes": program.peak_live,
        "total_alloc_bytes": int(allocated.sum()),
        **({} if tag is None else {"owners": len(tags)}),
        **(header or {}),
    }
    arrays |= {"op": whole[0].astype(np.int8), "id": whole[1], "size": whole[2]}
    members = {"header": np.array(json.dumps(facts)), **arrays}
    if tag is not None:
        members["tags"] = _texts(tags)
    _save(os.fspath(path), members)


def _whole(name: str, column: "NDArray[Any]") -> "NDArray[Any]":
    """Return a column of whole numbers, as readers take it."""
    import numpy as np

    if column.ndim == 1 and not column.size:
        # NumPy makes floats of an empty list.
        return column.astype(np.int64)
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise ValueError(
            f"column {name} must be whole numbers in one dimension, is {column.dtype} of shape {column.shape}"
        )
    if int(column.max()) > _MOST:
        raise ValueError(f"column {name} has the number {column.max()}; numbers are at most {_MOST}")
    return column


def write_events(path: str, events: Events) -> None:
    """Write a recording's events as an ``.npz``, atomically.

    Beside the usual columns it has ``pool``, ``thread`` and ``tag`` (an index of ``tags``, a JSON list of texts; -1 for
    none), and ``refused_at`` (the event that a refusal comes before), ``refused_size`` and ``refused_pool``. Numbers of
    blocks are unique among the pools. Allocations from before the events of a ring are the first ones; the header has
    their number as ``live_before``.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    import numpy as np

    rows = events.rows
    is_refusal = rows["op"] == 3
    kept, refused = rows[~is_refusal], rows[is_refusal]
    numbers = sorted(events.pools)
    index = {number: place for place, number in enumerate(numbers)}
    pool = np.array([index[number] for number in kept["pool"].tolist()], np.int32)
    facts = {
        **({"name": events.pools[numbers[0]]} if len(numbers) == 1 else {}),
        "recorder": "allotment",
        "pools": [events.pools[number] for number in numbers],
        "events": len(kept),
        "lost": events.lost,
        "live_before": events.live_before,
        **({"error": events.error, "unwritten": events.unwritten} if events.error else {}),
    }
    members = {
        "header": np.array(json.dumps(facts)),
        "t_ns": kept["t_ns"],
        "op": np.where(kept["op"] == LIVE_BEFORE, 1, kept["op"]).astype(np.int8),
        "id": kept["id"] * max(len(numbers), 1) + pool,
        "size": kept["size"],
        "thread": kept["thread"],
        "pool": pool,
        "tag": kept["tag"],
        "tags": _texts(events.tags),
        "refused_at": np.cumsum(~is_refusal)[is_refusal],
        "refused_size": refused["size"],
        "refused_pool": np.array([index[number] for number in refused["pool"].tolist()], np.int32),
    }
    _save(path, members)


def finish_journal(path: str) -> None:
    """Turn a recording's journal into an ``.npz``, atomically; leave any other file as it is.

    Raises:
        OSError: The file cannot be read or written.
    """
    events = read_journal_of(path)
    # Another program may have put a file there.
    if events is not None:
        write_events(path, events)


def _texts(texts: Sequence[str]) -> "NDArray[np.bytes_]":
    """Return texts as one JSON list: an array of texts would give each of them the length of the longest."""
    import numpy as np

    return np.array(json.dumps(list(texts)).encode())


def _save(path: str, members: Mapping[str, Any]) -> None:
    import numpy as np

    def write(file: IO[bytes]) -> None:
        np.savez_compressed(file, allow_pickle=False, **members)

    replace_file(path, write)
