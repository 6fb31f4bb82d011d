"""Square brackets."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from allotment.errors import InvalidArgumentError
from allotment.tf.ops.indexing import subscripts as indexing
from allotment.tf.variables.variable import Variable
from support.tf.tensors import check, check_refused, tensor

X = np.arange(24).reshape(2, 3, 4)
INVALID = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
    "valid indices, got "
)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2),
        (1, -1, 3),
        slice(1, None),
        slice(None, None, -1),
        slice(5, 9),
        (slice(-9, 9), slice(1, 2)),
        (slice(None), 0, slice(3, 0, -2)),
        ...,
        (..., 1),
        (1, ..., 1),
        None,
        (slice(None), None, 2),
        (None, 1, ..., None, 0),
        (),
    ],
    ids=repr,
)
def test_an_index_takes_what_numpy_takes(key: Any) -> None:
    result = tensor(X)[key]
    check(result, X[key], "int64")
    assert result._array.flags.owndata


bounds = some.none() | some.integers(-6, 6)
parts = (
    some.integers(-4, 3)
    | some.builds(slice, bounds, bounds, some.none() | some.integers(-3, 3).filter(bool))
    | some.none()
)


@given(some.lists(parts, max_size=4).map(tuple), some.none() | some.integers(0, 4))
def test_any_index_takes_what_numpy_takes_or_is_refused(key: tuple[Any, ...], dots: int | None) -> None:
    if dots is not None:
        key = (*key[:dots], ..., *key[dots:])
    try:
        expected = X[key]
    except IndexError:
        with pytest.raises(InvalidArgumentError):
            tensor(X)[key]
    else:
        check(tensor(X)[key], expected, "int64")


def test_scalars_of_every_kind_are_numbers() -> None:
    x = tensor(X)
    for one in (np.int64(1), np.uint8(1), np.array(1), tensor(1), tensor(1, "int64"), tensor(1, "int16")):
        check(x[one], X[1], "int64")
        check(x[:, one:], X[:, 1:], "int64")
        check(x[0, one], X[0, 1], "int64")
    check(x[Variable(1)], X[1], "int64")
    # A list is read like a tuple, unlike NumPy's.
    check(x[[0, 1]], X[0, 1], "int64")


def test_masks() -> None:
    x, flat = tensor(X), X.reshape(-1)
    check(x[x > 5], flat[6:], "int64")
    check(x[tensor([True, False])], X[:1], "int64")
    check(x[np.array([[True, False, True], [False, False, True]])], [X[0, 0], X[0, 2], X[1, 2]], "int64")
    for scalar in (True, False, tensor(True), np.array(False)):
        with pytest.raises(ValueError, match="mask cannot be scalar"):
            x[scalar]
    with pytest.raises(ValueError, match=re.escape("Shapes (2,) and (3,) are incompatible")):
        x[np.array([True, False, True])]


def test_texts_and_scalars() -> None:
    texts = tensor([["a", "b"]])
    check(texts[0, 1], np.array(b"b", object), "string")
    check(texts[:, 0], np.array([b"a"], object), "string")
    scalar = tensor(1.0)
    check(scalar[...], 1, "float32")
    check(scalar[()], 1, "float32")
    check(scalar[None], [1], "float32")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (2, "slice index 2 of dimension 0 out of bounds. [Op:StridedSlice] name: strided_slice/"),
        (-3, "slice index -1 of dimension 0 out of bounds."),
        ((0, 5), "slice index 5 of dimension 1 out of bounds."),
        ((None, 5), "slice index 5 of dimension 0 out of bounds."),
        ((..., 5), "slice index 5 of dimension 2 out of bounds."),
        (2**70, f"slice index {2**70} of dimension 0 out of bounds."),
        (slice(None, None, 0), "strides[0] must be non-zero"),
        ((..., ...), "Multiple ellipses in slice spec not allowed"),
        ((0, 0, 0, 0), "Index out of range using input dim 3; input has only 3 dims"),
    ],
    ids=repr,
)
def test_indices_that_are_not_there(key: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(text)):
        tensor(X)[key]


def test_a_scalar_has_no_parts() -> None:
    for key in (0, slice(None), (0, 0)):
        with pytest.raises(InvalidArgumentError, match="Attempting to slice scalar input"):
            tensor(1.0)[key]


@pytest.mark.parametrize(
    "key",
    [
        1.5,
        "x",
        np.float32(1),
        np.array([0, 1]),
        np.True_,
        (True, 0),
        slice(0, 1.5),
        slice(np.array([1]), None),
        tensor([0, 1]),
        tensor(1.0),
        tensor(1, "uint8"),
        (slice(None), tensor([True])),
        object(),
    ],
    ids=str,
)
def test_what_is_no_index(key: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(INVALID)):
        tensor(X)[key]


def test_a_list_of_truth_values_is_no_mask() -> None:
    check_refused(
        lambda: tensor(X)[[True, False, True]],
        text="Value for attr 'Index' of bool is not in the list of allowed values: int16, int32, int64",
    )


def test_the_index_of_a_key() -> None:
    assert indexing.index_of(np.int8(1)) == (1,)
    assert indexing.index_of((slice(tensor(1), None), None)) == (slice(1, None), None)


def test_iterating_takes_slices() -> None:
    rows = list(tensor(X))
    assert len(rows) == 2
    check(rows[1], X[1], "int64")
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(tensor(1))
