"""The exponential of matrices."""

from typing import Any, Final

import numpy as np

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import Array, identity_matrix, in_single
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.linalg.lapack import square_fault, square_shape
from allotment.tf.ops.table import operation
from allotment.tf.ops.types.element_types import SIGNED_INTEGERS
from allotment.tf.tensors.dtype import float16
from allotment.tf.tensors.tensor import EagerTensor

#: Terms of the series for matrices of norm 1/2: the next one is below 1e-22.
_TERMS: Final = 18


@in_single
def _exponential(matrix: Array) -> Array:
    # exp(a) is exp(a / 2**n) squared n times, and the series of a small matrix is short.
    norm = float(np.abs(matrix).sum(-1).max()) if matrix.size else 0.0
    halvings = max(int(np.ceil(np.log2(norm))) + 1, 0) if 0 < norm < np.inf else 0
    small = matrix * matrix.dtype.type(0.5**halvings)
    identity = identity_matrix(matrix.shape[-1], matrix)
    result = np.broadcast_to(identity, matrix.shape).copy()
    for term in range(_TERMS, 0, -1):
        result = np.matmul(small, result)
        result /= term
        result += identity
    for _ in range(halvings):
        result = np.matmul(result, result)
    return result


_row = operation("MatrixExponential", _exponential, shape=square_shape, fault=square_fault)


def expm(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The exponential of square matrices. As ``tf.linalg.expm``.

    Raises:
        InvalidArgumentError: A matrix is not square.
        ValueError: The elements are signed integers.
    """
    matrix = to_tensor(input)
    if matrix.shape.rank is not None and tuple(matrix.shape[-2:]) == (0, 0):
        return matrix
    if thread.state.graph is None and (matrix._dtype is float16 or matrix.shape.rank == 0):
        # The sizes are what fails first.
        fault = square_fault(matrix._array)
        if fault is not None:
            raise errors.InvalidArgumentError(None, None, fault + faults.tail(_row.name, name))
    if matrix._dtype in SIGNED_INTEGERS:
        raise ValueError(f"tf.linalg.expm does not support matrices of type {matrix._dtype!r}")
    return run(_row, (matrix,), name=name)  # type: ignore[no-any-return]


__all__ = ["expm"]
