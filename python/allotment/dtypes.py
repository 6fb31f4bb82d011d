"""Element types: TensorFlow's names over NumPy's types."""

import builtins
import contextlib
import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt


class DType:
    """The type of a tensor's elements. There is one object for each type; compare with ``==`` or ``is``.

    A ``DType`` equals its name and its NumPy type, too: ``tf.float32 == "float32"``.
    """

    __slots__ = ("as_numpy_dtype", "error_name", "name", "numpy")

    #: The name, as in ``"float32"``.
    name: str
    #: The NumPy scalar type, ``object`` for strings.
    as_numpy_dtype: type[Any]
    #: The same as a ``numpy.dtype``.
    numpy: np.dtype[Any]
    #: The name in TensorFlow's error texts: ``float``, ``double``, ``half``, or the name itself.
    error_name: str

    def __init__(self, name: str, scalar: type[Any], error_name: str | None = None) -> None:
        self.name = name
        self.as_numpy_dtype = scalar
        self.numpy = np.dtype(scalar)
        self.error_name = error_name or name

    @property
    def size(self) -> int:
        """Bytes of one element; 1 for strings, as TensorFlow says."""
        return 1 if self is string else self.numpy.itemsize

    @property
    def base_dtype(self) -> "DType":
        """The type itself: there are no reference types here."""
        return self

    @property
    def real_dtype(self) -> "DType":
        """The type of the real part."""
        return {complex64: float32, complex128: float64}.get(self, self)

    @property
    def is_floating(self) -> builtins.bool:
        """Whether it is a real floating-point type."""
        return self.numpy.kind == "f"

    @property
    def is_integer(self) -> builtins.bool:
        """Whether it is an integer type; bool is none."""
        return self.numpy.kind in "iu"

    @property
    def is_unsigned(self) -> builtins.bool:
        """Whether it is an integer type without sign."""
        return self.numpy.kind == "u"

    @property
    def is_complex(self) -> builtins.bool:
        """Whether it is a complex type."""
        return self.numpy.kind == "c"

    @property
    def is_bool(self) -> builtins.bool:
        """Whether it is the type of truth values."""
        return self.numpy.kind == "b"

    @property
    def is_numeric(self) -> builtins.bool:
        """Whether its elements can be computed with; strings cannot."""
        return self is not string

    @property
    def min(self) -> Any:
        """The smallest finite value.

        Raises:
            TypeError: The type has none.
        """
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest finite value.

        Raises:
            TypeError: The type has none.
        """
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_floating:
            return np.finfo(self.numpy)
        if self.is_integer:
            return np.iinfo(self.numpy)
        raise TypeError(f"Cannot find minimum value of {self}.")

    def __eq__(self, other: object) -> builtins.bool:
        if type(other) is DType:
            return self is other
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float16: Final = DType("float16", np.float16, "half")
float32: Final = DType("float32", np.float32, "float")
float64: Final = DType("float64", np.float64, "double")
int8: Final = DType("int8", np.int8)
int16: Final = DType("int16", np.int16)
int32: Final = DType("int32", np.int32)
int64: Final = DType("int64", np.int64)
uint8: Final = DType("uint8", np.uint8)
uint16: Final = DType("uint16", np.uint16)
uint32: Final = DType("uint32", np.uint32)
uint64: Final = DType("uint64", np.uint64)
bool: Final = DType("bool", np.bool_)  # noqa: A001 - the name TensorFlow has
complex64: Final = DType("complex64", np.complex64)
complex128: Final = DType("complex128", np.complex128)
string: Final = DType("string", object)
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
_BY_PYTHON_TYPE = {
    float: float32,
    int: int32,
    builtins.bool: bool,
    complex: complex128,
    str: string,
    bytes: string,
}

#: NumPy's type to ours, for the types that need no thought.
BY_NUMPY: Final[dict[np.dtype[Any], DType]] = {dtype.numpy: dtype for dtype in _ALL}


def as_dtype(type_value: Any) -> DType:
    """Return the ``DType`` of a ``DType``, a name, a NumPy type or a Python type.

    ``float``, ``int``, ``bool``, ``complex`` and ``str`` mean what Python values of that type become:
    float32, int32, bool, complex128 and string.

    Raises:
        TypeError: There is no such type here; the text names the value.
    """
    if type(type_value) is DType:
        return type_value
    if isinstance(type_value, type) and type_value in _BY_PYTHON_TYPE:
        return _BY_PYTHON_TYPE[type_value]
    if isinstance(type_value, str) and type_value in _BY_NAME:
        return _BY_NAME[type_value]
    if type_value is not None:
        # NumPy warns of names on their way out, and looks into objects that are no types.
        with contextlib.suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return of_numpy(np.dtype(type_value))
    raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")


def of_numpy(dtype: npt.DTypeLike) -> DType:
    """Return the ``DType`` of a NumPy type; texts and bytes of any length are strings.

    Raises:
        TypeError: NumPy has the type and we do not.
    """
    wanted = np.dtype(dtype)
    found = BY_NUMPY.get(wanted.newbyteorder("="))
    if found is not None:
        return found
    if wanted.kind in "SUT":
        return string
    raise TypeError(f"NumPy type {wanted} has no tensor type; there are {', '.join(_BY_NAME)}")
