"""Parts of texts, and joining along axes."""

from itertools import pairwise
from typing import Any

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.arguments.axes import axes_argument
from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.array.shapes import rank as number_of_axes
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_fixed_type, to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import reduced
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.math.sequences import range as range_of
from allotment.tf.ops.table import CPU_ONLY, broadcast_fault, dims, operation
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.tensor import EagerTensor

_TEXTS: Any = {"kinds": CPU_ONLY}


def _characters(text: bytes) -> list[bytes]:
    """The characters of UTF-8 text: each but the first begins with a byte that does not look like 10xxxxxx."""
    starts = [place for place, byte in enumerate(text) if place == 0 or byte & 0xC0 != 0x80] + [len(text)]
    return [text[start:stop] for start, stop in pairwise(starts)]


def _cut(text: bytes, first: int, count: int, unit: str) -> bytes | None:
    """A part of a text, ``None`` if it begins outside.

    A negative length is one without end to TensorFlow in bytes, and in characters none, or an error from the end.
    """
    parts: Any = text if unit == "BYTE" else _characters(text)
    size = len(parts)
    if not -size <= first <= size or (first < 0 and count < 0 and unit != "BYTE"):
        return None
    start = first + size if first < 0 else first
    if unit != "BYTE":
        return b"".join(parts[start : start + max(count, 0)])
    return bytes(parts[start:] if count < 0 else parts[start : start + count])


def _spread(*arrays: Array) -> Any:
    spread = np.broadcast_arrays(*arrays)
    return spread, np.ndindex(spread[0].shape)


def _substr_fault(texts: Array, first: Array, count: Array, unit: str) -> str | None:
    if first.shape != count.shape:
        return f"pos and len should have the same shape, got: {dims(first)} vs. {dims(count)}"
    if broadcast_fault((texts, first)) is not None:
        return broadcast_fault((texts, first))
    (spread, starts, counts), places = _spread(texts, first, count)
    for number, place in enumerate(places):
        if _cut(spread[place], int(starts[place]), int(counts[place]), unit) is None:
            text = spread[place].decode("utf-8", "replace")
            return f"pos {starts[place]} out of range for string b'{text}' at index {number}"
    return None


def _substr(texts: Array, first: Array, count: Array, unit: str) -> Array:
    (spread, starts, counts), places = _spread(texts, first, count)
    made = np.empty(spread.shape, object)
    for place in places:
        made[place] = _cut(spread[place], int(starts[place]), int(counts[place]), unit)
    return made


def _substr_shape(c: Inference, unit: str) -> list[Output]:
    first = c.merged(c.shape(1), c.shape(2))
    return c.one(c.broadcast(c.shape(0), first))


_substr_row = operation("Substr", _substr, shape=_substr_shape, fault=_substr_fault, **_TEXTS)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> EagerTensor:  # noqa: A002
    """Parts of texts by where they begin and how long they are. As ``tf.strings.substr``.

    Raises:
        InvalidArgumentError: One begins outside of its text, or there is no such unit.
    """
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise faults.not_listed("Substr", "unit", unit, ("BYTE", "UTF8_CHAR"), name)
    first, count = to_pair(pos, len)
    return run(_substr_row, (*to_fixed_type(string, input), first, count), unit, name=name)  # type: ignore[no-any-return]


def _bytes(value: Any) -> bytes:
    return bytes(to_tensor(value, string)._array.item())


def _reduce_fault(array: Array, axes: tuple[int, ...], keep: bool, separator: bytes) -> str | None:
    for axis in axes:
        if not -array.ndim <= axis < array.ndim:
            return faults.OutOfRange(
                f"Invalid reduction dimension {axis} for input with {array.ndim} dimension(s)"
            )
    return None


def _reduce(array: Array, axes: tuple[int, ...], keep: bool, separator: bytes) -> Array:
    places = tuple(axis % array.ndim for axis in axes)
    kept = [axis for axis in range(array.ndim) if axis not in places]
    # The first axis that was given is joined first.
    turned = array.transpose([*kept, *places[::-1]])
    shape = turned.shape[: len(kept)]
    made = np.empty(shape, object)
    for place in np.ndindex(shape):
        made[place] = separator.join(turned[place].reshape(-1)) if places else turned[place]
    return (
        made.reshape([1 if axis in places else length for axis, length in enumerate(array.shape)])
        if keep
        else made
    )


_reduce_row = operation("ReduceJoin", _reduce, shape=reduced, fault=_reduce_fault, **_TEXTS)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "", name: str | None = None
) -> EagerTensor:
    """Join texts along axes, all of them unless given. As ``tf.strings.reduce_join``.

    Raises:
        OutOfRangeError: There is no such axis.
    """
    (texts,) = to_fixed_type(string, to_tensor(inputs), plain=not isinstance(axis, list | tuple))
    rank = rank_of(texts)
    axes: Any
    if axis is not None:
        axes = axes_argument(axis)
    elif rank is not None:
        axes = tuple(range(rank))[::-1]
    else:
        axes = axes_argument(range_of(number_of_axes(texts))[::-1])
    keep = attribute_flag(keepdims, "keep_dims")
    return run(_reduce_row, (texts,), axes, keep, _bytes(separator), name=name)  # type: ignore[no-any-return]


__all__ = ["reduce_join", "substr"]
