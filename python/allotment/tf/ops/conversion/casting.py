"""The operation ``Cast`` on tensors."""

from typing import Final

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import cast_to
from allotment.tf.ops.table import Host, operation
from allotment.tf.tensors.dtype import BY_NUMPY, DType, string
from allotment.tf.tensors.tensor import EagerTensor


def _cast(array: Array, dtype: DType) -> Array:
    if string.numpy in (array.dtype, dtype.numpy):
        raise errors.UnimplementedError(None, None, _no_cast(BY_NUMPY[array.dtype], dtype))
    if array.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        array = array.real
    return array.astype(dtype.numpy)


CAST: Final = operation("Cast", _cast, shape=cast_to, host=Host.NEVER)


def _no_cast(have: DType, wanted: DType) -> str:
    return f"Cast {have.error_name} to {wanted.error_name} is not supported"


def cast_tensor(tensor: EagerTensor, dtype: DType, name: str | None = None) -> EagerTensor:
    """Change the element type of a tensor; one of that type is returned as it is.

    Raises:
        UnimplementedError: The tensor has texts, or ``dtype`` is their type; in a graph when it runs.
    """
    if tensor._dtype is dtype:
        return tensor
    if (tensor._dtype is string or dtype is string) and thread.state.graph is None:
        text = _no_cast(tensor._dtype, dtype)
        raise errors.UnimplementedError(None, None, text + faults.tail("Cast", name))
    return run(CAST, (tensor,), dtype, name=name)  # type: ignore[no-any-return]


__all__ = ["cast_tensor"]
