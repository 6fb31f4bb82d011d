"""Parts of tensors by begin and size, and by begin, end and stride."""

from typing import Any

import numpy as np
import pytest

from allotment.tf.ops.indexing import slicing
from support.tf.tensors import check, check_refused, tensor

X = np.arange(24).reshape(2, 3, 4)


def test_a_part_by_begin_and_size() -> None:
    check(slicing.slice_(X, [1, 0, 2], [1, -1, 2]), X[1:2, :, 2:], "int64")
    check(slicing.slice_(X, tensor([0, 3, 0]), [-1, -1, 1]), np.zeros((2, 0, 1)), "int64")
    check(slicing.slice_(5.0, *np.zeros((2, 0), int)), 5, "float32")
    check(slicing.slice_(["a", "b"], [1], [1]), np.array([b"b"], object), "string")
    x = tensor(X)
    assert not np.shares_memory(slicing.slice_(x, [0, 0, 0], [-1, -1, -1])._array, x._array)


@pytest.mark.parametrize(
    ("begin", "size", "text"),
    [
        ([0, 1, 0], [2, 3, 1], "Expected size[1] in [0, 2], but got 3"),
        ([0, -1, 0], [2, 1, 1], "Expected begin[1] in [0, 3], but got -1"),
        ([0, 4, 0], [2, -1, 1], "Expected begin[1] in [0, 3], but got 4"),
        ([0, 1, 0], [2, -2, 1], "Expected size[1] in [0, 2], but got -2"),
        (
            [0],
            [2],
            "Expected begin and size arguments to be 1-D tensors of size 3, but got shapes [1] and [1] instead.",
        ),
    ],
)
def test_parts_that_are_not_there(begin: Any, size: Any, text: str) -> None:
    check_refused(slicing.slice_, X, begin, size, text=text)


def test_a_part_by_begin_end_and_stride() -> None:
    part = slicing.strided_slice
    check(part(X, [0, 0, 0], [2, 3, 4], [1, 2, 3]), X[0:2, 0:3:2, 0:4:3], "int64")
    check(part(X, [1], [2]), X[1:2], "int64")
    check(part([1, 2, 3], [-1], [-4], [-1]), [3, 2, 1], "int32")
    check(part(X, [5, 1], [0, 2], begin_mask=1, end_mask=1), X[:, 1:2], "int64")
    check(part(X, [1, 2], [0, 0], shrink_axis_mask=3), X[1, 2], "int64")
    check(part(X, [1, 0, 2], [0, 0, 0], ellipsis_mask=2, shrink_axis_mask=5), X[1, ..., 2], "int64")
    check(part(X, [0, 1], [0, 2], new_axis_mask=1), X[None, 1:2], "int64")


def test_parts_by_stride_that_are_not_there() -> None:
    part = slicing.strided_slice
    check_refused(part, X, [0], [2], [0], text="strides[0] must be non-zero [Op:StridedSlice]")
    check_refused(part, X, [2], [3], shrink_axis_mask=1, text="slice index 2 of dimension 0 out of bounds.")
    check_refused(
        part, X, [0] * 4, [1] * 4, text="Index out of range using input dim 3; input has only 3 dims"
    )
    check_refused(part, X, [0], [1, 1], text="must be of one length, not 1, 2 and 1")
    check_refused(part, X, [0.5], [1], text="begin must be whole numbers")
