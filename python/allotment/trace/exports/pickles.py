"""Writes pickles piece by piece, so that a long one is never in memory.

The instructions are those that PyTorch's viewer knows, which has not all of protocol 4: containers, texts, integers of
up to 64 bits, and references to what was written before.
"""

import struct

_LONG_BINPUT, _LONG_BINGET = struct.Struct("<BI"), struct.Struct("<BI")
_SHORT, _INTEGER = struct.Struct("<BH"), struct.Struct("<Bi")

START = b"\x80\x04"
END = b"."

EMPTY_LIST, EMPTY_DICT, MARK, APPENDS, SETITEMS = b"]", b"}", b"(", b"e", b"u"
TRUE, FALSE, NONE = b"\x88", b"\x89", b"N"

#: Items that one instruction appends: PyTorch's viewer passes them on as arguments of a function.
MAX_ITEMS = 1000


class Memo:
    """Numbers values that the pickle refers to again."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._count = 0

    def keep(self) -> tuple[bytes, bytes]:
        """Return the instruction that keeps the value written last, and the one that repeats it."""
        number = self._count
        self._count += 1
        if number < 256:
            return bytes((ord("q"), number)), bytes((ord("h"), number))
        return _LONG_BINPUT.pack(ord("r"), number), _LONG_BINGET.pack(ord("j"), number)

    def text(self, text: str) -> bytes:
        """Return a text: the first time whole, then as a reference."""
        known = self._texts.get(text)
        if known is None:
            put, self._texts[text] = self.keep()
            return _text(text) + put
        return known


def _text(text: str) -> bytes:
    content = text.encode("utf-8", "backslashreplace")
    if len(content) < 256:
        return bytes((0x8C, len(content))) + content
    return b"X" + struct.pack("<I", len(content)) + content


def integer(number: int) -> bytes:
    """Return an integer from -2**63 to 2**63 - 1."""
    if 0 <= number < 256:
        return bytes((ord("K"), number))
    if 0 <= number < 65536:
        return _SHORT.pack(ord("M"), number)
    if -(1 << 31) <= number < 1 << 31:
        return _INTEGER.pack(ord("J"), number)
    content = number.to_bytes(8, "little", signed=True)
    return bytes((0x8A, 8)) + content
