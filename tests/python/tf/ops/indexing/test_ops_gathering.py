"""Elements and slices that are picked by number or by a condition."""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf import GradientTape
from allotment.tf.ops.indexing import gathering, masking
from support.tf.tensors import check, check_refused, tensor

X = np.arange(24).reshape(2, 3, 4)


def test_slices_by_number() -> None:
    check(gathering.gather([10, 20, 30], [2, 0, 2]), [30, 10, 30], "int32")
    check(gathering.gather([10, 20, 30], 1), 20, "int32")
    check(gathering.gather(["a", "b"], 1), np.array(b"b", object), "string")
    check(gathering.gather(["a", "b"], [[1], [0]]), np.array([[b"b"], [b"a"]], object), "string")
    for axis in range(-3, 3):
        for dtype in ("int16", "int32", "int64"):
            result = gathering.gather(X, tensor([[0, 1], [1, 0]], dtype), axis=axis)
            check(result, np.take(X, [[0, 1], [1, 0]], axis), "int64")
        check(gathering.gather(X, 1, axis=tensor(axis)), np.take(X, 1, axis), "int64")
        check(gathering.gather(X, np.zeros(0, int), axis=axis), np.take(X, np.zeros(0, int), axis), "int64")


def test_slices_by_numbers_of_each_batch_entry() -> None:
    # Every element is looked up by the definition: batch axes, axes between, numbers, the rest.
    y = np.arange(2 * 3 * 4 * 2).reshape(2, 3, 4, 2)
    generator = np.random.default_rng(0)
    for batch, axis in itertools.combinations_with_replacement(range(4), 2):
        for more in ((), (2,), (3, 2)):
            numbers = generator.integers(0, y.shape[axis], y.shape[:batch] + more)
            result = gathering.gather(y, numbers, axis=axis, batch_dims=batch)
            assert result.shape == y.shape[:axis] + more + y.shape[axis + 1 :]
            for place in np.ndindex(*result.shape):
                front, number, back = (
                    place[:axis],
                    place[axis : axis + len(more)],
                    place[axis + len(more) :],
                )
                source = (*front, numbers[(*place[:batch], *number)], *back)
                assert result._array[place] == y[source]
    check(gathering.gather(X, [[0], [2]], axis=1, batch_dims=-1), [[X[0, 0]], [X[1, 2]]], "int64")


@pytest.mark.parametrize(
    ("indices", "options", "text"),
    [
        (2, {}, "indices = 2 is not in [0, 2) [Op:GatherV2]"),
        (-1, {}, "indices = -1 is not in [0, 2)"),
        ([[0, 5]], {}, "indices[0,1] = 5 is not in [0, 2)"),
        ([4], {"axis": 2}, "indices[0] = 4 is not in [0, 4)"),
        ([0], {"axis": 3}, "Shape must be at least rank 4 but is rank 3"),
        ([0], {"axis": -4}, "Shape must be at least rank 4 but is rank 3"),
        (
            [0.5],
            {},
            "Value for attr 'Tindices' of float is not in the list of allowed values: int16, int32, int64",
        ),
        ([[0]], {"batch_dims": 1}, "params.shape[0]: 2 should be equal to indices.shape[0]: 1"),
        ([0, 1], {"axis": -3, "batch_dims": 1}, "batch_dims (1) must be less than or equal to axis (0)."),
        ([0, 1], {"axis": 2, "batch_dims": 2}, "Expected batch_dims in the range [-1, 1], but got 2"),
    ],
)
def test_slices_that_are_not_there(indices: Any, options: dict[str, Any], text: str) -> None:
    check_refused(gathering.gather, X, indices, **options, text=text)


def test_a_scalar_has_no_slices() -> None:
    check_refused(gathering.gather, 1.0, 0, text="params must be at least 1 dimensional")
    with pytest.raises(ValueError, match="unsupported type"):
        gathering.gather(X, None)


def test_elements_by_place() -> None:
    pick = gathering.gather_nd
    check(pick(X, [[0, 0, 0], [1, 2, 3]]), [0, 23], "int64")
    check(pick(X, [1, 2]), X[1, 2], "int64")
    check(pick(X, [[1]]), X[1:], "int64")
    check(pick(X, [[[0, 1]], [[1, 2]]]), [[X[0, 1]], [X[1, 2]]], "int64")
    check(pick(X, np.zeros((2, 0), int)), [X, X], "int64")
    check(pick(["a", "b"], [1]), np.array(b"b", object), "string")
    check(pick(["a", "b"], [[1]]), np.array([b"b"], object), "string")
    check(pick(X, np.zeros((0, 2), int)), np.zeros((0, 4)), "int64")


def test_elements_by_places_of_each_batch_entry() -> None:
    check(gathering.gather_nd(X, [[2], [0]], batch_dims=1), [X[0, 2], X[1, 0]], "int64")
    check(
        gathering.gather_nd(X, [[[2, 3], [0, 0]], [[1, 1], [2, 2]]], batch_dims=1),
        [[X[0, 2, 3], X[0, 0, 0]], [X[1, 1, 1], X[1, 2, 2]]],
        "int64",
    )
    check(
        gathering.gather_nd(X, [[[3], [2], [1]], [[0], [1], [2]]], batch_dims=2),
        [[3, 6, 9], [12, 17, 22]],
        "int64",
    )


@pytest.mark.parametrize(
    ("indices", "options", "text"),
    [
        ([[2]], {}, "indices[0] = [2] does not index into param shape [2,3,4], node name: GatherNd"),
        ([[[0, 1]], [[0, 9]]], {}, "indices[1,0] = [0, 9] does not index into param shape [2,3,4]"),
        ([-1], {}, "indices = [-1] does not index into param shape [2,3,4]"),
        ([[0] * 4], {}, "index innermost dimension length must be <= params rank; saw: 4 vs. 3"),
        (0, {}, "indices must be at least a vector"),
        ([[0.0]], {}, "Value for attr 'Tindices' of float"),
        ([[0]], {"batch_dims": 1}, "batch_dims = 1 does not fit shapes [2,3,4] and [1,1]"),
    ],
)
def test_places_that_are_not_there(indices: Any, options: dict[str, Any], text: str) -> None:
    check_refused(gathering.gather_nd, X, indices, **options, text=text)


def test_gradients_of_places_without_coordinates() -> None:
    rows = tensor([[1.0, 2.0], [3.0, 4.0]])
    with GradientTape() as tape:
        tape.watch(rows)
        picked = gathering.gather_nd(rows, np.zeros((2, 3, 0), np.int64), batch_dims=1)
    check(picked, [[[1, 2]] * 3, [[3, 4]] * 3], "float32")
    check(tape.gradient(picked, rows), [[3, 3], [3, 3]], "float32")


def test_masks_keep_slices() -> None:
    keep = masking.boolean_mask
    check(keep(X, [True, False]), X[:1], "int64")
    check(keep(X, [True, False, True], axis=1), X[:, [0, 2]], "int64")
    check(keep(X, [True, False, True], axis=-2), X[:, [0, 2]], "int64")
    check(keep(X, [1, 0]), X[:1], "int64")
    check(keep(["a", "b"], [False, True]), np.array([b"b"], object), "string")
    for value, mask, axis, text in (
        (X, [True] * 3, 0, "Shapes (2,) and (3,) are incompatible"),
        (X, [[True] * 4] * 3, -2, "Shapes () and (3, 4) are incompatible"),
        (X, [True], 3, "Shapes () and (1,) are incompatible"),
        (5, [True], 0, "Shapes () and (1,) are incompatible"),
        (X, True, 0, "mask cannot be scalar."),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            keep(value, mask, axis)


def test_where_it_is_true() -> None:
    check(masking.where([[True, False], [False, True]]), [[0, 0], [1, 1]], "int64")
    check(masking.where([3.0, 0.0, -1.0]), [[0], [2]], "int64")
    check(masking.where(np.zeros((2, 0, 3), bool)), np.zeros((0, 3)), "int64")
    check_refused(masking.where, True, text="WhereOp : Unhandled input dimensions: 0")
    check_refused(masking.where, ["a"], text="[Op:Where]")


def test_elements_by_condition() -> None:
    check(masking.where([True, False], [1, 2], [3, 4]), [1, 4], "int32")
    check(masking.where([True, False], 1.5, 2), [1.5, 2], "float32")
    check(masking.where([True, False], 1, tensor(2.0)), [1, 2], "float32")
    check(masking.where(True, X, np.int64(0)), X, "int64")
    check(masking.where([[True], [False]], [1, 2], 0), [[1, 2], [0, 0]], "int32")
    check(masking.where([True, False], ["a", "b"], "z"), np.array([b"a", b"z"], object), "string")


def test_elements_that_cannot_be_picked() -> None:
    check_refused(
        masking.where,
        [True, False],
        np.zeros((2, 3)),
        np.zeros(()),
        text="condition [2], then [2,3], and else [] must be broadcastable",
    )
    check_refused(
        masking.where, tensor([1]), 1, 2, text="input #0(zero-based) was expected to be a bool tensor"
    )
    check_refused(
        masking.where,
        True,
        tensor(1),
        tensor(2.0),
        text="input #2(zero-based) was expected to be a int32 tensor",
    )
    for x, y in ((1, None), (None, 1)):
        with pytest.raises(ValueError, match="x and y must both be non-None or both be None"):
            masking.where([True], x, y)
    with pytest.raises(TypeError, match=re.escape("Cannot convert [1, 0] to EagerTensor of dtype bool")):
        masking.where([1, 0], 1, 2)


def test_a_mask_of_another_length_than_a_graph_knew_counts_through_what_it_covers() -> None:
    # As TensorFlow 2.21 has it: what the mask does not reach is left out.
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder(tf.float32, [None])
        kept = tf.boolean_mask(given, [True, False, True])
        (slope,) = tf.gradients(kept * [2.0, 3.0], given)
        found, back = session.run([kept, slope], {given: [5.0, 6.0, 7.0, 8.0]})
        assert found.tolist() == [5.0, 7.0]
        assert back.tolist() == [2.0, 0.0, 3.0, 0.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 2 is not in \[0, 2\)"):
            session.run(kept, {given: [5.0, 6.0]})
