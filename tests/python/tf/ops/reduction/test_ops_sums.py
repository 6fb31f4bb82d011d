"""Sums of several tensors."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

NOTHING = "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."


def test_any_number_of_tensors() -> None:
    x, y, z = tensor([1.0, 2.0]), tensor([3.0, 4.0]), tensor([5.0, 6.0])
    check(tf_math.add_n([x, y]), [4, 6], "float32")
    check(tf_math.add_n((x, y, z)), [9, 12], "float32")
    check(tf_math.add_n(each for each in (x, y, z)), [9, 12], "float32")
    check(tf_math.add_n([tensor(1), tensor(2), tensor(3)]), 6, "int32")
    check(tf_math.add_n({"a": x, "b": y}.values()), [4, 6], "float32")
    check(x, [1, 2], "float32")


def test_arrays_and_python_values() -> None:
    check(tf_math.add_n([np.array([1.0, 2.0]), np.array([3.0, 4.0])]), [4, 6], "float64")
    check(tf_math.add_n([[1.0, 2.0], [3.0, 4.0]]), [4, 6], "float32")
    check(tf_math.add_n(tensor([[1, 2], [3, 4], [5, 6]])), [9, 12], "int32")


def test_one_tensor_is_returned_as_it_is() -> None:
    x = tensor([1.0])
    assert tf_math.add_n([x]) is x
    check(tf_math.add_n([x], name="mine"), [1], "float32")


def test_nothing_has_no_sum() -> None:
    nothings: list[Any] = [[], (), iter(()), tensor(np.zeros((0, 2)))]
    for nothing in nothings:
        with pytest.raises(ValueError, match="at least one Tensor/IndexedSlices") as raised:
            tf_math.add_n(nothing)
        assert str(raised.value) == NOTHING
    for wrong, kind in ((5, "int"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"^'{kind}' object is not iterable$"):
            tf_math.add_n(wrong)


def test_what_does_not_go_together() -> None:
    check_refused(
        tf_math.add_n,
        [tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0])],
        text="Inputs to operation AddN of type AddN must have the same size and shape.  "
        "Input 0: [2] != input 1: [3] [Op:AddN]",
    )
    check_refused(
        tf_math.add_n, [tensor([1.0]), tensor([1.0]), tensor([[1.0]])], text="Input 0: [1] != input 2: [1,1]"
    )
    check_refused(
        tf_math.add_n,
        [tensor([1.0]), tensor([1])],
        text="cannot compute AddN as input #1(zero-based) was expected to be a float tensor but is a int32 tensor",
    )
    check_refused(tf_math.add_n, [tensor(True), tensor(True)], text="[Op:AddN]")


def test_accumulation_checks_what_is_known() -> None:
    x = tensor([1.0, 2.0])
    check(tf_math.accumulate_n([x, x, x]), [3, 6], "float32")
    check(tf_math.accumulate_n([x, x], shape=[2], tensor_dtype="float32"), [2, 4], "float32")
    others: list[dict[str, Any]] = [{"shape": [3]}, {"tensor_dtype": "int32"}, {"shape": []}]
    for wrong in others:
        with pytest.raises(ValueError, match="inputs must be a list of at least one Tensor"):
            tf_math.accumulate_n([x, x], **wrong)
    with pytest.raises(ValueError, match="inputs must be a list of at least one Tensor"):
        tf_math.accumulate_n([])
