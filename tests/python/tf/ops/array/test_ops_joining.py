"""One tensor of several, and several of one."""

import re
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.errors import InvalidArgumentError
from allotment.tf.ops.array import joining, splitting
from support.tf.tensors import check, check_refused, tensor

X = np.arange(6).reshape(2, 3)


def test_joining_along_an_axis() -> None:
    check(joining.concat([[1, 2], [3]], 0), [1, 2, 3], "int32")
    check(joining.concat([X, X], 1), [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]], "int64")
    check(joining.concat((X, X[:1]), tensor(-2)), [[0, 1, 2], [3, 4, 5], [0, 1, 2]], "int64")
    check(joining.concat([tensor([1.0]), [2, 3]], 0), [1, 2, 3], "float32")
    check(joining.concat([[1, 2], tensor([1.5])], 0), [1, 2, 1.5], "float32")
    check(joining.concat([["a"], ["b"]], 0), np.array([b"a", b"b"], object), "string")
    check(joining.concat([np.zeros((0, 2)), np.ones((1, 2))], 0), [[1, 1]], "float64")


def test_one_tensor_alone_is_a_new_one() -> None:
    x = tensor([1.0])
    for values in (x, [x]):
        result = joining.concat(values, 0)
        check(result, [1], "float32")
        assert result is not x


@pytest.mark.parametrize(
    ("values", "axis", "text"),
    [
        ([[[1]], [[1]]], 2, "Expected concatenating dimensions in the range [-2, 2), but got 2"),
        ([[[1]], [[1]]], -3, "Expected concatenating dimensions in the range [-2, 2), but got -3"),
        (
            [[[1, 2]], [[3]]],
            0,
            "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [1,2] vs. shape[1] = [1,1]",
        ),
        (
            [[[1, 2]], [3]],
            0,
            "ConcatOp : Ranks of all input tensors should match: shape[0] = [1,2] vs. shape[1] = [1]",
        ),
        ([1, 2], 0, "ConcatOp : Can't concatenate scalars (use tf.stack instead)"),
        ([], 0, "`values` is empty"),
        (
            [tensor([1.0]), tensor([1])],
            0,
            "cannot compute ConcatV2 as input #1(zero-based) was expected to be a float tensor but is a int32",
        ),
    ],
)
def test_what_cannot_be_joined(values: Any, axis: int, text: str) -> None:
    check_refused(joining.concat, values, axis, text=text)


def test_joining_along_a_new_axis() -> None:
    check(joining.stack([1, 2]), [1, 2], "int32")
    check(joining.stack([1, 2.5]), [1, 2.5], "float32")
    check(joining.stack([[1, 2], [3, 4]], axis=-1), [[1, 3], [2, 4]], "int32")
    check(joining.stack([tensor([1, 2]), [3, 4]], axis=1), [[1, 3], [2, 4]], "int32")
    check(joining.stack([tensor(1.0), 2]), [1, 2], "float32")
    check(joining.stack([tensor("a"), "b"]), np.array([b"a", b"b"], object), "string")
    check(joining.stack([]), np.zeros(0), "float32")
    check(joining.stack(tensor(X)), X, "int64")
    check(joining.stack([X, X], axis=-3), [X, X], "int64")


def test_what_cannot_be_stacked() -> None:
    check_refused(
        joining.stack,
        [[1, 2], [3]],
        text="Shapes of all inputs must match: values[0].shape = [2] != values[1].shape = [1] [Op:Pack]",
    )
    check_refused(joining.stack, [tensor(1), tensor(2.5)], text="cannot compute Pack as input #1")
    with pytest.raises(ValueError, match=re.escape("Argument `axis` = 3 not in range [-2, 2)")):
        joining.stack([[1, 2], [3, 4]], axis=3)
    with pytest.raises(TypeError, match=r"Cannot convert 2\.5 to EagerTensor of dtype int32"):
        joining.stack([tensor(1), 2.5])
    with pytest.raises(TypeError, match="axis must be one whole number"):
        joining.stack([1], axis="0")


def test_taking_apart() -> None:
    for axis in (-2, -1, 0, 1):
        parts = splitting.unstack(X, axis=axis)
        assert len(parts) == X.shape[axis]
        for index, part in enumerate(parts):
            check(part, X.take(index, axis), "int64")
            assert part._array.flags.owndata
    assert splitting.unstack([]) == []
    check(splitting.unstack(["a", "b"], num=2)[1], np.array(b"b", object), "string")
    with pytest.raises(ValueError, match=re.escape("Argument `axis` = 2 not in range [-2, 2)")):
        splitting.unstack(X, axis=2)
    with pytest.raises(ValueError, match=re.escape("Argument `axis` = 0 not in range [0, 0)")):
        splitting.unstack(1.0)
    check_refused(splitting.unstack, X, 3, text="Input shape axis 0 must equal 3, got shape [2,3]")


def test_cutting() -> None:
    for parts in (3, [1, 1, 1], [1, -1, 1], tensor([1, 1, 1]), np.int64(3)):
        pieces = splitting.split(X, parts, axis=1)
        assert len(pieces) == 3
        for index, piece in enumerate(pieces):
            check(piece, X[:, index : index + 1], "int64")
            assert piece._array.flags.owndata
    whole, nothing = splitting.split(X, [2, -1])
    check(whole, X, "int64")
    check(nothing, np.zeros((0, 3)), "int64")


@pytest.mark.parametrize(
    ("parts", "axis", "text"),
    [
        (2, 1, "but got split_dim 1 (size = 3) and num_split 2 [Op:Split]"),
        (2, 2, "-input rank(-2) <= split_dim < input rank (2), but got 2"),
        (0, 0, "Value for attr 'num_split' of 0 must be at least minimum 1"),
        ([1, 1], 1, "Determined shape must either match input shape"),
        ([1, 3], 1, "Got: 4 [Op:SplitV]"),
        ([-1, -1], 1, "There can only be one -1 in the input."),
        ([4, -1], 1, "Got: 4"),
        ([-2, 5], 1, "Split size at index 0 must be >= 0. Got: -2"),
        ([2], -3, "-input rank(-2) <= split_dim < input rank (2), but got -3"),
    ],
)
def test_what_cannot_be_cut(parts: Any, axis: int, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(text)):
        splitting.split(X, parts, axis=axis)


def test_numbers_of_parts_that_are_none() -> None:
    for parts in (1.5, tensor(3)):
        with pytest.raises(ValueError, match="Rank-0 tensors are not supported"):
            splitting.split(X, parts)
    check_refused(splitting.split, X, [1.0, 1.0], text="num_or_size_splits must be whole numbers")


def test_a_graph_refuses_to_take_a_single_number_apart_when_it_runs() -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder(tf.float32, None)
        parts = tf.unstack(given, num=2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"axis = 0 not in \[0, 0\)"):
            session.run(parts, {given: 1.0})
        assert session.run(parts, {given: [1.0, 2.0]}) == [1.0, 2.0]
