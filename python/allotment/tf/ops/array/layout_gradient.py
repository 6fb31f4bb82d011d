"""Gradients of operations that give a tensor another shape, or its axes another order."""

from typing import Any

from allotment.tf.ops.arguments.integers import axis_of
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.deferred import is_known, listed
from allotment.tf.ops.indexing.partition import invert_permutation


def _back(call: Call) -> Any:
    """The order that undoes the call's."""
    (order,) = call.args
    if order is None:
        return None
    if not is_known(order):
        return invert_permutation(listed(order))
    places = [axis_of(axis, len(order)) for axis in order]
    return sorted(range(len(places)), key=places.__getitem__)


@gradient("Transpose", inputs=False)
def _transpose(call: Call, upstream: Any) -> Any:
    return transpose(upstream, _back(call))


@gradient("ConjugateTranspose", inputs=False)
def _conjugate_transpose(call: Call, upstream: Any) -> Any:
    return transpose(upstream, _back(call), conjugate=True)


@gradient("Reshape", "ExpandDims", "Squeeze", inputs=False)
def _rearranged(call: Call, upstream: Any) -> Any:
    return reshape(upstream, shape_of(call.inputs[0]))


__all__: list[str] = []
