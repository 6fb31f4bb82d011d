"""Axes that are moved, and elements that are moved along them."""

import itertools

import numpy as np
import pytest

from allotment.tf.ops.array import layout, reordering
from support.tf.tensors import check, check_refused, tensor

X = np.arange(24).reshape(2, 3, 4)


def test_every_order_of_axes() -> None:
    for order in itertools.permutations(range(3)):
        result = layout.transpose(X, order)
        for place in np.ndindex(2, 3, 4):
            assert result._array[tuple(place[axis] for axis in order)] == X[place]
        assert result._array.flags.owndata
    check(layout.transpose(X), X.T, "int64")
    check(layout.transpose(X, tensor([-1, 0, 1])), np.moveaxis(X, -1, 0), "int64")
    check(layout.transpose(5.0), 5, "float32")
    check(layout.transpose([["a", "b"]]), np.array([[b"a"], [b"b"]], object), "string")


def test_a_conjugate_transpose() -> None:
    check(layout.transpose([[1 + 2j, 3j]], conjugate=True), [[1 - 2j], [-3j]], "complex128")
    check(layout.transpose([[1.0, 2.0]], conjugate=True), [[1], [2]], "float32")


def test_orders_that_are_none() -> None:
    x = tensor([[1.0, 2.0]])
    check_refused(layout.transpose, x, [0, 0], text="1 is missing from {0,0}. [Op:Transpose]")
    check_refused(
        layout.transpose,
        x,
        [0],
        text="transpose expects a vector of size 2. But input(1) is a vector of size 1",
    )
    check_refused(layout.transpose, x, [0, 2], text="2 is out of range [0 .. 2)")
    text = "Value for attr 'Tperm' of float is not in the list of allowed values: int32, int64"
    check_refused(layout.transpose, x, [0.0, 1.0], text=text)


def test_axes_that_are_added_and_taken_away_share_the_memory() -> None:
    x = tensor(X)
    for axis in range(-4, 4):
        wider = layout.expand_dims(x, axis)
        assert wider.shape == (*X.shape[: axis % 4], 1, *X.shape[axis % 4 :])
        assert np.shares_memory(wider._array, x._array)
        check(layout.squeeze(wider, [axis]), X, "int64")
        narrow = layout.squeeze(wider)
        check(narrow, X, "int64")
        assert np.shares_memory(narrow._array, x._array)
    check(layout.squeeze([[[1.0]]]), 1, "float32")
    check(layout.squeeze([[[1.0]]], [0, 0, -3]), [[1]], "float32")
    check(layout.squeeze("text"), np.array(b"text", object), "string")


def test_axes_that_cannot_be_added_or_taken_away() -> None:
    for axis in (4, -5):
        check_refused(
            layout.expand_dims,
            X,
            axis,
            text=f"Tried to expand dim index {axis} for tensor with 3 dimensions.",
        )
    check_refused(layout.squeeze, X, 3, text="Tried to squeeze dim index 3 for tensor with 3 dimensions.")
    check_refused(
        layout.squeeze, X, -1, text="Can not squeeze dim[2], expected a dimension of 1, got 4 [Op:Squeeze]"
    )
    text = "Value for attr 'Tdim' of float is not in the list of allowed values: int32, int64"
    check_refused(layout.expand_dims, X, np.float32(1), text=text)
    check_refused(reordering.reverse, X, 0, text="'dims' must be 1-dimension, not 0 [Op:ReverseV2]")
    check_refused(reordering.roll, X, 1, np.float32(0.5), text="Value for attr 'Taxis' of float")
    with pytest.raises(TypeError, match=r"axis must be one whole number, not 1\.0"):
        layout.expand_dims(X, 1.0)
    with pytest.raises(ValueError, match="axis must be one whole number, not None"):
        layout.expand_dims(X, None)
    check_refused(
        layout.expand_dims, X, "1", text="Value for attr 'Tdim' of string is not in the list of allowed"
    )


def test_reversed_axes() -> None:
    check(reordering.reverse(X, [1]), X[:, ::-1], "int64")
    check(reordering.reverse(X, [0, -1]), X[::-1, :, ::-1], "int64")
    check(reordering.reverse(X, []), X, "int64")
    check_refused(reordering.reverse, X, [3], text="'axis'[0] = 3 is out of valid range [0, 2]")
    check_refused(reordering.reverse, X, [1, -2], text="axis 1 specified more than once.")


def test_rolled_axes() -> None:
    check(reordering.roll([1, 2, 3, 4], 1, 0), [4, 1, 2, 3], "int32")
    check(reordering.roll([1, 2, 3, 4], -5, 0), [2, 3, 4, 1], "int32")
    check(reordering.roll([[1, 2, 3], [4, 5, 6]], [1, 1], [0, 1]), [[6, 4, 5], [3, 1, 2]], "int32")
    check(reordering.roll([1, 2, 3], [1, 1], [0, 0]), [2, 3, 1], "int32")
    check_refused(reordering.roll, X, [1, 1], [0], text="shift and axis must have the same size")
    check_refused(reordering.roll, X, 1, 3, text="axis 3 is out of range")
    check_refused(reordering.roll, 5.0, 1, 0, text="input must be 1-D or higher")


def test_sequences_are_reversed_up_to_their_lengths() -> None:
    rows = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    check(
        reordering.reverse_sequence(rows, [2, 0, 4], seq_axis=1, batch_axis=0),
        [[2, 1, 3, 4], [5, 6, 7, 8], [12, 11, 10, 9]],
        "int32",
    )
    check(
        reordering.reverse_sequence(np.array(rows).T, [2, 1, 4], seq_axis=0, batch_axis=1),
        np.array([[2, 1, 3, 4], [5, 6, 7, 8], [12, 11, 10, 9]]).T,
        "int64",
    )
    lengths = [3, 1]
    expected = X.copy()
    for entry, length in enumerate(lengths):
        for place in range(length):
            expected[entry, :, place] = X[entry, :, length - 1 - place]
    check(reordering.reverse_sequence(X, lengths, seq_axis=-1, batch_axis=-3), expected, "int64")


def test_sequences_that_cannot_be_reversed() -> None:
    for lengths, axes, text in (
        ([2, 4, 1], (1, 0), "seq_lens(1) > input.dims(1)"),
        ([2, -1, 1], (1, 0), "seq_lens(1) < 0"),
        ([2], (1, 0), "Length of seq_lengths != input.dims(0), (1 vs. 3)"),
        ([[2, 1, 1]], (1, 0), "seq_lens input must be 1-dim, not 2"),
        ([2, 2, 2], (0, 0), "batch_dim == seq_dim == 0"),
        ([2, 2, 2], (5, 0), "seq_dim must be < input rank ( 5 vs. 2)"),
        ([2.0, 2.0, 2.0], (1, 0), "Value for attr 'Tlen' of float"),
    ):
        check_refused(reordering.reverse_sequence, np.zeros((3, 3)), lengths, *axes, text=text)
    with pytest.raises(TypeError, match="seq_axis must be one whole number, not None"):
        reordering.reverse_sequence(X, [1, 1])
