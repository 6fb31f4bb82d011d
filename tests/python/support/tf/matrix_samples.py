"""Sample calls of linear algebra for tests of gradients."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment.tf import linalg, stack
from allotment.tf import math as m
from support.tf.arrays import complexes, reals

Sample = tuple[Callable[..., Any], Sequence[Any]]


def _own(matrix: Any) -> Any:
    """Return the self-adjoint part of a matrix."""
    return (matrix + linalg.adjoint(matrix)) / 2


def _positive(size: int, make: Callable[..., Any] = reals) -> Any:
    half = make(size, size)
    return half @ np.conj(half.T) + np.eye(size)


def _phaseless(vectors: Any) -> Any:
    """Return the squared absolute values of vectors, which do not depend on their phases."""
    return vectors * m.conj(vectors)


def _svd(matrix: Any, full: bool = False) -> Any:
    s, u, v = linalg.svd(matrix, full_matrices=full)
    return s, _phaseless(u), _phaseless(v), linalg.matmul(u, v, adjoint_b=True)


def _eigh(matrix: Any) -> Any:
    values, vectors = linalg.eigh(_own(matrix))
    return values, _phaseless(vectors)


def _eig(matrix: Any) -> Any:
    values, vectors = linalg.eig(matrix)
    return m.reduce_sum(values**2), m.reduce_sum(values[..., None, :] * _phaseless(vectors), -1)


def _products() -> dict[str, Sample]:
    found: dict[str, Sample] = {}
    for kind, make in (("real", reals), ("complex", complexes)):
        for form_a in ("", "transpose_a", "adjoint_a"):
            for form_b in ("", "transpose_b", "adjoint_b"):
                flags = {flag: True for flag in (form_a, form_b) if flag}
                a, b = (4, 2) if form_a else (2, 4), (3, 4) if form_b else (4, 3)
                name = f"matmul, {kind} {form_a} {form_b}"
                found[name] = (lambda x, y, flags=flags: linalg.matmul(x, y, **flags), [make(*a), make(*b)])
                found[f"{name}, batch"] = (found[name][0], [make(5, 1, *a), make(3, *b)])
    return found


MATRIX_SAMPLES: dict[str, Sample] = {
    **_products(),
    "matmul, empty": (linalg.matmul, [np.zeros((2, 0)), np.zeros((0, 3))]),
    "matvec": (linalg.matvec, [reals(2, 3), reals(3)]),
    "tensordot": (lambda x, y: linalg.tensordot(x, y, [[0, 2], [1, 0]]), [reals(2, 3, 4), reals(4, 2)]),
    "cross": (linalg.cross, [reals(2, 3), reals(2, 3)]),
    "einsum": (lambda x, y: linalg.einsum("ij,jk->ik", x, y), [reals(2, 3), reals(3, 4)]),
    "einsum, three": (
        lambda x, y, z: linalg.einsum("bij,bj,k->bki", x, y, z),
        [reals(2, 3, 4), reals(2, 4), reals(2)],
    ),
    "einsum, summed": (lambda x, y: linalg.einsum("ijk,j->k", x, y), [reals(2, 3, 4), reals(3)]),
    "einsum, all": (lambda x: linalg.einsum("ij->", x), [reals(2, 3)]),
    "einsum, diagonal": (lambda x: linalg.einsum("ii->i", x), [reals(3, 3)]),
    "einsum, trace": (lambda x, y: linalg.einsum("iji,j->", x, y), [reals(3, 2, 3), reals(2)]),
    "einsum, rest": (lambda x, y: linalg.einsum("i...j,jk->...ik", x, y), [reals(2, 5, 3), reals(3, 4)]),
    "einsum, rests": (lambda x, y: linalg.einsum("...ij,j...->i...", x, y), [reals(1, 2, 3), reals(3, 4)]),
    "einsum, complex": (lambda x, y: linalg.einsum("ij,jk", x, y), [complexes(2, 3), complexes(3, 4)]),
    "diag": (lambda x: linalg.diag(x, k=1), [reals(2, 3)]),
    "diag, band": (lambda x: linalg.diag(x, k=(-1, 1), num_rows=4), [reals(3, 3)]),
    "diag_part": (lambda x: linalg.diag_part(x, k=(-1, 1)), [reals(2, 3, 4)]),
    "diag_part, one": (lambda x: linalg.diag_part(x, k=-1), [reals(3, 4)]),
    "set_diag": (linalg.set_diag, [reals(2, 3, 4), reals(2, 3)]),
    "band_part": (lambda x: linalg.band_part(x, 1, 0), [reals(3, 4)]),
    "trace": (linalg.trace, [reals(2, 3, 3)]),
    "norm": (lambda x: linalg.norm(x, ord=3, axis=1), [reals(3, 4)]),
    "norm, 2": (lambda x: linalg.norm(x, ord=2, axis=[0, 1]), [reals(3, 4)]),
    "global_norm": (lambda x, y: linalg.global_norm([x, y]), [reals(3), reals(2, 2)]),
    "inv": (linalg.inv, [_positive(3)]),
    "inv, adjoint": (lambda x: linalg.inv(x, adjoint=True), [complexes(2, 3, 3)]),
    "det": (linalg.det, [reals(2, 3, 3)]),
    "det, complex": (linalg.det, [complexes(3, 3)]),
    "slogdet": (linalg.slogdet, [reals(2, 3, 3)]),
    "slogdet, complex": (lambda x: m.real(linalg.slogdet(x)[1]), [complexes(3, 3)]),
    "logdet": (lambda x: linalg.logdet(_own(x)), [_positive(3)]),
    "solve": (linalg.solve, [reals(2, 3, 3), reals(2, 3, 2)]),
    "solve, adjoint": (lambda x, y: linalg.solve(x, y, adjoint=True), [complexes(3, 3), complexes(3, 2)]),
    "triangular_solve": (linalg.triangular_solve, [_positive(3), reals(3, 2)]),
    "triangular_solve, upper": (
        lambda x, y: linalg.triangular_solve(x, y, lower=False, adjoint=True),
        [_positive(3, complexes), complexes(3, 2)],
    ),
    "triangular_solve, one matrix": (linalg.triangular_solve, [_positive(3), reals(2, 3, 2)]),
    "triangular_solve, one side": (
        lambda x, y: linalg.triangular_solve(stack([x, 2.0 * x]), y),
        [_positive(3), reals(3, 2)],
    ),
    "lstsq, tall": (linalg.lstsq, [reals(5, 3), reals(5, 2)]),
    "lstsq, wide": (linalg.lstsq, [reals(2, 3, 5), reals(2, 3, 2)]),
    "lstsq, regular": (lambda x, y: linalg.lstsq(x, y, l2_regularizer=0.3), [reals(3, 4), reals(3, 2)]),
    "lstsq, complex": (linalg.lstsq, [complexes(5, 3), complexes(5, 2)]),
    "cholesky": (lambda x: linalg.cholesky(_own(x)), [_positive(3)]),
    "cholesky, complex": (lambda x: linalg.cholesky(_own(x)), [_positive(3, complexes)]),
    "cholesky_solve": (
        lambda x, y: linalg.cholesky_solve(linalg.cholesky(_own(x)), y),
        [_positive(3), reals(3, 2)],
    ),
    "qr": (linalg.qr, [reals(2, 4, 3)]),
    "qr, square": (lambda x: linalg.qr(x, full_matrices=True), [reals(3, 3)]),
    "qr, wide": (linalg.qr, [reals(3, 5)]),
    "qr, complex": (linalg.qr, [complexes(4, 3)]),
    "qr, complex and wide": (linalg.qr, [complexes(3, 4)]),
    "svd": (_svd, [reals(2, 4, 3)]),
    "svd, wide": (_svd, [reals(3, 5)]),
    "svd, full": (lambda x: _svd(x, full=True), [reals(3, 3)]),
    "svd, complex": (_svd, [complexes(4, 3)]),
    "svd, values": (lambda x: linalg.svd(x, compute_uv=False), [complexes(3, 4)]),
    "eigh": (_eigh, [reals(2, 3, 3)]),
    "eigh, complex": (_eigh, [complexes(3, 3)]),
    "eigvalsh": (lambda x: linalg.eigvalsh(_own(x)), [complexes(3, 3)]),
    "eig": (_eig, [_positive(3) + 0.1 * reals(3, 3)]),
    "eig, complex": (_eig, [complexes(3, 3)]),
    "eigvals": (lambda x: m.reduce_sum(linalg.eigvals(x) ** 3), [reals(3, 3)]),
    "expm": (linalg.expm, [reals(2, 3, 3)]),
    "expm, complex": (linalg.expm, [complexes(3, 3)]),
    "pinv": (linalg.pinv, [reals(4, 3)]),
}
