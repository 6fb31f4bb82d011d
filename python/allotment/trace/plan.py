"""Static plans: where each block of a recorded program lies, in the smallest arena that a search finds."""

import json
import os
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from allotment._core import Plan, one_line, parse_size
from allotment._core import plan as search
from allotment.trace.error import TraceError
from allotment.trace.files import replace_file
from allotment.trace.formats.archive import Archive
from allotment.trace.formats.npz import read_header, read_numbers
from allotment.trace.reader import Trace, open_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The kind of file in the header of a plan's file, and the version of the format.
_KIND, _VERSION = "allotment plan", 1

#: The most requests of a plan that is read.
_MAX_REQUESTS = 100_000_000


class PlanArrays(NamedTuple):
    """The numbers of a plan, one a request, in the order of the requests."""

    #: Bytes requested.
    size: "NDArray[np.int64]"
    #: When the block starts to live: in plans of traces the event of its allocation.
    start: "NDArray[np.int64]"
    #: The first time at which it no longer lives: the event of its free, or the number of events.
    end: "NDArray[np.int64]"
    #: Where it lies in the arena, in bytes.
    offset: "NDArray[np.int64]"


def plan(
    trace: Trace,
    *,
    alignment: int | str = 256,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, float], object] | None = None,
) -> Plan:
    """Search for the smallest arena that holds the blocks of a recorded program.

    Args:
        trace: The program. Blocks that it never frees live to its end; blocks of zero bytes get no place.
        alignment: Offsets are multiples of this power of two, and sizes are rounded up to it. A pool follows plans with
            256 (default) or more.
        seconds: The search ends after this time, and earlier when no arena is smaller.
        steps: The search ends after this many steps, each about the placing of one block. With enough ``seconds`` the
            same steps find the same plan on every machine; time alone may find another one on each.
        seed: Another number searches in another order.
        progress: Is called now and then with the bytes of the smallest arena so far (0 before the first one), the lower
            bound, and the seconds since the start.

    Raises:
        ValueError: An option is out of range, or the alignment is below one that the trace asks for.
    """
    nbytes = parse_size(alignment)
    needed = trace.origin.settings.get("alignment", 1)
    if isinstance(needed, int) and nbytes < needed:
        raise ValueError(f"alignment {nbytes} is below that of a block of the trace: give {needed} or more")
    return search(trace.program, alignment=nbytes, seconds=seconds, steps=steps, seed=seed, progress=progress)


def plan_arrays(plan: Plan) -> PlanArrays:
    """Return the numbers of a plan as arrays, each of shape (requests,)."""
    import numpy as np

    return PlanArrays(*(np.frombuffer(column, np.int64) for column in plan.packed()))


def write_plan(path: str | os.PathLike[str], plan: Plan, *, name: str | None = None) -> None:
    """Write a plan to an ``.npz`` file, atomically. :func:`read_plan` reads it, as does NumPy alone.

    Args:
        path: The file's exact name; no suffix is added. An existing file is replaced.
        plan: The plan.
        name: Name of the program.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    import numpy as np

    facts = {
        "kind": _KIND,
        "version": _VERSION,
        **({} if name is None else {"name": name}),
        **plan_figures(plan),
    }
    members: dict[str, Any] = {"header": np.array(json.dumps(facts)), **plan_arrays(plan)._asdict()}

    def write(file: IO[bytes]) -> None:
        np.savez_compressed(file, allow_pickle=False, **members)

    replace_file(os.fspath(path), write)


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan that :func:`write_plan` wrote, and check it. That a search proved it optimal is believed.

    Raises:
        TraceError: The file cannot be read, is not a plan, or its numbers are none: two blocks overlap that live at the
            same time, or the arena is not what the header says.
    """
    path = os.fspath(path)
    with open_file(path) as file, Archive(path, file) as archive:
        header = read_header(archive)
        if header.get("kind") != _KIND:
            raise archive.fault(
                "is not a plan, which `allotment plan` and allotment.trace.write_plan write: its header does not say so"
            )
        if header.get("version") != _VERSION:
            raise archive.fault(f"is a plan of version {header.get('version')!r}; version {_VERSION} is read")
        columns = read_numbers(archive, PlanArrays._fields, _MAX_REQUESTS, "requests")
        alignment = header.get("alignment")
        if not isinstance(alignment, int) or isinstance(alignment, bool):
            raise archive.fault(f"header: alignment {alignment!r} is not a number")
        optimal = header.get("optimal")
        if not isinstance(optimal, bool):
            raise archive.fault(f"header: optimal {optimal!r} is neither true nor false")
    problem = None
    try:
        found = Plan(*columns, alignment=alignment, optimal=optimal)
    except ValueError as error:
        problem = str(error)
    if problem is not None:
        raise TraceError(one_line(f"{path}: {problem}"))
    for figure, is_so in plan_figures(found).items():
        said = header.get(figure)
        if said != is_so:
            raise TraceError(
                one_line(f"{path}: header: {figure} is {said!r}, but that of its blocks is {is_so}")
            )
    return found


def plan_figures(plan: Plan) -> dict[str, Any]:
    """Return the figures of a plan by name, for JSON. Amounts are in bytes."""
    return {
        "requests": plan.requests,
        "alignment": plan.alignment,
        "arena": plan.arena,
        "lower_bound": plan.lower_bound,
        "over_lower_bound": plan.arena / plan.lower_bound if plan.lower_bound else 1.0,
        "optimal": plan.optimal,
    }
