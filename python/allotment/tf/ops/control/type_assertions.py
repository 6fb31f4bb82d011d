"""Assertions about element types: what is known of them needs no kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.tf.ops.control.shape_assertions import head_of, name_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import DType, as_dtype, float32, string
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import Tensor


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Check the element type. As ``tf.debugging.assert_type``.

    Raises:
        TypeError: It is another.
    """
    made, wanted = to_tensor(tensor), as_dtype(tf_type)
    if made._dtype is not wanted:
        raise TypeError(
            f"{head_of(message)}{name_of(made, 'tensor')} must be of type {wanted!r}; got {made._dtype!r}"
        )


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Check that the elements are integers. As ``tf.debugging.assert_integer``.

    Raises:
        TypeError: They are not.
    """
    made = to_tensor(x)
    if not made._dtype.is_integer:
        raise TypeError(
            f'{head_of(message)}Expected "x" to be integer type.  Found: {name_of(made, "tensor")} of dtype '
            f"{made._dtype}"
        )


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


__all__ = [
    "assert_integer",
    "assert_proper_iterable",
    "assert_same_float_dtype",
    "assert_type",
    "is_numeric_tensor",
]
