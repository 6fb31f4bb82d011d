"""Reads numbers among arguments that may be tensors of a graph, as in ``tf.reshape(x, [tf.shape(x)[0], -1])``."""

from typing import Any

from allotment.tf.graph.nodes.node import SymbolicTensor
from allotment.tf.ops.arguments.shapes import plain_numbers
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.convert import packed
from allotment.tf.ops.deferred import Deferred, operand
from allotment.tf.ops.inference.abstract import UnknownLength
from allotment.tf.ops.inference.known_values import constant_value, known_numbers
from allotment.tf.tensors.dtype import int32, int64
from allotment.tf.tensors.tensor import Tensor


def numbers_of(value: Any, what: str) -> Any:
    """Read whole numbers of an argument: a tuple if constants and known shapes decide them, else a ``Deferred``.

    Raises:
        InvalidArgumentError, ValueError, TypeError: No whole numbers; the text begins with ``what``.
    """
    read = getattr(value, "_as_tensor", None)
    if read is not None:
        value = read()
    if isinstance(value, UnknownLength):
        return (as_tensor_length(value),)
    if isinstance(value, SymbolicTensor):
        known = constant_value(value)
        if value._dtype not in (int32, int64):
            raise TypeError(f"{what}, not a tensor of {value._dtype.name}: {value!r}")
        return Deferred(value, known_numbers(value)) if known is None else plain_numbers(known, what)
    if isinstance(value, Deferred):
        return value
    if isinstance(value, list | tuple) and any(each is None for each in value):
        # While a graph is built, as in TensorFlow, another class than eagerly.
        raise TypeError(f"{what}, not {value!r}")
    if isinstance(value, list | tuple) and any(
        isinstance(each, Tensor | Deferred | UnknownLength) for each in value
    ):
        return _of_list([_known_or_tensor(each) for each in value], what)
    return plain_numbers(value, what)


def as_tensor_length(length: UnknownLength) -> Any:
    """Return the length of an axis as a tensor."""
    return shape(length.tensor)[length.axis]


def _known_or_tensor(value: Any) -> Any:
    if isinstance(value, UnknownLength):
        return as_tensor_length(value)
    value = operand(value)
    known = constant_value(value) if isinstance(value, SymbolicTensor) else None
    return value if known is None else known


def _of_list(values: list[Any], what: str) -> Any:
    if any(isinstance(each, SymbolicTensor) for each in values):
        tensor = packed(values, None)
        return Deferred(tensor, known_numbers(tensor))  # type: ignore[arg-type]
    return plain_numbers(values, what)


__all__ = ["numbers_of"]
