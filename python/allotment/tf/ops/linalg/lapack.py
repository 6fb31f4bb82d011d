"""What the linear algebra that LAPACK does for us has in common."""

from typing import Any

import numpy as np

from allotment.devices.dispatch import current_placement
from allotment.tf.ops import faults
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output
from allotment.tf.ops.table import Operation, dims
from allotment.tf.tensors.tensor import EagerTensor


def run_lapack(
    row: Operation, inputs: tuple[EagerTensor, ...], *args: Any, failure: str, name: str | None = None
) -> Any:
    """Run a row; its function may find that a matrix has no such result.

    Raises:
        InvalidArgumentError: It has not (with the words of ``failure``), or the inputs do not go together.
    """
    try:
        return run(row, inputs, *args, name=name)
    except np.linalg.LinAlgError as error:
        error.__traceback__ = None
        device = current_placement().place(row.kinds, row.name, name)
        raise faults.invalid(row.name, device, failure, name) from None


def square(c: Inference, index: int = 0) -> Dims:
    """The shape of an input that is square matrices, with both lengths known if one is.

    Raises:
        ValueError: They are not square, or no matrices.
    """
    dims = c.at_least(index, 2)
    if dims is None:
        return None
    side = c.same(*dims[-2:])
    return (*dims[:-2], side, side)


def square_shape(c: Inference, *flags: bool) -> list[Output]:
    """One output of the shape of an input that is square matrices."""
    return c.one(square(c))


def matrix_fault(matrix: Array, *arguments: Any) -> str | None:
    """TensorFlow's words for what is no matrix, or ``None``."""
    return None if matrix.ndim >= 2 else f"Input tensor 0 must have rank >= 2, got shape {dims(matrix)}"


def square_fault(matrix: Array, *arguments: Any) -> str | None:
    """TensorFlow's words for what is no square matrix, or ``None``."""
    if matrix.ndim >= 2 and matrix.shape[-2] != matrix.shape[-1]:
        return f"Input matrix must be square, got shape {dims(matrix)}"
    return matrix_fault(matrix)


def system_fault(matrix: Array, rhs: Array, *arguments: Any) -> str | None:
    """TensorFlow's words for matrices and right-hand sides that make no system of equations, or ``None``."""
    if matrix.ndim < 2:
        return matrix_fault(matrix)
    if rhs.ndim != matrix.ndim:
        return f"All input tensors must have the same rank, got {dims(matrix)} and {dims(rhs)}"
    if rhs.shape[:-2] != matrix.shape[:-2]:
        return f"All input tensors must have the same outer dimensions, got {dims(matrix)} and {dims(rhs)}"
    if rhs.shape[-2] != matrix.shape[-2]:
        return f"Input matrix and rhs are incompatible: {dims(matrix)} and {dims(rhs)}"
    return None


def square_system_fault(matrix: Array, rhs: Array, *arguments: Any) -> str | None:
    """``system_fault`` for matrices that must be square."""
    return square_fault(matrix) or system_fault(matrix, rhs)


def triangular_system_fault(matrix: Array, rhs: Array, *arguments: Any) -> str | None:
    """TensorFlow's words for triangles and right-hand sides that make no system of equations, or ``None``.

    Their outer axes are broadcast, unlike those of any other system.
    """
    if rhs.ndim < 2:
        return f"In[1] ndims must be >= 2: {rhs.ndim}"
    fault = square_fault(matrix)
    if fault is not None:
        return fault
    try:
        np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    except ValueError:
        return f"In[0] and In[1] must have compatible batch dimensions: {dims(matrix)} vs. {dims(rhs)}"
    if rhs.shape[-2] != matrix.shape[-2]:
        return f"Input matrix and rhs are incompatible: {dims(matrix)} and {dims(rhs)}"
    return None


def adjoint_of(array: Array) -> Array:
    """A view, or of complex numbers a copy, of the adjoint of each matrix."""
    turned = np.swapaxes(array, -1, -2)
    return np.conjugate(turned) if array.dtype.kind == "c" else turned
