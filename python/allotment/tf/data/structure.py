"""Elements of data sets: tensors in tuples and dictionaries. As in TensorFlow, a list is converted to a tensor."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from allotment.devices.device_scope import device
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import get_static_value
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.functions import inside_function
from allotment.tf.tensors.tensor import EagerTensor, Tensor, tensor_of
from allotment.tf.tensors.tensor_spec import TensorSpec


def flatten(element: Any) -> list[Any]:
    """Return all values in a flat list; those of dictionaries in the order of their keys."""
    if isinstance(element, Mapping):
        return [value for key in sorted(element) for value in flatten(element[key])]
    if isinstance(element, tuple):
        return [value for part in element for value in flatten(part)]
    return [element]


def pack(structure: Any, values: Sequence[Any]) -> Any:
    """Arrange flat values in a structure."""
    return _packed(structure, iter(values))


def _packed(structure: Any, values: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        made = {key: _packed(structure[key], values) for key in sorted(structure)}
        ordered = {key: made[key] for key in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if isinstance(structure, tuple):
        parts = [_packed(part, values) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return next(values)


def map_values(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Call a function with the corresponding values of structures, and arrange the results in the first structure."""
    columns = zip(flatten(structure), *map(flatten, others), strict=True)
    return pack(structure, [function(*values) for values in columns])


def same_structure(one: Any, other: Any, up_to: bool = False) -> bool:
    """Whether two structures have the same nesting; ``up_to`` allows structures in place of values of the first."""
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and set(one) == set(other)
            and all(same_structure(one[key], other[key], up_to) for key in one)
        )
    if isinstance(one, tuple):
        return (
            isinstance(other, tuple)
            and len(one) == len(other)
            and all(same_structure(*pair, up_to) for pair in zip(one, other, strict=True))
        )
    return up_to or not isinstance(other, Mapping | tuple)


@contextmanager
def on_host() -> Iterator[None]:
    """Run operations eagerly on the first CPU in a ``with`` block: data sets are in host memory."""
    state = thread.state
    graph = state.graph
    if graph is not None:
        state.set_graph(None)
    try:
        with device(None), device("/CPU:0"):
            yield
    finally:
        if graph is not None:
            state.set_graph(graph)


#: The values of the tensors of a graph that data sets are made of, while an iterator of the graph runs.
_values: ContextVar[Mapping[Any, EagerTensor]] = ContextVar("values of tensors of a graph")


@contextmanager
def captured(values: Mapping[Any, EagerTensor]) -> Iterator[None]:
    """Set the values of tensors of a graph for data sets in a ``with`` block."""
    token = _values.set(values)
    try:
        yield
    finally:
        _values.reset(token)


def is_symbolic(value: Any) -> bool:
    """Whether a value is a tensor of a graph, which has no value."""
    return isinstance(value, Tensor) and not isinstance(value, EagerTensor)


def bound(element: Any) -> Any:
    """Replace tensors of a graph in an element by their values.

    Raises:
        RuntimeError: No session runs that computes them.
    """
    return map_values(_bound, element)


def _bound(value: Any) -> Any:
    if not is_symbolic(value):
        return value
    found = _values.get({}).get(value)
    if found is None:
        raise RuntimeError(
            f"A data set is made of {value!r}, which has a value in a session only: iterate over it with "
            "tf.compat.v1.data.make_initializable_iterator."
        )
    return found


def normalized(element: Any) -> Any:
    """Convert the values of an element to tensors.

    Raises:
        ValueError: There are no values, or one cannot be converted.
    """
    if not flatten(element) or element is None:
        raise ValueError("Invalid `element`. `element` should not be empty.")
    with on_host():
        return map_values(_tensor, element)


def _tensor(value: Any) -> Any:
    """Convert a value to a tensor; a tensor of a graph stays unless its value is known."""
    if hasattr(value, "_as_graph_element"):
        value = value._as_graph_element()
    if not is_symbolic(value):
        tensor = to_tensor(value)
        # A tensor of its own, which has no gradient and does not know the activation that made it.
        return tensor_of(tensor._array, tensor._dtype, tensor._device, tensor._home)
    known = get_static_value(value)
    return value if known is None else to_tensor(known, value._dtype)


def called(function: Callable[..., Any], element: Any) -> Any:
    """Call a function with an element; the parts of a tuple are separate arguments.

    Raises:
        RuntimeError: The function raises ``StopIteration``, which would end the data set.
    """
    state = thread.state
    before, state.eager = state.eager, True
    try:
        with on_host(), inside_function():
            return function(*element) if type(element) is tuple else function(element)
    except StopIteration as error:
        error.__traceback__ = None
        raise RuntimeError(f"{function!r}, a function of a data set, raised StopIteration") from error
    finally:
        state.eager = before


def spec_of(element: Any) -> Any:
    """Return the types and shapes of an element."""
    return map_values(lambda tensor: TensorSpec(tensor.shape, tensor._dtype), element)


def arrays_of(element: Any) -> Any:
    """Convert the values of an element to NumPy arrays."""
    return map_values(EagerTensor.numpy, element)


__all__ = [
    "arrays_of",
    "bound",
    "called",
    "captured",
    "flatten",
    "is_symbolic",
    "map_values",
    "normalized",
    "on_host",
    "pack",
    "same_structure",
    "spec_of",
]
