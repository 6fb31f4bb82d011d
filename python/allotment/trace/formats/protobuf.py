"""Reads messages in protobuf's wire format by field number, without a schema."""

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

#: Bytes of the longest varint.
_MAX_VARINT: Final = 10


class ProtobufError(ValueError):
    """The bytes are not a message."""


class Message:
    """A message: the values of each field in the order of the bytes. Integers are those of ``int64``."""

    __slots__ = ("_fields",)

    def __init__(self, content: "bytes | memoryview[int]") -> None:
        self._fields: dict[int, list[int | memoryview[int]]] = {}
        for field, value in _fields(memoryview(content)):
            self._fields.setdefault(field, []).append(value)

    def has(self, field: int) -> bool:
        """Whether the message has a value for the field."""
        return field in self._fields

    def integer(self, field: int) -> int:
        """Return the last value of an integer's field, 0 without one."""
        value = self._fields.get(field, (0,))[-1]
        if isinstance(value, memoryview):
            raise ProtobufError(f"field {field} is not an integer")
        return value - (1 << 64) if value >= 1 << 63 else value

    def text(self, field: int) -> str:
        """Return the last value of a text's field, empty without one."""
        return str(self._bytes(field, self._fields.get(field, (memoryview(b""),))[-1]), "utf-8", "replace")

    def message(self, field: int) -> "Message":
        """Return the last value of a message's field, an empty message without one."""
        return Message(self._bytes(field, self._fields.get(field, (memoryview(b""),))[-1]))

    def messages(self, field: int) -> Iterator["Message"]:
        """Yield the values of a field of messages."""
        for value in self._fields.get(field, ()):
            yield Message(self._bytes(field, value))

    @staticmethod
    def _bytes(field: int, value: "int | memoryview[int]") -> "memoryview[int]":
        if isinstance(value, int):
            raise ProtobufError(f"field {field} is an integer")
        return value


def _fields(content: "memoryview[int]") -> "Iterator[tuple[int, int | memoryview[int]]]":
    """Yield number and value of each field of an encoded message."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(content, at)
            yield field, value
            continue
        if kind == _BYTES:
            length, at = _varint(content, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ProtobufError(f"byte {at} starts a field of kind {kind}")
        if length > len(content) - at:
            raise ProtobufError(f"{length - (len(content) - at)} bytes are missing at the end")
        taken = content[at : at + length]
        at += length
        yield field, taken if kind == _BYTES else int.from_bytes(taken, "little")


def _varint(content: "memoryview[int]", at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MAX_VARINT):
        if at + place >= len(content):
            raise ProtobufError("an integer is cut off at the end")
        byte = content[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & ((1 << 64) - 1), at + place + 1
    raise ProtobufError(f"byte {at} starts an integer of more than {_MAX_VARINT} bytes")
