"""Elements and slices that are put at places."""

from typing import Any

import numpy as np
import pytest

from allotment.errors import NotFoundError
from allotment.tf.ops.indexing import scattering
from support.tf.tensors import check, check_refused, tensor


def test_updates_into_zeros_are_added_where_they_meet() -> None:
    put = scattering.scatter_nd
    check(put([[0], [2], [0]], [1.0, 2.0, 3.0], [4]), [4, 0, 2, 0], "float32")
    check(put([[1]], [[1, 2]], tensor([3, 2])), [[0, 0], [1, 2], [0, 0]], "int32")
    check(put([[1, 0], [0, 1]], [5, 6], [2, 2]), [[0, 6], [5, 0]], "int32")
    check(put([[1], [1]], ["a", "b"], [2]), np.array([b"", b"ab"], object), "string")
    check(put([[0], [0]], [True, True], [2]), [True, False], "bool")


@pytest.mark.parametrize(
    ("indices", "updates", "shape", "text"),
    [
        ([[4]], [1.0], [4], "indices[0] = [4] does not index into shape [4] [Op:ScatterNd]"),
        ([[-1]], [1.0], [4], "indices[0] = [-1] does not index into shape [4]"),
        (
            [[0]],
            [1.0, 2.0],
            [4],
            "Dimensions [0,1) of indices[shape=[1,1]] must match dimensions [0,1) of updates[shape=[2]]",
        ),
        (
            [[0]],
            [[1.0, 2.0]],
            [4, 3],
            "Dimensions [1,2) of input[shape=[4,3]] must match dimensions [1,2) of updates[shape=[1,2]]",
        ),
        ([[0, 1]], [1.0], [4], "Dimensions [2,1) of input[shape=[4]] must match"),
        ([[0.0]], [1.0], [4], "Value for attr 'Tindices' of float"),
        (0, 1.0, [4], "Indices shape must have rank at least one"),
        ([[0]], [1.0], [-4], "Dimension -4 must be >= 0"),
    ],
)
def test_updates_that_do_not_fit(indices: Any, updates: Any, shape: Any, text: str) -> None:
    check_refused(scattering.scatter_nd, indices, updates, shape, text=text)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (scattering.tensor_scatter_nd_update, [8, 2, 5]),
        (scattering.tensor_scatter_nd_add, [18, 2, 8]),
        (scattering.tensor_scatter_nd_sub, [-16, 2, -2]),
        (scattering.tensor_scatter_nd_min, [1, 2, 3]),
        (scattering.tensor_scatter_nd_max, [9, 2, 5]),
    ],
)
def test_updates_into_a_copy(function: Any, expected: list[int]) -> None:
    x = tensor([1, 2, 3])
    check(function(x, [[0], [0], [2]], [9, 8, 5]), expected, "int32")
    check(x, [1, 2, 3], "int32")
    check(
        function(tensor([[1.0, 2.0]]), np.zeros((0, 1), int), np.zeros((0, 2), np.float32)),
        [[1, 2]],
        "float32",
    )
    assert function.__name__.startswith("tensor_scatter_nd_")


def test_slices_into_a_copy() -> None:
    update = scattering.tensor_scatter_nd_update
    check(update([[1, 2], [3, 4]], [[1]], [[7, 8]]), [[1, 2], [7, 8]], "int32")
    check(update(["a", "b"], [[0]], ["z"]), np.array([b"z", b"b"], object), "string")


@pytest.mark.parametrize(
    ("indices", "updates", "text"),
    [
        ([[3]], [9], "indices[0] = [3] does not index into shape [3] [Op:TensorScatterUpdate]"),
        (
            [[0]],
            [9, 8],
            "Outer dimensions of indices and update must match. Indices shape: [1,1], updates shape:[2]",
        ),
        (
            [[0]],
            [[9]],
            "Inner dimensions of output shape must match inner dimensions of updates shape. Output: [3] updates: [1,1]",
        ),
        ([[0, 0]], [9], "Inner dimensions of output shape must match"),
        (
            [[0]],
            tensor([9.0]),
            "input #2(zero-based) was expected to be a int32 tensor but is a float tensor",
        ),
    ],
)
def test_updates_that_do_not_fit_a_copy(indices: Any, updates: Any, text: str) -> None:
    check_refused(scattering.tensor_scatter_nd_update, [1, 2, 3], indices, updates, text=text)


def test_values_that_cannot_be_added() -> None:
    with pytest.raises(NotFoundError, match="T=DT_STRING"):
        scattering.tensor_scatter_nd_add(["a"], [[0]], ["z"])
    with pytest.raises(TypeError, match="Cannot convert"):
        scattering.tensor_scatter_nd_update([1], [[0]], [9.5])
