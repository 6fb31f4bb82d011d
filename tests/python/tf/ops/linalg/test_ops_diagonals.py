"""Diagonals and bands of matrices. The worked examples are counted out by hand."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import linalg
from support.tf.tensors import check, check_refused, tensor

SQUARE = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
WIDE = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "int64", "complex64", "bool"])
def test_matrices_of_diagonals(dtype: str) -> None:
    x = np.array([1, 0, 1]).astype(dtype)
    check(linalg.diag(tensor(x, dtype)), np.diag(x), dtype)
    check(linalg.diag_part(tensor(np.diag(x), dtype)), x, dtype)


def test_one_diagonal() -> None:
    x = tensor([1, 2])
    check(linalg.diag(x, k=1), [[0, 1, 0], [0, 0, 2], [0, 0, 0]], "int32")
    check(linalg.diag(x, k=-1), [[0, 0, 0], [1, 0, 0], [0, 2, 0]], "int32")
    check(linalg.diag(x, num_rows=3), [[1, 0], [0, 2], [0, 0]], "int32")
    check(linalg.diag(x, num_cols=3, padding_value=9), [[1, 9, 9], [9, 2, 9]], "int32")
    check(linalg.diag(tensor([[1.0], [2.0]])), [[[1]], [[2]]], "float32")


@pytest.mark.parametrize("k", [-2, -1, 0, 1, 3, tensor(1), [1], (1, 1)])
def test_parts(k: Any) -> None:
    number = int(np.asarray(k).reshape(-1)[0])
    check(linalg.diag_part(tensor([WIDE, WIDE]), k=k), [np.diagonal(WIDE, number)] * 2, "int32")


# The packed forms of the diagonals 1 to -1 and 2 to 0, for each alignment.
BANDS: dict[str, tuple[Any, Any]] = {
    "RIGHT_LEFT": ([[0, 2, 6], [1, 5, 9], [4, 8, 0]], [[0, 0, 3], [0, 2, 6], [1, 5, 9]]),
    "LEFT_RIGHT": ([[2, 6, 0], [1, 5, 9], [0, 4, 8]], [[3, 0, 0], [2, 6, 0], [1, 5, 9]]),
    "LEFT_LEFT": ([[2, 6, 0], [1, 5, 9], [4, 8, 0]], [[3, 0, 0], [2, 6, 0], [1, 5, 9]]),
    "RIGHT_RIGHT": ([[0, 2, 6], [1, 5, 9], [0, 4, 8]], [[0, 0, 3], [0, 2, 6], [1, 5, 9]]),
}


@pytest.mark.parametrize("align", BANDS)
def test_bands_and_their_packed_form(align: str) -> None:
    x = tensor(SQUARE)
    around, above = BANDS[align]
    check(linalg.diag_part(x, k=(-1, 1), align=align), around, "int32")
    check(linalg.diag_part(x, k=(0, 2), align=align), above, "int32")
    check(linalg.diag(tensor(around), k=(-1, 1), align=align), [[1, 2, 0], [4, 5, 6], [0, 8, 9]], "int32")
    check(linalg.diag(tensor(above), k=(0, 2), align=align), [[1, 2, 3], [0, 5, 6], [0, 0, 9]], "int32")
    zeros = tensor(np.zeros((3, 3), np.int32))
    check(
        linalg.set_diag(zeros, tensor(above), k=(0, 2), align=align),
        [[1, 2, 3], [0, 5, 6], [0, 0, 9]],
        "int32",
    )


def test_bands_of_what_is_not_square() -> None:
    check(
        linalg.diag_part(tensor(WIDE), k=(-1, 1), padding_value=-1),
        [[2, 7, 12], [1, 6, 11], [5, 10, -1]],
        "int32",
    )
    packed = tensor([[2, 7, 12], [1, 6, 11], [5, 10, 0]])
    expected = [[1, 2, 0, 0], [5, 6, 7, 0], [0, 10, 11, 12]]
    check(linalg.diag(packed, k=(-1, 1), num_rows=3, num_cols=4), expected, "int32")


def test_other_diagonals() -> None:
    check(linalg.set_diag(tensor(SQUARE), tensor([0, 0, 0])), [[0, 2, 3], [4, 0, 6], [7, 8, 0]], "int32")
    check(
        linalg.set_diag(tensor(WIDE), [0, 0, 0], k=1), [[1, 0, 3, 4], [5, 6, 0, 8], [9, 10, 11, 0]], "int32"
    )
    text = "Either first dimensions of diagonal don't match input.shape[:-2]"
    check_refused(linalg.set_diag, tensor(SQUARE), [1, 2], text=text)


def test_traces() -> None:
    check(linalg.trace(tensor(SQUARE)), 15, "int32")
    check(linalg.trace(tensor([WIDE, WIDE])), [18, 18], "int32")


def test_parts_between_bands() -> None:
    x = tensor(SQUARE)
    check(linalg.band_part(x, -1, 0), np.tril(SQUARE), "int32")
    check(linalg.band_part(x, 0, -1), np.triu(SQUARE), "int32")
    check(linalg.band_part(x, 0, 0), np.diag([1, 5, 9]), "int32")
    check(linalg.band_part(x, 1, tensor(0)), [[1, 0, 0], [4, 5, 0], [0, 8, 9]], "int32")
    check(linalg.band_part(tensor([WIDE]), -1, -1), [WIDE], "int32")
    check(linalg.band_part(tensor([[True, True]]), 0, 0), [[True, False]], "bool")


def test_what_is_not_there() -> None:
    x = tensor(SQUARE)
    check_refused(linalg.diag, tensor(1), text="diagonal must be at least 1-dim, received shape: []")
    check_refused(linalg.diag_part, tensor([1]), text="input must be at least 2-dim, received shape: [1]")
    check_refused(
        linalg.diag_part, x, k=3, text="lower_diag_index is out of bound: 3 It must be between -3 and 3"
    )
    check_refused(
        linalg.diag_part, x, k=(1, 0), text="lower_diag_index must not be larger than upper_diag_index: 1 > 0"
    )
    check_refused(
        linalg.diag, x, k=(0, 1), text="The number of diagonals provided in the input does not match"
    )
    check_refused(linalg.diag, tensor([1, 2]), num_rows=1, text="The number of rows is too small.")
    check_refused(linalg.diag, tensor([1, 2]), num_cols=1, text="The number of columns is too small.")
    check_refused(
        linalg.diag, tensor([1, 2]), num_rows=3, num_cols=3, text="is not consistent with the specified"
    )
    check_refused(
        linalg.band_part,
        x,
        4,
        0,
        text="num_lower must be negative or less or equal to number of rows (3) got: 4",
    )
    check_refused(
        linalg.band_part, x, 0, 4, text="num_upper must be negative or less or equal to number of columns (3)"
    )
    with pytest.raises(ValueError, match="align must be one of"):
        linalg.diag(x, align="LEFT")
    with pytest.raises(ValueError, match="k must be one diagonal, or the lowest and the highest"):
        linalg.diag(x, k=(1, 2, 3))
    with pytest.raises(TypeError, match="must be one whole number"):
        linalg.band_part(x, 1.5, 0)
