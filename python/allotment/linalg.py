"""``tf.linalg``: products, decompositions and diagonals of matrices."""

from allotment.ops.diagonals import band_part, diag, diag_part, set_diag, trace
from allotment.ops.einsum import einsum
from allotment.ops.exponential import expm
from allotment.ops.factor import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd
from allotment.ops.matrices import matrix_rank, normalize, pinv
from allotment.ops.norms import global_norm
from allotment.ops.products import adjoint, cross, matmul, matrix_transpose, matvec, tensordot
from allotment.ops.sequences import eye
from allotment.ops.solve import (
    cholesky_solve,
    det,
    inv,
    logdet,
    lstsq,
    slogdet,
    solve,
    triangular_solve,
)
from allotment.ops.statistics import l2_normalize, norm

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "svd",
    "tensordot",
    "trace",
    "triangular_solve",
]
