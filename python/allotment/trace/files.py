"""Writes files atomically."""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def replace_file(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file under a new name beside ``path``, then rename it: ``path`` has the old content or the new one.

    Args:
        path: The file's exact name; no suffix is added. An existing file is replaced and keeps its permissions.
        write: Writes the content.

    Raises:
        OSError: The file cannot be written. A file that was at ``path`` before is unchanged.
    """
    # Follow symbolic links, as opening the file would.
    target = Path(os.path.realpath(path))
    if not path or path.endswith(os.sep) or (target.exists() and not target.is_file()):
        # Renaming over a device such as /dev/null would replace the device.
        raise OSError(errno.EINVAL, "not the path of a regular file", path)
    mode = target.stat().st_mode if target.exists() else None
    # Renaming needs write permission for the folder only; opening the file would have needed it for the file.
    if mode is not None and not (mode & 0o222 and os.access(target, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    # A new short name: the target's name may already have the maximum length.
    unfinished = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with unfinished.open("xb") as file:
            write(file)
        if mode is not None:
            unfinished.chmod(mode & 0o7777)
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        # Callers know the file by this name; the error of a write has none.
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), path) from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
