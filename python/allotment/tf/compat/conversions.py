"""Conversions between strings and bytes, and of paths: the functions of ``tf.compat``."""

import codecs
import os
from typing import Any


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Encode a string; bytes stay as they are. As ``tf.compat.as_bytes``.

    Raises:
        TypeError: It is neither.
    """
    encoding = codecs.lookup(encoding).name
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Decode bytes; a string stays as it is. As ``tf.compat.as_text``.

    Raises:
        TypeError: It is neither.
    """
    encoding = codecs.lookup(encoding).name
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Decode bytes; see ``as_text``. As ``tf.compat.as_str``."""
    return as_text(bytes_or_text, encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Decode bytes, and return ``str`` of other objects. As ``tf.compat.as_str_any``."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Convert a path to a string; other objects stay as they are. As ``tf.compat.path_to_str``."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> int | None:
    """Return a dimension, which is an integer or ``None`` already. As ``tf.compat.dimension_value``."""
    return dimension  # type: ignore[no-any-return]


__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_value", "path_to_str"]
