"""Gradients of decompositions of matrices."""

from typing import Any

from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import adjoint, expand_dims, squeeze
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.linalg.band_part import band_part
from allotment.tf.ops.linalg.diagonals import diag, diag_part, set_diag
from allotment.tf.ops.linalg.factor import eig, eigh, svd
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.linalg.solve import inv, triangular_solve
from allotment.tf.ops.math.arithmetic import reciprocal, square
from allotment.tf.ops.math.comparison import equal
from allotment.tf.ops.math.complex_numbers import complex as complex_of
from allotment.tf.ops.math.complex_numbers import conj, imag, real


@gradient("Cholesky", inputs=False, outputs=True)
def _cholesky(call: Call, upstream: Any) -> Any:
    triangle = call.outputs[0]
    inverse = triangular_solve(triangle, _eye_like(triangle))
    half = _lower_half(matmul(triangle, upstream, adjoint_a=True))
    slopes = matmul(matmul(inverse, half, adjoint_a=True), inverse)
    # Of both triangles, although only one is read: the matrix is taken for self-adjoint.
    return 0.5 * (slopes + adjoint(slopes))


def _eye_like(matrix: Any) -> Any:
    """Identity matrices of the shape of square ones."""
    return set_diag(zeros_like(matrix), ones_like(diag_part(matrix)))


def _lower_half(matrix: Any) -> Any:
    """The lower triangle with half of the diagonal."""
    return set_diag(band_part(matrix, -1, 0), 0.5 * diag_part(matrix))


@gradient("Qr", outputs=True)
def _qr(call: Call, by_q: Any, by_r: Any) -> Any:
    (q, r), (full,) = call.outputs, call.args
    rows, columns = q.shape[-2], r.shape[-1]
    if rows is None or columns is None:
        raise NotImplementedError(
            "for the gradient of qr, whether matrices have more rows or columns must be known when the graph is built. "
            "Use `set_shape`."
        )
    if full and rows > columns:
        raise NotImplementedError(
            "the gradient of qr is not known of matrices with more rows than columns and full_matrices=True. "
            "Use full_matrices=False."
        )
    if rows >= columns:
        return _qr_of_deep(q, r, by_q, by_r)
    # Of a = [b, c] is b = q u and r = [u, qᴴ c].
    c = call.inputs[0][..., rows:]
    by_c = by_r[..., rows:]
    by_b = _qr_of_deep(q, r[..., :rows], by_q + matmul(c, by_c, adjoint_b=True), by_r[..., :rows])
    return concat([by_b, matmul(q, by_c)], -1)


def _qr_of_deep(q: Any, r: Any, by_q: Any, by_r: Any) -> Any:
    # With p = qᴴ da r⁻¹, what turns q is the lower half of p less its adjoint, and the rest of p goes into r.
    along = matmul(q, by_q, adjoint_a=True)
    twist = along - matmul(by_r, r, adjoint_b=True)
    outside = by_q + matmul(q, _lower_half(twist - adjoint(twist)) - along)
    return matmul(q, by_r) + adjoint(triangular_solve(r, adjoint(outside), lower=False))


@gradient("Svd", outputs=True)
def _svd(call: Call, by_s: Any, by_u: Any = None, by_v: Any = None) -> Any:
    full, vectors = call.args
    if not vectors:
        _, u, v = svd(call.inputs[0])
        return matmul(u * _as_row(by_s, u), v, adjoint_b=True)
    s, u, v = call.outputs
    if full and u.shape[-1] != v.shape[-1]:
        raise NotImplementedError(
            "the gradient of svd with full_matrices=True is known of square matrices alone. Use full_matrices=False."
        )
    row = _as_row(s, u)
    of_u, of_v = matmul(u, by_u, adjoint_a=True), matmul(v, by_v, adjoint_a=True)
    apart = _one_over(square(row) - square(adjoint(row)))
    middle = (apart * (of_u - adjoint(of_u))) * row + adjoint(row) * (apart * (of_v - adjoint(of_v)))
    on_diagonal = cast(by_s, u._dtype)
    if u._dtype.is_complex:
        phase = imag(diag_part(of_u)) / s
        on_diagonal += complex_of(zeros_like(phase), phase)
    middle = set_diag(middle, on_diagonal)
    inside = matmul(matmul(u, middle), v, adjoint_b=True)
    # The part outside of the spaces that the vectors span.
    beside_u = matmul((by_u - matmul(u, of_u)) / row, v, adjoint_b=True)
    beside_v = matmul(u, (by_v - matmul(v, of_v)) / row, adjoint_b=True)
    return inside + beside_u + beside_v


def _as_row(values: Any, like: Any) -> Any:
    """One number for each column of a matrix."""
    return expand_dims(cast(values, like._dtype), -2)


def _one_over(differences: Any) -> Any:
    """The reciprocals of differences, zero where there is none."""
    same = equal(differences, 0)
    return where(same, zeros_like(differences), reciprocal(where(same, ones_like(differences), differences)))


@gradient("SelfAdjointEigV2", outputs=True)
def _eigh(call: Call, by_values: Any, by_vectors: Any = None) -> Any:
    if by_vectors is None:
        v = eigh(call.inputs[0])[1]
        slopes = matmul(v * _as_row(by_values, v), v, adjoint_b=True)
    else:
        values, v = call.outputs
        row = _as_row(values, v)
        middle = _one_over(row - adjoint(row)) * matmul(v, by_vectors, adjoint_a=True)
        middle = set_diag(middle, cast(by_values, v._dtype))
        slopes = matmul(matmul(v, middle), v, adjoint_b=True)
    # Only the lower triangle is read: what is above counts there.
    return 2 * _lower_half(0.5 * (slopes + adjoint(slopes)))


@gradient("Eig", outputs=True)
def _eig(call: Call, by_values: Any, by_vectors: Any = None) -> Any:
    matrix = call.inputs[0]
    if by_vectors is None:
        v = eig(matrix)[1]
        middle = diag(by_values)
    else:
        values, v = call.outputs
        row = _as_row(values, v)
        of_v = matmul(v, by_vectors, adjoint_a=True)
        # The vectors have length 1: what would make them longer does not count.
        lengths = cast(real(diag_part(of_v)), v._dtype)
        of_v -= matmul(v, v, adjoint_a=True) * expand_dims(lengths, -2)
        middle = conj(_one_over(row - _turned(row))) * of_v
        middle = set_diag(middle, by_values)
    back = inv(v, adjoint=True)
    slopes = matmul(matmul(back, middle), v, adjoint_b=True)
    return slopes if matrix._dtype.is_complex else cast(real(slopes), matrix._dtype)


def _turned(row: Any) -> Any:
    """A row of numbers as a column."""
    return squeeze(expand_dims(row, -1), -3)


__all__: list[str] = []
