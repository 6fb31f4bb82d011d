"""``tf.linalg``: products, decompositions and diagonals of matrices."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.layout import adjoint, matrix_transpose
from allotment.tf.ops.linalg.band_part import band_part
from allotment.tf.ops.linalg.diagonals import diag, diag_part, set_diag, trace
from allotment.tf.ops.linalg.einsum import einsum
from allotment.tf.ops.linalg.exponential import expm
from allotment.tf.ops.linalg.factor import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd
from allotment.tf.ops.linalg.matrices import eye, matrix_rank, normalize, pinv
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.solve import (
    cholesky_solve,
    det,
    inv,
    logdet,
    lstsq,
    slogdet,
    solve,
    triangular_solve,
)
from allotment.tf.ops.linalg.tensor_products import cross, matvec, tensordot
from allotment.tf.ops.reduction.norms import global_norm
from allotment.tf.ops.reduction.statistics import l2_normalize, norm

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

refuse_other_names(__name__)
