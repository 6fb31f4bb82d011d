"""Checks of files that a command writes at its end."""

import os

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
