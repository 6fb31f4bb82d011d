"""Operations that repeat elements along axes."""

from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import kernel_error, numbers_argument
from allotment.tf.ops.array.array import widened
from allotment.tf.ops.array.creation import is_length, ones, shape_input
from allotment.tf.ops.array.layout import reshape
from allotment.tf.ops.array.shapes import size_of
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import (
    Inference,
    Output,
    added,
    multiplied,
    numbers,
    unknown,
)
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import Host, dims, operation
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor, Tensor
from allotment.tf.tensors.tensor_shape import TensorShape


def _broadcast_fault(array: Array, shape: tuple[int, ...]) -> str | None:
    if any(length < 0 for length in shape):
        return f"Dimension {min(shape)} must be >= 0"
    if array.ndim > len(shape):
        return f"Rank of input ({array.ndim}) must be no greater than rank of output shape ({len(shape)})."
    wanted = ",".join(map(str, shape))
    # Not by NumPy, which finds fault with shapes that are only too large.
    pairs = list(zip(array.shape[::-1], shape[::-1], strict=False))
    if any(length != 1 and target not in (1, length) for length, target in pairs):
        return f"Incompatible shapes: {dims(array)} vs. [{wanted}]"
    if any(length not in (1, target) for length, target in pairs):
        return f"Unable to broadcast tensor of shape {dims(array)} to tensor of shape [{wanted}]"
    return None


def _broadcast_to_shape(c: Inference, shape: Any) -> list[Output]:
    source, dims = c.shape(), c.requested(shape)
    if dims is None or source is None:
        return c.one(dims)
    if len(source) > len(dims):
        c.refuse(f"Rank of input ({len(source)}) must be no greater than rank of output shape ({len(dims)})")
    for have, wanted in zip(reversed(source), reversed(dims), strict=False):
        # TensorFlow leaves lengths of zero to the session.
        if have not in (None, 0, 1, wanted) and wanted is not None:
            c.refuse(f"Dimensions must be equal, but are {have} and {wanted}")
    return c.one(dims)


_broadcast_to = operation(
    "BroadcastTo",
    lambda array, shape: np.broadcast_to(array, shape).copy(),
    shape=_broadcast_to_shape,
    fault=_broadcast_fault,
)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """Repeat a tensor along new and longer axes; the result has memory of its own. As ``tf.broadcast_to``."""
    return run(  # type: ignore[no-any-return]
        _broadcast_to, (to_tensor(input),), shape_input(shape), name=name
    )


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape of the result of an operation on two shapes. As ``tf.broadcast_static_shape``.

    Raises:
        ValueError: They do not go together.
    """
    x, y = shape_x.dims, shape_y.dims
    if x is None or y is None:
        return TensorShape(None)
    lengths: list[int | None] = []
    for index in range(-max(len(x), len(y)), 0):
        pair = {x[index] if -index <= len(x) else 1, y[index] if -index <= len(y) else 1}
        known = pair - {1, None}
        if len(known) > 1:
            raise ValueError(
                "Incompatible shapes for broadcasting. Two shapes are compatible if for each dimension pair they "
                f"are either equal or one of them is 1. Received: {shape_x} and {shape_y}."
            )
        # An unknown length may be 1: beside a known one that is longer, that one is the result's.
        lengths.append(known.pop() if known else None if None in pair else 1)
    return TensorShape(lengths)


def _broadcast_args_fault(x: Array, y: Array) -> str | None:
    try:
        np.broadcast_shapes(tuple(x), tuple(y))
    except ValueError:
        return f"Incompatible shapes: [{','.join(map(str, x))}] vs. [{','.join(map(str, y))}]"
    return None


def _broadcast_args_shape(c: Inference) -> list[Output]:
    ranks = [c.ranked(index, 1)[0] for index in (0, 1)]
    return c.one((None if None in ranks else max(rank for rank in ranks if rank is not None),))


_broadcast_args = operation(
    "BroadcastArgs",
    lambda x, y: np.array(np.broadcast_shapes(tuple(x), tuple(y)), x.dtype),
    shape=_broadcast_args_shape,
    fault=_broadcast_args_fault,
    host=Host.ALL,
)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> EagerTensor:
    """The shape of the result of an operation on two shapes, as a tensor. As ``tf.broadcast_dynamic_shape``."""
    shapes = (to_tensor(shape, like=int32) for shape in (shape_x, shape_y))
    return run(_broadcast_args, tuple(shapes))  # type: ignore[no-any-return]


def _tile_fault(array: Array, multiples: tuple[int, ...]) -> str | None:
    if len(multiples) != array.ndim:
        return f"Expected multiples argument to be a vector of length {array.ndim} but got length {len(multiples)}"
    for index, times in enumerate(multiples):
        if times < 0:
            return f"Expected multiples[{index}] >= 0, but got {times}"
    return _type_fault(array, multiples)


def _type_fault(array: Array, multiples: tuple[int, ...]) -> str | None:
    """TensorFlow's words for the one type that its kernel of ``Tile`` is registered for and cannot repeat."""
    if array.dtype != np.uint16 or array.size == 0 or 0 in multiples or set(multiples) <= {1}:
        return None
    return faults.Unimplemented(
        f"TileOp : The input data type is not supported, DataType : uint16, Dimension : {array.ndim}"
    )


def _tile(array: Array, multiples: tuple[int, ...]) -> Array:
    if not multiples:
        return array.copy()
    # Through one broadcast copy: NumPy's own tile makes an array for every axis on the way.
    spread = array[tuple(step for _ in multiples for step in (np.newaxis, slice(None)))]
    pairs = zip(multiples, array.shape, strict=True)
    repeated = np.broadcast_to(spread, [length for pair in pairs for length in pair]).copy()
    return repeated.reshape([times * length for times, length in zip(multiples, array.shape, strict=True)])


def _tile_shape(c: Inference, multiples: Any) -> list[Output]:
    source, times = c.shape(), c.requested(multiples)
    if times is None:
        return c.one(unknown(None if source is None else len(source)))
    if source is None:
        source = (None,) * len(times)
    if len(source) != len(times):
        c.refuse(f"Shape must be rank {len(times)} but is rank {len(source)}")
    return c.one(tuple(multiplied(*pair) for pair in zip(source, times, strict=True)))


_tile_row = operation("Tile", _tile, shape=_tile_shape, fault=_tile_fault)


def tile(input: Any, multiples: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """Repeat a tensor several times along each of its axes. As ``tf.tile``."""
    check_whole("Tile", "Tmultiples", multiples, name, is_int32=isinstance(input, Tensor))
    times = numbers_argument(multiples, "multiples")
    if is_length(multiples):
        raise kernel_error(errors.InvalidArgumentError, "Expected multiples to be 1-D, but got shape []")
    return run(_tile_row, (to_tensor(input),), times, name=name)  # type: ignore[no-any-return]


def _repeat_fault(array: Array, repeats: tuple[int, ...], axis: int) -> str | None:
    if any(times < 0 for times in repeats):
        return f"repeats must be >= 0, but got {min(repeats)}"
    if len(repeats) not in (1, array.shape[axis]):
        return f"Dimensions {array.shape[axis]} and {len(repeats)} are not compatible"
    return _type_fault(array, (max(repeats, default=1),))


def _repeat_shape(c: Inference, repeats: Any, axis: int) -> list[Output]:
    source, times = c.shape(), numbers(repeats)
    if source is None:
        return c.one(None)
    place = c.axis(axis, len(source))
    if place is None:
        return c.one(unknown(len(source)))
    dims = list(source)
    if times is None or any(each is not None and each < 0 for each in times):
        dims[place] = None
    elif len(times) == 1:
        dims[place] = multiplied(source[place], times[0])
    else:
        c.same(source[place], len(times))
        dims[place] = added(*times)
    return c.one(tuple(dims))


_repeat_row = operation("Repeat", np.repeat, shape=_repeat_shape, fault=_repeat_fault)


@in_name_scope("Repeat", "Reshape_1")
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Repeat each element, or each slice along an axis, several times. As ``tf.repeat``.

    Without ``axis`` the tensor is made flat first. ``repeats`` is one number or one for each slice.

    Raises:
        ValueError: The axis does not exist, or there are more or fewer numbers than slices.
    """
    tensor = to_tensor(input)
    if axis is None:
        tensor, axis = reshape(tensor, [-1]), 0
    if not isinstance(axis, int):
        raise TypeError(
            f"Argument `axis` must be an int. Received `axis` = {axis} of type {type(axis).__name__}"
        )
    place = int(axis)
    rank = rank_of(tensor)
    if rank is None and place < 0:
        raise ValueError(f"axis={place} may only be negative if rank(input) is statically known.")
    if rank == 0:
        tensor, rank = reshape(tensor, [1]), 1
    if rank is not None and not -rank <= place < rank:
        raise ValueError(f"axis={place} out of bounds: expected {-rank}<=axis<{rank}")
    times = numbers_argument(widened(repeats), "repeats")
    if is_known(times) and rank is not None and len(times) not in (1, tensor._array.shape[place]):
        raise ValueError(f"Dimensions {tensor._array.shape[place]} and {len(times)} are not compatible")
    return run(_repeat_row, (tensor,), times, place, name=name)  # type: ignore[no-any-return]


@in_name_scope("meshgrid", None)
def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[EagerTensor]:
    """Repeat each of several vectors along the axes of the others. As ``tf.meshgrid``.

    Args:
        *args: The vectors; other tensors are made flat.
        indexing: ``"xy"`` puts the first vector along the second axis, ``"ij"`` along the first.
        name: For error texts.

    Raises:
        ValueError: ``indexing`` is neither.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    tensors = [to_tensor(value) for value in args]
    lengths = [size_of(tensor) for tensor in tensors]
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[:2] = (1, 0)
    shape = [lengths[place] for place in order]
    # The product with ones is broadcast, and refused where TensorFlow refuses it: texts, and types that differ.
    factor = ones(shape, tensors[0]._dtype) if tensors else None
    grid = []
    for place, tensor in enumerate(tensors):
        along = [1] * len(tensors)
        along[order.index(place)] = lengths[place]
        grid.append(reshape(tensor, along) * factor)
    return grid


__all__ = ["broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "meshgrid", "repeat", "tile"]
