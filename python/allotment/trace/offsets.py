"""Writes the offsets of a replay to a file."""

import numpy as np

from allotment.trace.files import replace_file
from allotment.trace.report import Report


def write_offsets(path: str, report: Report) -> None:
    """Write the offsets of a replay to an ``.npy`` file, atomically.

    Args:
        path: The file's exact name; no suffix is added. An existing file is replaced.
        report: A report of ``replay_trace(..., with_offsets=True)``.

    Raises:
        ValueError: The report has no offsets.
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    offsets = report.offsets
    if offsets is None:
        raise ValueError("the report has no offsets: replay with with_offsets=True")
    replace_file(path, lambda file: np.save(file, offsets, allow_pickle=False))
