"""Operations on texts: bytes, usually UTF-8. They have kernels for the CPU only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_fixed_type, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import CPU_ONLY, dims, operation
from allotment.tf.tensors.dtype import int32, string
from allotment.tf.tensors.tensor import EagerTensor

TEXTS: Any = {"kinds": CPU_ONLY}


def each(function: Callable[[Any], Any], array: Array, dtype: Any = object) -> Array:
    """Call a function for every element."""
    made = np.empty(array.shape, dtype)
    for place in np.ndindex(array.shape):
        made[place] = function(array[place])
    return made


def _join_fault(*arrays: Array, separator: bytes) -> str | None:
    shapes = [array for array in arrays if array.ndim]
    for array in shapes:
        if array.shape != shapes[0].shape:
            return f"Input shapes do not match: {dims(shapes[0])} vs. {dims(array)}"
    return None


def _join(*arrays: Array, separator: bytes) -> Array:
    joined = np.empty(np.broadcast_shapes(*(array.shape for array in arrays)), object)
    spread = np.broadcast_arrays(*arrays)
    for place in np.ndindex(joined.shape):
        joined[place] = separator.join(array[place] for array in spread)
    return joined


def _join_shape(c: Inference, separator: bytes) -> list[Output]:
    shapes = c.shapes()
    # Scalars go with every shape, and any input may be one whose shape is not known.
    known = c.all_merged(each for each in shapes if each != ())
    if known is None:
        return c.one(None if None in shapes else ())
    return c.one(known)


_join_row = operation("StringJoin", _join, shape=_join_shape, fault=_join_fault, **TEXTS)


def join(inputs: Sequence[Any], separator: str | bytes = "", name: str | None = None) -> EagerTensor:
    """Join texts that stand at the same place. As ``tf.strings.join``.

    Raises:
        InvalidArgumentError: The shapes differ; scalars go with every shape.
    """
    tensors = to_fixed_type(string, *inputs)
    if not tensors:
        return to_tensor("")
    between = separator.encode() if isinstance(separator, str) else separator
    return run(_join_row, tensors, separator=between, name=name)  # type: ignore[no-any-return]


def _length(array: Array, unit: str) -> Array:
    if unit == "BYTE":
        return each(len, array, np.int32)
    # In UTF-8 each character has one byte that does not look like 10xxxxxx.
    return each(lambda text: sum(byte & 0xC0 != 0x80 for byte in text), array, np.int32)


def _length_shape(c: Inference, unit: str) -> list[Output]:
    return c.one(c.inputs[0]._shape, int32)


_length_row = operation("StringLength", _length, shape=_length_shape, **TEXTS)


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Return the lengths of texts, in bytes or in characters (``unit="UTF8_CHAR"``). As ``tf.strings.length``.

    Raises:
        InvalidArgumentError: Another unit.
    """
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise faults.not_listed("StringLength", "unit", unit, ("BYTE", "UTF8_CHAR"), name)
    return run(_length_row, to_fixed_type(string, input), unit, name=name)  # type: ignore[no-any-return]


def _encoding_fault(array: Array, encoding: str) -> str | None:
    if encoding in ("", "utf-8"):
        return None
    return f"only utf-8 or '' (no encoding) is supported, received {encoding}"


def _lower(array: Array, encoding: str) -> Array:
    if not encoding:
        return each(bytes.lower, array)
    return each(lambda text: text.decode(errors="replace").lower().encode(), array)


def _upper(array: Array, encoding: str) -> Array:
    if not encoding:
        return each(bytes.upper, array)
    return each(lambda text: text.decode(errors="replace").upper().encode(), array)


_lower_row = operation("StringLower", _lower, shape=unchanged, fault=_encoding_fault, **TEXTS)
_upper_row = operation("StringUpper", _upper, shape=unchanged, fault=_encoding_fault, **TEXTS)
_strip_row = operation("StringStrip", lambda array: each(bytes.strip, array), shape=unchanged, **TEXTS)


def lower(input: Any, encoding: str = "", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Texts in small letters: of ASCII, or with ``encoding="utf-8"`` of every script. As ``tf.strings.lower``."""
    return run(_lower_row, to_fixed_type(string, input), encoding, name=name)  # type: ignore[no-any-return]


def upper(input: Any, encoding: str = "", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Texts in capitals: of ASCII, or with ``encoding="utf-8"`` of every script. As ``tf.strings.upper``."""
    return run(_upper_row, to_fixed_type(string, input), encoding, name=name)  # type: ignore[no-any-return]


def strip(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - the name TensorFlow has
    """Texts without blanks at their ends. As ``tf.strings.strip``."""
    return run(_strip_row, to_fixed_type(string, input), name=name)  # type: ignore[no-any-return]


__all__ = ["join", "length", "lower", "strip", "upper"]
