"""Whether the system's loader loads a library into a program that did not ask for it (``LD_PRELOAD``)."""

import os
import shutil
import stat
import struct
import sys
from typing import Final

#: Fields of an executable's head (ELF, "System V Application Binary Interface", ELF header and program header).
_MAGIC: Final = b"\x7fELF"
_NEEDS_LOADER: Final = 3  # PT_INTERP

#: Scripts with another script as their interpreter, and so on; the system allows four.
_MOST_INTERPRETERS: Final = 5


def problem_of(program: str) -> str | None:
    """Return why the loader will not load a library into a program; ``None`` if nothing is known against it.

    Args:
        program: Name or path, as it is run. A program that is not there or cannot be read is none of ours to judge.
    """
    path = shutil.which(program)
    for _ in range(_MOST_INTERPRETERS):
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                head = file.read(1 << 16)
            status = os.stat(path)
        except OSError:
            return None
        if head.startswith(b"#!"):
            words = head[2:].split(b"\n", 1)[0].split()
            path = os.fsdecode(words[0]) if words else None
            continue
        other_rights = (status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()) or (
            status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
        )
        if other_rights:
            return "it runs with the rights of another user or group, so that the system loads no library into it"
        return _problem_of_elf(head) if head.startswith(_MAGIC) else None
    return None


def _problem_of_elf(head: bytes) -> str | None:
    """Return why the loader cannot load a library into a program, by the program's ELF header, or ``None``."""
    with open(sys.executable, "rb") as file:
        ours = file.read(20)
    if head[4:6] != ours[4:6] or head[18:20] != ours[18:20]:
        return "it is built for another kind of processor, or for another size of addresses, than this Python"
    is_64_bit, order = head[4] == 2, "<" if head[5] == 1 else ">"
    at, layout = (32, "Q") if is_64_bit else (28, "I")
    try:
        (start,) = struct.unpack_from(order + layout, head, at)
        size, count = struct.unpack_from(order + "HH", head, 54 if is_64_bit else 42)
        kinds = [struct.unpack_from(order + "I", head, start + size * place)[0] for place in range(count)]
    except struct.error:
        return None
    if _NEEDS_LOADER in kinds:
        return None
    return "it is linked statically, so that the system loads no library into it"
