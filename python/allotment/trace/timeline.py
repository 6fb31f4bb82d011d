"""The memory of a replay after each event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from allotment._core import OutOfMemoryError, Pool
from allotment.trace.files import replace_file
from allotment.trace.recording import Columns
from allotment.trace.report import ReplayOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_HEADER = "event,live,in_use,reserved,refused"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bytes after each event of a replay, shape (events,) each."""

    #: Requested bytes of the blocks that are live, without refused ones.
    live: "NDArray[np.int64]"
    #: Bytes of the chunks in use.
    in_use: "NDArray[np.int64]"
    #: Bytes of all regions.
    reserved: "NDArray[np.int64]"
    #: Whether the event is a request that was refused.
    refused: "NDArray[np.bool_]"


def timeline(columns: Columns, options: ReplayOptions | None = None) -> Timeline:
    """Replay a trace event by event and return the memory after each.

    Takes some microseconds an event: the pool is asked after each.

    Args:
        columns: The trace, as :func:`read_columns` returns it.
        options: Options of the pool. The gap between regions has no effect on these figures beyond that regions are
            not joined.

    Raises:
        TraceError: The events are inconsistent.
    """
    import numpy as np

    options = options or ReplayOptions()
    columns.program()
    figures = np.zeros((3, len(columns.op)), np.int64)
    refused = np.zeros(len(columns.op), np.bool_)
    pool = Pool(
        options.limit,
        growth=options.growth,
        source="address-space",
        trim_on_oom=options.trim_on_oom,
        joins_regions=None if options.elastic else options.joins_regions,
        policy=options.policy,
        elastic=options.elastic,
        page_size=options.page_size,
        collect_garbage=False,
    )
    addresses: dict[int, int] = {}
    for event, (op, block, size) in enumerate(zip(columns.op, columns.id, columns.size, strict=True)):
        if op == 1:
            try:
                addresses[block] = pool.malloc(size)
            except OutOfMemoryError:
                addresses[block] = 0
                refused[event] = True
        else:
            pool.free(addresses.pop(block))
        stats = pool.stats()
        figures[:, event] = stats.requested, stats.in_use, stats.reserved
    live, in_use, reserved = figures
    return Timeline(live, in_use, reserved, refused)


def write_timeline(path: str, found: Timeline) -> None:
    """Write a timeline as a table, atomically: ``event,live,in_use,reserved,refused``, a line for each event.

    Args:
        path: The file's exact name. An existing file is replaced.
        found: What :func:`timeline` returned.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """

    def write(file: IO[bytes]) -> None:
        file.write(f"{_HEADER}\n".encode())
        file.writelines(_lines(found))

    replace_file(path, write)


def write_timelines(path: str, found: "Sequence[tuple[str, Timeline]]") -> None:
    """Write the timelines of several devices as one table, atomically: each line begins with the device.

    Args:
        path: The file's exact name. An existing file is replaced.
        found: The name of each device, and what :func:`timeline` returned.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """

    def write(file: IO[bytes]) -> None:
        file.write(f"device,{_HEADER}\n".encode())
        for device, one in found:
            name = device.replace('"', '""')
            start = f'"{name}",'.encode("utf-8", "surrogatepass")
            file.writelines(start + line for line in _lines(one))

    replace_file(path, write)


def _lines(found: Timeline) -> Iterator[bytes]:
    columns = (found.live, found.in_use, found.reserved, found.refused.astype(int))
    for event, figures in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        yield f"{event},{','.join(map(str, figures))}\n".encode()
