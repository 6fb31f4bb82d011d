"""Writes the offsets of a replay to a file."""

import errno
import os
import secrets
from pathlib import Path

import numpy as np

from allotment.trace.report import Report


def write_offsets(path: str, report: Report) -> None:
    """Write the offsets of a replay as an ``.npy`` file at exactly ``path``: whole or not at all.

    Raises:
        OSError: The file cannot be written. What was at ``path`` before is still there.
    """
    if report.offsets is None:
        raise ValueError("the replay was asked for no offsets")
    # Through links, as opening the file would.
    target = Path(os.path.realpath(path))
    if not path or path.endswith(os.sep) or (target.exists() and not target.is_file()):
        # Renaming over a device such as /dev/null would replace the device.
        raise OSError("not the path of a regular file")
    mode = target.stat().st_mode if target.exists() else None
    # Renaming asks for leave to change the folder only; opening would have asked for leave to change the file.
    if mode is not None and not (mode & 0o222 and os.access(target, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # A short name of its own: the target's name may already be as long as names can be.
    unfinished = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with unfinished.open("xb") as file:
            np.save(file, report.offsets, allow_pickle=False)
        if mode is not None:
            unfinished.chmod(mode & 0o7777)
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
