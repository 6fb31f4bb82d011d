"""Operations that join tensors along an axis."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.integers import (
    attribute_argument,
    axis_of,
    check_scalar,
    number_argument,
    to_tensors,
)
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.conversion.packing import PACK
from allotment.tf.ops.convert import holds_tensors, to_tensor
from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    added,
    unknown,
)
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor


def _concat_fault(*arrays: Array, axis: int) -> str | None:
    first = arrays[0]
    if first.ndim == 0:
        return "ConcatOp : Can't concatenate scalars (use tf.stack instead)"
    if not -first.ndim <= axis < first.ndim:
        return (
            "ConcatOp : Expected concatenating dimensions in the range "
            f"[{-first.ndim}, {first.ndim}), but got {axis}"
        )
    place = axis_of(axis, first.ndim)
    for index, array in enumerate(arrays):
        shapes = f"shape[0] = {dims(first)} vs. shape[{index}] = {dims(array)}"
        if array.ndim != first.ndim:
            return f"ConcatOp : Ranks of all input tensors should match: {shapes}"
        for dim in range(first.ndim):
            if dim != place and array.shape[dim] != first.shape[dim]:
                return f"ConcatOp : Dimension {dim} in both shapes must be equal: {shapes}"
    return None


def _concat_shape(c: Inference, axis: Any) -> list[Output]:
    shapes = c.shapes()
    known = [each for each in shapes if each is not None]
    if not known:
        return c.one(None)
    if any(len(each) == 0 for each in known):
        c.refuse("Can't concatenate scalars (use tf.stack instead)")
    if type(axis) is Deferred:
        return c.one(unknown(len(known[0]) if all(len(each) == len(known[0]) for each in known) else None))
    least = -axis if axis < 0 else axis + 1
    for each in known:
        if len(each) < least:
            c.refuse(f"Shape must be at least rank {least} but is rank {len(each)}")
    place = axis % len(known[0])
    merged = c.all_merged(_without(each, place) for each in known)
    assert merged is not None
    total = added(*(None if each is None else each[place] for each in shapes))
    return c.one((*merged[:place], total, *merged[place + 1 :]))


def _without(dims: tuple[int | None, ...], place: int) -> Dims:
    """A shape with the length of one axis forgotten."""
    return (*dims[:place], None, *dims[place + 1 :])


_concat = operation(
    "ConcatV2",
    lambda *arrays, axis: np.concatenate(arrays, axis),
    shape=_concat_shape,
    fault=_concat_fault,
)


def concat(values: Any, axis: Any, name: str = "concat") -> EagerTensor:
    """Join tensors along an axis that they have. As ``tf.concat``.

    Raises:
        InvalidArgumentError: There are none, or their other axes differ.
    """
    if not isinstance(values, list | tuple):
        values = [values]
    place = number_argument(axis if len(values) > 1 else to_tensor(axis, int32), "axis")
    if thread.state.graph is not None:
        check_scalar(axis, "axis")
    if len(values) == 1:
        if np.ndim(axis):
            raise ValueError(f"axis must be one number where there is one tensor, not {axis!r}")
        return identity(values[0], name)
    if not values:
        raise errors.InvalidArgumentError(
            None, None, f"There is nothing to join: `values` is empty{faults.tail('ConcatV2', name)}"
        )
    return run(_concat, to_tensors(values), axis=place, name=name)  # type: ignore[no-any-return]


def stack(values: Any, axis: Any = 0, name: str = "stack") -> EagerTensor:
    """Join tensors of one shape along a new axis. As ``tf.stack``.

    Raises:
        ValueError: The axis is not one that the result can have.
        InvalidArgumentError: The shapes differ.
    """
    place = attribute_argument(axis, "axis")
    if place == 0 and not holds_tensors(values):
        try:
            return to_tensor(values)
        except (TypeError, ValueError):
            pass  # Looked at one by one, the values say better what is wrong.
    tensors = to_tensors(list(values))
    below = rank_of(tensors[0]) if tensors else 0
    rank = None if below is None else below + 1
    if rank is not None and not -rank <= place < rank:
        raise ValueError(f"Argument `axis` = {place} not in range [{-rank}, {rank})")
    if not tensors:
        return eager_const(np.zeros(0, np.float32))
    return run(PACK, tensors, axis=place, name=name)  # type: ignore[no-any-return]


__all__ = ["concat", "stack"]
