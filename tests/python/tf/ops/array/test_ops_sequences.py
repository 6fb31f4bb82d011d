"""Numbers in order, and marks at places."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from allotment.errors import ResourceExhaustedError
from allotment.tf.ops.indexing import indicators
from allotment.tf.ops.linalg import matrices
from allotment.tf.ops.math import sequences
from support.tf.tensors import check, check_refused, tensor


@pytest.mark.parametrize(
    ("arguments", "expected", "dtype"),
    [
        ((5,), [0, 1, 2, 3, 4], "int32"),
        ((0,), np.zeros(0), "int32"),
        ((1, 10, 3), [1, 4, 7], "int32"),
        ((10, 1, -3), [10, 7, 4], "int32"),
        ((3, 3), np.zeros(0), "int32"),
        ((5.0,), [0, 1, 2, 3, 4], "float32"),
        ((1, 4.0), [1, 2, 3], "float32"),
        ((0, 5, 2.0), [0, 2, 4], "float32"),
        ((0, 3, 0.5), [0, 0.5, 1, 1.5, 2, 2.5], "float32"),
        ((np.int64(3),), [0, 1, 2], "int64"),
        ((0, np.float64(1), 0.25), [0, 0.25, 0.5, 0.75], "float64"),
        ((tensor(1, "int64"), tensor(3.0, "float64")), [1, 2], "float64"),
    ],
)
def test_ranges(arguments: Any, expected: Any, dtype: str) -> None:
    check(sequences.range(*arguments), expected, dtype)


def test_the_type_of_a_range_can_be_said() -> None:
    check(sequences.range(3, dtype="int64"), [0, 1, 2], "int64")
    check(sequences.range(3, dtype="float64"), [0, 1, 2], "float64")
    check(sequences.range(start=1, limit=3, delta=1), [1, 2], "int32")
    with pytest.raises(TypeError, match=r"Cannot convert 5\.5 to EagerTensor of dtype int32"):
        sequences.range(5.5, dtype="int32")
    for value in (tensor(3, "int16"), True, "a"):
        with pytest.raises(TypeError, match="a range without dtype= is of int32, int64, float16"):
            sequences.range(value)


@pytest.mark.parametrize("step", [0.1, 0.2, 0.3, 0.7])
def test_a_range_of_float32_has_as_many_numbers_as_its_quotient_says(step: float) -> None:
    for count in range(40):
        limit = np.float32(count) * np.float32(step)
        result = sequences.range(np.float32(0), limit, np.float32(step))
        quotient = np.float32(limit) / np.float32(step)
        assert len(result) == -(-Fraction(float(quotient)) // 1)
        check(result, np.arange(len(result)) * np.float64(np.float32(step)), "float32")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((10, 1, 3), "Requires start <= limit when delta > 0: 10/1 [Op:Range]"),
        ((1, 10, -1), "Requires start >= limit when delta < 0: 1/10"),
        ((1, 10, 0), "Requires delta != 0: 0"),
        (([1, 2],), "limit must be a scalar, not shape [2]"),
        ((float("nan"),), "Requires start <= limit when delta > 0: 0.0/nan"),
        ((float("inf"),), "Requires ((limit - start) / delta) <= 9223372036854775807"),
    ],
)
def test_ranges_that_do_not_end(arguments: Any, text: str) -> None:
    check_refused(sequences.range, *arguments, text=text)


def test_a_range_that_no_memory_holds() -> None:
    with pytest.raises(ResourceExhaustedError, match=re.escape("shape[1125899906842624] and type int64")):
        sequences.range(2**50)


def test_equal_steps() -> None:
    check(sequences.linspace(0.0, 1.0, 5), [0, 0.25, 0.5, 0.75, 1], "float32")
    check(sequences.linspace(0, 10, tensor(5)), [0, 2.5, 5, 7.5, 10], "float64")
    check(sequences.linspace(3.0, 1.0, 3), [3, 2, 1], "float32")
    for name in ("int8", "uint8", "int16", "uint16"):
        check(sequences.linspace(tensor([1, 4], name), tensor([9, 7], name), 5)[1], [3, 4.75], "float32")
    check(sequences.linspace(2.0, 5.0, 1), [2], "float32")
    check(sequences.linspace(2.0, 5.0, 0), np.zeros(0), "float32")
    check(sequences.linspace([0.0, 1.0], [4.0, 6.0], 3), [[0, 1], [2, 3.5], [4, 6]], "float32")
    check(sequences.linspace([0.0, 1.0], [4.0, 6.0], 3, axis=-1), [[0, 2, 4], [1, 3.5, 6]], "float32")
    many = sequences.linspace(np.float32(0.1), np.float32(0.7), 1001).numpy()
    assert many[0] == np.float32(0.1)
    assert many[-1] == np.float32(0.7)
    assert np.abs(np.diff(many) - 0.0006).max() < 1e-6


def test_steps_that_cannot_be_taken() -> None:
    with pytest.raises(TypeError, match=r"num must be one whole number, not 2\.5"):
        sequences.linspace(0.0, 1.0, 2.5)
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float32"):
        sequences.linspace(tensor(1.0), tensor(2.0, "float64"), 3)
    check_refused(sequences.linspace, 0.0, 1.0, -1, text="Requires num >= 0, not -1")
    check_refused(sequences.linspace, 0.0, 1.0, 3, axis=5, text="Tried to expand dim index 5")
    check_refused(sequences.linspace, [0.0, 1.0], [0.0, 1.0, 2.0], 3, text="Incompatible shapes: [2] vs. [3]")


def test_unit_matrices() -> None:
    check(matrices.eye(2), [[1, 0], [0, 1]], "float32")
    check(matrices.eye(2, 3, dtype="int32"), [[1, 0, 0], [0, 1, 0]], "int32")
    check(matrices.eye(3, 1, dtype="bool"), [[True], [False], [False]], "bool")
    check(matrices.eye(2, batch_shape=[2, 1]), [[[[1, 0], [0, 1]]]] * 2, "float32")
    check(matrices.eye(0), np.zeros((0, 0)), "float32")
    check_refused(matrices.eye, -1, text="Dimension -1 must be >= 0 [Op:Fill]")
    with pytest.raises(TypeError, match="num_rows must be one whole number"):
        matrices.eye(2.0)


def test_marks() -> None:
    one_hot = indicators.one_hot
    check(one_hot([0, 2, -1, 5], 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], "float32")
    check(one_hot([0, 2], 3, axis=0), [[1, 0], [0, 0], [0, 1]], "float32")
    check(one_hot([[0, 2]], 3, axis=1), [[[1, 0], [0, 0], [0, 1]]], "float32")
    check(one_hot(1, 3, True, False), [False, True, False], "bool")
    check(one_hot(1, 3, on_value=5, off_value=1), [1, 5, 1], "int32")
    check(one_hot(1, 3, on_value=5, dtype="float64"), [0, 5, 0], "float64")
    check(one_hot(1, 3, on_value=tensor(5, "int64")), [0, 5, 0], "int64")
    check(one_hot(1, 3, off_value=tensor(-1, "int64")), [-1, 1, -1], "int64")
    check(one_hot(1, 3, "a", "b"), np.array([b"b", b"a", b"b"], object), "string")
    check(one_hot([], 3), np.zeros((0, 3)), "float32")
    check(one_hot(1, 0), np.zeros(0), "float32")


def test_marks_that_cannot_be_made() -> None:
    one_hot = indicators.one_hot
    check_refused(one_hot, [0], -3, text="depth must be non-negative, got: -3")
    check_refused(one_hot, [0], 3, axis=2, text="Expected axis to be -1 or between [0, 2).  But received: 2")
    check_refused(one_hot, [0.0], 3, text="Value for attr 'TI' of float")
    check_refused(
        one_hot, [0], 3, on_value=[1, 2], off_value=[0, 0], text="on_value must be a scalar, but got: [2]"
    )
    with pytest.raises(TypeError, match="dtype <dtype: 'float32'> of on_value does not match dtype"):
        one_hot([0], 3, on_value=5.0, off_value=1)
    with pytest.raises(TypeError, match="Cannot convert"):
        one_hot([0], 3, dtype="string")


def test_masks_of_lengths() -> None:
    mask = indicators.sequence_mask
    check(mask([1, 3, 0]), [[True, False, False], [True] * 3, [False] * 3], "bool")
    check(mask([[1], [2]], 3, dtype="int32"), [[[1, 0, 0]], [[1, 1, 0]]], "int32")
    check(mask(2, tensor(3)), [True, True, False], "bool")
    check(mask([5], 2), [[True, True]], "bool")
    check(mask(np.zeros(0, np.int32)), np.zeros((0, 0)), "bool")
    check_refused(mask, [1], -1, text="maxlen must be >= 0, but got -1")
    with pytest.raises(ValueError, match="`maxlen` must be scalar"):
        mask([1], [2])
