"""Assertions about shapes and element types, which need no kernel."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from allotment.dtypes import DType, as_dtype, float32, int32, string
from allotment.dtypes import bool as bool_
from allotment.ops.convert import to_tensor
from allotment.tensor import EagerTensor, Reference, Tensor


def _head(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _rank_of(rank: Any) -> int:
    tensor = to_tensor(rank)
    if tensor._dtype is not int32:
        raise TypeError(f"tensor must be of type {int32!r}; got {tensor._dtype!r}")
    if tensor._array.ndim:
        raise ValueError("Rank must be a scalar.")
    return int(tensor._array)


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Check how many axes there are. As ``tf.debugging.assert_rank``.

    Raises:
        ValueError: Another number.
    """
    tensor, wanted = to_tensor(x), _rank_of(rank)
    if tensor.ndim != wanted:
        raise ValueError(
            f"{_head(message)}Tensor  must have rank {wanted}.  Received rank {tensor.ndim}, shape {tensor.shape}"
        )


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Check that there are so many axes or more. As ``tf.debugging.assert_rank_at_least``.

    Raises:
        ValueError: There are fewer.
    """
    tensor, wanted = to_tensor(x), _rank_of(rank)
    if tensor.ndim < wanted:
        raise ValueError(
            f"{_head(message)}Tensor  must have rank at least {wanted}.  Received rank {tensor.ndim}, shape "
            f"{tensor.shape}"
        )


def assert_rank_in(x: Any, ranks: Iterable[Any], message: str | None = None, name: str | None = None) -> None:
    """Check that the number of axes is one of several. As ``tf.debugging.assert_rank_in``.

    Raises:
        ValueError: It is none of them.
    """
    tensor, wanted = to_tensor(x), tuple(map(_rank_of, ranks))
    if tensor.ndim not in wanted:
        raise ValueError(
            f"{_head(message)}Tensor  must have rank in {wanted}.  Received rank {tensor.ndim}, shape {tensor.shape}"
        )


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Check that there are no axes. As ``tf.debugging.assert_scalar``.

    Raises:
        ValueError: It has some.
    """
    made = to_tensor(tensor)
    if made.ndim:
        raise ValueError(f"{_head(message)}Expected scalar shape, saw shape: {made.shape}.")


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Check the element type. As ``tf.debugging.assert_type``.

    Raises:
        TypeError: It is another.
    """
    found, wanted = to_tensor(tensor)._dtype, as_dtype(tf_type)
    if found is not wanted:
        raise TypeError(f"{_head(message)}tensor must be of type {wanted!r}; got {found!r}")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Check that the elements are integers. As ``tf.debugging.assert_integer``.

    Raises:
        TypeError: They are not.
    """
    found = to_tensor(x)._dtype
    if not found.is_integer:
        raise TypeError(f'{_head(message)}Expected "x" to be integer type.  Found: tensor of dtype {found}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers. As ``tf.debugging.is_numeric_tensor``."""
    return isinstance(tensor, Tensor) and tensor.dtype not in (bool_, string)


def assert_proper_iterable(values: Any) -> None:
    """Check that it is an iterable, and no tensor, array or text. As ``tf.debugging.assert_proper_iterable``.

    Raises:
        TypeError: It is not.
    """
    if isinstance(values, Tensor | np.ndarray | str | bytes):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """Return the one type of floats that all have, float32 if there are none.

    As ``tf.debugging.assert_same_float_dtype``.

    Raises:
        ValueError: They have several, or one that is no float.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for tensor in tensors or ():
        if tensor is None:
            continue
        if wanted is not None and tensor.dtype is not wanted:
            raise ValueError(f"{tensor!s}, type={tensor.dtype}, must be of the same type ({wanted}).")
        wanted = tensor.dtype
    wanted = wanted or float32
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted}.")
    return wanted


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Check shapes in which a letter stands for one length. As ``tf.debugging.assert_shapes``.

    Args:
        shapes: Pairs of a tensor and its lengths: numbers, or anything else that stands for one length everywhere;
            ``None`` and ``"."`` for any length, a first ``...`` or ``"*"`` for any number of axes.
        data: Not looked at.
        summarize: Not looked at.
        message: How the error's text begins.
        name: Not looked at.

    Raises:
        ValueError: A shape is another.
    """
    pairs = shapes.items() if isinstance(shapes, dict) else shapes
    known: dict[Any, tuple[int, str]] = {}
    for given, symbols in pairs:
        tensor = to_tensor(given.deref() if isinstance(given, Reference) else given)
        _check_lengths(tensor, symbols, known, message)


def _check_lengths(
    tensor: EagerTensor, symbols: Any, known: dict[Any, tuple[int, str]], message: str | None
) -> None:
    wanted = list(symbols) if isinstance(symbols, Iterable) else [symbols]
    lengths, shift = list(tensor._array.shape), 0
    if wanted and wanted[0] in (..., "*"):
        wanted = wanted[1:]
        assert_rank_at_least(tensor, len(wanted), message)
        shift = tensor.ndim - len(wanted)
    elif any(each is not None for each in wanted) or tensor.ndim:
        assert_rank(tensor, len(wanted), message)
    told = f"shape={tensor.shape} dtype={tensor.dtype.name}"
    for axis, symbol in enumerate(wanted, shift):
        if symbol in (None, ".") or axis >= len(lengths):
            continue
        if isinstance(symbol, int):
            expected, source = symbol, "Specified explicitly"
        elif symbol in known:
            expected, source = known[symbol]
        else:
            known[symbol] = lengths[axis], f"Specified by tensor {told} dimension {axis}"
            continue
        if lengths[axis] != expected:
            raise ValueError(
                f"{_head(message)}{source}.  Tensor {told} dimension {axis} must have size {expected}.  Received "
                f"size {lengths[axis]}, shape {tensor.shape}"
            )


__all__ = [
    "assert_integer",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "is_numeric_tensor",
]
