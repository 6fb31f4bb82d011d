"""The order of elements, and which of them are equal."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from allotment.errors import InvalidArgumentError
from allotment.tf.ops.indexing import searching, sorting
from support.tf.tensors import check, check_refused, tensor


@given(some.lists(some.integers(-3, 3), max_size=12), some.booleans())
def test_sorting_keeps_the_order_of_equal_elements(values: list[int], descending: bool) -> None:
    direction = "DESCENDING" if descending else "ASCENDING"
    x = tensor(np.array(values, np.int32))
    # Python's own sort is stable, backwards, too.
    order = sorted(range(len(values)), key=values.__getitem__, reverse=descending)
    check(sorting.argsort(x, direction=direction), np.array(order, int), "int32")
    check(sorting.sort(x, direction=direction), np.array([values[place] for place in order], int), "int32")


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64"])
def test_sorting_along_an_axis(axis: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (3, 4, 5)).astype(dtype)
    check(sorting.sort(x, axis), np.sort(x, axis), dtype)
    check(sorting.sort(x, axis, "DESCENDING"), np.flip(np.sort(x, axis), axis), dtype)
    np.testing.assert_array_equal(
        np.take_along_axis(x, sorting.argsort(x, axis).numpy(), axis), np.sort(x, axis)
    )


def test_limits_are_sorted_like_other_numbers() -> None:
    check(sorting.sort(np.array([3, -1, -128, 127], np.int8)), [-128, -1, 3, 127], "int8")
    check(sorting.sort(np.array([0, 255, 7], np.uint8), direction="DESCENDING"), [255, 7, 0], "uint8")
    check(sorting.sort([1.0, -np.inf, np.inf]), [-np.inf, 1, np.inf], "float32")


def test_what_cannot_be_sorted() -> None:
    for values in (["a"], [True, False], [1j]):
        check_refused(sorting.sort, values, text="[Op:TopKV2]")
    check_refused(sorting.sort, 1.0, text="input must be >= 1-D, got shape []")
    check_refused(sorting.sort, [1.0], 1, text="slice index 1 of dimension 0 out of bounds.")
    with pytest.raises(ValueError, match="one of ASCENDING, DESCENDING"):
        sorting.argsort([1.0], direction="up")


def test_the_largest_elements() -> None:
    values, indices = sorting.top_k([3, 1, 2, 3], 3)
    check(values, [3, 3, 2], "int32")
    check(indices, [0, 3, 2], "int32")
    top = sorting.top_k([[1.0, 5.0, 3.0], [9.0, 7.0, 8.0]], tensor(2), index_type="int64")
    check(top.values, [[5, 3], [9, 8]], "float32")
    check(top.indices, [[1, 2], [0, 2]], "int64")
    check(sorting.top_k([[1.0], [2.0]]).values, [[1], [2]], "float32")
    check(sorting.top_k([1.0], 0).values, np.zeros(0), "float32")
    assert repr(sorting.top_k([1.0])).startswith("TopKV2(values=<tf.Tensor: shape=(1,)")
    check_refused(
        sorting.top_k, [3, 1], 3, text="input must have at least k columns. Had 2, needed 3 [Op:TopKV2]"
    )
    check_refused(sorting.top_k, [3, 1], -1, text="Need k >= 0, got -1")
    check_refused(sorting.top_k, 3, text="input must be >= 1-D, got shape []")
    check_refused(sorting.top_k, [3], index_type="float32", text="Value for attr 'index_type' of float")


@given(some.lists(some.sampled_from(["a", "bb", "c"]) | some.just("a"), max_size=12))
def test_different_elements_come_in_the_order_in_which_they_come_up(words: list[str]) -> None:
    different = list(dict.fromkeys(words))
    x = tensor(np.array(words, object) if words else np.zeros(0, object), "string")
    y, which, count = searching.unique_with_counts(x)
    check(y, np.array([word.encode() for word in different], object), "string")
    check(which, np.array([different.index(word) for word in words], int), "int32")
    check(count, np.array([words.count(word) for word in different], int), "int32")


def test_different_numbers() -> None:
    result = searching.unique([3, 1, 3, 2], "int64")
    check(result.y, [3, 1, 2], "int32")
    check(result.idx, [0, 1, 0, 2], "int64")
    check(searching.unique([0.0, -0.0, np.nan, np.nan]).idx, [0, 0, 1, 2], "int32")
    assert repr(result).startswith("Unique(y=<tf.Tensor")
    assert repr(searching.unique_with_counts([1])).startswith("UniqueWithCounts(y=<tf.Tensor")
    check_refused(searching.unique, [[1]], text="unique expects a 1D vector. [Op:Unique]")
    check_refused(searching.unique, [1], "float32", text="Value for attr 'out_idx' of float")


@given(some.lists(some.integers(-5, 5), max_size=8).map(sorted), some.lists(some.integers(-6, 6), max_size=5))
def test_where_values_would_be_put(ordered: list[int], values: list[int]) -> None:
    rows, wanted = np.array(ordered, np.int64), np.array(values, np.int64)
    left = [sum(each < value for each in ordered) for value in values]
    right = [sum(each <= value for each in ordered) for value in values]
    check(searching.searchsorted(rows, wanted), np.array(left, int), "int32")
    check(searching.searchsorted(rows, wanted, "right", "int64"), np.array(right, int), "int64")


def test_where_values_would_be_put_in_rows() -> None:
    check(searching.searchsorted([[1, 3, 5], [2, 4, 6]], [[3, 9], [3, 1]]), [[1, 3], [1, 0]], "int32")
    check(searching.searchsorted([[[1.0, 3.0]]], [[[2.0]]]), [[[1]]], "int32")


@pytest.mark.parametrize(
    ("rows", "values", "text"),
    [
        ([[1, 3], [2, 4]], [3], "Leading dim_size of both tensors must match. [Op:LowerBound]"),
        ([1, 3], 3, "slice index -1 of dimension 0 out of bounds."),
        (tensor([1.0]), tensor([1]), "cannot compute LowerBound as input #1"),
    ],
)
def test_values_that_cannot_be_put(rows: Any, values: Any, text: str) -> None:
    check_refused(searching.searchsorted, rows, values, text=text)


def test_sides_that_are_none() -> None:
    with pytest.raises(ValueError, match=re.escape("Received: `side` = 'up'.")):
        searching.searchsorted([1], [1], side="up")
    with pytest.raises(
        InvalidArgumentError, match="was expected to be a double tensor but is a float tensor"
    ):
        searching.searchsorted(tensor([1.0], "float64"), [1.0])
