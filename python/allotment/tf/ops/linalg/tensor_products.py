"""Products along chosen axes of tensors, and of vectors."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.array.array import is_tensor
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import expand_dims, reshape, squeeze, transpose
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.array.shapes import shape, shape_of
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.masking import boolean_mask, where
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.math.arithmetic import add
from allotment.tf.ops.math.comparison import less, not_equal
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_all, reduce_prod
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor


@in_name_scope("Tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> EagerTensor:
    """Multiply and sum over pairs of axes. As ``tf.tensordot``.

    Args:
        a: Numbers.
        b: The same type.
        axes: A number n, for the last n axes of ``a`` and the first n of ``b``; or two axes, or two lists of
            axes, one for ``a`` and one for ``b``.
        name: Only looked at in error texts.

    Raises:
        IndexError: ``axes`` names an axis that a tensor has not.
        TypeError: ``axes`` are no whole numbers.
        ValueError: ``axes`` is of another form.
        InvalidArgumentError: The lengths of a pair differ.
    """
    a, b = to_tensor(a), to_tensor(b)
    if not isinstance(axes, int | np.integer | list | tuple):
        both = to_tensor(axes, int32)
        axes = [each.numpy().tolist() if type(each) is EagerTensor else each for each in (both[0], both[1])]
        if is_tensor(axes[0]):
            return _of_any_rank(a, b, axes, name)
    if rank_of(a) is None or rank_of(b) is None:
        return _of_any_rank(a, b, axes, name)
    axes_a, axes_b = _pairs(axes, a.ndim, b.ndim)
    left, kept_a = _flattened(a, axes_a, last=True)
    right, kept_b = _flattened(b, axes_b, last=False)
    return reshape(matmul(left, right), list(kept_a + kept_b), name)


def _of_any_rank(a: EagerTensor, b: EagerTensor, axes: Any, name: str | None) -> EagerTensor:
    """``tensordot`` in a graph that does not know how many axes a tensor has."""
    if isinstance(axes, int | np.integer):
        last = number_of_axes(a)
        pair: Any = (range_of(last - axes, last), range_of(axes))
    else:
        pair = axes if is_tensor(axes[0]) else [to_tensor(each, int32) for each in _two_lists(axes)]
    matrices: list[Any] = []
    kept: list[Any] = []
    for tensor, places in zip((a, b), pair, strict=True):
        every = range_of(number_of_axes(tensor))
        places = where(less(places, 0), add(places, number_of_axes(tensor)), places)
        free = boolean_mask(every, reduce_all(not_equal(every[:, None], places), 1))
        first = not matrices
        order = concat([free, places] if first else [places, free], 0)
        rows, columns = (
            gather(shape(tensor), each) for each in ((free, places) if first else (places, free))
        )
        matrices.append(reshape(transpose(tensor, order), [reduce_prod(rows), reduce_prod(columns)]))
        kept.append(rows if first else columns)
    return reshape(matmul(*matrices), concat(kept, 0), name)


def _pairs(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        if axes > min(rank_a, rank_b):
            raise ValueError(
                f"`axes` must not be larger than the number of dimensions of tensor. Received: {axes}."
            )
        return list(range(rank_a - axes, rank_a)), list(range(axes))
    found = _two_lists(axes)
    for each, rank in zip(found, (rank_a, rank_b), strict=True):
        for axis in each:
            if not isinstance(axis, int | np.integer):
                raise TypeError(f"`axes` {axes} has something else than whole numbers: {axis!r}")
            if not -rank <= axis < rank:
                raise IndexError(
                    f"`axes` {axes} names an axis that a tensor with {rank} axes has not: {axis}"
                )
    return [axis % rank_a for axis in found[0]], [axis % rank_b for axis in found[1]]


def _two_lists(axes: Any) -> list[list[Any]]:
    """The axes of each tensor, where they are no single number."""
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    if all(isinstance(each, int | np.integer) for each in axes):
        return [[axes[0]], [axes[1]]]
    if not all(hasattr(each, "__len__") for each in axes):
        raise TypeError(f"`axes` must be whole numbers, or a list of them for each tensor. Received {axes}.")
    if len(axes[0]) != len(axes[1]):
        raise ValueError(
            f"Different number of contraction axes `a` and `b`, {len(axes[0])} != {len(axes[1])}."
        )
    return [list(each) for each in axes]


def _flattened(tensor: EagerTensor, axes: list[int], *, last: bool) -> tuple[EagerTensor, tuple[int, ...]]:
    """A matrix whose columns (rows, if not ``last``) run over the axes, and the lengths of the others."""
    rank = len(tensor.shape)
    kept = [axis for axis in range(rank) if axis not in axes]
    order = kept + axes if last else axes + kept
    lengths = shape_of(tensor)
    dims = [known if known is not None else lengths[axis] for axis, known in enumerate(tensor.shape)]
    rows = _product(dims[axis] for axis in (kept if last else axes))
    columns = _product(dims[axis] for axis in (axes if last else kept))
    if order != list(range(rank)):
        tensor = transpose(tensor, order)
    return reshape(tensor, [rows, columns]), tuple(dims[axis] for axis in kept)


def _product(lengths: Iterable[Any]) -> Any:
    """The product of lengths: numbers, and tensors in a graph that does not know some."""
    total: Any = 1
    for length in lengths:
        total = total * length
    return total


def _cross_fault(a: Array, b: Array) -> str | None:
    if a.shape != b.shape:
        return f"Both inputs must be of same shape: {dims(a)} vs. {dims(b)}"
    if a.ndim == 0:
        return f"Input must be at least 1D{dims(a)}"
    if a.shape[-1] != 3:
        return faults.Unprepared(f"Cross-products are only defined for 3-element vectors.{dims(a)}")
    return None


def _cross_shape(c: Inference) -> list[Output]:
    dims = c.merged(c.at_least(0, 1), c.at_least(1, 1))
    if dims is not None:
        c.same(dims[-1], 3)
    return c.one(dims)


_cross = operation("Cross", np.cross, shape=_cross_shape, fault=_cross_fault)


def cross(a: Any, b: Any, name: str | None = None) -> EagerTensor:
    """The cross product of vectors of three elements in the last axis. As ``tf.linalg.cross``."""
    return run(_cross, to_pair(a, b), name=name)  # type: ignore[no-any-return]


@in_name_scope("MatVec", None)
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> EagerTensor:
    """Multiply matrices with vectors, which are the last axis of ``b``. As ``tf.linalg.matvec``."""
    a, b = to_tensor(a), to_tensor(b)
    product = matmul(a, expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a, name=name)
    return squeeze(product, axis=-1)


__all__ = ["cross", "matvec", "tensordot"]
