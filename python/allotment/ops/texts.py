"""Operations on texts: bytes, usually UTF-8. They have kernels for the CPU only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment import errors
from allotment.dtypes import DType, as_dtype, float32, string
from allotment.ops import faults
from allotment.ops.array import _anything
from allotment.ops.arrays import Array
from allotment.ops.convert import to_tensor
from allotment.ops.element_types import check_attribute
from allotment.ops.execute import run
from allotment.ops.table import CPU_ONLY, dims, operation
from allotment.tensor import EagerTensor

_TEXTS: Any = {"kinds": CPU_ONLY, "takes": (string,).__contains__}


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


_join_row = operation("StringJoin", _join, fault=_join_fault, **_TEXTS)


def join(inputs: Sequence[Any], separator: str | bytes = "", name: str | None = None) -> EagerTensor:
    """Join texts that stand at the same place. As ``tf.strings.join``.

    Raises:
        InvalidArgumentError: The shapes differ; scalars go with every shape.
    """
    tensors = [to_tensor(value, string) for value in inputs]
    if not tensors:
        return to_tensor("")
    between = separator.encode() if isinstance(separator, str) else separator
    return run(_join_row, tensors, separator=between, name=name)  # type: ignore[no-any-return]


def _length(array: Array, unit: str) -> Array:
    if unit == "BYTE":
        return each(len, array, np.int32)
    # In UTF-8 each character has one byte that does not look like 10xxxxxx.
    return each(lambda text: sum(byte & 0xC0 != 0x80 for byte in text), array, np.int32)


_length_row = operation("StringLength", _length, **_TEXTS)


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> EagerTensor:  # noqa: A002
    """How long texts are, in bytes or in characters (``unit="UTF8_CHAR"``). As ``tf.strings.length``.

    Raises:
        InvalidArgumentError: Another unit.
    """
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise faults.not_listed("StringLength", "unit", unit, ("BYTE", "UTF8_CHAR"), name)
    return run(_length_row, (to_tensor(input, string),), unit, name=name)  # type: ignore[no-any-return]


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


_lower_row = operation("StringLower", _lower, fault=_encoding_fault, **_TEXTS)
_upper_row = operation("StringUpper", _upper, fault=_encoding_fault, **_TEXTS)
_strip_row = operation("StringStrip", lambda array: each(bytes.strip, array), **_TEXTS)


def lower(input: Any, encoding: str = "", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Texts in small letters: of ASCII, or with ``encoding="utf-8"`` of every script. As ``tf.strings.lower``."""
    return run(_lower_row, (to_tensor(input, string),), encoding, name=name)  # type: ignore[no-any-return]


def upper(input: Any, encoding: str = "", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Texts in capitals: of ASCII, or with ``encoding="utf-8"`` of every script. As ``tf.strings.upper``."""
    return run(_upper_row, (to_tensor(input, string),), encoding, name=name)  # type: ignore[no-any-return]


def strip(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - the name TensorFlow has
    """Texts without blanks at their ends. As ``tf.strings.strip``."""
    return run(_strip_row, (to_tensor(input, string),), name=name)  # type: ignore[no-any-return]


def _as_string_fault(array: Array, form: str, width: int, fill: str) -> str | None:
    if len(fill) > 1:
        return "Fill string must be one or fewer characters"
    return None


def _as_string(array: Array, form: str, width: int, fill: str) -> Array:
    def written(value: Any) -> bytes:
        if array.dtype.kind == "b":
            text = "true" if value else "false"
        elif array.dtype.kind == "c":
            text = f"({format(value.real, form)},{format(value.imag, form)})"
        elif array.dtype.kind == "f":
            text = format(float(value), form)
            if np.isnan(value) and np.signbit(value):
                text = f"-{text}"
        else:
            text = str(int(value))
        return _padded(text, width, fill).encode()

    return each(written, array)


def _padded(text: str, width: int, fill: str) -> str:
    """A number in a field, as C's ``printf`` fills it: zeros behind the sign, ``-`` for the left end."""
    if fill == "+" and not text.startswith("-"):
        text = f"+{text}"
    if fill == "0":
        return text.zfill(width)
    return text.ljust(width) if fill == "-" else text.rjust(width)


_as_string_row = operation(
    "AsString",
    _as_string,
    fault=_as_string_fault,
    kinds=CPU_ONLY,
    takes=_anything,
)


def as_string(
    input: Any,  # noqa: A002 - the name TensorFlow has
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> EagerTensor:
    """Write numbers as texts. As ``tf.strings.as_string``.

    Args:
        input: The numbers; texts are returned as they are.
        precision: Digits behind the point, 6 unless given.
        scientific: Whether to write an exponent.
        shortest: Whether to write whichever form is shorter.
        width: The least length, filled up from the left.
        fill: What to fill up with: a blank unless given, ``0``, ``-`` for blanks on the right, ``+`` to write a sign.
        name: For error texts.

    Raises:
        InvalidArgumentError: ``precision`` for integers, both forms at once, or a ``fill`` that is too long.
    """
    tensor = to_tensor(input)
    if tensor._dtype is string:
        return tensor
    wrong = None
    if scientific and shortest:
        wrong = "Cannot select both scientific and shortest notation"
    elif max(precision, width) >= 2**16:
        wrong = f"precision {precision} and width {width} must be less than {2**16}"
    elif precision >= 0 and not (tensor._dtype.is_floating or tensor._dtype.is_complex):
        wrong = f"precision not supported for datatype {tensor._dtype.error_name}"
    if wrong is not None:
        raise errors.InvalidArgumentError(None, None, wrong + faults.tail("AsString", name))
    form = f".{precision if precision >= 0 else 6}{'e' if scientific else 'g' if shortest else 'f'}"
    return run(  # type: ignore[no-any-return]
        _as_string_row, (tensor,), form, width, fill, name=name
    )


def _number(text: bytes, dtype: DType) -> Any:
    """The number that a text says, ``None`` if it says none that the type has."""
    try:
        if b"_" in text:
            return None
        if dtype.is_floating:
            return float(text)
        number = int(text)
    except ValueError:
        return None
    return number if dtype.min <= number <= dtype.max else None


def _to_number_fault(array: Array, dtype: DType) -> str | None:
    for text in array.reshape(-1).tolist():
        if _number(text, dtype) is None:
            return f"StringToNumberOp could not correctly convert string: {text.decode(errors='replace')}"
    return None


_to_number_row = operation(
    "StringToNumber",
    lambda array, dtype: each(lambda text: _number(text, dtype), array, dtype.numpy),
    fault=_to_number_fault,
    **_TEXTS,
)


def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Read texts as numbers. As ``tf.strings.to_number``.

    Raises:
        InvalidArgumentError: A text that says no number, or one that the type does not have.
    """
    wanted = as_dtype(out_type)
    check_attribute("StringToNumber", "out_type", wanted, name)
    return run(_to_number_row, (to_tensor(input, string),), wanted, name=name)  # type: ignore[no-any-return]


__all__ = ["as_string", "join", "length", "lower", "strip", "to_number", "upper"]
