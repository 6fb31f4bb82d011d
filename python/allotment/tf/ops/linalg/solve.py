"""Inverses, determinants, and systems of linear equations."""

import math
from typing import Any, NamedTuple

import numpy as np

from allotment.tf.ops.arguments.scalars import attribute_flag, float_argument
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.arrays import Array, as_array, identity_matrix, in_single, is_host, owned
from allotment.tf.ops.convert import to_pair, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.linalg.diagonals import diag_part
from allotment.tf.ops.linalg.factor import cholesky
from allotment.tf.ops.linalg.lapack import (
    adjoint_of,
    run_lapack,
    square,
    square_fault,
    square_shape,
    square_system_fault,
    system_fault,
    triangular_system_fault,
)
from allotment.tf.ops.math.arithmetic import multiply
from allotment.tf.ops.math.complex_numbers import real
from allotment.tf.ops.math.from_scipy import from_scipy
from allotment.tf.ops.math.real import log
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor

_SINGULAR = "Input matrix is not invertible."


@in_single
def _inv(matrix: Array, adjoint: bool) -> Array:
    return owned(np.linalg.inv(adjoint_of(matrix) if adjoint else matrix))


@in_single
def _det(matrix: Array) -> Any:
    return np.linalg.det(matrix)


@in_single
def _slogdet(matrix: Array) -> tuple[Any, Any]:
    sign, log = np.linalg.slogdet(matrix)
    # NumPy's logarithm is always real, TensorFlow's has the matrix's type.
    return as_array(sign), as_array(log).astype(matrix.dtype)


@in_single
def _solve(matrix: Array, rhs: Array, adjoint: bool) -> Array:
    return owned(np.linalg.solve(adjoint_of(matrix) if adjoint else matrix, rhs))


def _substituted(triangles: Array, sides: Array, lower: bool) -> Array:
    """Solve triangular systems row by row, all of them at once."""
    if not np.all(np.diagonal(triangles, axis1=-2, axis2=-1)):
        raise np.linalg.LinAlgError
    result = sides.copy()
    rows = range(triangles.shape[-1])
    for row in rows if lower else reversed(rows):
        known = slice(row) if lower else slice(row + 1, None)
        result[..., row, :] -= np.matmul(triangles[..., row : row + 1, known], result[..., known, :])[
            ..., 0, :
        ]
        result[..., row, :] /= triangles[..., row, row, None]
    return result


@in_single
def _triangular_solve(matrix: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    outer = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    matrices = np.broadcast_to(matrix, outer + matrix.shape[-2:])
    sides = np.broadcast_to(rhs, outer + rhs.shape[-2:])
    if math.prod(outer) > matrix.shape[-1] or not is_host(matrix):
        # A call of LAPACK for each of many small matrices takes longer than a step for each row of all of them.
        return _substituted(adjoint_of(matrices) if adjoint else matrices, sides, lower != adjoint)
    result = np.empty(sides.shape, matrix.dtype, like=matrix)
    solve = from_scipy("linalg", "solve_triangular")
    for index in np.ndindex(outer):
        result[index] = solve(
            matrices[index], sides[index], trans="C" if adjoint else "N", lower=lower, check_finite=False
        )
    return result


@in_single
def _least_squares(matrix: Array, rhs: Array, regularizer: float) -> Array:
    columns = matrix.shape[-1]
    result = np.empty((*matrix.shape[:-2], columns, rhs.shape[-1]), matrix.dtype, like=matrix)
    if regularizer:
        # Rows that pull the solution to zero: as precise as the plain problem, unlike the normal equations.
        pull = identity_matrix(columns, matrix) * np.sqrt(regularizer).astype(matrix.dtype)
    for index in np.ndindex(matrix.shape[:-2]):
        left, right = matrix[index], rhs[index]
        if regularizer:
            left = np.concatenate([left, pull])
            right = np.concatenate([right, np.zeros((columns, rhs.shape[-1]), rhs.dtype, like=rhs)])
        result[index] = np.linalg.lstsq(left, right, None)[0]
    return result


def _determinant_shape(c: Inference) -> list[Output]:
    dims = square(c)
    return c.one(None if dims is None else dims[:-2])


def _log_determinant_shape(c: Inference) -> list[Output]:
    return _determinant_shape(c) * 2


def _triangular_shape(c: Inference, *flags: bool) -> list[Output]:
    matrix, rhs = square(c), c.at_least(1, 2)
    if matrix is None or rhs is None:
        return c.one(None)
    batch = c.broadcast(matrix[:-2], rhs[:-2])
    assert batch is not None
    return c.one((*batch, c.same(matrix[-1], rhs[-2]), rhs[-1]))


def _solve_shape(c: Inference, *flags: bool) -> list[Output]:
    return _system_shape(c, is_square=True)


def _least_squares_shape(c: Inference, regularizer: float) -> list[Output]:
    return _system_shape(c, is_square=False)


def _system_shape(c: Inference, *, is_square: bool) -> list[Output]:
    """The solutions of systems of equations, one matrix for each."""
    matrix, rhs = square(c) if is_square else c.at_least(0, 2), c.at_least(1, 2)
    batch = c.merged(None if matrix is None else matrix[:-2], None if rhs is None else rhs[:-2])
    if batch is None:
        return c.one(None)
    (rows, unknowns), (rest, sides) = (
        each[-2:] if each is not None else (None, None) for each in (matrix, rhs)
    )
    rows = c.same(rows, rest)
    return c.one((*batch, rows if is_square else unknowns, sides))


_inv_row = operation("MatrixInverse", _inv, shape=square_shape, fault=square_fault)
_det_row = operation("MatrixDeterminant", _det, shape=_determinant_shape, fault=square_fault)
_slogdet_row = operation("LogMatrixDeterminant", _slogdet, shape=_log_determinant_shape, fault=square_fault)
_solve_row = operation("MatrixSolve", _solve, shape=_solve_shape, fault=square_system_fault)
_triangular_row = operation(
    "MatrixTriangularSolve", _triangular_solve, shape=_triangular_shape, fault=triangular_system_fault
)
_least_squares_row = operation(
    "MatrixSolveLs", _least_squares, shape=_least_squares_shape, fault=system_fault
)


class LogMatrixDeterminant(NamedTuple):
    """The result of ``slogdet``."""

    sign: EagerTensor
    log_abs_determinant: EagerTensor


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's
    """The inverses of square matrices, or of their adjoints. As ``tf.linalg.inv``.

    Raises:
        InvalidArgumentError: A matrix is not square, or has no inverse.
    """
    adjoined = attribute_flag(adjoint, "adjoint")
    return run_lapack(_inv_row, (to_tensor(input),), adjoined, failure="Input is not invertible.", name=name)  # type: ignore[no-any-return]


def det(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The determinants of square matrices. As ``tf.linalg.det``."""
    return run(_det_row, (to_tensor(input),), name=name)  # type: ignore[no-any-return]


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:  # noqa: A002 - TensorFlow's name
    """The signs of determinants and the logarithms of their absolute values. As ``tf.linalg.slogdet``."""
    return LogMatrixDeterminant(*run(_slogdet_row, (to_tensor(input),), name=name))


def logdet(matrix: Any, name: str | None = None) -> EagerTensor:
    """The logarithm of the determinant of Hermitian positive definite matrices. As ``tf.linalg.logdet``."""
    return multiply(reduce_sum(log(real(diag_part(cholesky(matrix)))), -1), 2.0, name)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> EagerTensor:
    """Solve ``matrix @ x = rhs``, or that with the adjoint. As ``tf.linalg.solve``.

    Args:
        matrix: Square matrices.
        rhs: Matrices with as many rows, the same axes in front of them, and the same type.
        adjoint: Use the adjoint of ``matrix``.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The shapes do not fit, or a matrix has no inverse.
    """
    adjoined = attribute_flag(adjoint, "adjoint")
    return run_lapack(_solve_row, to_pair(matrix, rhs), adjoined, failure=_SINGULAR, name=name)  # type: ignore[no-any-return]


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> EagerTensor:
    """Solve ``matrix @ x = rhs`` with one triangle of the matrix. As ``tf.linalg.triangular_solve``.

    The axes in front of the matrices' two are broadcast.
    """
    flags = attribute_flag(lower, "lower", default=True), attribute_flag(adjoint, "adjoint")
    return run_lapack(  # type: ignore[no-any-return]
        _triangular_row, to_pair(matrix, rhs), *flags, failure=_SINGULAR, name=name
    )


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> EagerTensor:
    """Solve ``a @ x = rhs`` with what ``cholesky`` made of ``a``. As ``tf.linalg.cholesky_solve``."""
    chol, rhs = to_pair(chol, rhs)
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True, name=name)


def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> EagerTensor:
    """The ``x`` with the least ``|matrix @ x - rhs|² + l2_regularizer |x|²``. As ``tf.linalg.lstsq``.

    If there are several, the shortest. Always by singular values, ``fast`` or not: it is the precise way. ``fast``
    alone broadcasts batches, as in TensorFlow.

    Raises:
        InvalidArgumentError: The shapes do not fit.
    """
    systems = to_pair(matrix, rhs)
    return run_lapack(  # type: ignore[no-any-return]
        _least_squares_row,
        _with_one_batch(*systems) if fast else systems,
        float_argument(l2_regularizer, "l2_regularizer"),
        failure="The least-squares problem was not solved. The input might not be valid.",
        name=name,
    )


def _with_one_batch(matrix: EagerTensor, rhs: EagerTensor) -> tuple[EagerTensor, EagerTensor]:
    """Both with the same axes before the last two, if the shapes are known and these go together."""
    shapes = [each.shape for each in (matrix, rhs)]
    if not all(shape.is_fully_defined() and len(shape) >= 2 for shape in shapes):
        return matrix, rhs
    batches: list[Any] = [tuple(shape.as_list()[:-2]) for shape in shapes]
    if batches[0] == batches[1]:
        return matrix, rhs
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        return matrix, rhs
    wide = [
        broadcast_to(each, (*batch, *shape.as_list()[-2:]))
        for each, shape in zip((matrix, rhs), shapes, strict=True)
    ]
    return wide[0], wide[1]


__all__ = [
    "LogMatrixDeterminant",
    "cholesky_solve",
    "det",
    "inv",
    "logdet",
    "lstsq",
    "slogdet",
    "solve",
    "triangular_solve",
]
