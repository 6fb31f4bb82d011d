"""The trace files in a folder."""

import os
from collections.abc import Iterable

from allotment.trace.error import TraceError
from allotment.trace.reader import is_trace
from allotment.trace.recording import fault


def expand_folders(paths: Iterable[str]) -> list[str]:
    """Return the paths with each folder replaced by the traces in it and in its folders, by name.

    Files that do not begin as a trace does are left out, and hidden ones. Symbolic links to folders are not followed.

    Raises:
        TraceError: A folder has no traces, or cannot be read.
    """
    found = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        failures: list[OSError] = []
        traces = []
        for folder, folders, files in os.walk(path, onerror=failures.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            names = (os.path.join(folder, name) for name in sorted(files) if not name.startswith("."))
            traces += [name for name in names if _begins_as_trace(name)]
        if failures:
            raise fault(failures[0].filename or path, f"cannot be read: {failures[0].strerror}")
        if not traces:
            raise fault(path, "is a folder without traces")
        found += traces
    return found


def _begins_as_trace(path: str) -> bool:
    try:
        return is_trace(path)
    except TraceError:
        return False
