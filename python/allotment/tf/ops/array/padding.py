"""Operations that put other elements around a tensor."""

from typing import Any

import numpy as np

from allotment.devices.dispatch import current_placement
from allotment.tf.ops import faults
from allotment.tf.ops.arguments.shapes import refused
from allotment.tf.ops.array.array import get_static_value
from allotment.tf.ops.arrays import Array, full
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import (
    Inference,
    Output,
    added,
    numbers,
    unknown,
)
from allotment.tf.ops.table import dims, operation
from allotment.tf.ops.types.element_types import check_attribute
from allotment.tf.tensors.tensor import EagerTensor, Tensor

Widths = tuple[tuple[int, int], ...]


def _pad_fault(array: Array, widths: Widths) -> str | None:
    if len(widths) != array.ndim:
        return f"The first dimension of paddings must be the rank of inputs[{len(widths)},2] {dims(array)}"
    for before, after in widths:
        if before < 0 or after < 0:
            return f"Paddings must be non-negative: {before} {after}"
    return None


def _pad(array: Array, widths: Widths, value: Array | None = None) -> Array:
    lengths = [before + length + after for (before, after), length in zip(widths, array.shape, strict=True)]
    around: Any = (b"" if array.dtype == object else 0) if value is None else value
    padded = full(lengths, around, array.dtype, like=array)
    starts = zip(widths, array.shape, strict=True)
    place: tuple[Any, ...] = tuple(slice(before, before + length) for (before, _), length in starts)
    # `...` for scalars of texts: an item of an array of objects would become the array itself.
    padded[(*place, ...)] = array
    return padded


def _pad_with_fault(array: Array, value: Array, widths: Widths) -> str | None:
    if value.ndim:
        return f"constant_values must be a scalar. Found: {dims(value)}"
    return _pad_fault(array, widths)


def _mirror_fault(array: Array, widths: Widths, mode: str) -> str | None:
    fault = _pad_fault(array, widths)
    if fault is not None:
        return fault
    for (before, after), length in zip(widths, array.shape, strict=True):
        if mode == "reflect" and max(before, after) >= max(length, 1):
            return f"paddings must be less than the dimension size: {before}, {after} not less than {length}"
        if mode == "symmetric" and max(before, after) > length:
            return f"paddings must be no greater than the dimension size: {before}, {after} greater than {length}"
    return None


def _mirror(array: Array, widths: Widths, mode: str) -> Array:
    # NumPy has no mirror image of an empty axis, even where none is wanted.
    padded: Array = np.pad(array, widths, mode) if array.size and widths else _pad(array, widths)  # type: ignore[call-overload]
    return padded


def _pad_shape(c: Inference, widths: Any, *mode: Any) -> list[Output]:
    source = c.shape()
    if len(c.inputs) > 1:
        c.ranked(1, 0)
    known: Any = numbers(widths)
    if source is None or known is None:
        return c.one(unknown(len(source) if source is not None else None if known is None else len(known)))
    if len(known) != len(source):
        c.refuse(f"Shape must be rank {len(known)} but is rank {len(source)}")
    for pair in known:
        if any(each is not None and each < 0 for each in pair):
            c.refuse(f"Paddings must be non-negative: {pair[0]}, {pair[1]}")
    return c.one(
        tuple(added(before, length, after) for (before, after), length in zip(known, source, strict=True))
    )


_pad_row = operation("Pad", _pad, shape=_pad_shape, fault=_pad_fault)


_pad_with_row = operation(
    "PadV2",
    lambda array, value, widths: _pad(array, widths, value),
    shape=_pad_shape,
    fault=_pad_with_fault,
)


_mirror_row = operation("MirrorPad", _mirror, shape=_pad_shape, fault=_mirror_fault)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> EagerTensor:
    """Put elements around a tensor. As ``tf.pad``.

    Args:
        tensor: The tensor.
        paddings: For each axis how many before and how many after.
        mode: ``"CONSTANT"``; ``"REFLECT"`` mirrors at the last element, ``"SYMMETRIC"`` behind it.
        constant_values: The value put around in the first mode.
        name: For error texts.

    Raises:
        ValueError: There is no such mode.
    """
    tensor = to_tensor(tensor)
    kind = mode.upper() if isinstance(mode, str) else mode
    if kind not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(
            'Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {mode}"
        )
    if kind != "CONSTANT":
        return run(_mirror_row, (tensor,), _widths(paddings, name), kind.lower(), name=name)  # type: ignore[no-any-return]
    if not isinstance(constant_values, Tensor) and np.isscalar(constant_values) and constant_values == 0:
        return run(_pad_row, (tensor,), _widths(paddings, name), name=name)  # type: ignore[no-any-return]
    value = to_tensor(constant_values, like=tensor._dtype)
    return run(_pad_with_row, (tensor, value), _widths(paddings, name), name=name)  # type: ignore[no-any-return]


def _widths(paddings: Any, name: str | None) -> Widths:
    given = to_tensor(paddings)
    if type(given) is not EagerTensor and get_static_value(given) is None:
        # Known when the graph runs.
        check_attribute("Pad", "Tpaddings", given._dtype, name)
        numbers: Any = current_placement()
        return numbers.numbers(given)  # type: ignore[no-any-return]
    array = given._on_host()
    if array.size:
        check_attribute("Pad", "Tpaddings", given._dtype, name)
    if array.ndim != 2 or array.shape[1] != 2:
        if array.size == 0:
            return ()
        raise refused(
            array, f"paddings must be a matrix with 2 columns: {dims(array)}{faults.tail('Pad', name)}"
        )
    return tuple((int(before), int(after)) for before, after in array)


__all__ = ["pad"]
