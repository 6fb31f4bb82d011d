"""Reductions over rows that share a number, and counts of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError
from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

ROWS = [[1, 2], [3, 4], [5, 6], [7, 9]]


@pytest.mark.parametrize("ids", [[0, 0, 2, 2], tensor([0, 0, 2, 2], "int64")])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_segments_in_order(dtype: str, ids: Any) -> None:
    x = tensor(ROWS, dtype)
    check(tf_math.segment_sum(x, ids), [[4, 6], [0, 0], [12, 15]], dtype)
    check(tf_math.segment_prod(x, ids), [[3, 8], [1, 1], [35, 54]], dtype)
    check(tf_math.segment_max(x, ids), [[3, 4], [0, 0], [7, 9]], dtype)
    check(tf_math.segment_min(x, ids), [[1, 2], [0, 0], [5, 6]], dtype)


def test_means_of_segments() -> None:
    check(tf_math.segment_mean(tensor(ROWS, "float32"), [0, 0, 2, 2]), [[2, 3], [0, 0], [6, 7.5]], "float32")
    check(tf_math.segment_mean(tensor([1.0, 2.0, 6.0]), [0, 1, 1]), [1, 4], "float32")


def test_numbers_that_are_no_segments() -> None:
    x = tensor([1.0, 2.0])
    check_refused(tf_math.segment_sum, x, [1, 0], text="segment ids are not increasing")
    check_refused(tf_math.segment_sum, x, [-1, 0], text="segment ids must be >= 0")
    check_refused(
        tf_math.segment_sum, x, [0], text="segment_ids should be the same size as dimension 0 of input."
    )
    check_refused(tf_math.segment_sum, x, [[0, 1]], text="segment_ids should be a vector")
    check_refused(tf_math.segment_sum, tensor(1.0), [0], text="segment_ids should be the same size")
    check_refused(tf_math.segment_sum, x, tensor([0.0, 1.0]), text="Value for attr 'Tindices' of float")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_segments_in_any_order(dtype: str) -> None:
    x, ids = tensor(ROWS, dtype), tensor([2, 0, 2, -1])
    check(tf_math.unsorted_segment_sum(x, ids, 3), [[3, 4], [0, 0], [6, 8]], dtype)
    check(tf_math.unsorted_segment_prod(x, ids, 3), [[3, 4], [1, 1], [5, 12]], dtype)
    bounds = np.iinfo(dtype) if "int" in dtype else np.finfo(dtype)
    check(tf_math.unsorted_segment_max(x, ids, 3), [[3, 4], [bounds.min] * 2, [5, 6]], dtype)
    check(tf_math.unsorted_segment_min(x, ids, tensor(3)), [[3, 4], [bounds.max] * 2, [1, 2]], dtype)


def test_numbers_of_single_elements() -> None:
    check(
        tf_math.unsorted_segment_sum(tensor(ROWS), tensor([[0, 1], [1, 0], [0, 0], [1, 1]]), 2),
        [16, 21],
        "int32",
    )
    check(
        tf_math.unsorted_segment_sum(tensor(np.zeros((0, 2))), tensor(np.zeros(0, np.int32)), 2),
        np.zeros((2, 2)),
        "float64",
    )


def test_numbers_that_are_too_large() -> None:
    x = tensor([1.0, 2.0])
    check_refused(
        tf_math.unsorted_segment_sum, x, [0, 3], 3, text="segment_ids[1] = 3 is out of range [0, 3)"
    )
    check_refused(
        tf_math.unsorted_segment_sum,
        x,
        [0, 1, 2],
        3,
        text="data.shape = [2] does not start with segment_ids.shape = [3]",
    )
    check_refused(tf_math.unsorted_segment_sum, x, [0, 0], -1, text="Input num_segments must be non-negative")
    with pytest.raises(InvalidArgumentError, match="'Tnumsegments' of float is not in the list"):
        tf_math.unsorted_segment_sum(x, [0, 0], 1.5)
    with pytest.raises(TypeError, match=r"num_segments must be one whole number, not 1\.5"):
        tf_math.unsorted_segment_sum(x, tensor([0, 0], "int32"), 1.5)


def test_sums_of_segments_of_integers_wrap_around() -> None:
    check(tf_math.segment_mean(tensor([127] * 300, "int8"), [0] * 300), [-1], "int8")
    check(tf_math.segment_mean(tensor([-7, -8]), [0, 0]), [-7], "int32")


def test_counts() -> None:
    count: Callable[..., Any] = tf_math.bincount
    check(count(tensor([1, 1, 3])), [0, 2, 0, 1], "int32")
    check(count([[1, 1], [3, 0]]), [1, 2, 0, 1], "int32")
    check(count(tensor([1, 1, 3], "int64"), minlength=6), [0, 2, 0, 1, 0, 0], "int32")
    check(count([1, 1, 3], maxlength=3), [0, 2, 0], "int32")
    check(count([1, 1, 3], weights=[0.5, 1.0, 2.0]), [0, 1.5, 0, 2], "float32")
    check(count([1, 1, 3], dtype="float64"), [0, 2, 0, 1], "float64")
    check(count([1, 1, 3], binary_output=True), [0, 1, 0, 1], "int32")
    check(count([[1, 1], [0, 2]], axis=-1), [[0, 2, 0], [1, 0, 1]], "int32")
    check(
        count([[1, 1], [0, 2]], axis=-1, weights=[[1.0, 2.0], [3.0, 4.0]]), [[0, 3, 0], [3, 0, 4]], "float32"
    )
    check(count(tensor(np.zeros(0, np.int32))), np.zeros(0), "int32")


def test_rows_without_elements_go_nowhere() -> None:
    check(
        tf_math.unsorted_segment_sum(np.zeros((3, 0), np.float32), [0, 1, 9], 2), np.zeros((2, 0)), "float32"
    )


def test_what_cannot_be_counted() -> None:
    check_refused(tf_math.bincount, [1, -1], text="Input arr must be non-negative!")
    check_refused(tf_math.bincount, [2**31 - 1], text="size (2147483648) must be less than 2**31")
    check_refused(tf_math.bincount, [1.0], text="Value for attr 'Tidx' of float")
    check_refused(tf_math.bincount, [1, 2], weights=[1.0], text="`weights` must be the same shape as `arr`")
    with pytest.raises(ValueError, match="axis=1"):
        tf_math.bincount([1], axis=1)
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf_math.bincount([1], weights=[1.0], binary_output=True)
    with pytest.raises(ValueError, match="minlength must not be negative"):
        tf_math.bincount([1], minlength=-1)
