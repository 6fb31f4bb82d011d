"""Decompositions of matrices. All take any number of axes in front of the matrices' two."""

from typing import Any, NamedTuple

import numpy as np

from allotment.tf.ops.arguments.scalars import attribute_flag
from allotment.tf.ops.arrays import Array, as_array, in_single, owned
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.linalg.lapack import (
    adjoint_of,
    matrix_fault,
    run_lapack,
    square,
    square_fault,
    square_shape,
)
from allotment.tf.ops.table import operation
from allotment.tf.tensors.dtype import complex64, complex128, float64
from allotment.tf.tensors.tensor import EagerTensor


@in_single
def _cholesky(matrix: Array) -> Array:
    try:
        return owned(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        pass
    if matrix.ndim > 2:
        return np.stack([_cholesky(each) for each in matrix])
    # One that is not positive definite has no such triangle.
    return np.tril(np.full_like(matrix, np.nan))


@in_single
def _qr(matrix: Array, full: bool) -> tuple[Array, Array]:
    q, r = np.linalg.qr(matrix, "complete" if full else "reduced")
    return owned(q), owned(r)


@in_single
def _svd(matrix: Array, full: bool, vectors: bool) -> Any:
    finite = as_array(np.isfinite(matrix).all((-2, -1), keepdims=True))
    if not finite.all():
        # LAPACK would refuse them all.
        found = _svd(np.where(finite, matrix, 0), full, vectors)
        of_each = (finite[..., 0], finite, finite) if vectors else (finite[..., 0],)
        parts = zip(of_each, found if vectors else (found,), strict=True)
        made = tuple(np.where(known, each, np.nan).astype(each.dtype, copy=False) for known, each in parts)
        return made if vectors else made[0]
    if not vectors:
        return owned(np.linalg.svd(matrix, compute_uv=False))
    u, s, adjoint_v = np.linalg.svd(matrix, full_matrices=full)
    return owned(s), owned(u), owned(adjoint_of(adjoint_v))


@in_single
def _eigh(matrix: Array, vectors: bool) -> Any:
    # LAPACK's single-precision routine has numbers for an answer even then.
    if not np.isfinite(np.tril(matrix)).all():
        raise np.linalg.LinAlgError("not finite")
    if not vectors:
        return owned(np.linalg.eigvalsh(matrix)).astype(matrix.dtype, copy=False)
    values, columns = np.linalg.eigh(matrix)
    return owned(values).astype(matrix.dtype, copy=False), owned(columns)


@in_single
def _eig(matrix: Array, vectors: bool) -> Any:
    # NumPy gives real numbers if all happen to be.
    wanted = np.result_type(matrix.dtype, np.complex64)
    if not vectors:
        return owned(np.linalg.eigvals(matrix)).astype(wanted, copy=False)
    values, columns = np.linalg.eig(matrix)
    return owned(values).astype(wanted, copy=False), owned(columns).astype(wanted, copy=False)


def _qr_shape(c: Inference, full: bool) -> list[Output]:
    dims = c.at_least(0, 2)
    if dims is None:
        return [(c.dtype(), None)] * 2
    *batch, rows, columns = dims
    inner = rows if full else _smaller(rows, columns)
    return [(c.dtype(), (*batch, rows, inner)), (c.dtype(), (*batch, inner, columns))]


def _svd_shape(c: Inference, full: bool, vectors: bool) -> list[Output]:
    dims, dtype = c.at_least(0, 2), c.dtype()
    real = dtype.real_dtype
    if dims is None:
        return [(real, None), (dtype, None), (dtype, None)] if vectors else [(real, None)]
    *batch, rows, columns = dims
    inner = _smaller(rows, columns)
    values: Output = (real, (*batch, inner))
    if not vectors:
        return [values]
    return [
        values,
        (dtype, (*batch, rows, rows if full else inner)),
        (dtype, (*batch, columns, columns if full else inner)),
    ]


def _smaller(one: int | None, other: int | None) -> int | None:
    """The smaller of two lengths; zero if one is, whatever the other."""
    if 0 in (one, other):
        return 0
    return None if one is None or other is None else min(one, other)


def _eigh_shape(c: Inference, vectors: bool) -> list[Output]:
    return _eigen_shape(c, vectors, c.dtype())


def _eig_shape(c: Inference, vectors: bool) -> list[Output]:
    return _eigen_shape(c, vectors, complex128 if c.dtype() in (float64, complex128) else complex64)


def _eigen_shape(c: Inference, vectors: bool, dtype: Any) -> list[Output]:
    """Eigenvalues of a type, and with ``vectors`` the eigenvectors."""
    dims = square(c)
    values: Output = (dtype, None if dims is None else dims[:-1])
    return [values, (dtype, dims)] if vectors else [values]


_cholesky_row = operation("Cholesky", _cholesky, shape=square_shape, fault=square_fault)
_qr_row = operation("Qr", _qr, shape=_qr_shape, fault=matrix_fault)
_svd_row = operation("Svd", _svd, shape=_svd_shape, fault=matrix_fault)
_eigh_row = operation("SelfAdjointEigV2", _eigh, shape=_eigh_shape, fault=square_fault)
_eig_row = operation("Eig", _eig, shape=_eig_shape, fault=square_fault)

_NO_EIGENVALUES = "Eigen decomposition was not successful. The input might not be valid."


class Qr(NamedTuple):
    """The result of ``qr``."""

    q: EagerTensor
    r: EagerTensor


def cholesky(input: Any, name: str | None = None) -> EagerTensor:  # noqa: A002 - TensorFlow's name
    """The lower triangle whose product with its adjoint is the matrix. As ``tf.linalg.cholesky``.

    Only the lower triangle of the matrix is read. One that is not positive definite has NaNs for an answer.

    Raises:
        InvalidArgumentError: A matrix is not square.
    """
    return run(_cholesky_row, (to_tensor(input),), name=name)  # type: ignore[no-any-return]


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:  # noqa: A002 - TensorFlow's name
    """Unitary matrices ``q`` and upper triangles ``r`` with the matrix as product. As ``tf.linalg.qr``."""
    failure = "QR decomposition was not successful. The input might not be valid."
    return Qr(
        *run_lapack(
            _qr_row,
            (to_tensor(input),),
            attribute_flag(full_matrices, "full_matrices"),
            failure=failure,
            name=name,
        )
    )


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values and vectors: ``s``, ``u``, ``v`` with ``u @ diag(s) @ adjoint(v)`` the matrix.

    As ``tf.linalg.svd``: the values come first and descend, and ``v`` is not NumPy's ``vh``, but its adjoint.

    Returns:
        ``s`` alone without ``compute_uv``.
    """
    failure = "SVD was not successful. The input might not be valid."
    return run_lapack(
        _svd_row,
        (to_tensor(tensor),),
        attribute_flag(full_matrices, "full_matrices"),
        attribute_flag(compute_uv, "compute_uv"),
        failure=failure,
        name=name,
    )


def eigh(tensor: Any, name: str | None = None) -> tuple[EagerTensor, EagerTensor]:
    """Eigenvalues, ascending, and eigenvectors, as columns, of self-adjoint matrices. As ``tf.linalg.eigh``.

    Only the lower triangle is read.
    """
    failure = f"Self-adjoint {_NO_EIGENVALUES[0].lower()}{_NO_EIGENVALUES[1:]}"
    return run_lapack(_eigh_row, (to_tensor(tensor),), True, failure=failure, name=name)  # type: ignore[no-any-return]


def eigvalsh(tensor: Any, name: str | None = None) -> EagerTensor:
    """Eigenvalues of self-adjoint matrices, ascending. As ``tf.linalg.eigvalsh``."""
    failure = f"Self-adjoint {_NO_EIGENVALUES[0].lower()}{_NO_EIGENVALUES[1:]}"
    return run_lapack(_eigh_row, (to_tensor(tensor),), False, failure=failure, name=name)  # type: ignore[no-any-return]


def eig(tensor: Any, name: str | None = None) -> tuple[EagerTensor, EagerTensor]:
    """Eigenvalues and eigenvectors, as columns, of any square matrices, always complex. As ``tf.linalg.eig``."""
    return run_lapack(_eig_row, (to_tensor(tensor),), True, failure=_NO_EIGENVALUES, name=name)  # type: ignore[no-any-return]


def eigvals(tensor: Any, name: str | None = None) -> EagerTensor:
    """Eigenvalues of any square matrices, always complex. As ``tf.linalg.eigvals``."""
    return run_lapack(_eig_row, (to_tensor(tensor),), False, failure=_NO_EIGENVALUES, name=name)  # type: ignore[no-any-return]


__all__ = ["Qr", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd"]
