"""``tf.debugging``'s assertions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError
from allotment.tf import debugging
from allotment.tf.ops.array import constants, creation
from support.tf.tensors import check, check_refused, tensor


def failure(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(InvalidArgumentError) as raised:
        call(*args, **kwargs)
    return str(raised.value)


def test_what_holds_returns_nothing() -> None:
    holding: list[tuple[Callable[..., Any], list[Any]]] = [
        (debugging.assert_equal, [[1, 2], [1, 2]]),
        (debugging.assert_none_equal, [[1], [2]]),
        (debugging.assert_less, [creation.zeros([0]), creation.zeros([0])]),
        (debugging.assert_near, [[1.0], [1.0000001]]),
        (debugging.assert_positive, [[1]]),
        (debugging.assert_rank, [[1], 1]),
        (debugging.assert_rank_in, [[1], (0, 1)]),
        (debugging.assert_scalar, [1]),
        (debugging.assert_type, [1, "int32"]),
        (debugging.assert_integer, [1]),
        (debugging.assert_proper_iterable, [[1]]),
        (debugging.Assert, [True, [1]]),
    ]
    for call, args in holding:
        assert call(*args) is None


def test_elements_that_differ_are_shown() -> None:
    assert failure(debugging.assert_equal, [1, 2], [1, 3]) == (
        "Condition x == y did not hold.\nIndices of first 1 different values:\n[[1]]\nCorresponding x values:\n[2]\n"
        "Corresponding y values:\n[3]\nFirst 2 elements of x:\n[1 2]\nFirst 2 elements of y:\n[1 3]"
    )
    assert failure(debugging.assert_greater, 1, 2, "hello") == (
        "hello\nCondition x > y did not hold.\nFirst 1 elements of x:\n[1]\nFirst 1 elements of y:\n[2]"
    )
    assert failure(debugging.assert_equal, [1], [2], summarize=0) == "Condition x == y did not hold."
    assert failure(debugging.assert_equal, [1, 2, 3, 4], [5, 6, 7, 8], summarize=-1).endswith("[5 6 7 8]")
    assert failure(debugging.assert_non_positive, [1]) == (
        "\nCondition x <= 0 did not hold element-wise:x (shape=(1,) dtype=int32) = \n['1']"
    )
    assert failure(debugging.assert_positive, [-5, -4, -3, -2], message="m") == (
        "m.  \nCondition x > 0 did not hold element-wise:\nx (shape=(4,) dtype=int32) = \n['-5', '-4', '-3', '...']"
    )
    assert failure(debugging.assert_near, [1.0], [1.1]) == (
        "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b''\n"
        "b'x and y not equal to tolerance rtol = tf.Tensor(1.1920929e-06, shape=(), dtype=float32), atol = "
        "tf.Tensor(1.1920929e-06, shape=(), dtype=float32)'\nb'x (shape=(1,) dtype=float32) = '\n1.0\n"
        "b'y (shape=(1,) dtype=float32) = '\n1.1"
    )
    assert failure(debugging.Assert, False, ["a", 1, constants.constant(range(10))], summarize=4) == (
        "Expected 'False' to be true. Summarized data: b'a'\n1\n0, 1, 2, 3, ..."
    )


def test_numbers_take_no_type_from_the_tensor_beside_them() -> None:
    check_refused(
        debugging.assert_equal,
        tensor(1.0),
        1,
        text="cannot compute Equal as input #1(zero-based) was expected",
    )


def test_numbers_that_are_not_finite() -> None:
    check(debugging.check_numerics([1.0], "m"), [1], "float32")
    for values, found in (([np.nan], "NaN"), ([np.inf], "Inf"), ([-np.inf, np.nan], "Inf and NaN")):
        check_refused(
            debugging.check_numerics, values, "m", text=f"m : Tensor had {found} values [Op:CheckNumerics]"
        )
        check_refused(debugging.assert_all_finite, values, "m", text=f"m : Tensor had {found} values")
    check_refused(debugging.check_numerics, [1], "m", text="Value for attr 'T' of int32 is not in the list")


@pytest.mark.parametrize(
    ("call", "args", "kind", "text"),
    [
        (
            debugging.assert_rank,
            [[1], 2],
            ValueError,
            "Tensor  must have rank 2.  Received rank 1, shape (1,)",
        ),
        (debugging.assert_rank, [[1], 2, "m"], ValueError, "m.  Tensor  must have rank 2."),
        (debugging.assert_rank, [[1], [2]], ValueError, "Rank must be a scalar."),
        (debugging.assert_rank, [[1], 1.5], TypeError, "tensor must be of type tf.int32; got tf.float32"),
        (debugging.assert_rank_at_least, [[1], 2], ValueError, "Tensor  must have rank at least 2."),
        (debugging.assert_rank_in, [[1], [2, 3]], ValueError, "Tensor  must have rank in (2, 3)."),
        (debugging.assert_scalar, [[1]], ValueError, "Expected scalar shape, saw shape: (1,)."),
        (debugging.assert_type, [1, "float32"], TypeError, "tensor must be of type tf.float32; got tf.int32"),
        (debugging.assert_integer, [1.0], TypeError, 'Expected "x" to be integer type.'),
        (
            debugging.assert_proper_iterable,
            ["a"],
            TypeError,
            'Expected argument "values" to be a "proper" iterable.',
        ),
        (debugging.assert_proper_iterable, [5], TypeError, 'Expected argument "values" to be iterable.'),
        (debugging.assert_near, [[1], [1]], ValueError, "data type"),  # the text of NumPy
        (
            debugging.assert_shapes,
            [[([1, 2], ("N",)), ([1, 2, 3], ("N",))]],
            ValueError,
            "Specified by tensor shape=(2,) dtype=int32 dimension 0.  Tensor shape=(3,) dtype=int32 dimension 0 must "
            "have size 2.  Received size 3, shape (3,)",
        ),
        (debugging.assert_shapes, [[([1, 2], (3,))]], ValueError, "Specified explicitly.  Tensor shape=(2,)"),
        (debugging.assert_shapes, [[([1, 2], ("N", "M"))]], ValueError, "Tensor  must have rank 2."),
    ],
)
def test_shapes_and_types_that_are_others(
    call: Callable[..., Any], args: list[Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        call(*args)
    assert text in str(raised.value)


def test_shapes_with_letters() -> None:
    debugging.assert_shapes([(tensor([1, 2]), ("N",)), (tensor([[1, 2]]), ("M", "N"))])
    debugging.assert_shapes([(tensor([1, 2]), (..., "N")), (tensor([[1, 2]]), (..., "N"))])
    debugging.assert_shapes([(tensor([1, 2]), "N"), (tensor(1), ())])


def test_types_of_floats_and_numbers() -> None:
    assert debugging.assert_same_float_dtype([tensor(1.0)]).name == "float32"
    assert debugging.assert_same_float_dtype().name == "float32"
    with pytest.raises(ValueError, match="Expected floating point type, got <dtype: 'int32'>"):
        debugging.assert_same_float_dtype([tensor(1)])
    assert debugging.is_numeric_tensor(tensor(1.0))
    assert not any(map(debugging.is_numeric_tensor, (1, tensor("a"), tensor(True))))
