"""Operations that say what is known of shapes: lengths of axes, their number, the number of elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import to_tensors
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import Host, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.dtype import DType, as_dtype, int32
from allotment.tf.tensors.tensor import EagerTensor


def _lengths_shape(c: Inference, dtype: Any) -> list[Output]:
    dims = c.shape()
    return c.one((None if dims is None else len(dims),), dtype)


def _lengths_of_each_shape(c: Inference, dtype: Any) -> list[Output]:
    return [(dtype, (None if dims is None else len(dims),)) for dims in c.shapes()]


def _size_shape(c: Inference, dtype: Any) -> list[Output]:
    return c.one((), dtype)


def _rank_shape(c: Inference) -> list[Output]:
    return c.one((), int32)


_shape = operation(
    "Shape",
    lambda array, dtype: np.array(array.shape, dtype.numpy),
    shape=_lengths_shape,
    host=Host.OUTPUT,
)


_size = operation(
    "Size", lambda array, dtype: np.array(array.size, dtype.numpy), shape=_size_shape, host=Host.OUTPUT
)


_rank = operation("Rank", lambda array: np.array(array.ndim, np.int32), shape=_rank_shape, host=Host.OUTPUT)


_shape_n = operation(
    "ShapeN",
    lambda *arrays, dtype: tuple(np.array(array.shape, dtype.numpy) for array in arrays),
    shape=_lengths_of_each_shape,
    makes_tuple=True,
    host=Host.OUTPUT,
)


def shape(input: Any, out_type: Any = None, name: str | None = None) -> EagerTensor:  # noqa: A002
    """The lengths of the axes as a tensor, int32 unless ``out_type`` says int64. As ``tf.shape``."""
    return run(_shape, (to_tensor(input),), _out_type("Shape", out_type, name), name=name)  # type: ignore[no-any-return]


def size(input: Any, out_type: Any = None, name: str | None = None) -> EagerTensor:  # noqa: A002
    """The number of elements as a tensor of rank 0. As ``tf.size``."""
    return run(_size, (to_tensor(input),), _out_type("Size", out_type, name), name=name)  # type: ignore[no-any-return]


def rank(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - the name TensorFlow has
    """The number of axes as a tensor of rank 0. As ``tf.rank``."""
    return run(_rank, (to_tensor(input),), name=name)  # type: ignore[no-any-return]


def shape_n(input: Sequence[Any], out_type: Any = int32, name: str | None = None) -> list[EagerTensor]:  # noqa: A002
    """The shapes of several tensors of one type. As ``tf.shape_n``."""
    wanted = _out_type("ShapeN", out_type, name)
    return list(run(_shape_n, to_tensors(input), dtype=wanted, name=name))


def _out_type(op: str, out_type: Any, name: str | None) -> DType:
    wanted = int32 if out_type is None else as_dtype(out_type)
    check_attribute(op, "out_type", wanted, name)
    return wanted


def shape_of(tensor: Any) -> Any:
    """The lengths of a tensor's axes as an argument: numbers, or in a graph that does not know them a tensor."""
    if type(tensor) is EagerTensor:
        return tensor._array.shape
    return tuple(tensor.shape) if tensor.shape.is_fully_defined() else shape(tensor)


def size_of(tensor: Any) -> Any:
    """The number of elements as an argument: a number, or in a graph that does not know it a tensor."""
    count = tensor.shape.num_elements()
    return size(tensor) if count is None else count


__all__ = ["rank", "shape", "shape_n", "shape_of", "size", "size_of"]
