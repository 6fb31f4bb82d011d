"""``tf.DType`` and the element types, each based on a NumPy type."""

import builtins
import contextlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt


class DType:
    """The type of a tensor's elements. As ``tf.DType``.

    There is one object for each type; compare with ``==`` or ``is``. A ``DType`` also equals its name and its NumPy
    type: ``tf.float32 == "float32"``.
    """

    __slots__ = ("as_datatype_enum", "as_numpy_dtype", "error_name", "name", "numpy")

    #: The name, such as ``"float32"``.
    name: str
    #: The NumPy scalar type, ``object`` for strings.
    as_numpy_dtype: type[Any]
    #: The NumPy scalar type as a ``numpy.dtype``.
    numpy: np.dtype[Any]
    #: The type's number in TensorFlow's ``DataType`` enumeration.
    as_datatype_enum: int
    #: The name in TensorFlow's error texts: ``float``, ``double``, ``half``, or the name itself.
    error_name: str

    def __init__(self, enum: int, name: str, scalar: type[Any], error_name: str | None = None) -> None:
        self.as_datatype_enum = enum
        self.name = name
        self.as_numpy_dtype = scalar
        self.numpy = np.dtype(scalar)
        self.error_name = error_name or name

    @property
    def size(self) -> int:
        """Bytes of one element; 0 for strings, whose lengths vary."""
        return 0 if self is string else self.numpy.itemsize

    @property
    def base_dtype(self) -> "DType":
        """The type itself, as there are no reference types."""
        return self

    @property
    def real_dtype(self) -> "DType":
        """The type of the real part of a complex type; the type itself otherwise."""
        return {complex64: float32, complex128: float64}.get(self, self)

    @property
    def is_floating(self) -> builtins.bool:
        """Whether the type is a real floating-point type."""
        return self.numpy.kind == "f"

    @property
    def is_integer(self) -> builtins.bool:
        """Whether the type is an integer type; bool is not."""
        return self.numpy.kind in "iu"

    @property
    def is_unsigned(self) -> builtins.bool:
        """Whether the type is an unsigned integer type."""
        return self.numpy.kind == "u"

    @property
    def is_complex(self) -> builtins.bool:
        """Whether the type is a complex type."""
        return self.numpy.kind == "c"

    @property
    def is_bool(self) -> builtins.bool:
        """Whether the type is bool."""
        return self.numpy.kind == "b"

    @property
    def is_numeric(self) -> builtins.bool:
        """Whether the elements are numbers."""
        return self.numpy.kind in "fiuc"

    @property
    def is_quantized(self) -> builtins.bool:
        """False, as there are no quantized types."""
        return False

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        """True, as NumPy has all the types."""
        return True

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of pixel values in an image: from 0 to the largest integer, or to 1.

        Raises:
            ValueError: The type is not used for images.
        """
        if self.is_integer:
            return 0, self.max
        if self in (bool, float32, float64):
            return 0, True if self is bool else 1
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether the types are the same, so that values need no conversion.

        Raises:
            TypeError: ``other`` is not a type.
        """
        return self is as_dtype(other)

    def is_subtype_of(self, other: Any) -> builtins.bool:
        """Whether the types are the same: there is no other subtype."""
        return self.__eq__(other)

    def most_specific_common_supertype(self, types: Iterable[Any]) -> "DType | None":
        """Return this type if all of ``types`` equal it, else ``None``."""
        return self if all(self == other for other in types) else None

    @property
    def min(self) -> Any:
        """The smallest finite value of the type.

        Raises:
            TypeError: The type is neither an integer nor a floating-point type.
        """
        return self._limits("minimum").min

    @property
    def max(self) -> Any:
        """The largest finite value of the type.

        Raises:
            TypeError: The type is neither an integer nor a floating-point type.
        """
        return self._limits("maximum").max

    def _limits(self, which: str) -> Any:
        if self.is_floating:
            return np.finfo(self.numpy)
        if self.is_integer:
            return np.iinfo(self.numpy)
        raise TypeError(f"Cannot find {which} value of {self} with type {self}.")

    def __eq__(self, other: object) -> builtins.bool:
        if type(other) is DType:
            return self is other
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float16: Final = DType(19, "float16", np.float16, "half")
float32: Final = DType(1, "float32", np.float32, "float")
float64: Final = DType(2, "float64", np.float64, "double")
int8: Final = DType(6, "int8", np.int8)
int16: Final = DType(5, "int16", np.int16)
int32: Final = DType(3, "int32", np.int32)
int64: Final = DType(9, "int64", np.int64)
uint8: Final = DType(4, "uint8", np.uint8)
uint16: Final = DType(17, "uint16", np.uint16)
uint32: Final = DType(22, "uint32", np.uint32)
uint64: Final = DType(23, "uint64", np.uint64)
bool: Final = DType(10, "bool", np.bool_)  # noqa: A001 - the name TensorFlow has
complex64: Final = DType(8, "complex64", np.complex64)
complex128: Final = DType(18, "complex128", np.complex128)
string: Final = DType(7, "string", object)
half: Final = float16
double: Final = float64

_ALL = (
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    bool,
    complex64,
    complex128,
    string,
)
_BY_NAME = {dtype.name: dtype for dtype in _ALL} | {dtype.error_name: dtype for dtype in _ALL}
_BY_NUMBER = {dtype.as_datatype_enum: dtype for dtype in _ALL}
_BY_PYTHON_TYPE = {float: float32, builtins.bool: bool, object: string}

#: NumPy's type to ``DType``, for exact matches.
BY_NUMPY: Final[dict[np.dtype[Any], DType]] = {dtype.numpy: dtype for dtype in _ALL}


def as_dtype(type_value: Any) -> DType:
    """Convert a value to a ``DType``. As ``tf.as_dtype``.

    Args:
        type_value: A ``DType``, a name such as ``"float32"``, a number of TensorFlow's ``DataType`` enumeration, a
            NumPy type, ``float`` or ``bool``. Python's other types are ambiguous: TensorFlow converts an ``int`` to
            int32, NumPy to int64.

    Raises:
        TypeError: There is no such type.
    """
    if type(type_value) is DType:
        return type_value
    found: DType | None = None
    if isinstance(type_value, str):
        found = _BY_NAME.get(type_value)
    elif isinstance(type_value, int | float):
        # `True` and `1.0` equal the key 1 and so give float32, as in TensorFlow.
        found = _BY_NUMBER.get(type_value)  # type: ignore[arg-type]
    elif isinstance(type_value, type) and type_value in _BY_PYTHON_TYPE:
        found = _BY_PYTHON_TYPE[type_value]
    else:
        # An array gives the type of its elements.
        numpy = type_value.dtype if isinstance(type_value, np.ndarray) else type_value
        if isinstance(numpy, np.dtype) or (isinstance(numpy, type) and issubclass(numpy, np.generic)):
            with contextlib.suppress(TypeError):
                return of_numpy(numpy)
    if found is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return found


def of_numpy(dtype: npt.DTypeLike) -> DType:
    """Convert a NumPy type to a ``DType``; texts and bytes of any length give ``string``.

    Raises:
        TypeError: There is no ``DType`` for the NumPy type.
    """
    wanted = np.dtype(dtype)
    found = BY_NUMPY.get(wanted.newbyteorder("="))
    if found is not None:
        return found
    if wanted.kind in "SUT":
        return string
    raise TypeError(f"NumPy type {wanted} has no tensor type; the types are {', '.join(_BY_NAME)}")
