"""Fields of option messages: what each sort takes, and its form in text and in the bytes of protocol buffers."""

import contextlib
import struct
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from allotment._core import show_value


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    number: int
    #: ``bool``, ``int``, ``float``, ``str``, or a class of messages.
    kind: type
    repeated: bool = False
    #: Texts to whole numbers.
    is_map: bool = False
    #: Four bytes on the wire instead of eight.
    single: bool = False
    #: Whether it is more than kept; of a message, its fields say.
    effect: bool = False


class NumberMap(MutableMapping[str, int]):
    """Texts to whole numbers; a text that is asked for and not there has 0, as in TensorFlow."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self._values.setdefault(checked(str, key, "key"), 0)

    def __setitem__(self, key: str, value: int) -> None:
        self._values[checked(str, key, "key")] = checked(int, value, "value")

    def get(self, key: str, default: Any = None) -> Any:
        """Return the number of a text, or the default; the text is not entered."""
        return self._values.get(key, default)

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


def checked(kind: type, value: Any, name: str) -> Any:
    """Convert a value to a field's type.

    Raises:
        TypeError: It is of another type.
    """
    whole = isinstance(value, int | np.integer | np.bool_)
    if kind is bool and whole:
        return bool(value)
    if kind is int and whole:
        return int(value)
    if kind is float and (whole or isinstance(value, float | np.floating)):
        with contextlib.suppress(OverflowError):
            return float(value)
        raise ValueError(f"{name} must be a number that a float can hold, not {show_value(value)}")
    if kind is str and isinstance(value, str | bytes):
        return value.decode() if isinstance(value, bytes) else value
    raise TypeError(
        f"{show_value(value)} has type {type(value).__name__}, but {name} expected one of: {kind.__name__}"
    )


def shown(value: Any) -> str:
    """Return a value as the text form of messages shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float):
        return f"{value:.17g}" if float(f"{value:g}") != value else f"{value:g}"
    return str(value)


def bare(field: Field, value: Any) -> bytes:
    """Encode a number without the number of its field."""
    if isinstance(value, float):
        return struct.pack("<f" if field.single else "<d", value)
    return varint(int(value))


def delimited(number: int, data: bytes) -> bytes:
    """Encode bytes behind the number of their field and their length."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Encode a whole number in as many bytes of seven bits as it needs."""
    value %= 1 << 64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


__all__ = ["Field", "NumberMap", "bare", "checked", "delimited", "shown", "varint"]
