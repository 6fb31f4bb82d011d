"""Operations that pick elements and slices by their numbers."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.axes import check_whole
from allotment.tf.ops.arguments.integers import attribute_argument, axis_of, scalar_argument
from allotment.tf.ops.arrays import Array, is_host, open_grid, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import Deferred, is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.indexing.slicing import take, whole_axes
from allotment.tf.ops.inference.shape_functions import Inference, Output, unknown
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.tensor import EagerTensor


def _gather_fault(params: Array, indices: Array, axis: int, batch_dims: int) -> str | None:
    if params.ndim == 0:
        return "params must be at least 1 dimensional"
    lowest = max(axis + 1 if axis >= 0 else -axis, batch_dims + 1)
    if params.ndim < lowest:
        return f"Shape must be at least rank {lowest} but is rank {params.ndim}"
    if not -indices.ndim <= batch_dims <= indices.ndim:
        return f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}], but got {batch_dims}"
    batch, axis = axis_of(batch_dims, indices.ndim), axis_of(axis, params.ndim)
    if axis < batch:
        return f"batch_dims ({batch}) must be less than or equal to axis ({axis})."
    for dim in range(batch):
        if params.shape[dim] != indices.shape[dim]:
            return (
                f"params.shape[{dim}]: {params.shape[dim]} should be equal to indices.shape[{dim}]: "
                f"{indices.shape[dim]}"
            )
    length = params.shape[axis]
    if params.size == 0 and length:
        # Slices without elements are not looked for.
        return None
    wrong = (indices < 0) | (indices >= length)
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        where = f"[{','.join(map(str, place))}]" if place else ""
        return f"indices{where} = {indices[tuple(place)]} is not in [0, {length})"
    return None


def _gather(params: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    batch, axis = axis_of(batch_dims, indices.ndim), axis_of(axis, params.ndim)
    if params.size == 0:
        indices = np.zeros_like(indices)
    if indices.ndim == 0 and is_host(params):
        # A scalar of NumPy would lose the type of texts.
        return take(params, (*whole_axes(axis), int(indices)))
    if batch == 0:
        return np.take(params, indices, axis)
    # Each batch entry has numbers of its own: beside them, the entry's own number along each batch axis.
    entries = open_grid(indices.shape[:batch], indices)
    more = (1,) * (indices.ndim - batch)
    picked = np.moveaxis(params, axis, batch)[
        (*(entry.reshape(entry.shape + more) for entry in entries), indices)
    ]
    # Axes between the batch axes and the gathered axis go back before the axes of the indices.
    order = list(range(picked.ndim))
    between = order[indices.ndim : indices.ndim + axis - batch]
    del order[indices.ndim : indices.ndim + axis - batch]
    order[batch:batch] = between
    return owned(np.transpose(picked, order))


def _gather_shape(c: Inference, axis: Any, batch_dims: Any) -> list[Output]:
    params, indices = c.at_least(0, 1), c.shape(1)
    if params is None or type(batch_dims) is Deferred:
        return c.one(None)
    if indices is None:
        if batch_dims >= 0 and type(axis) is not Deferred:
            _check_rank(c, params, axis, batch_dims)
        return c.one(None)
    if not -len(indices) <= batch_dims <= len(indices):
        c.refuse(f"Expected batch_dims in the range [{-len(indices)}, {len(indices)}], but got {batch_dims}")
    batch = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    if type(axis) is Deferred:
        return c.one(unknown(len(params) + len(indices) - 1 - batch))
    _check_rank(c, params, axis, batch)
    place = axis + len(params) if axis < 0 else axis
    if place < batch:
        c.refuse(f"batch_dims ({batch}) must be less than or equal to axis ({place}).")
    # Lengths of the batch that differ are left to the session, as in TensorFlow.
    before = [a if b is None else b for a, b in zip(params[:batch], indices[:batch], strict=True)]
    return c.one((*before, *params[batch:place], *indices[batch:], *params[place + 1 :]))


def _check_rank(c: Inference, params: tuple[int | None, ...], axis: int, batch: int) -> None:
    """Refuse a tensor with too few axes for the gathered axis and those of the batch."""
    least = max(axis + 1 if axis >= 0 else -axis, batch + 1)
    if len(params) < least:
        c.refuse(f"Shape must be at least rank {least} but is rank {len(params)}")


_gather_row = operation("GatherV2", _gather, shape=_gather_shape, fault=_gather_fault)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> EagerTensor:
    """Pick slices along an axis by number. As ``tf.gather``.

    The result has the axes of ``indices`` in the place of ``axis``. With ``batch_dims`` the first axes of both are
    the same, and each entry along them has numbers of its own.

    Raises:
        InvalidArgumentError: A number is negative or too large, or the shapes do not go together.
    """
    numbers = to_tensor(indices)
    check_whole("GatherV2", "Taxis", axis, name, is_int32=False)
    batch = attribute_argument(batch_dims, "batch_dims")
    place = batch if axis is None else scalar_argument(axis, "axis")
    if is_known(place) and place == 0:
        # Along the first axis TensorFlow does not look at `batch_dims`.
        batch = 0
    return run(_gather_row, (to_tensor(params), numbers), place, batch, name=name)  # type: ignore[no-any-return]


def places_fault(indices: Array, shape: tuple[int, ...]) -> tuple[list[int], list[int]] | None:
    """The first place of a list that is outside of a shape: which of the list it is, and the place."""
    limits = np.asarray(shape[: indices.shape[-1]], np.int64, like=indices)
    wrong = ((indices < 0) | (indices >= limits)).any(-1)
    if not wrong.any():
        return None
    which = np.argwhere(wrong)[0].tolist()
    return which, indices[tuple(which)].tolist()


def _gather_nd_fault(params: Array, indices: Array, batch_dims: int) -> str | None:
    if params.ndim < 1:
        return "params must be at least a vector"
    if indices.ndim < 1:
        return "indices must be at least a vector"
    if not 0 <= batch_dims < indices.ndim or params.shape[:batch_dims] != indices.shape[:batch_dims]:
        return f"batch_dims = {batch_dims} does not fit shapes {dims(params)} and {dims(indices)}"
    if indices.shape[-1] > params.ndim - batch_dims:
        return (
            "index innermost dimension length must be <= params rank; saw: "
            f"{indices.shape[-1]} vs. {params.ndim - batch_dims}"
        )
    found = places_fault(indices, params.shape[batch_dims:])
    if found is not None:
        which, place = found
        where = f"[{','.join(map(str, which))}]" if which else ""
        return f"indices{where} = {place} does not index into param shape {dims(params)}, node name: GatherNd"
    return None


def _gather_nd(params: Array, indices: Array, batch_dims: int) -> Array:
    entries = open_grid(indices.shape[:batch_dims], indices)
    more = (1,) * (indices.ndim - 1 - batch_dims)
    before = (entry.reshape(entry.shape + more) for entry in entries)
    if indices.shape[-1] == 0:
        whole = params.reshape(params.shape[:batch_dims] + more + params.shape[batch_dims:])
        return np.broadcast_to(whole, indices.shape[:-1] + params.shape[batch_dims:]).copy()
    return owned(params[(*before, *np.moveaxis(indices, -1, 0), ...)])


def _gather_nd_shape(c: Inference, batch_dims: Any) -> list[Output]:
    params, indices = c.at_least(0, 1), c.at_least(1, 1)
    if params is None or indices is None or indices[-1] is None:
        return c.one(None)
    depth = indices[-1]
    if depth > len(params) - batch_dims:
        c.refuse(
            f"indices.shape[-1] must be <= params.rank, but saw indices.shape[-1]={depth} and {len(params)}"
        )
    # Axes of the batch are those of both.
    batch = [
        other if length is None else length
        for length, other in zip(indices[:batch_dims], params[:batch_dims], strict=True)
    ]
    return c.one((*batch, *indices[batch_dims:-1], *params[batch_dims + depth :]))


_gather_nd_row = operation("GatherNd", _gather_nd, shape=_gather_nd_shape, fault=_gather_nd_fault)


def gather_nd(
    params: Any,
    indices: Any,
    batch_dims: Any = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> EagerTensor:
    """Pick elements or slices by places: the last axis of ``indices`` is one place. As ``tf.gather_nd``.

    Raises:
        InvalidArgumentError: A place is outside of the tensor.
        ValueError: One of both has not more axes than ``batch_dims``.
    """
    inputs = to_tensor(params), to_tensor(indices)
    batch = attribute_argument(batch_dims, "batch_dims")
    if batch:
        for what, tensor in (("indices", inputs[1]), ("params", inputs[0])):
            rank = rank_of(tensor)
            if batch < 0 or (rank is not None and batch >= rank):
                raise ValueError(
                    f"batch_dims must be at least 0 and less than the rank of {what}, which is {rank}; got {batch}"
                )
    return run(_gather_nd_row, inputs, batch, name=name)  # type: ignore[no-any-return]


__all__ = ["gather", "gather_nd"]
