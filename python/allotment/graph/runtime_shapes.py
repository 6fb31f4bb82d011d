"""Shapes as arguments that are known only when a session runs: ``tf.reshape(x, [tf.shape(x)[0], -1])``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from allotment.ops.shapes import shape_argument
from allotment.ops.table import Operation as Row
from allotment.tensor import Tensor
from allotment.tensor_shape import TensorShape


class Lengths:
    """A shape argument whose numbers are a tensor's."""

    __slots__ = ("partial", "tensor")

    def __init__(self, tensor: Any, partial: tuple[int | None, ...] | None) -> None:
        #: A vector of whole numbers.
        self.tensor = tensor
        #: What is known of it while the graph is built; ``None`` where it is not even known how long it is.
        self.partial = partial


def as_lengths(shape: Any) -> Any:
    """Numbers, if they follow from constants and known shapes; else what is known of them.

    Raises:
        TypeError: No shape.
    """
    from allotment.graph.abstract import UnknownLength, constant_value
    from allotment.ops.array import shape as shape_of
    from allotment.ops.joining import packed

    if isinstance(shape, Tensor):
        value = constant_value(shape)  # type: ignore[arg-type]
        if value is not None:
            return shape_argument(value)
        dims = shape.shape._dims
        known = dims is not None and len(dims) == 1 and dims[0] is not None
        return Lengths(shape, (None,) * dims[0] if known else None)  # type: ignore[operator, index]
    if isinstance(shape, list | tuple):
        shape = [
            shape_of(each.tensor)[each.axis] if isinstance(each, UnknownLength) else each for each in shape
        ]
    if isinstance(shape, list) and any(isinstance(each, Tensor) for each in shape):
        values = [constant_value(each) if isinstance(each, Tensor) else each for each in shape]  # type: ignore[arg-type]
        if all(each is not None for each in values):
            return tuple(int(each) for each in values if each is not None)
        partial = tuple(None if each is None else int(each) for each in values)
        return Lengths(packed(shape, None), partial)
    return shape_argument(shape)


def with_lengths(row: Row, count: int, args: tuple[Any, ...]) -> Row:
    """The row with one more input behind its ``count`` inputs: the numbers of its lengths."""
    place = next(index for index, each in enumerate(args) if isinstance(each, Lengths))

    def placed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays_and_args: Any, **kwargs: Any) -> Any:
            arrays, numbers = arrays_and_args[:count], arrays_and_args[count]
            rest = list(arrays_and_args[count + 1 :])
            rest[place] = tuple(np.asarray(numbers).reshape(-1).tolist())
            return function(*arrays, *rest, **kwargs)

        return call

    return replace(row, function=placed(row.function), fault=None if row.fault is None else placed(row.fault))


def expected_shape(row: Row, lengths: Lengths) -> TensorShape:
    """The shape of the output of an operation that makes tensors of a given shape."""
    if lengths.partial is None:
        return TensorShape(None)
    dims = tuple(None if each in (None, -1) else each for each in lengths.partial)
    if row.name in ("Fill", "Reshape", "BroadcastTo") or row.name.startswith(("Random", "Truncated")):
        return TensorShape(dims)
    return TensorShape([None] * len(dims) if row.name == "Tile" else None)


__all__ = ["Lengths", "as_lengths", "expected_shape", "with_lengths"]
