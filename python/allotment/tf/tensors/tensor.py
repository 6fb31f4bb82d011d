"""Tensors: an array, its element type, and the devices that made and hold it."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape, known_shape

if TYPE_CHECKING:
    from allotment.devices.logical import LogicalDeviceRuntime as Device


class Operands:
    """Takes part in arithmetic. ``allotment.tf.ops.operators`` attaches the methods; type checkers find them here."""

    __slots__ = ()

    #: Higher than NumPy's: ``array + tensor`` is our operation, not NumPy's.
    __array_priority__ = 100

    if TYPE_CHECKING:

        def __abs__(self) -> "EagerTensor": ...
        def __add__(self, other: Any) -> "EagerTensor": ...
        def __and__(self, other: Any) -> "EagerTensor": ...
        def __eq__(self, other: object) -> Any: ...
        def __floordiv__(self, other: Any) -> "EagerTensor": ...
        def __ge__(self, other: Any) -> "EagerTensor": ...
        def __getitem__(self, key: Any) -> "EagerTensor": ...
        def __gt__(self, other: Any) -> "EagerTensor": ...
        def __invert__(self) -> "EagerTensor": ...
        def __le__(self, other: Any) -> "EagerTensor": ...
        def __lt__(self, other: Any) -> "EagerTensor": ...
        def __matmul__(self, other: Any) -> "EagerTensor": ...
        def __mod__(self, other: Any) -> "EagerTensor": ...
        def __mul__(self, other: Any) -> "EagerTensor": ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> "EagerTensor": ...
        def __or__(self, other: Any) -> "EagerTensor": ...
        def __pow__(self, other: Any) -> "EagerTensor": ...
        def __radd__(self, other: Any) -> "EagerTensor": ...
        def __rand__(self, other: Any) -> "EagerTensor": ...
        def __rfloordiv__(self, other: Any) -> "EagerTensor": ...
        def __rmatmul__(self, other: Any) -> "EagerTensor": ...
        def __rmod__(self, other: Any) -> "EagerTensor": ...
        def __rmul__(self, other: Any) -> "EagerTensor": ...
        def __ror__(self, other: Any) -> "EagerTensor": ...
        def __rpow__(self, other: Any) -> "EagerTensor": ...
        def __rsub__(self, other: Any) -> "EagerTensor": ...
        def __rtruediv__(self, other: Any) -> "EagerTensor": ...
        def __rxor__(self, other: Any) -> "EagerTensor": ...
        def __sub__(self, other: Any) -> "EagerTensor": ...
        def __truediv__(self, other: Any) -> "EagerTensor": ...
        def __xor__(self, other: Any) -> "EagerTensor": ...


class Tensor(Operands):
    """What operations take and give. ``allotment.tf.ops.operators`` adds the operators and indexing.

    Eager tensors hold values; they are made by operations, never by calling a class.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # An eager tensor's own, and what is known of a symbolic one.
        _array: Any
        _dtype: DType

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of axes."""
        raise NotImplementedError

    @property
    def name(self) -> NoReturn:
        """Defined for graphs only."""
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check that the tensor has a shape.

        Raises:
            ValueError: It has another.
        """
        wanted = as_shape(shape)
        if not wanted.is_compatible_with(self.shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {wanted}.")

    def ref(self) -> "Reference":
        """Return a hashable stand-in, for sets and dictionaries."""
        return Reference(self)

    def experimental_ref(self) -> "Reference":
        """Return ``ref()``."""
        return self.ref()

    def _static_value(self) -> Any:
        """The value as an array, ``None`` where only a session knows it."""
        raise NotImplementedError

    def eval(self, feed_dict: Any = None, session: Any = None) -> NoReturn:
        """Defined for graphs only."""
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
        )


class EagerTensor(Tensor):
    """A tensor with a value."""

    __slots__ = ("__weakref__", "_array", "_device", "_dtype", "_home", "_key", "_shape")

    # Without __init__: a fifth of a small operation's time would go there. ``tensor_of`` fills these in.
    _array: npt.NDArray[Any]
    _dtype: DType
    _device: "Device"
    _home: "Device"
    #: The shape, once it has been asked for.
    _shape: TensorShape
    #: A number of its own, once somebody has asked for it with ``key_of``.
    _key: int

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        try:
            return self._shape
        except AttributeError:
            self._shape = known_shape(self._array.shape)
            return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def device(self) -> str:
        """Full name of the device whose kernel produced the value."""
        return self._device.name

    @device.setter
    def device(self, value: object) -> NoReturn:  # noqa: ARG002 - a setter takes a value
        raise AttributeError("attribute 'device' of 'EagerTensor' objects is not writable")

    @property
    def backing_device(self) -> str:
        """Full name of the device whose memory holds the value."""
        return self._home.name

    @property
    def value_index(self) -> NoReturn:
        """Defined for graphs only."""
        raise AttributeError("Tensor.value_index is undefined when eager execution is enabled.")

    @property
    def op(self) -> NoReturn:
        """Defined for graphs only."""
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")

    @property
    def graph(self) -> NoReturn:
        """Defined for graphs only."""
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    def consumers(self) -> NoReturn:
        """Defined for graphs only."""
        raise NotImplementedError("Tensor.consumers is undefined when eager execution is enabled.")

    def _static_value(self) -> Any:
        return self.numpy()

    def numpy(self) -> Any:
        """Return the value in NumPy's own memory: a scalar for rank 0, else a fresh array."""
        return self._array[()] if self._array.ndim == 0 else self._array.copy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor's memory is not shared with arrays: copy=False cannot be served")
        return np.array(self._array, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __iter__(self) -> Iterator["EagerTensor"]:
        if self._array.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        # Of nothing at all NumPy does not say.
        return self._array.size > 0 and bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __complex__(self) -> complex:
        return complex(self._array)

    def __index__(self) -> int:
        return self._array.__index__()

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __copy__(self) -> "EagerTensor":
        # A value never changes, so one object is as good as two.
        return self

    def __str__(self) -> str:
        text = str(self._array)
        # As TensorFlow does: a text of several lines starts on one of its own.
        line = "\n" if "\n" in text else ""
        return f"tf.Tensor({line}{text}, shape={self.shape}, dtype={self._dtype.name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, numpy={described(self._array)}>"


def tensor_of(array: npt.NDArray[Any], dtype: DType, device: "Device", home: "Device") -> EagerTensor:
    """Make a tensor of an array that nobody else changes, made by ``device`` in the memory of ``home``."""
    made = EagerTensor()
    made._array = array
    made._dtype = dtype
    made._device = device
    made._home = home
    return made


_keys: Final = itertools.count()


def key_of(tensor: Any) -> Any:
    """What a tensor is known by where it is not kept: no other tensor ever has the same key."""
    try:
        return tensor._key
    except AttributeError:
        tensor._key = next(_keys)
        return tensor._key


class Reference:
    """Stands for one tensor or variable: equal to another reference to the same object, and hashable."""

    __slots__ = ("_referent",)

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """Return the object."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referent is other._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"


def described(array: npt.NDArray[Any]) -> str:
    """NumPy's own text of an array for a ``repr``; several lines start on one of their own."""
    if array.ndim == 0:
        # The Python number: a float32 shows all the digits that it has as a double, as in TensorFlow.
        return repr(array[()] if array.dtype == object else array.item())
    text = repr(array)
    return "\n" * ("\n" in text) + text
