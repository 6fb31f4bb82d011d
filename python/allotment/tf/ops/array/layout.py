"""Operations that give a tensor another shape, or its axes another order."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    has_axes,
    kernel_error,
    number_argument,
    numbers_argument,
)
from allotment.tf.ops.arguments.scalars import flag_argument
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.arrays import Array, as_array, is_host
from allotment.tf.ops.conversion.reshaping import RESHAPE
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import (
    Inference,
    Output,
    numbers,
    unknown,
)
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor


def _transpose_fault(array: Array, perm: tuple[int, ...] | None) -> str | None:
    if perm is None:
        return None
    if len(perm) != array.ndim:
        return (
            f"transpose expects a vector of size {array.ndim}. But input(1) is a vector of size {len(perm)}"
        )
    for axis in perm:
        if not -array.ndim <= axis < array.ndim:
            return f"{axis} is out of range [0 .. {array.ndim})"
    for axis in range(array.ndim):
        if axis not in perm and axis - array.ndim not in perm:
            return f"{axis} is missing from {{{','.join(map(str, perm))}}}."
    return None


def _transpose(array: Array, perm: tuple[int, ...] | None) -> Array:
    return np.transpose(array, perm).copy()


def _conjugate_transpose(array: Array, perm: tuple[int, ...] | None) -> Array:
    turned = np.transpose(array, perm)
    return as_array(np.conjugate(turned, order="C")) if is_host(array) else np.conjugate(turned.copy())


def _transpose_shape(c: Inference, perm: Any) -> list[Output]:
    dims = c.shape()
    if perm is None:
        return c.one(None if dims is None else dims[::-1])
    order = numbers(perm)
    if order is None or dims is None:
        return c.one(unknown(len(dims) if dims is not None else None if order is None else len(order)))
    if len(order) != len(dims):
        c.refuse(f"Dimension must be {len(dims)} but is {len(order)}")
    if None in order:
        return c.one(unknown(len(dims)))
    places = [c.axis(axis, len(dims), "perm dim") for axis in order]
    if len(set(places)) != len(places):
        c.refuse(f"perm must name each axis once, not {list(order)}")
    return c.one(tuple(dims[place] for place in places if place is not None))


_transpose_row = operation("Transpose", _transpose, shape=_transpose_shape, fault=_transpose_fault)
_conjugate_row = operation(
    "ConjugateTranspose", _conjugate_transpose, shape=_transpose_shape, fault=_transpose_fault
)


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> EagerTensor:
    """Put the axes in another order, the reverse one unless ``perm`` says which. As ``tf.transpose``."""
    tensor = to_tensor(a)
    check_whole("Transpose", "Tperm", perm, name)
    if isinstance(perm, int) or (isinstance(perm, np.ndarray | EagerTensor) and perm.ndim == 0):
        raise kernel_error(errors.InvalidArgumentError, f"perm must be a vector, not {perm!r}")
    order = None if perm is None else numbers_argument(perm, "perm")
    row = _conjugate_row if conjugate and tensor._dtype.is_complex else _transpose_row
    return run(row, (tensor,), order, name=name)  # type: ignore[no-any-return]


def _expand_fault(array: Array, axis: int) -> str | None:
    if -array.ndim - 1 <= axis <= array.ndim:
        return None
    return f"Tried to expand dim index {axis} for tensor with {array.ndim} dimensions."


def _expand_shape(c: Inference, axis: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    rank = len(dims)
    if type(axis) is Deferred:
        return c.one(unknown(rank + 1))
    if not -rank - 1 <= axis <= rank:
        c.refuse(f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    place = axis + rank + 1 if axis < 0 else axis
    return c.one((*dims[:place], 1, *dims[place:]))


# The results of these two share the input's memory, as TensorFlow's do.
_expand_dims = operation("ExpandDims", np.expand_dims, shape=_expand_shape, fault=_expand_fault)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """Add an axis of length 1. As ``tf.expand_dims``."""
    check_whole("ExpandDims", "Tdim", axis, name)
    return run(  # type: ignore[no-any-return]
        _expand_dims, (to_tensor(input),), number_argument(axis, "axis"), name=name
    )


def _squeeze_fault(array: Array, axes: tuple[int, ...]) -> str | None:
    for axis in axes:
        if not -array.ndim <= axis < array.ndim:
            return f"Tried to squeeze dim index {axis} for tensor with {array.ndim} dimensions."
    for axis in axes:
        if array.shape[axis] != 1:
            place = axis_of(axis, array.ndim)
            return f"Can not squeeze dim[{place}], expected a dimension of 1, got {array.shape[axis]}"
    return None


def _squeeze(array: Array, axes: tuple[int, ...]) -> Array:
    return np.squeeze(array, tuple({axis_of(axis, array.ndim) for axis in axes}) if axes else None)


def _squeeze_shape(c: Inference, axes: Any) -> list[Output]:
    dims = c.shape()
    if dims is None:
        return c.one(None)
    if not axes:
        # Which axes go depends on the lengths.
        return c.one(None if None in dims else tuple(length for length in dims if length != 1))
    gone = {c.axis(axis, len(dims), "squeeze dim") for axis in axes}
    for place in gone:
        assert place is not None
        if dims[place] not in (None, 1):
            c.refuse(f"Can not squeeze dim[{place}], expected a dimension of 1, got {dims[place]}")
    return c.one(tuple(length for place, length in enumerate(dims) if place not in gone))


_squeeze_row = operation("Squeeze", _squeeze, shape=_squeeze_shape, fault=_squeeze_fault)


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Take away axes of length 1: all of them, or those named. As ``tf.squeeze``."""
    if has_axes(axis) and not isinstance(axis, list | tuple):
        raise TypeError(f"Expected list for 'axis' argument to 'squeeze' Op, not {axis!r}.")
    listed = [] if axis is None else axis if isinstance(axis, list | tuple) else [axis]
    axes = tuple(attribute_argument(each, "axis") for each in listed)
    return run(_squeeze_row, (to_tensor(input),), axes, name=name)  # type: ignore[no-any-return]


def reshape(tensor: Any, shape: Any, name: str | None = None) -> EagerTensor:
    """Arrange the same elements in another shape; one length may be -1. As ``tf.reshape``."""
    return run(RESHAPE, (to_tensor(tensor),), shape_input(shape), name=name)  # type: ignore[no-any-return]


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> EagerTensor:
    """Swap the last two axes. As ``tf.linalg.matrix_transpose``.

    Raises:
        ValueError: There are no two axes.
    """
    tensor, conjugated = to_tensor(a), flag_argument(conjugate, "conjugate")
    rank = rank_of(tensor)
    if rank is None:
        axes = number_of_axes(tensor)
        order = concat([range_of(axes - 2), [axes - 1, axes - 2]], 0)
        return transpose(tensor, order, conjugated, name)
    if rank < 2:
        raise ValueError(
            f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {tensor} with shape: "
            f"{tensor.shape}"
        )
    return transpose(tensor, [*range(rank - 2), rank - 1, rank - 2], conjugated, name)


def adjoint(matrix: Any, name: str | None = None) -> EagerTensor:
    """Swap the last two axes and conjugate. As ``tf.linalg.adjoint``."""
    return matrix_transpose(matrix, conjugate=True)


__all__ = ["adjoint", "expand_dims", "matrix_transpose", "reshape", "squeeze", "transpose"]
