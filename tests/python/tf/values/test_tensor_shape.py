"""Shapes: what they are made of, and what two of them have in common."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

Shape = tf.TensorShape


@pytest.mark.parametrize(
    ("value", "dims"),
    [
        (3, [3]),
        (np.int64(3), [3]),
        (np.array(1), [1]),
        (np.array([1, 2]), [1, 2]),
        (tf.constant(3), [3]),
        (tf.constant([1, 2]), [1, 2]),
        ([tf.constant(1), None], [1, None]),
        (range(3), [0, 1, 2]),
        ({1: 2}, [1]),
    ],
)
def test_what_a_shape_is_made_of(value: Any, dims: list[int | None]) -> None:
    assert Shape(value).as_list() == dims


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("ab", TypeError, "Failed to convert ''ab'' to a shape: ''a''could not be converted to a dimension."),
        (tf.constant([1.5]), TypeError, "could not be converted to a dimension."),
        (1.5, TypeError, "or have an __index__ method, got value '1.5' with type '<class 'float'>'"),
        (["1"], TypeError, "or have an __index__ method, got value ''1'' with type '<class 'str'>'"),
        ([[1]], TypeError, "or have an __index__ method, got value '[1]' with type '<class 'list'>'"),
        (-1, ValueError, "Dimension -1 must be >= 0"),
    ],
)
def test_what_is_no_shape(value: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        Shape(value)


@pytest.mark.parametrize(
    ("result", "dims"),
    [
        (Shape([1, None]).merge_with([None, 2]), [1, 2]),
        (Shape(None).merge_with([1]), [1]),
        (Shape([1]).merge_with(None), [1]),
        (Shape(None).with_rank(2), [None, None]),
        (Shape([1, 2]).with_rank(None), [1, 2]),
        (Shape([1, 2]).with_rank_at_least(2), [1, 2]),
        (Shape([1, 2]).with_rank_at_most(2), [1, 2]),
        (Shape([1, 2]).most_specific_compatible_shape([1, 3]), [1, None]),
        (Shape([1, 2]).most_specific_compatible_shape([1]), None),
        (Shape([1, 2]).most_specific_common_supertype([Shape([1, 3])]), [1, None]),
        (Shape(None)[0:1], [None]),
        (Shape(None)[3:1], []),
        (Shape(None)[1:], None),
        (Shape(None)[-1:], None),
    ],
)
def test_shapes_from_shapes(result: Any, dims: list[int | None] | None) -> None:
    assert repr(result) == f"TensorShape({dims})"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Shape([1, 2]).merge_with([1, 3]), "Shapes (1, 2) and (1, 3) are not compatible"),
        (lambda: Shape([1, 2]).with_rank(3), "Shape (1, 2) must have rank 3"),
        (lambda: Shape([1, 2]).with_rank_at_least(3), "Shape (1, 2) must have rank at least 3"),
        (lambda: Shape([1, 2]).with_rank_at_most(1), "Shape (1, 2) must have rank at most 1"),
        (lambda: Shape([1, 2]).assert_has_rank(3), "Shape (1, 2) must have rank 3"),
        (lambda: Shape([1, 2]).assert_same_rank([1]), "Shapes (1, 2) and (1,) must have the same rank"),
        (
            lambda: Shape([1, 2]).assert_is_compatible_with([1, 3]),
            "Shapes (1, 2) and [1, 3] are incompatible",
        ),
        (lambda: Shape([1, None]).assert_is_fully_defined(), "Shape (1, None) is not fully defined"),
        (lambda: Shape(None)[0:4:2], "Steps are not yet handled"),
    ],
)
def test_shapes_that_do_not_go_together(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_what_shapes_allow() -> None:
    Shape(None).assert_has_rank(3)
    Shape([1, 2]).assert_same_rank(None)
    Shape([1, 2]).assert_is_compatible_with([1, None])
    Shape([1, 2]).assert_is_fully_defined()
    assert Shape([1, 2]).is_subtype_of(Shape([1, None]))
    assert Shape([1, 2]).is_subtype_of(Shape(None))
    assert not Shape([1, None]).is_subtype_of(Shape([1, 2]))
    assert not Shape(None).is_subtype_of(Shape([1]))
    assert Shape([1, 2]).most_specific_common_supertype([1]) is None
