"""Sums of products in Einstein's notation."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import linalg
from support.tf.tensors import check, check_refused, tensor

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)
C = np.arange(24.0).reshape(2, 3, 4)
S = np.arange(9.0).reshape(3, 3)

EQUATIONS: list[tuple[str, list[Any], Any]] = [
    ("ij,jk->ik", [A, B], A @ B),
    ("ij,jk", [A, B], A @ B),
    (" i j , j k -> i k ", [A, B], A @ B),
    ("ij->ji", [A], A.T),
    ("ij->", [A], A.sum()),
    ("ij->i", [A], A.sum(1)),
    ("ii->i", [S], np.diag(S)),
    ("ii", [S], np.trace(S)),
    ("ba", [A], A.T),
    ("i,j->ij", [A[0], B[0]], np.outer(A[0], B[0])),
    ("bij,bij->b", [C, C], (C * C).sum((1, 2))),
    ("...ij,jk->...ik", [C, B.T], C @ B.T),
    ("...->...", [C], C),
    ("...i,...i", [C, C], (C * C).sum(-1)),
    ("ij,jk,lk->il", [A, B, B], A @ B @ B.T),
    ("ij,ij->ij", [A, A], A * A),
    (",->", [np.array(2.0), np.array(3.0)], 6),
]


@pytest.mark.parametrize(("equation", "inputs", "expected"), EQUATIONS, ids=[each[0] for each in EQUATIONS])
def test_equations(equation: str, inputs: list[Any], expected: Any) -> None:
    given = [tensor(each) for each in inputs]
    result = linalg.einsum(equation, *given)
    check(result, expected, "float64")
    assert not any(np.shares_memory(result._array, each._array) for each in given)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "int64", "complex64"])
def test_types_stay(dtype: str) -> None:
    a, b = tensor(A.astype(dtype)), tensor(B.astype(dtype))
    check(linalg.einsum("ij,jk->ik", a, b), A @ B, dtype)
    check(linalg.einsum("ij->i", a), A.sum(1), dtype)
    check(linalg.einsum("ij->ji", a), A.T, dtype)


def test_halves_are_added_up_in_single_precision() -> None:
    check(linalg.einsum("i->", tensor(np.ones(4096, np.float16))), 4096, "float16")


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("ij,jk->ik", "Got 1 arguments for equation"),
        ("ij->ijj", "more than once"),
        ("ij->k", "Label k of the output is in no input"),
        ("i1->i", "Unexpected character in einsum equation"),
        ("i..j->ij", "Invalid ellipsis"),
        ("i......j->ij", "Invalid ellipsis"),
        ("ij->ij->i", "Unexpected character"),
    ],
)
def test_what_is_no_equation(equation: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        linalg.einsum(equation, tensor(A))


def test_shapes_that_do_not_fit() -> None:
    check_refused(
        linalg.einsum,
        "ij,jk->ik",
        tensor(A),
        tensor(A),
        text="Expected dimension 3 at axis 0 of the input shaped [2,3] but got dimension 2 [Op:Einsum]",
    )
    check_refused(linalg.einsum, "ijk->i", tensor(A), text="Expected input 0 to have rank 3 but got: 2")
    check_refused(linalg.einsum, "i->i", tensor(A), text="Expected input 0 to have rank 1 but got: 2")
    check_refused(
        linalg.einsum, "ii->i", tensor(A), text="Expected dimension 2 at axis 1 of the input shaped [2,3]"
    )
    check_refused(
        linalg.einsum, "...,...->...", tensor(A), tensor(B), text="Incompatible shapes: [2,3] vs. [3,4]"
    )
    check_refused(linalg.einsum, "...i->i", tensor(A), text="must have an ellipsis")
    with pytest.raises(TypeError, match="Invalid keyword arguments for einsum: greedy"):
        linalg.einsum("i->i", tensor(A[0]), greedy=True)
    check(linalg.einsum("i->i", tensor(A[0]), optimize="greedy"), A[0], "float64")
