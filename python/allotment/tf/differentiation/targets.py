"""Checks targets and sources of gradients, and creates initial gradients of targets."""

from collections.abc import Iterator
from typing import Any

from allotment.errors import InvalidArgumentError
from allotment.tf import nest
from allotment.tf.ops.array.creation import ones_like, zeros
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.indicators import one_hot
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import Tensor


def stack_gradients(rows: list[Any] | None, shape: tuple[int, ...], dtype: Any) -> Any:
    """Stack the gradients of all elements into a tensor of the given shape; zeros if there are none."""
    return reshape(stack(rows), shape) if rows else zeros(shape, dtype)


def one_hot_seeds(target: Any) -> Iterator[Any]:
    """Yield for each element of a tensor a tensor of the same shape that is one there and zero elsewhere."""
    size = target.shape.num_elements()
    for place in range(size):
        yield reshape(one_hot(place, size, dtype=target.dtype), target.shape)


def batch_one_hot_seeds(target: Any) -> Iterator[Any]:
    """Yield for each element of an example a tensor that is one there in all examples and zero elsewhere."""
    size = target.shape[1:].num_elements()
    for place in range(size):
        row = reshape(one_hot(place, size, dtype=target.dtype), target.shape[1:])
        yield broadcast_to(row, target.shape)


def is_tensor_or_variable(value: Any) -> bool:
    """Whether a value is a tensor or a variable, and so can be a target or source of gradients."""
    return isinstance(value, Tensor) or (
        hasattr(value, "_as_tensor") and not isinstance(value, IndexedSlices)
    )


def check_tensor_or_variable(value: Any, method: str, what: str) -> None:
    """Check that an argument ``what`` of a method of ``GradientTape`` is one tensor or variable.

    Raises:
        TypeError: The value is neither.
    """
    if not is_tensor_or_variable(value):
        raise TypeError(
            f"the {what} of GradientTape.{method} must be one tensor or variable, not {value!r} of type "
            f"{type(value).__name__!r}. For several, record with a persistent tape and call it for each"
        )


def flatten_checked(structure: Any, what: str) -> list[Any]:
    """Return the values of a structure of targets or sources, after a check of their types.

    Raises:
        TypeError: A value is neither a tensor nor a variable.
    """
    flat = nest.flatten(structure)
    for each in flat:
        if not is_tensor_or_variable(each):
            instead = ": take its `values`" if isinstance(each, IndexedSlices) else ""
            raise TypeError(
                f"a {what} of gradients must be a tensor or a variable, not {each!r} of type "
                f"{type(each).__name__!r}{instead}"
            )
    return flat


def initial_gradient(target: Any, weight: Any) -> Any:
    """Return the initial gradient of a target: its output gradient, or ones."""
    value = to_tensor(target)
    if weight is None:
        return ones_like(value)
    weight = to_tensor(weight, like=value._dtype)
    if weight._dtype is not value._dtype or not weight.shape.is_compatible_with(value.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"an output gradient must have the type and shape of its target, {value._dtype.name} and {value.shape}, "
            f"not {weight._dtype.name} and {weight.shape}",
        )
    return weight


__all__ = [
    "batch_one_hot_seeds",
    "check_tensor_or_variable",
    "flatten_checked",
    "initial_gradient",
    "is_tensor_or_variable",
    "one_hot_seeds",
    "stack_gradients",
]
