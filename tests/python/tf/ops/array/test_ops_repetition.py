"""Elements that are said several times, and others that are put around them."""

import re
from typing import Any

import numpy as np
import pytest

from allotment.tf.ops.array import padding, repetition
from allotment.tf.tensors.tensor_shape import TensorShape
from support.tf.tensors import check, check_refused, tensor

X = np.arange(6).reshape(2, 3)


def test_broadcasting_makes_elements_of_their_own() -> None:
    result = repetition.broadcast_to([1, 2, 3], [2, 3])
    check(result, [[1, 2, 3], [1, 2, 3]], "int32")
    assert result._array.flags.owndata
    check(repetition.broadcast_to([[1], [2]], tensor([2, 2])), [[1, 1], [2, 2]], "int32")
    check(repetition.broadcast_to("a", [2]), np.array([b"a", b"a"], object), "string")
    check(repetition.broadcast_to(1.0, []), 1, "float32")
    check(repetition.broadcast_to([1.0], [0]), np.zeros(0), "float32")
    check(repetition.broadcast_to(np.zeros((0, 1)), [2, 0, 3]), np.zeros((2, 0, 3)), "float64")


@pytest.mark.parametrize(
    ("value", "shape", "text"),
    [
        ([1, 2, 3], [2, 2], "Incompatible shapes: [3] vs. [2,2]"),
        ([1, 2, 3], [3, 1], "Unable to broadcast tensor of shape [3] to tensor of shape [3,1]"),
        ([[1]], [1], "Rank of input (2) must be no greater than rank of output shape (1)."),
        ([1], [-1], "Dimension -1 must be >= 0"),
        ([1, 2], [0], "Incompatible shapes: [2] vs. [0]"),
        ([[1, 2]], [2**40, 3], "Incompatible shapes: [1,2] vs. [1099511627776,3]"),
    ],
)
def test_what_cannot_be_broadcast(value: Any, shape: Any, text: str) -> None:
    check_refused(repetition.broadcast_to, value, shape, text=text)


def test_shapes_of_two_that_are_broadcast() -> None:
    static = repetition.broadcast_static_shape
    for x, y, expected in (
        ([1, 2], [3, 1], [3, 2]),
        ([4], [3, 1], [3, 4]),
        ([], [5], [5]),
        ([None, 2], [3, 1], [3, 2]),
        ([None], [1], [None]),
        ([0, 1], [0, 1], [0, 1]),
    ):
        assert static(TensorShape(x), TensorShape(y)).as_list() == expected
    assert static(TensorShape(None), TensorShape([1])).rank is None
    with pytest.raises(ValueError, match=re.escape("Received: (4, 2) and (3, 1).")):
        static(TensorShape([4, 2]), TensorShape([3, 1]))
    check(repetition.broadcast_dynamic_shape([1, 2], [3, 1]), [3, 2], "int32")
    check_refused(
        repetition.broadcast_dynamic_shape,
        [4, 2],
        [3, 1],
        text="Incompatible shapes: [4,2] vs. [3,1] [Op:BroadcastArgs]",
    )


def test_tiles() -> None:
    check(repetition.tile([1, 2], [2]), [1, 2, 1, 2], "int32")
    check(repetition.tile(X, [2, 2]), [[*row, *row] for row in X.tolist() * 2], "int64")
    check(repetition.tile(X, tensor([1, 0])), np.zeros((2, 0)), "int64")
    check(repetition.tile("a", []), np.array(b"a", object), "string")
    check(repetition.tile(["a", "b"], [2]), np.array([b"a", b"b"] * 2, object), "string")
    check_refused(
        repetition.tile,
        X,
        [2],
        text="Expected multiples argument to be a vector of length 2 but got length 1",
    )
    check_refused(repetition.tile, X, [2, -1], text="Expected multiples[1] >= 0, but got -1")


def test_repeats() -> None:
    check(repetition.repeat([1, 2, 3], 2), [1, 1, 2, 2, 3, 3], "int32")
    check(repetition.repeat([1, 2, 3], [2, 0, 1]), [1, 1, 3], "int32")
    check(repetition.repeat(X, 2), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "int64")
    check(repetition.repeat(X, [1, 2], axis=0), [[0, 1, 2], [3, 4, 5], [3, 4, 5]], "int64")
    check(repetition.repeat(X, 2, axis=-1), [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]], "int64")
    check(repetition.repeat(3, 2), [3, 3], "int32")
    check(repetition.repeat("a", 2, axis=0), np.array([b"a", b"a"], object), "string")
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        repetition.repeat(X, [1, 2, 3], axis=0)
    with pytest.raises(ValueError, match=re.escape("axis=3 out of bounds: expected -2<=axis<2")):
        repetition.repeat(X, 2, axis=3)
    check_refused(repetition.repeat, [1, 2], -1, text="repeats must be >= 0")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 3, 0, 0]),
        ({"constant_values": 7}, [7, 1, 2, 3, 7, 7]),
        ({"constant_values": 0}, [0, 1, 2, 3, 0, 0]),
        ({"mode": "REFLECT"}, [2, 1, 2, 3, 2, 1]),
        ({"mode": "symmetric"}, [1, 1, 2, 3, 3, 2]),
    ],
)
def test_pads(options: dict[str, Any], expected: list[int]) -> None:
    check(padding.pad([1, 2, 3], [[1, 2]], **options), expected, "int32")
    check(padding.pad(tensor([1.0, 2.0, 3.0]), tensor([[1, 2]]), **options), expected, "float32")


def test_pads_of_other_shapes() -> None:
    text = padding.pad(tensor("a"), np.zeros((0, 2), int))
    assert text.numpy() == b"a"
    assert type(text.numpy()) is bytes
    check(padding.pad(X, [[0, 1], [1, 0]]), [[0, 0, 1, 2], [0, 3, 4, 5], [0, 0, 0, 0]], "int64")
    check(padding.pad(5.0, []), 5, "float32")
    check(padding.pad(["a"], [[1, 0]]), np.array([b"", b"a"], object), "string")
    check(padding.pad(["a"], [[1, 0]], constant_values="z"), np.array([b"z", b"a"], object), "string")
    empty = np.zeros((0, 2))
    check(padding.pad(empty, [[0, 0], [1, 1]], "REFLECT"), np.zeros((0, 4)), "float64")
    check(padding.pad(empty, [[1, 0], [0, 0]]), np.zeros((1, 2)), "float64")


@pytest.mark.parametrize(
    ("widths", "options", "text"),
    [
        (
            [[1, 3]],
            {"mode": "REFLECT"},
            "paddings must be less than the dimension size: 1, 3 not less than 3",
        ),
        (
            [[1, 4]],
            {"mode": "SYMMETRIC"},
            "paddings must be no greater than the dimension size: 1, 4 greater than 3",
        ),
        ([[-1, 4]], {}, "Paddings must be non-negative: -1 4 [Op:Pad]"),
        ([1, 4], {}, "paddings must be a matrix with 2 columns: [2]"),
        ([[1, 1, 1]], {}, "paddings must be a matrix with 2 columns: [1,3]"),
        ([[1, 4], [1, 1]], {}, "The first dimension of paddings must be the rank of inputs[2,2] [3]"),
        ([[1.0, 4.0]], {}, "Value for attr 'Tpaddings' of float"),
        ([[1, 4]], {"constant_values": [1, 2]}, "constant_values must be a scalar. Found: [2]"),
    ],
)
def test_pads_that_do_not_fit(widths: Any, options: dict[str, Any], text: str) -> None:
    check_refused(padding.pad, [1, 2, 3], widths, **options, text=text)


def test_pads_of_no_known_kind() -> None:
    with pytest.raises(ValueError, match="Received `mode` = WRAP"):
        padding.pad([1], [[1, 1]], "WRAP")
    with pytest.raises(TypeError, match=r"Cannot convert 7\.5 to EagerTensor of dtype int32"):
        padding.pad([1], [[1, 1]], constant_values=7.5)


def test_grids() -> None:
    first, second = repetition.meshgrid([1, 2], [3, 4, 5])
    check(first, [[1, 2], [1, 2], [1, 2]], "int32")
    check(second, [[3, 3], [4, 4], [5, 5]], "int32")
    first, second = repetition.meshgrid([1, 2], [3, 4, 5], indexing="ij")
    check(first, [[1, 1, 1], [2, 2, 2]], "int32")
    check(second, [[3, 4, 5], [3, 4, 5]], "int32")
    grid = repetition.meshgrid([1, 2], [3, 4, 5], [6, 7])
    assert [each.shape.as_list() for each in grid] == [[3, 2, 2]] * 3
    for y, x, z in np.ndindex(3, 2, 2):
        assert [int(each._array[y, x, z]) for each in grid] == [1 + x, 3 + y, 6 + z]
    (only,) = repetition.meshgrid([[1, 2]])
    check(only, [1, 2], "int32")
    assert repetition.meshgrid() == []
    with pytest.raises(ValueError, match="must be either 'xy' or 'ij', got 'ab'"):
        repetition.meshgrid([1], indexing="ab")
