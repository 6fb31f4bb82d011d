"""``tf.Variable``: a mutable value in the memory of one device.

Longer than 300 lines: one public class with its documentation.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.gathering import gather, gather_nd
from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.ops.indexing.subscripts import getitem, index_of, is_mask
from allotment.tf.ops.name_scopes import get_current_name_scope, name_scope
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.ops.variables import resources
from allotment.tf.ops.variables.augmented import AUGMENTED
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.reference import Reference, array_repr
from allotment.tf.tensors.tensor import EagerTensor, Operands
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.legacy import LegacyVariable
from allotment.tf.variables.part import VariablePart
from allotment.tf.variables.slice_scatters import SliceScatters


class Variable(LegacyVariable, SliceScatters, Operands):
    """A mutable tensor in the memory of one device. As ``tf.Variable``.

    The variable's device is that of the scope in which it is created. Reads and assignments always run on that device;
    operations on the value follow the scope of their call. The memory is freed with the last reference.
    Source: docs/spec/placement.md, section 5.2.

    Args:
        initial_value: The first value, or a function without arguments that returns it.
        trainable: Whether tapes watch the variable and optimizers update it; true by default.
        validate_shape: Has no effect, as in TensorFlow; use ``shape``.
        caching_device: Has no effect.
        name: The name, ``"Variable"`` by default; that of the name scope goes before it.
        variable_def: Not supported.
        dtype: The element type; by default that of the value.
        import_scope: Has no effect.
        constraint: A function that maps an updated value to an allowed one; optimizers call it.
        synchronization: Used by strategies.
        aggregation: Used by strategies.
        shape: The static shape, with ``None`` for lengths that may change; by default that of the first value.
        experimental_enable_variable_lifting: Has no effect.

    Raises:
        ValueError: There is no initial value, or it has another shape or type.

    Example::

        v = tf.Variable([1.0, 2.0])
        v.assign_add([1.0, 1.0])
        v.numpy()  # array([2., 3.], dtype=float32)
    """

    #: Whether ``add_weight`` of a layer made it: layers own such variables, and modules do not.
    _is_weight = False

    def __new__(cls, *args: Any, **kwargs: Any) -> "Variable":
        """Create an eager variable, or a variable of the current graph or strategy if there is one."""
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
        scope = get_current_name_scope()
        self._name = f"{scope}/" * bool(scope) + f"{'Variable' if name is None else name}:0"
        self._shape = tensor.shape if shape is None else TensorShape(shape)
        self._trainable = True if trainable is None else trainable
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._storage: Storage = resources.create(tensor, name)

    @property
    def name(self) -> str:
        """The name followed by ``:0``, such as ``"Variable:0"``."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._storage.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape, with ``None`` for lengths that may change."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self._shape

    @property
    def device(self) -> str:
        """Full name of the device whose memory holds the variable."""
        return self._storage.device.name

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the variable and optimizers update it."""
        return self._trainable

    @property
    def constraint(self) -> Callable[..., Any] | None:
        """The function by which optimizers map an updated value to an allowed one; ``None`` without one."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the copies on several devices are synchronized."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """The rule that combines values of several replicas when they are assigned."""
        return self._aggregation

    def value(self) -> EagerTensor:
        """Return the value as a tensor on the variable's device."""
        return self._as_tensor()

    def read_value(self) -> EagerTensor:
        """Return the value as a tensor on the device of the current scope."""
        return identity(self._as_tensor())

    def numpy(self) -> Any:
        """Return a copy of the value in host memory: a NumPy scalar for rank 0, else a NumPy array."""
        return self.read_value().numpy()

    @property
    def _source(self) -> Any:
        """The key of the variable for gradients: its storage, which all Python objects of the variable share."""
        return self._storage

    def _as_tensor(self) -> EagerTensor:
        """Read the value for an operation, and record the read on the active tapes."""
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
        """Replace the value. A tensor on the variable's device is shared, not copied.

        Args:
            value: The new value, of the variable's shape and type.
            use_locking: Has no effect.
            name: Name of the operation.
            read_value: Whether to return the variable.

        Returns:
            The variable, or ``None`` without ``read_value``.

        Raises:
            ValueError: ``value`` has another shape or type than the variable.
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
        """Add ``delta`` to the value. Arguments and result are those of ``assign``.

        Raises:
            ValueError: ``delta`` is a tensor of another type.
            InvalidArgumentError: ``delta`` has another shape than the variable.
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
        """Subtract ``delta`` from the value. Arguments and result are those of ``assign``.

        Raises:
            ValueError: ``delta`` is a tensor of another type.
            InvalidArgumentError: ``delta`` has another shape than the variable.
        """
        resources.change(resources.SUBTRACT, self._storage, to_tensor(delta, self.dtype), name=name)
        return self._unread() if read_value else None

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Replace the elements or slices at ``indices`` by ``updates``; see ``tf.tensor_scatter_nd_update``."""
        return self._scatter(resources.SCATTER_UPDATE, indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Add ``updates`` to the elements or slices at ``indices``; see ``tf.tensor_scatter_nd_add``."""
        return self._scatter(resources.SCATTER_ADD, indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> "Variable":
        """Subtract ``updates`` from the elements or slices at ``indices``; see ``tf.tensor_scatter_nd_sub``."""
        return self._scatter(resources.SCATTER_SUBTRACT, indices, updates, name)

    def _scatter(
        self,
        row: Any,
        indices: Any,
        updates: Any,
        name: str | None,
        read_value: bool = True,  # noqa: ARG002 - that of variables of graphs
    ) -> "Variable":
        numbers, given = to_tensor(indices), to_tensor(updates, self.dtype)
        resources.change(row, self._storage, given, numbers, name=name)
        return self._unread()

    def _assign_part(self, value: Any, index: Index, name: str | None) -> "Variable":
        """Replace a slice of the value, for ``variable[...].assign``."""
        given = to_tensor(value, self.dtype)
        resources.change(resources.ASSIGN_PART, self._storage, given, index, name=name)
        return self._unread()

    def gather_nd(self, indices: Any, name: str | None = None) -> EagerTensor:
        """Return the elements or slices at ``indices``; see ``tf.gather_nd``."""
        return gather_nd(self, indices, name=name)

    def sparse_read(self, indices: Any, name: str | None = None) -> EagerTensor:
        """Return the slices along the first axis at ``indices``; see ``tf.gather``."""
        return gather(self, indices, name=name)

    def ref(self) -> Reference:
        """Return a hashable reference to the variable, for sets and dictionaries."""
        return Reference(self)

    def _unread(self) -> "Variable":
        """Return the same variable under the name that TensorFlow prints for the result of an assignment."""
        other = self.__copy__()
        other._name = "UnreadVariable"
        return other

    def __getitem__(self, key: Any) -> Any:
        tensor = getitem(self._as_tensor(), key)
        if is_mask(key):
            return tensor
        graph = thread.state.graph
        return VariablePart(self, index_of(key), tensor) if graph is None else graph._part_of(self, tensor)

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
        # Not `read_value`, which runs an operation: NumPy may call this during an operation.
        if copy is False:
            raise ValueError("a variable's memory is not shared with arrays: copy=False cannot be served")
        return np.array(resources.read(self._storage)._on_host(), dtype=dtype)

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
        text = array_repr(self.read_value()._on_host())
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}, numpy={text}>"


def _restored(value: Any, fields: dict[str, Any]) -> Variable:
    """Create a variable from the contents of a pickle, on the device of the current scope."""
    with name_scope(""):
        return Variable(value, **fields)


attach(Variable, {name: method for name, method in OPERATORS.items() if name != "__getitem__"} | AUGMENTED)

__all__ = ["Variable"]
