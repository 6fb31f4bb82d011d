"""Gradients of reductions and running totals, and of sums of several tensors."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import fill, ones_like
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.array.shapes import shape, size
from allotment.tf.ops.autodiff.broadcasting import lengths_of, rank_of, shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient, not_differentiable
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known, listed, operand
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.indexing.partition import invert_permutation
from allotment.tf.ops.indexing.scattering import tensor_scatter_nd_update
from allotment.tf.ops.indexing.sorting import argsort
from allotment.tf.ops.math.arithmetic import maximum
from allotment.tf.ops.math.comparison import equal
from allotment.tf.ops.math.complex_numbers import conj
from allotment.tf.ops.math.division import divide_no_nan, floordiv, floormod
from allotment.tf.ops.math.real import exp, log
from allotment.tf.ops.reduction.reduce import reduce_prod, reduce_sum
from allotment.tf.ops.reduction.scan import cumprod, cumsum, cumulative_logsumexp
from allotment.tf.tensors.dtype import int32


def _kept(call: Call, reduced: Any) -> Any:
    """Reshape a reduction's result, or its gradient, so that reduced axes have the length 1."""
    axes, keepdims = call.args
    if keepdims or (axes is None and not call.inputs[0].shape.is_fully_defined()):
        # A scalar is broadcast to anything.
        return reduced
    if not is_known(axes) or call.inputs[0].shape.rank is None:
        return reshape(reduced, _kept_shape(call.inputs[0], axes))
    lengths, gone = lengths_of(call.inputs[0]), _axes(call)
    return reshape(reduced, [1 if axis in gone else length for axis, length in enumerate(lengths)])


def _kept_shape(x: Any, axes: Any) -> Any:
    """The shape of the input with ones at the reduced axes, where a graph does not know these or the rank."""
    return _marked(shape(x), axes, 1)


def _marked(numbers: Any, axes: Any, mark: int) -> Any:
    """Numbers, one for each axis, with another one at the reduced axes."""
    places = reshape(floormod(cast(to_tensor(listed(axes), like=int32), int32), size(numbers)), [-1, 1])
    return tensor_scatter_nd_update(numbers, places, fill(reshape(size(places), [1]), mark))


def _axes(call: Call) -> set[int]:
    axes, _ = call.args
    rank = rank_of(call.inputs[0])
    return set(range(rank)) if axes is None else {axis_of(axis, rank) for axis in axes}


def _spread(call: Call, upstream: Any) -> Any:
    """The gradient of the result, at each element that went into it."""
    return broadcast_to(_kept(call, upstream), shape_of(call.inputs[0]))


@gradient("Sum", inputs=False)
def _sum(call: Call, upstream: Any) -> Any:
    return _spread(call, upstream)


@gradient("Mean", inputs=False)
def _mean(call: Call, upstream: Any) -> Any:
    return _spread(call, upstream / _count(call, upstream))


def _count(call: Call, upstream: Any) -> Any:
    """Return the number of elements that are reduced to one."""
    lengths, results = call.inputs[0].shape, upstream.shape
    if lengths.is_fully_defined() and results.is_fully_defined():
        return lengths.num_elements() // max(results.num_elements(), 1)
    return cast(floordiv(size(call.inputs[0]), maximum(size(upstream), 1)), upstream._dtype)


@gradient("Max", "Min", outputs=True)
def _extreme(call: Call, upstream: Any) -> Any:
    x = call.inputs[0]
    # Equal elements share it.
    chosen = cast(equal(x, _kept(call, call.outputs[0])), upstream._dtype)
    axes = call.args[0]
    count = reduce_sum(chosen, axes if axes is None else listed(axes), keepdims=True)
    return chosen / count * _kept(call, upstream)


@gradient("EuclideanNorm", outputs=True)
def _norm(call: Call, upstream: Any) -> Any:
    # In this order zeros among the gradients are so where the norm is none.
    return call.inputs[0] / _kept(call, call.outputs[0] / upstream)


@gradient("Prod")
def _prod(call: Call, upstream: Any) -> Any:
    x, axes = call.inputs[0], call.args[0]
    if axes is None:
        return conj(reshape(_slopes(reshape(x, [-1, 1])), shape_of(x))) * _kept(call, upstream)
    if not is_known(axes) or x.shape.rank is None:
        return _prod_of_unknown(call, upstream)
    gone, lengths = _axes(call), lengths_of(x)
    rank = len(lengths)
    order = sorted(range(rank), key=lambda axis: (axis not in gone, axis))
    turned = transpose(x, order)
    rows = reshape(
        turned,
        [_product(lengths[axis] for axis in part) for part in (order[: len(gone)], order[len(gone) :])],
    )
    back = transpose(
        reshape(_slopes(rows), [lengths[axis] for axis in order]), sorted(range(rank), key=order.__getitem__)
    )
    return conj(back) * _kept(call, upstream)


def _slopes(rows: Any) -> Any:
    """For each element the product of those before and behind it along the first axis: its slope, zeros or not."""
    return cumprod(rows, 0, exclusive=True) * cumprod(rows, 0, exclusive=True, reverse=True)


def _prod_of_unknown(call: Call, upstream: Any) -> Any:
    """The same where a graph does not know the axes, or how many there are."""
    x = call.inputs[0]
    lengths = shape(x)
    results = reduce_prod(_kept_shape(x, call.args[0]))
    # The reduced axes come first.
    order = argsort(_marked(ones_like(lengths), call.args[0], 0), stable=True)
    turned = transpose(x, order)
    rows = reshape(turned, [floordiv(size(x), maximum(results, 1)), results])
    back = transpose(reshape(_slopes(rows), gather(lengths, order)), invert_permutation(order))
    return conj(back) * _kept(call, upstream)


def _product(lengths: Any) -> Any:
    total: Any = 1
    for length in lengths:
        total *= length
    return total


@gradient("Cumsum", inputs=False)
def _cumsum(call: Call, upstream: Any) -> Any:
    axis, exclusive, reverse = call.args
    return cumsum(upstream, operand(axis), exclusive, not reverse)


@gradient("Cumprod", outputs=True)
def _cumprod(call: Call, upstream: Any) -> Any:
    axis, exclusive, reverse = call.args
    total = cumsum(conj(call.outputs[0]) * upstream, operand(axis), exclusive, not reverse)
    return divide_no_nan(total, conj(call.inputs[0]))


@gradient("CumulativeLogsumexp", outputs=True)
def _cumulative_logsumexp(call: Call, upstream: Any) -> Any:
    axis, exclusive, reverse = call.args
    x, total = call.inputs[0], call.outputs[0]
    lowest = upstream._dtype.min

    def part(slopes: Any) -> Any:
        # Sums of exponentials of both signs, each by its logarithm, so that none overflows.
        logs = where(slopes > 0, log(where(slopes > 0, slopes, 1)), lowest)
        return exp(cumulative_logsumexp(logs - total, operand(axis), exclusive, not reverse) + x)

    return part(upstream) - part(-upstream)


@gradient("AddN", inputs=False, slices=True)
def _add_n(call: Call, upstream: Any) -> list[Any]:
    return [upstream] * len(call.inputs)


@gradient("L2Loss")
def _l2_loss(call: Call, upstream: Any) -> Any:
    return call.inputs[0] * upstream


not_differentiable("Any", "All", "ArgMax", "ArgMin")

__all__: list[str] = []
