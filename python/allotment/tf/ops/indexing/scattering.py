"""Operations that put elements or slices at places. Variables scatter by methods of their own."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.array.creation import shape_input
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.execute import check_types, run
from allotment.tf.ops.indexing.gathering import places_fault
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, lengths, multiplied
from allotment.tf.ops.public import public
from allotment.tf.ops.reduction.rows import at
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import int16
from allotment.tf.tensors.tensor import EagerTensor, Tensor

#: The policies for indices outside of a tensor.
_POLICIES: Final = ("", "DEFAULT", "ERROR", "IGNORE")


def scatter(change: Callable[..., None], array: Array, indices: Array, updates: Array) -> None:
    """Change an array at places, by a function of it, the places as NumPy takes them, and the updates."""
    if indices.shape[-1]:
        change(array, tuple(np.moveaxis(indices, -1, 0)), updates)
        return
    # A place without coordinates is the whole array.
    for update in updates.reshape(-1, *array.shape):
        change(array, ..., update)


def _known(policy: str, indices: Array, updates: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Places and updates without those outside of the shape, if the policy says that these are ignored."""
    depth = indices.shape[-1]
    if policy != "IGNORE" or not depth:
        return indices, updates
    places = indices.reshape(-1, depth)
    inside = ((places >= 0) & (places < np.asarray(shape[:depth], like=places))).all(1)
    return places[inside], updates.reshape(-1, *shape[depth:])[inside]


def scatter_fault(
    array_shape: tuple[int, ...], indices: Array, updates: Array, policy: str = ""
) -> str | None:
    """TensorFlow's words for places and updates that do not fit a tensor that is updated, or ``None``."""
    if policy not in _POLICIES:
        return f"Unknown bad indices handling attribute: {policy}"
    if indices.ndim < 1 or array_shape == ():
        return "Indices and the updated tensor must be at least vectors"
    outer, depth = indices.shape[:-1], indices.shape[-1]
    if updates.shape[: len(outer)] != outer:
        return (
            "Outer dimensions of indices and update must match. Indices shape: "
            f"{dims(indices)}, updates shape:{dims(updates)}"
        )
    if depth > len(array_shape) or updates.shape[len(outer) :] != array_shape[depth:]:
        return (
            "Inner dimensions of output shape must match inner dimensions of updates shape. Output: "
            f"[{','.join(map(str, array_shape))}] updates: {dims(updates)}"
        )
    return None if policy == "IGNORE" else _outside(array_shape, indices)


def _outside(shape: tuple[int, ...], indices: Array) -> str | None:
    found = places_fault(indices, shape)
    if found is None:
        return None
    which, place = found
    where = f"[{','.join(map(str, which))}]" if which else ""
    return f"indices{where} = {place} does not index into shape [{','.join(map(str, shape))}]"


def _scatter_nd_fault(updates: Array, indices: Array, shape: tuple[int, ...], policy: str) -> str | None:
    if policy not in _POLICIES:
        return f"Unknown bad indices handling attribute: {policy}"
    if any(length < 0 for length in shape):
        return f"Dimension {min(shape)} must be >= 0"
    for what, array in (("Indices", indices), ("Updates", updates)):
        if array.ndim < 1:
            return f"{what} shape must have rank at least one. Found:{dims(array)}"
    if (indices.size == 0) != (updates.size == 0):
        return f"Indices and updates specified for empty output. indices shape: {dims(indices)}"
    lead, depth = indices.ndim - 1, indices.shape[-1]
    # Of one place alone TensorFlow compares the number of coordinates with the length of the updates.
    outer = max(lead, 1)
    if updates.shape[:outer] != indices.shape[:outer]:
        return (
            f"Dimensions [0,{outer}) of indices[shape={dims(indices)}] must match dimensions [0,{outer}) of "
            f"updates[shape={dims(updates)}]"
        )
    if depth > len(shape) or updates.shape[lead:] != shape[depth:]:
        return (
            f"Dimensions [{depth},{len(shape)}) of input[shape=[{','.join(map(str, shape))}]] must match "
            f"dimensions [{lead},{updates.ndim}) of updates[shape={dims(updates)}]"
        )
    return None if policy == "IGNORE" else _outside(shape, indices)


_add_at = at(np.add)


def _scatter_nd(updates: Array, indices: Array, shape: tuple[int, ...], policy: str) -> Array:
    # Texts are joined where they meet, which is what adding them is.
    made = (
        np.full(shape, b"", object)
        if updates.dtype == object
        else np.zeros(shape, updates.dtype, like=updates)
    )
    scatter(_add_at, made, *_known(policy, indices, updates, shape))
    return made


def _scatter_nd_shape(c: Inference, shape: Any, policy: str) -> list[Output]:
    dims, indices, updates = lengths(shape), c.at_least(1, 1), c.at_least(0, 1)
    if dims and None not in dims and c.dtype(1) is int16:
        # The shape has the type of the places, of which TensorFlow reads shapes only in a session.
        c.refuse("Input tensor must be int32 or int64, but was int16")
    _check_updates(c, dims, updates, indices)
    return c.one(dims)


def _check_updates(c: Inference, dims: Dims, updates: Dims, indices: Dims) -> None:
    """Refuse updates that do not fit places in a tensor of a shape."""
    if (
        dims is not None
        and 0 in dims
        and any(each is not None and multiplied(*each) for each in (updates, indices))
    ):
        c.refuse(f"Indices and updates specified for empty output of shape {list(dims)}")
    if indices is None or indices[-1] is None or not updates:
        # TensorFlow leaves scalars to the session.
        return
    outer, depth = len(indices) - 1, indices[-1]
    c.merged(indices[:-1], updates[:outer])
    if dims is None:
        return
    c.merged(dims[depth:], updates[outer:])


# The updates come first, so that they, and not the places, say where the result is kept.
_scatter_row = operation("ScatterNd", _scatter_nd, shape=_scatter_nd_shape, fault=_scatter_nd_fault)


def scatter_nd(
    indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None
) -> EagerTensor:
    """Put updates at places of a tensor of zeros; those at one place are added. As ``tf.scatter_nd``.

    With the policy ``"IGNORE"`` places outside of the shape are left out.

    Raises:
        InvalidArgumentError: A place is outside of the shape, or the shapes do not go together.
    """
    inputs = to_tensor(updates), to_tensor(indices)
    if thread.state.graph is None:
        _check_shape_type(inputs, shape, isinstance(indices, Tensor), name)
    elif dtype_of(shape) is int16 is inputs[1]._dtype:
        raise ValueError("Input tensor must be int32 or int64, but was int16")
    return run(_scatter_row, inputs, shape_input(shape, "ScatterNd"), bad_indices_policy, name=name)  # type: ignore[no-any-return]


def _check_shape_type(
    inputs: tuple[EagerTensor, EagerTensor], shape: Any, is_typed: bool, name: str | None
) -> None:
    """Check that a shape that has an element type has that of the places, if these are a tensor, too.

    Raises:
        InvalidArgumentError: It has another.
        NotFoundError: There is no kernel for the type of the places.
    """
    check_types(_scatter_row, inputs, name)
    found = dtype_of(shape)
    if is_typed and found is not None and found is not inputs[1]._dtype:
        raise faults.mismatched(_scatter_row.name, 2, inputs[1]._dtype, found, name)


def assign_at(array: Array, places: Any, updates: Array) -> None:
    """Put updates at places; the last one at a place stays."""
    array[places] = updates


_maximum_at, _minimum_at = at(np.maximum), at(np.minimum)


def maximum_at(array: Array, places: Any, updates: Array) -> None:
    """Replace elements by larger updates; a NaN is no larger one."""
    _maximum_at(array, places, _compared(updates, -np.inf))


def minimum_at(array: Array, places: Any, updates: Array) -> None:
    """Replace elements by smaller updates; a NaN is no smaller one."""
    _minimum_at(array, places, _compared(updates, np.inf))


def _compared(updates: Array, worst: float) -> Array:
    if updates.dtype.kind != "f":
        return updates
    return np.where(np.isnan(updates), updates.dtype.type(worst), updates)


def _tensor_scatter_shape(c: Inference, policy: str) -> list[Output]:
    _check_updates(c, c.at_least(0, 1), c.shape(1), c.at_least(2, 1))
    return c.one(c.inputs[0]._shape)


def _updating(kind: str, op: str, change: Callable[..., None], what: str) -> Callable[..., EagerTensor]:
    def fault(array: Array, updates: Array, indices: Array, policy: str) -> str | None:
        return scatter_fault(array.shape, indices, updates, policy)

    def function(array: Array, updates: Array, indices: Array, policy: str) -> Array:
        made = array.copy()
        scatter(change, made, *_known(policy, indices, updates, array.shape))
        return made

    row = operation(op, function, shape=_tensor_scatter_shape, fault=fault)

    def call(
        tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
    ) -> EagerTensor:
        changed, numbers = to_tensor(tensor), to_tensor(indices)
        given = to_tensor(updates, like=changed._dtype)
        if given._dtype is not changed._dtype:
            raise faults.mismatched(op, 2, changed._dtype, given._dtype, name)
        return run(row, (changed, given, numbers), bad_indices_policy, name=name)  # type: ignore[no-any-return]

    doc = f"""Copy a tensor, with elements or slices at places {what}. As ``tf.tensor_scatter_nd_{kind}``.

    Raises:
        InvalidArgumentError: A place is outside of the tensor, or the shapes do not go together.
    """
    return public(call, f"tensor_scatter_nd_{kind}", doc)


_update = _updating("update", "TensorScatterUpdate", assign_at, "replaced; the last update at a place stays")


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> EagerTensor:
    """Copy a tensor, with elements or slices at places replaced; the last update at a place stays.

    As ``tf.tensor_scatter_nd_update``, which has no policy for places outside of the tensor.

    Raises:
        InvalidArgumentError: A place is outside of the tensor, or the shapes do not go together.
    """
    return _update(tensor, indices, updates, name=name)


tensor_scatter_nd_add = _updating("add", "TensorScatterAdd", at(np.add), "increased by all the updates there")
tensor_scatter_nd_sub = _updating(
    "sub", "TensorScatterSub", at(np.subtract), "decreased by all the updates there"
)
tensor_scatter_nd_min = _updating(
    "min", "TensorScatterMin", minimum_at, "replaced by updates that are smaller"
)
tensor_scatter_nd_max = _updating(
    "max", "TensorScatterMax", maximum_at, "replaced by updates that are larger"
)

__all__ = [
    "scatter_nd",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
]
