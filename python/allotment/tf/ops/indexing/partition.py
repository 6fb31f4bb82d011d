"""Operations that divide slices among tensors by number, and their opposite; places as numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment import errors
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.integers import attribute_argument, to_tensors
from allotment.tf.ops.arrays import Array, full
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor


def _first(found: Array) -> str:
    """The place of the first true element as error texts show it: ``[1,2]``."""
    place = np.unravel_index(int(np.argmax(found)), found.shape)
    return f"[{','.join(map(str, place))}]" if found.ndim else ""


def _partition_fault(data: Array, partitions: Array, count: int) -> str | None:
    if data.shape[: partitions.ndim] != partitions.shape:
        return (
            f"data.shape must start with partitions.shape, got data.shape = {dims(data)}, "
            f"partitions.shape = {dims(partitions)}"
        )
    outside = (partitions < 0) | (partitions >= count)
    if outside.any():
        number = partitions.reshape(-1)[int(np.argmax(outside))]
        return f"partitions{_first(outside)} = {number} is not in [0, {count})"
    return None


def _partition(data: Array, partitions: Array, count: int) -> tuple[Array, ...]:
    return tuple(data[partitions == number] for number in range(count))


def _partition_shape(c: Inference, count: int) -> list[Output]:
    data, partitions = c.shape(0), c.shape(1)
    if data is None or partitions is None:
        return [(c.dtype(), None)] * count
    if len(data) < len(partitions):
        c.refuse(f"Shape must be at least rank {len(partitions)} but is rank {len(data)}")
    c.merged(data[: len(partitions)], partitions)
    return [(c.dtype(), (None, *data[len(partitions) :]))] * count


_partition_row = operation(
    "DynamicPartition", _partition, shape=_partition_shape, makes_tuple=True, fault=_partition_fault
)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> list[EagerTensor]:
    """Sort slices into tensors by number. As ``tf.dynamic_partition``.

    Raises:
        InvalidArgumentError: A number is none of a tensor, or the shapes do not go together.
    """
    count = attribute_argument(num_partitions, "num_partitions")
    if count < 1:
        raise faults.below_minimum("DynamicPartition", "num_partitions", count, 1, name)
    numbers = to_tensor(partitions, like=int32)
    return list(run(_partition_row, (to_tensor(data), numbers), count, name=name))


def _halves(arrays: Sequence[Array]) -> tuple[Sequence[Array], Sequence[Array]]:
    count = len(arrays) // 2
    return arrays[:count], arrays[count:]


def _stitch_fault(*arrays: Array) -> str | None:
    data, indices = _halves(arrays)
    rest = data[0].shape[indices[0].ndim :]
    for which, (values, places) in enumerate(zip(data, indices, strict=True)):
        if values.shape[: places.ndim] != places.shape:
            return f"data[{which}].shape = {dims(values)} does not start with indices[{which}].shape = {dims(places)}"
        if values.shape[places.ndim :] != rest:
            return (
                f"Need data[0].shape[{indices[0].ndim}:] = data[{which}].shape[{places.ndim}:], got data[0].shape = "
                f"{dims(data[0])}, data[{which}].shape = {dims(values)}, indices[0].shape = {dims(indices[0])}, "
                f"indices[{which}].shape = {dims(places)}"
            )
    for places in indices:
        if (places < 0).any():
            return f"indices{_first(places < 0)} is out of range"
    return None


def _stitch(*arrays: Array) -> Array:
    data, indices = _halves(arrays)
    rest = data[0].shape[indices[0].ndim :]
    length = max((int(places.max()) + 1 for places in indices if places.size), default=0)
    dtype = data[0].dtype
    made = full((length, *rest), b"" if dtype.kind == "O" else 0, dtype, like=data[0])
    for values, places in zip(data, indices, strict=True):
        made[places.reshape(-1)] = values.reshape(places.size, *rest)
    return made


def _stitch_shape(c: Inference) -> list[Output]:
    count = len(c.inputs) // 2
    rest: Dims = None
    largest: int | None = -1
    for index in range(count):
        data, places = c.shape(index), c.shape(count + index)
        if data is not None and places is not None:
            if len(data) < len(places):
                c.refuse(f"Shape must be at least rank {len(places)} but is rank {len(data)}")
            c.merged(data[: len(places)], places)
            rest = c.merged(rest, data[len(places) :])
        value = c.value(count + index)
        largest = None if value is None or largest is None else max(largest, int(value.max(initial=-1)))
    return c.one(None if rest is None else (None if largest is None else largest + 1, *rest))


_stitch_row = operation("DynamicStitch", _stitch, shape=_stitch_shape, fault=_stitch_fault)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> EagerTensor:
    """Put slices of several tensors at places of one; the last one at a place stays. As ``tf.dynamic_stitch``.

    Raises:
        InvalidArgumentError: The shapes do not go together, or there is nothing.
        ValueError: There are not as many places as tensors.
    """
    if len(indices) != len(data):
        raise ValueError(
            "List argument 'data' to 'dynamic_stitch' Op with length "
            f"{len(data)} must match length {len(indices)} of argument 'indices'."
        )
    if not data:
        raise errors.InvalidArgumentError(
            None, None, f"DynamicStitch needs at least one tensor{faults.tail('DynamicStitch', name)}"
        )
    places = [to_tensor(each, like=int32) for each in indices]
    # The slices come first, so that they, and not the places, say where the result is kept.
    return run(_stitch_row, [*to_tensors(data), *places], name=name)  # type: ignore[no-any-return]


def _unravel_fault(indices: Array, lengths: Array) -> str | None:
    if indices.ndim > 1:
        return f'The indices can only be scalar or vector, got "{dims(indices)}"'
    if lengths.ndim != 1:
        return f'The dims must be a vector, got "{dims(lengths)}"'
    if (lengths < 0).any():
        place = int(np.argmax(lengths < 0))
        return f"Input dims cannot be negative. Got dim = {lengths[place]} at index {place}"
    if ((indices < 0) | (indices >= np.prod(lengths, dtype=np.int64))).any():
        return "index is out of bound as with dims"
    return None


def _unravel_shape(c: Inference) -> list[Output]:
    places, lengths = c.at_most(0, 1), c.ranked(1, 1)
    return c.one(None if places is None else (lengths[0], *places))


_unravel = operation(
    "UnravelIndex",
    lambda indices, lengths: np.stack(np.unravel_index(indices, tuple(lengths.tolist()))).astype(
        indices.dtype
    ),
    shape=_unravel_shape,
    fault=_unravel_fault,
    kinds=("CPU",),
)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> EagerTensor:
    """The coordinates of elements that are numbered row by row. As ``tf.unravel_index``.

    Raises:
        InvalidArgumentError: A number is outside of the shape.
    """
    return run(_unravel, to_pair(indices, dims), name=name)  # type: ignore[no-any-return]


def _permutation_fault(x: Array) -> str | None:
    if x.ndim != 1:
        return "invert_permutation expects a 1D vector."
    seen = set()
    for place in x.tolist():
        if not 0 <= place < len(x):
            return f"{place} is not between 0 and {len(x)}"
        if place in seen:
            return f"{place} is duplicated in the input."
        seen.add(place)
    return None


def _inverted(x: Array) -> Array:
    """Return the inverse of a permutation."""
    made = np.empty_like(x)
    made[x] = np.arange(len(x), dtype=x.dtype, like=x)
    return made


def _inverted_shape(c: Inference) -> list[Output]:
    return c.one(c.ranked(0, 1))


_invert = operation("InvertPermutation", _inverted, shape=_inverted_shape, fault=_permutation_fault)


def invert_permutation(x: Any, name: str | None = None) -> EagerTensor:
    """The permutation that undoes another. As ``tf.math.invert_permutation``.

    Raises:
        InvalidArgumentError: It is none.
    """
    tensor = to_tensor(x)
    return run(_invert, (tensor,), name=name)  # type: ignore[no-any-return]


__all__ = ["dynamic_partition", "dynamic_stitch", "invert_permutation", "unravel_index"]
