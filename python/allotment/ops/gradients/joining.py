"""Gradients of operations that join tensors and take them apart."""

from typing import Any

from allotment.ops.arguments import axis_of
from allotment.ops.differentiation import Call, gradient
from allotment.ops.gradients.broadcasting import lengths_of
from allotment.ops.joining import concat, split, stack, unstack


@gradient("ConcatV2", inputs=False)
def _concat(call: Call, upstream: Any) -> list[Any]:
    axis = call.kwargs["axis"]
    sizes = []
    for each in call.inputs:
        lengths = lengths_of(each)
        sizes.append(int(lengths[axis_of(axis, len(lengths))]))
    return split(upstream, sizes, axis)


@gradient("Pack", inputs=False)
def _pack(call: Call, upstream: Any) -> list[Any]:
    return unstack(upstream, len(call.inputs), call.kwargs["axis"])


@gradient("Unpack", inputs=False)
def _unpack(call: Call, *upstream: Any) -> Any:
    return stack(list(upstream), call.args[1])


@gradient("Split", "SplitV", inputs=False)
def _split(call: Call, *upstream: Any) -> Any:
    return concat(list(upstream), call.args[1])


__all__: list[str] = []
