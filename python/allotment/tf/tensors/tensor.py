"""``tf.Tensor`` and eager tensors: an array, its element type and its devices.

Longer than 300 lines: the methods of one class, with their declarations for type checkers.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.reference import Reference, array_repr
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape, known_shape

if TYPE_CHECKING:
    from allotment.devices.logical import LogicalDeviceRuntime as Device


class Operands:
    """Base class of tensors and variables that declares their Python operators for type checkers.

    ``allotment.tf.ops.operators`` attaches the methods at import.
    """

    __slots__ = ()

    #: Higher than NumPy's, so that ``array + tensor`` calls the tensor's operator.
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
    """Base class of eager and symbolic tensors, the inputs and outputs of operations. As ``tf.Tensor``.

    Operations create tensors; programs do not call the class.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # The value of an eager tensor; the statically known part of a symbolic one.
        _array: Any
        _dtype: DType

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The shape: the lengths of the axes."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of axes."""
        raise NotImplementedError

    @property
    def name(self) -> NoReturn:
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check that the tensor's shape is compatible with ``shape``.

        Raises:
            ValueError: The shapes are incompatible.
        """
        wanted = as_shape(shape)
        if not wanted.is_compatible_with(self.shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {wanted}.")

    def ref(self) -> "Reference":
        """Return a hashable reference to the tensor, for sets and dictionaries."""
        return Reference(self)

    def experimental_ref(self) -> "Reference":
        """Return ``ref()``; an older name of it."""
        return self.ref()

    def _static_value(self) -> Any:
        """Return the value as an array; ``None`` if it is known only when a session runs."""
        raise NotImplementedError

    def _on_host(self) -> npt.NDArray[Any]:
        """Return the value, or the statically known part of it, as an array of NumPy's."""
        return self._array  # type: ignore[no-any-return]

    def eval(self, feed_dict: Any = None, session: Any = None) -> NoReturn:
        """Raise ``NotImplementedError``: defined for graphs only."""
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're looking for?"
        )


class EagerTensor(Tensor):
    """A tensor with a value, the result of an eager operation."""

    __slots__ = (
        "__weakref__",
        "_activation",
        "_array",
        "_device",
        "_dtype",
        "_home",
        "_keras_logits",
        "_key",
        "_shape",
    )

    # There is no __init__, which would take a fifth of a small operation's time: ``tensor_of`` sets the attributes.
    _array: npt.NDArray[Any]
    _dtype: DType
    #: The device that computed the value.
    _device: "Device"
    #: The device whose memory holds the value.
    _home: "Device"
    #: The shape, set at its first use.
    _shape: TensorShape
    #: The tensor's unique number, set by ``key_of``.
    _key: int
    #: The logits of probabilities, set by the activations of Keras.
    _keras_logits: Any
    #: The type and the input of an activation that made the tensor, set inside of functions only.
    _activation: tuple[str, "EagerTensor"]

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape: the lengths of the axes."""
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
        """Full name of the device that computed the value."""
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
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.value_index is undefined when eager execution is enabled.")

    @property
    def op(self) -> NoReturn:
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")

    @property
    def graph(self) -> NoReturn:
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    def consumers(self) -> NoReturn:
        """Raise ``NotImplementedError``: defined for graphs only."""
        raise NotImplementedError("Tensor.consumers is undefined when eager execution is enabled.")

    def _static_value(self) -> Any:
        return self.numpy()

    def _on_host(self) -> npt.NDArray[Any]:
        """Return the value as an array of NumPy's: the tensor's own, or a copy of an array on a device."""
        library = self._home.library
        return self._array if library is None else library.to_host(self._array)

    def numpy(self) -> Any:
        """Return a copy of the value in host memory: a NumPy scalar for rank 0, else a NumPy array."""
        array = self._array
        if type(array) is not np.ndarray:
            array = self._on_host()
            return array[()] if array.ndim == 0 else array
        return array[()] if array.ndim == 0 else array.copy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor's memory is not shared with arrays: copy=False cannot be served")
        return np.array(self._on_host(), dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        # On a GPU the memory is shared, as with TensorFlow: a copy there may not fit.
        array = self._array if self._home.shares_memory else self._array.copy()
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        """The memory of a tensor on a real GPU, for libraries that know the interface; they must not write there.

        Raises:
            AttributeError: The tensor is in host memory, as on a simulated GPU.
        """
        if self._home.library is None:
            raise AttributeError(
                f"__cuda_array_interface__: the tensor is in host memory, on {self._home.name}"
            )
        return self._array.__cuda_array_interface__  # type: ignore[attr-defined]

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __iter__(self) -> Iterator["EagerTensor"]:
        if self._array.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        # NumPy raises an error for an empty array; TensorFlow's is false.
        return self._array.size > 0 and bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __complex__(self) -> complex:
        return complex(self._array)

    def __index__(self) -> int:
        return self._on_host().__index__()

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __copy__(self) -> "EagerTensor":
        # Tensors are immutable, so the copy can be the same object.
        return self

    def __str__(self) -> str:
        text = str(self._on_host())
        # As in TensorFlow, a text of several lines starts on a new line.
        line = "\n" if "\n" in text else ""
        return f"tf.Tensor({line}{text}, shape={self.shape}, dtype={self._dtype.name})"

    def __repr__(self) -> str:
        return (
            f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, numpy={array_repr(self._on_host())}>"
        )


def tensor_of(array: npt.NDArray[Any], dtype: DType, device: "Device", home: "Device") -> EagerTensor:
    """Create an eager tensor from an array, without a copy.

    Args:
        array: The value. The caller must not change it afterwards.
        dtype: The element type.
        device: The device that computed the value.
        home: The device whose memory holds the value.
    """
    made = EagerTensor()
    made._array = array
    made._dtype = dtype
    made._device = device
    made._home = home
    return made


_keys: Final = itertools.count()


def key_of(tensor: Any) -> Any:
    """Return a tensor's unique key, which does not keep the tensor alive and is never reused, unlike ``id()``."""
    try:
        return tensor._key
    except AttributeError:
        tensor._key = next(_keys)
        return tensor._key
