"""Checks of files that a command writes at its end."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from allotment.cli.command import BadInput


def check_output(option: str, path: str) -> None:
    """Check that a file can be written, before a program runs for hours.

    Raises:
        BadInput: It cannot.
    """
    path = os.path.abspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadInput(f"{option} {path}: is not a regular file")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise BadInput(f"{option} {path}: cannot be written: the file that is there is not writable")
    if not os.access(os.path.dirname(path), os.W_OK):
        raise BadInput(f"{option} {path}: cannot be written: its folder is not there or is not writable")


@contextmanager
def locked_output(option: str, path: str) -> Iterator[None]:
    """Have other commands refused that write the same file, in a ``with`` block: the lock is a file beside it.

    The system frees the lock when the process ends, however it does; the next command takes over a file that was left.

    Raises:
        BadInput: Another command writes the file, or its folder takes no file.
    """
    lock = f"{os.path.realpath(path)}.lock"
    descriptor = _lock(lock)
    if descriptor is None:
        raise BadInput(
            f"{option} {path}: another command writes it now ({lock} is locked): wait for its end, or name another file"
        )
    try:
        yield
    finally:
        # While it is locked: the file is still this process's.
        with suppress(OSError):
            os.unlink(lock)
        os.close(descriptor)


def _lock(path: str) -> int | None:
    """Return the descriptor of a locked file; ``None`` if another process has locked it.

    Raises:
        BadInput: The file cannot be made.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BadInput(f"{path}: cannot be made: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had the lock may have removed the file since it was opened here.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            raise BadInput(f"{path}: cannot be locked: {error.strerror}") from None
        os.close(descriptor)


def check_distinct(read: Sequence[tuple[str, str]], written: Iterable[tuple[str, str]]) -> None:
    """Check that files to write are none of those that are read, and that no two of them are the same.

    Args:
        read: What the help calls an input, such as ``TRACE``, with the file.
        written: Options with their files.

    Raises:
        click.UsageError: Two are the same file; the text names both.
    """
    inputs = {os.path.realpath(path): name for name, path in read}
    options: dict[str, str] = {}
    for option, path in written:
        target = os.path.realpath(path)
        if target in inputs:
            raise click.UsageError(f"'{option}' {path} is the {inputs[target]} itself")
        if target in options:
            raise click.UsageError(f"'{option}' and '{options[target]}' are the same file")
        options[target] = option
