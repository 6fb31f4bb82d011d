"""Creates zip files with invalid contents, byte by byte."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from support.traces.trace_files import SMALL, Events, columns


def npy(array: Any) -> bytes:
    """Return the bytes of an array as an `.npy` file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_with_head(head: str, body: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the bytes of an `.npy` file with any header text."""
    text = head.encode() + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + body


def head(shape: str, descr: str = "<i8") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"


def write_members(
    path: Path,
    events: Events = SMALL,
    compression: int = zipfile.ZIP_DEFLATED,
    /,
    **members: bytes | None,
) -> Path:
    """Write a trace with some members replaced by raw bytes, or left out if `None`."""
    raw = {name: npy(array) for name, array in columns(events).items()} | members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in raw.items():
            if content is not None:
                archive.writestr(f"{name}.npy", content)
    return path


def member_span(path: Path, name: str) -> tuple[int, int]:
    """Return the positions in the file where the compressed bytes of a member start and end."""
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(f"{name}.npy")
    content = path.read_bytes()
    name_length, extra_length = struct.unpack_from("<HH", content, member.header_offset + 26)
    start = member.header_offset + 30 + name_length + extra_length
    return start, start + member.compress_size


def patch_directory(path: Path, name: str, offset: int, value: bytes) -> None:
    """Overwrite bytes of a member's entry in the central directory, `offset` bytes into the entry."""
    content = bytearray(path.read_bytes())
    full = f"{name}.npy".encode()
    # The file contains the name twice: before the member, and last in the directory, 46 bytes into its entry.
    entry = content.rindex(full) - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    content[entry + offset : entry + offset + len(value)] = value
    path.write_bytes(content)


#: Offsets in a directory entry.
FLAGS, METHOD, CRC, PACKED_SIZE, SIZE = 8, 10, 16, 20, 24
