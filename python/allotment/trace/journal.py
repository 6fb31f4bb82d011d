"""The file of a recording in progress: blocks of events, each of which is whole on its own.

A recording ends as an ``.npz``, whose directory comes last. Until then its file is a journal, so that it is readable
when the process is killed: a line with :data:`MAGIC`, then blocks of a length (32 bits), a JSON text of that length,
and rows of :data:`ROW`. `rust/bindings/src/recording/sink.rs` writes it. A length of 0 ends it: the library that is
loaded into other programs maps its file, which is longer than what is written, and counts the rows of its blocks as
they come (`rust/preload/src/journal.rs`).
"""

import errno
import itertools
import json
import os
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC: Final = b"allotment events 1\n"

#: Columns of an event: nanoseconds since the start, number within its pool, bytes; numbers of pool, thread and tag (-1
#: for none); 1 allocates, 2 frees, 3 is a refusal, 4 is an allocation that is live before the first event, as a ring
#: has dropped its own. Rows of 4 come first.
ROW: Final = (
    ("t_ns", "<i8"),
    ("id", "<i8"),
    ("size", "<i8"),
    ("pool", "<i4"),
    ("thread", "<i4"),
    ("tag", "<i4"),
    ("op", "<i4"),
)

#: The ``op`` of an allocation that is live before the first event.
LIVE_BEFORE: Final = 4

_ROW_BYTES: Final = 40
_LENGTH: Final = struct.Struct("<I")


@dataclass(slots=True)
class Events:
    """Recorded events of one or several pools."""

    rows: "NDArray[np.void]"
    #: Texts of the tags, and names of the pools by number.
    tags: list[str] = field(default_factory=list)
    pools: dict[int, str] = field(default_factory=dict)
    #: Number of events that a full buffer dropped.
    lost: int = 0
    #: Whether the recording was ended; if not, the process was killed or still runs.
    ended: bool = True
    #: Milliseconds before the end of the process of which a recording that was not ended may lack events.
    behind_ms: int = 0
    #: The process of a recording that was not ended, 0 if the file does not say.
    pid: int = 0
    #: The system's number of the error for which the file could not be written any further, 0 for none; and the number
    #: of events from then on, 0 if the file does not say.
    error: int = 0
    unwritten: int = 0

    @property
    def live_before(self) -> int:
        """Number of the first rows, those of allocations that are live before the first event."""
        return int((self.rows["op"] == LIVE_BEFORE).sum())


def unpack(rows: bytes) -> "NDArray[np.void]":
    """Return packed events as an array with the columns of :data:`ROW`."""
    import numpy as np

    return np.frombuffer(rows, np.dtype(list(ROW)))


def read_journal(content: bytes) -> Events:
    """Read what a journal has: the last block may be cut off.

    Raises:
        ValueError: A block is damaged; the text names the byte where it starts.
    """
    parts, tags, pools, lost, facts = [], list[str](), dict[int, str](), 0, dict[str, Any]()
    error: object = 0
    at = len(MAGIC)
    while len(content) - at >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(content, at)
        start = at + _LENGTH.size
        if length == 0 or len(content) - start < length:
            break
        facts = _facts(content[start : start + length], at)
        end = start + length + facts["rows"] * _ROW_BYTES
        whole = content[start + length : end]
        parts.append(whole[: len(whole) // _ROW_BYTES * _ROW_BYTES])
        tags += facts["tags"]
        pools |= {int(number): name for number, name in facts["pools"].items()}
        lost = facts["lost"]
        at = end
        error = facts.get("error") or error
    behind, pid, unwritten = (facts.get(key) for key in ("behind_ms", "pid", "unwritten"))
    return Events(
        unpack(b"".join(parts)),
        tags,
        pools,
        lost,
        ended=facts.get("ended") is True,
        behind_ms=behind if isinstance(behind, int) else 0,
        pid=pid if isinstance(pid, int) else 0,
        error=error if isinstance(error, int) else 0,
        unwritten=unwritten if isinstance(unwritten, int) else 0,
    )


def empty_journal() -> bytes:
    """Return the beginning of a journal of this process."""
    facts = {"rows": 0, "tags": [], "pools": {}, "lost": 0, "pid": os.getpid()}
    text = json.dumps(facts).encode()
    return MAGIC + _LENGTH.pack(len(text)) + text


def make_journal(path: str) -> str:
    """Make the first of ``path``, ``path.PID``, ``path.PID.2``, ... that is not there; return its name.

    Raises:
        OSError: It cannot be made, or ``path`` is a folder or a device.
    """
    own = f"{path}.{os.getpid()}"
    if os.path.exists(path) and not os.path.isfile(path):
        # Not /dev/full.PID or FOLDER.PID: the path is a mistake.
        raise OSError(errno.EINVAL, "not the path of a regular file, which ALLOTMENT_RECORD must be", path)
    for name in itertools.chain([path, own], (f"{own}.{number}" for number in itertools.count(2))):
        try:
            with open(name, "xb") as file:
                file.write(empty_journal())
            return name
        except FileExistsError:
            pass
    raise AssertionError


def running_process(path: str) -> int | None:
    """Return the process that goes on writing a recording; ``None`` if it has ended, or the file is no journal."""
    try:
        events = read_journal_of(path)
    except (OSError, ValueError):
        return None
    if events is None or events.error:
        return None
    return events.pid if events.pid > 0 and is_running(events.pid) else None


def read_journal_of(path: str) -> Events | None:
    """Return what a journal has; ``None`` if the file is none.

    Raises:
        OSError: The file cannot be read.
        ValueError: A block is damaged.
    """
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        return read_journal(MAGIC + file.read())


def is_running(pid: int) -> bool:
    """Return whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _facts(text: bytes, at: int) -> dict[str, Any]:
    try:
        facts = json.loads(text)
        rows, tags, pools, lost = (facts[key] for key in ("rows", "tags", "pools", "lost"))
        good = isinstance(rows, int) and rows >= 0 and isinstance(lost, int) and isinstance(pools, dict)
        if good and isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
            return {**facts, "rows": rows, "tags": tags, "pools": pools, "lost": lost}
        problem = "its facts have other types"
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = str(error)
    raise ValueError(f"byte {at}: a block of events is damaged: {problem}")
