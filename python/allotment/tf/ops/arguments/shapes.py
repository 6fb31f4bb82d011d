"""Shapes, axes and sizes as arguments of operations."""

from typing import Any, SupportsIndex

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.tensors.dtype import int32, int64
from allotment.tf.tensors.tensor import Tensor
from allotment.tf.tensors.tensor_shape import TensorShape


def shape_argument(shape: Any, what: str = "a shape must be whole numbers") -> tuple[int, ...]:
    """Lengths from a number, a sequence, a ``TensorShape``, an array, a tensor or a variable.

    -1 is left to the operation. Error texts begin with ``what``.

    In a graph, numbers that are not known before it runs are a ``Deferred``.

    Raises:
        InvalidArgumentError, ValueError, TypeError: It is none of these, or a length is no whole number. The class is
            that of TensorFlow's conversion to a tensor of whole numbers.
    """
    if type(shape) is int:
        return (shape,)
    graph = thread.state.graph
    if graph is not None and not isinstance(shape, np.ndarray):
        return graph._recording.numbers(shape, what)  # type: ignore[no-any-return]
    return plain_numbers(shape, what)


def plain_numbers(shape: Any, what: str) -> tuple[int, ...]:
    """The same of what has values now.

    Raises:
        InvalidArgumentError, ValueError, TypeError: As ``shape_argument``.
    """
    if type(shape) is int:
        return (shape,)
    read = getattr(shape, "_as_tensor", None)
    if read is not None:
        shape = read()
    if isinstance(shape, Tensor):
        if shape._dtype not in (int32, int64):
            raise _not_whole(shape._on_host(), what)
        shape = shape._on_host()
    if isinstance(shape, np.ndarray):
        if shape.ndim > 1 or (shape.dtype.kind not in "iu" and shape.size):
            raise _not_whole(shape, what)
        return tuple(int(length) for length in shape.reshape(-1))
    if isinstance(shape, TensorShape) and not shape.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {shape} to a Tensor.")
    if isinstance(shape, TensorShape | list | tuple | range):
        return tuple(_length(length, what) for length in shape)
    if isinstance(shape, SupportsIndex):
        return (shape.__index__(),)
    raise _not_whole(shape, what)


def _not_whole(value: Any, what: str) -> Exception:
    """The error of an argument that is no whole numbers; its text begins with ``what``."""
    text = f"{what}, not {value!r}"
    if thread.state.graph is not None:
        # No node can be made: of other elements for their type, of whole numbers for their axes.
        return ValueError(text) if value is None or _is_whole(value) else TypeError(text)
    if type(value) is float:
        return TypeError(text)
    flat = value if isinstance(value, list | tuple) else [value]
    if not all(
        isinstance(each, int | float | complex | str | bytes | list | np.generic | np.ndarray)
        for each in flat
    ):
        return ValueError(text)
    return refused(value, text)


def refused(value: Any, text: str) -> Exception:
    """The error of an argument that is another tensor than an operation takes.

    Eagerly that is the operation's; in a graph one of the element type or else of the shape.
    """
    if thread.state.graph is None:
        return errors.InvalidArgumentError(None, None, text)
    try:
        is_whole = np.asarray(value).dtype.kind in "iu"
    except (ValueError, NotImplementedError):
        is_whole = True  # Ragged, or of a graph.
    return ValueError(text) if is_whole else TypeError(text)


def _is_whole(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_whole, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu"
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _length(length: Any, what: str) -> int:
    # The usual case first: asking for a protocol takes microseconds.
    if type(length) is int:
        return length
    read = getattr(length, "_as_tensor", None)
    if read is not None:
        length = read()
    if isinstance(length, SupportsIndex) and not isinstance(length, bool):
        return length.__index__()
    raise _not_whole([length], what)
