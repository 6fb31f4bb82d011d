"""Gradients of operations that put elements at places."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.autodiff.broadcasting import shape_of
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.indexing.gathering import gather_nd
from allotment.tf.ops.indexing.scattering import scatter_nd, tensor_scatter_nd_update
from allotment.tf.ops.math.comparison import equal


@gradient("ScatterNd", inputs=(1,))
def _scatter(call: Call, upstream: Any) -> Any:
    return gather_nd(upstream, call.inputs[1])


@gradient("TensorScatterUpdate", inputs=(2,))
def _update(call: Call, upstream: Any) -> list[Any]:
    _, updates, indices = call.inputs
    kept = tensor_scatter_nd_update(upstream, indices, zeros(shape_of(updates), updates._dtype))
    return [kept, gather_nd(upstream, indices)]


@gradient("TensorScatterAdd", inputs=(2,))
def _add(call: Call, upstream: Any) -> list[Any]:
    return [upstream, gather_nd(upstream, call.inputs[2])]


@gradient("TensorScatterSub", inputs=(2,))
def _subtract(call: Call, upstream: Any) -> list[Any]:
    return [upstream, -gather_nd(upstream, call.inputs[2])]


@gradient("TensorScatterMin", "TensorScatterMax", outputs=True)
def _extreme(call: Call, upstream: Any) -> list[Any]:
    (array, updates, indices), made = call.inputs, call.outputs[0]
    kept = cast(equal(array, made), upstream._dtype)
    chosen = cast(equal(updates, gather_nd(made, indices)), upstream._dtype)
    # Equal elements at a place share it.
    share = upstream / (kept + scatter_nd(indices, chosen, shape_of(array)))
    return [share * kept, gather_nd(share, indices) * chosen]


__all__: list[str] = []
