"""Kernels that go over arrays block by block, so that what they compute on the way stays in the processor's cache.

The temporaries of such a kernel are as large as a block, and not as the result.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Final, ParamSpec

import numpy as np

from allotment.tf.ops.arrays import Array, as_array, full, is_host

#: Elements of a block. With fewer the calls of NumPy themselves take more time, with more the cache is left.
BLOCK: Final = 1 << 15

_Parameters = ParamSpec("_Parameters")


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Iterate over arrays that are broadcast to the first, a block of each at a time.

    The first array is contiguous. Blocks of the arrays may be broadcast to the block of the first themselves.
    """
    first = arrays[0]
    if first.size <= BLOCK or not is_host(first):
        yield arrays
    elif all(each.shape == first.shape or each.size == 1 for each in arrays):
        flat = [each.reshape(()) if each.size == 1 else each.reshape(-1) for each in arrays]
        for start in range(0, first.size, BLOCK):
            yield tuple(each[start : start + BLOCK] if each.ndim else each for each in flat)
    else:
        whole = [np.broadcast_to(each, first.shape) if index else each for index, each in enumerate(arrays)]
        rows = max(BLOCK // math.prod(first.shape[1:]), 1)
        for start in range(0, len(first), rows):
            yield tuple(each[start : start + rows] for each in whole)


def in_blocks(
    kernel: Callable[Concatenate[Array, Array, _Parameters], Any],
) -> Callable[Concatenate[Array, _Parameters], Array]:
    """Make an element-wise kernel of one input out of one that fills its first argument, a block of the result."""

    def call(x: Array, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Array:
        result = np.empty(x.shape, x.dtype, like=x)
        for out, part in blocks(result, x):
            kernel(out, part, *args, **kwargs)
        return result

    return call


def pair_in_blocks(
    kernel: Callable[Concatenate[Array, Array, Array, _Parameters], Any],
) -> Callable[Concatenate[Array, Array, _Parameters], Array]:
    """Compute in blocks, as above, with two inputs of one type that are broadcast to each other."""

    def call(x: Array, y: Array, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Array:
        shape = x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape)
        result = np.empty(shape, x.dtype, like=x)
        for out, a, b in blocks(result, x, y):
            kernel(out, a, b, *args, **kwargs)
        return result

    return call


#: Integers that masks of the bits of an element are made of, by the element's bytes.
_INTEGERS: Final = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
#: Below as many elements NumPy's branches cost less than the calls that do without.
_FEW: Final = 1 << 10


def choose(condition: Array, x: Array, y: Array) -> Array:
    """Take elements of ``x`` where a condition is true, else of ``y``: ``np.where`` without its branches.

    A branch that depends on the elements is guessed wrongly as often as not. Here the bits of both are combined.
    """
    few = max(condition.size, x.size, y.size) <= _FEW or not is_host(x)
    if few or x.dtype.hasobject or x.dtype.itemsize not in _INTEGERS:
        return as_array(np.where(condition, x, y))
    result = np.empty(np.broadcast_shapes(condition.shape, x.shape, y.shape), x.dtype, like=x)
    for out, test, a, b in blocks(result, condition, x, y):
        choose_into(out, test, a, b)
    return result


def choose_into(out: Array, condition: Array, x: Array, y: Array) -> None:
    """Fill an array by ``choose``; it may be ``x``, but not ``y``."""
    if out.size <= _FEW or not is_host(out):
        np.copyto(out, np.where(condition, x, y))
        return
    integer = _INTEGERS[out.dtype.itemsize]
    # -1 has all bits set.
    mask = np.negative(condition.view(np.int8), dtype=integer)
    bits, other = out.view(integer), y.view(integer)
    np.bitwise_xor(x.view(integer), other, out=bits)
    np.bitwise_and(bits, mask, out=bits)
    np.bitwise_xor(bits, other, out=bits)


def limit(ufunc: np.ufunc, x: Array, bound: Any, out: Array | None = None) -> Any:
    """Compute the maximum or the minimum of elements and one number: NumPy has vector code for two arrays only."""
    if x.size <= _FEW or not is_host(x):
        return ufunc(x, bound, out=out)
    result = np.empty(x.shape, x.dtype, like=x) if out is None else out
    level = full(min(x.size, BLOCK), bound, x.dtype, like=x)
    for filled, part in blocks(result, x):
        ufunc(part, level[: part.size].reshape(part.shape), out=filled)
    return result


__all__ = ["BLOCK", "blocks", "choose", "choose_into", "in_blocks", "limit", "pair_in_blocks"]
