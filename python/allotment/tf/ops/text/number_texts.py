"""Numbers as texts, and texts as numbers."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arguments.integers import attribute_argument
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_fixed_type, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import cast_to
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import CPU_ONLY, operation
from allotment.tf.ops.text.texts import TEXTS, each
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import BY_NUMPY, DType, as_dtype, float32, string
from allotment.tf.tensors.tensor import EagerTensor

_NAN: Final = re.compile(rb"\s*[+-]?nan\(\w*\)\s*", re.IGNORECASE)


_HEXADECIMAL: Final = re.compile(rb"\s*[+-]?0x", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """The format of elements as text: a conversion of C's ``printf``."""

    fill: str
    width: int
    precision: int
    scientific: bool
    shortest: bool

    def fault(self, array: Array) -> str | None:
        """Return why the format does not fit the elements of an array, or ``None``."""
        dtype = BY_NUMPY[array.dtype]
        has_point = dtype.is_floating or dtype.is_complex
        if max(self.precision, self.width) >= 2**16:
            return f"precision {self.precision} and width {self.width} must be less than {2**16}"
        if (self.scientific or self.shortest) and not has_point and dtype is not string:
            return f"scientific and shortest format not supported for datatype {dtype.error_name}"
        if self.scientific and self.shortest:
            return "Cannot select both scientific and shortest notation"
        if self.precision >= 0 and not has_point and dtype is not string:
            return f"precision not supported for datatype {dtype.error_name}"
        if len(self.fill) > 1:
            return "Fill string must be one or fewer characters"
        if self.fill not in ("", " ", "+", "-", "0", "#"):
            return f'Fill argument not supported: "{self.fill}"'
        return None

    def write(self, value: Any) -> bytes:
        """An element as text."""
        if isinstance(value, bytes):
            return value if self.width < 0 else self._conversion("s").encode() % value
        if isinstance(value, np.bool_):
            return b"true" if value else b"false"
        if isinstance(value, np.integer):
            # C prints no sign of unsigned numbers, not even where it is asked for.
            no_sign = isinstance(value, np.unsignedinteger) and self.fill in ("+", " ")
            return (self._conversion("d", fill="" if no_sign else self.fill) % value).encode()
        if isinstance(value, np.complexfloating):
            return f"({self._real(value.real)},{self._real(value.imag)})".encode()
        return self._real(value).encode()

    def _real(self, value: Any) -> str:
        letter = "e" if self.scientific else "g" if self.shortest else "f"
        if np.isfinite(value):
            return self._conversion(letter) % float(value)
        # Python forgets the sign of NaN, and has zeros before it and infinity.
        text: str = self._conversion(letter, fill="" if self.fill == "0" else self.fill) % np.copysign(
            np.inf, value
        )
        return text.replace("inf", "nan") if np.isnan(value) else text

    def _conversion(self, letter: str, fill: str | None = None) -> str:
        width = f"{self.width}" if self.width >= 0 else ""
        precision = f".{self.precision}" if self.precision >= 0 else ""
        return f"%{self.fill if fill is None else fill}{width}{precision}{letter}"


def _as_string_shape(c: Inference, *args: Any) -> list[Output]:
    return c.one(c.inputs[0]._shape, string)


_as_string_row = operation(
    "AsString",
    lambda array, form: each(form.write, array),
    shape=_as_string_shape,
    fault=lambda array, form: form.fault(array),
    kinds=CPU_ONLY,
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
        input: The numbers; or texts, which are filled up as well.
        precision: Digits behind the point, 6 unless given; of texts in a ``width``, how many bytes are left.
        scientific: Whether to write an exponent.
        shortest: Whether to write whichever form is shorter.
        width: The least length, filled up from the left.
        fill: A flag of C's ``printf``: ``0`` to fill up with zeros, ``-`` for blanks on the right, ``+`` or a blank in
            front of what is positive, ``#`` to write a point in any case.
        name: For error texts.

    Raises:
        InvalidArgumentError: ``precision`` or a form for integers or truth values, both forms at once, or no such flag.
    """
    form = _Form(
        fill,
        attribute_argument(-1 if width is None else width, "width"),
        attribute_argument(-1 if precision is None else precision, "precision"),
        attribute_flag(scientific, "scientific"),
        attribute_flag(shortest, "shortest"),
    )
    return run(_as_string_row, (to_tensor(input),), form, name=name)  # type: ignore[no-any-return]


def _number(text: bytes, dtype: DType) -> Any:
    """The number that a text says, ``None`` if it says none that the type has."""
    try:
        if b"_" in text and not _NAN.fullmatch(text):
            return None
        if dtype.is_floating:
            return _single(text) if dtype is float32 else _double(text)
        number = int(text)
    except ValueError:
        return None
    return number if dtype.min <= number <= dtype.max else None


def _double(text: bytes) -> float:
    """The nearest float64, as C reads numbers: also in hexadecimal digits, and NaN with something in brackets.

    Raises:
        ValueError: It is none.
    """
    if _NAN.fullmatch(text):
        return math.nan
    if not _HEXADECIMAL.match(text):
        return float(text)
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if b"-" in text.lower().partition(b"x")[0] else math.inf


def _single(text: bytes) -> Any:
    """The same in float32, rounded once: the float64 between two of them need not be what the text says."""
    number = _double(text)
    with np.errstate(over="ignore"):
        below, above = (np.float32(math.nextafter(number, end)) for end in (-math.inf, math.inf))
        if below == above or _HEXADECIMAL.match(text) or not math.isfinite(number):
            return np.float32(number)
    exact = Decimal(text.decode().strip())
    return np.float32(number) if exact == number else above if exact > number else below


def _to_number_fault(array: Array, dtype: DType) -> str | None:
    for text in array.reshape(-1).tolist():
        if _number(text, dtype) is None:
            return f"StringToNumberOp could not correctly convert string: {text.decode(errors='replace')}"
    return None


_to_number_row = operation(
    "StringToNumber",
    lambda array, dtype: each(lambda text: _number(text, dtype), array, dtype.numpy),
    shape=cast_to,
    fault=_to_number_fault,
    **TEXTS,
)


def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Read texts as numbers. As ``tf.strings.to_number``.

    Raises:
        InvalidArgumentError: A text that says no number, or one that the type does not have.
    """
    wanted = as_dtype(out_type)
    check_attribute("StringToNumber", "out_type", wanted, name)
    return run(_to_number_row, to_fixed_type(string, input), wanted, name=name)  # type: ignore[no-any-return]


__all__ = ["as_string", "to_number"]
