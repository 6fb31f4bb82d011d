"""Variables: values that can be assigned, each on one device for its whole life."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from allotment.devices.placement import thread
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.gathering import gather, gather_nd
from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.ops.indexing.subscripts import getitem, index_of, is_mask
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.ops.variables import resources
from allotment.tf.ops.variables.augmented import AUGMENTED
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor import EagerTensor, Operands, Reference, described
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.legacy import LegacyVariable
from allotment.tf.variables.part import VariablePart


class Variable(LegacyVariable, Operands):
    """A value that can be assigned. As ``tf.Variable``.

    It lives on the device of the scope it is made in: assigning and reading happen there under every scope, and
    computing with what was read follows the scope. Its memory is freed when the last reference is gone.

    Args:
        initial_value: The first value, or a function without arguments that returns it.
        trainable: Whether gradients and optimizers see it, true unless given.
        validate_shape: Not looked at, as in TensorFlow: ``shape`` says what may change.
        caching_device: Not looked at.
        name: The name, ``Variable`` unless given.
        variable_def: Not supported.
        dtype: The element type; without it that of the value.
        import_scope: Not looked at.
        constraint: Kept for optimizers, which project an updated value with it.
        synchronization: Kept for strategies.
        aggregation: Kept for strategies.
        shape: The shape of all values, with ``None`` for lengths that may change; without it that of the first.
        experimental_enable_variable_lifting: Not looked at.

    Raises:
        ValueError: No value, or one of another shape or type.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "Variable":
        """Make an eager variable, or one of a graph or strategy while that is in force."""
        if cls is not Variable:
            return object.__new__(cls)
        if thread.state.graph is not None:
            made: Variable = object.__new__(thread.state.graph.variable_class)
            return made
        if thread.state.strategy is not None:
            return thread.state.strategy.new_variable(*args, **kwargs)  # type: ignore[no-any-return]
        return object.__new__(cls)

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,  # noqa: ARG002 - TensorFlow's signature
        caching_device: Any = None,  # noqa: ARG002 - TensorFlow's signature
        name: str | None = None,
        variable_def: Any = None,  # noqa: ARG002 - TensorFlow's signature
        dtype: Any = None,
        import_scope: Any = None,  # noqa: ARG002 - TensorFlow's signature
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,  # noqa: ARG002 - TensorFlow's signature
    ) -> None:
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a "
                "`variable_def`. You provided neither."
            )
        value = initial_value() if callable(initial_value) else initial_value
        tensor = to_tensor(value, None if dtype is None else as_dtype(dtype))
        if shape is not None and not as_shape(shape).is_compatible_with(tensor.shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({tensor.shape}) is not compatible with "
                f"the explicitly supplied `shape` argument ({shape})."
            )
        self._name = f"{'Variable' if name is None else name}:0"
        self._shape = tensor.shape if shape is None else TensorShape(shape)
        self._trainable = True if trainable is None else trainable
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._storage: Storage = resources.create(tensor, name)

    @property
    def name(self) -> str:
        """The name with ``:0`` behind it, as in ``"Variable:0"``."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._storage.dtype

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes; ``None`` where they may change."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self._shape

    @property
    def device(self) -> str:
        """Full name of the device on which the variable lives."""
        return self._storage.device.name

    @property
    def trainable(self) -> bool:
        """Whether gradients and optimizers see it."""
        return self._trainable

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """What optimizers project an updated value with."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """When copies on several devices are made equal."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How values from several replicas become one."""
        return self._aggregation

    def value(self) -> EagerTensor:
        """Return the value as a tensor on the variable's device."""
        return self._as_tensor()

    def read_value(self) -> EagerTensor:
        """Return the value as a tensor on the device of the scope."""
        return identity(self._as_tensor())

    def numpy(self) -> Any:
        """Return the value in NumPy's own memory: a scalar for rank 0, else a fresh array."""
        return self.read_value().numpy()

    @property
    def _source(self) -> Any:
        """What gradients know the variable by: what keeps its value, so that it is one under all its names."""
        return self._storage

    def _as_tensor(self) -> EagerTensor:
        """What operations compute with."""
        value = resources.read(self._storage)
        recorder = thread.state.recorder
        if recorder is not None:
            recorder.read(self, value)
        return value

    def assign(
        self,
        value: Any,
        use_locking: bool = False,  # noqa: ARG002 - TensorFlow's signature
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable | None":
        """Replace the value. Returns the variable, or ``None`` without ``read_value``.

        A tensor on the variable's device is shared, not copied.

        Raises:
            ValueError: Another shape or type than the variable's.
        """
        tensor = to_tensor(value, self.dtype)
        if self._shape._dims != tensor._array.shape and not self._shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable shape {self._shape}, "
                f"and the assigned value shape {tensor.shape} are incompatible."
            )
        resources.assign(self._storage, tensor, name)
        return self._unread() if read_value else None

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,  # noqa: ARG002 - TensorFlow's signature
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable | None":
        """Add to the value. Returns the variable, or ``None`` without ``read_value``.

        Raises:
            ValueError: A tensor of another type.
            InvalidArgumentError: Another shape.
        """
        resources.change(resources.ADD, self._storage, to_tensor(delta, self.dtype), name=name)
        return self._unread() if read_value else None

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,  # noqa: ARG002 - TensorFlow's signature
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable | None":
        """Subtract from the value. Returns the variable, or ``None`` without ``read_value``.

        Raises:
            ValueError: A tensor of another type.
            InvalidArgumentError: Another shape.
        """
        resources.change(resources.SUBTRACT, self._storage, to_tensor(delta, self.dtype), name=name)
        return self._unread() if read_value else None

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Replace elements or slices at places; see ``tf.tensor_scatter_nd_update``."""
        return self._scatter(resources.SCATTER_UPDATE, indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Add to elements or slices at places; see ``tf.tensor_scatter_nd_add``."""
        return self._scatter(resources.SCATTER_ADD, indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Subtract from elements or slices at places; see ``tf.tensor_scatter_nd_sub``."""
        return self._scatter(resources.SCATTER_SUBTRACT, indices, updates, name)

    def _scatter(self, row: Any, indices: Any, updates: Any, name: str | None) -> "Variable":
        numbers, given = to_tensor(indices), to_tensor(updates, self.dtype)
        resources.change(row, self._storage, given, numbers, name=name)
        return self._unread()

    def _assign_part(self, value: Any, index: Index, name: str | None) -> "Variable":
        """What ``variable[...].assign`` does."""
        given = to_tensor(value, self.dtype)
        resources.change(resources.ASSIGN_PART, self._storage, given, index, name=name)
        return self._unread()

    def gather_nd(self, indices: Any, name: str | None = None) -> EagerTensor:
        """Read elements or slices at places; see ``tf.gather_nd``."""
        return gather_nd(self, indices, name=name)

    def sparse_read(self, indices: Any, name: str | None = None) -> EagerTensor:
        """Read slices along the first axis by number; see ``tf.gather``."""
        return gather(self, indices, name=name)

    def ref(self) -> Reference:
        """Return a hashable stand-in, for sets and dictionaries."""
        return Reference(self)

    def _unread(self) -> "Variable":
        """What assigning returns: the same variable under the name that TensorFlow prints then."""
        other = self.__copy__()
        other._name = "UnreadVariable"
        return other

    def __getitem__(self, key: Any) -> Any:
        tensor = getitem(self._as_tensor(), key)
        return tensor if is_mask(key) else VariablePart(self, index_of(key), tensor)

    def __iter__(self) -> Iterator[EagerTensor]:
        return iter(self.read_value())

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __complex__(self) -> complex:
        return complex(self.value())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        # Not `read_value`, which is an operation: NumPy may ask from within one.
        if copy is False:
            raise ValueError("a variable's memory is not shared with arrays: copy=False cannot be served")
        return np.array(resources.read(self._storage)._array, dtype=dtype)

    def __hash__(self) -> int:
        raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self})")

    def __copy__(self) -> "Variable":
        other: Variable = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "Variable":
        other = self.__copy__()
        other._storage = resources.copied(self._storage)
        memo[id(self)] = other
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {
            "dtype": self.dtype,
            "name": self._name.removesuffix(":0"),
            "shape": self._shape,
            "trainable": self._trainable,
        }
        return _restored, (np.array(self.numpy()), fields)

    def __repr__(self) -> str:
        text = described(self.read_value()._array)
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}, numpy={text}>"


def _restored(value: Any, fields: dict[str, Any]) -> Variable:
    """Make a variable of what a pickle holds, on the device of the scope."""
    return Variable(value, **fields)


attach(Variable, {name: method for name, method in OPERATORS.items() if name != "__getitem__"} | AUGMENTED)

__all__ = ["Variable"]
