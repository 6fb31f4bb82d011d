"""Python's operators on tensors, and on variables."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf.ops.operators import OPERATORS
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.variable import Variable
from support.tf.tensors import check, check_refused, tensor

X = np.array([[1.0, -2.0], [5.5, 0.25]], np.float32)
Y = np.array([[2.0, 4.0], [-3.0, 0.5]], np.float32)
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

makes = pytest.mark.parametrize("make", [tensor, Variable], ids=["tensor", "variable"])


@makes
@pytest.mark.parametrize("sign", ARITHMETIC)
def test_arithmetic_with_everything_on_either_side(make: Callable[[Any], Any], sign: str) -> None:
    function = ARITHMETIC[sign]
    x = make(X)
    for other in (tensor(Y), Variable(Y), Y, Y.tolist()):
        check(function(x, other), function(X, Y), "float32")
        check(function(other, x), function(Y, X), "float32")
    for number in (2, 2.0, np.float32(2)):
        check(function(x, number), function(X, np.float32(2)), "float32")
        check(function(number, x), function(np.float32(2), X), "float32")


@makes
@pytest.mark.parametrize("sign", ORDER)
def test_comparison_with_everything_on_either_side(make: Callable[[Any], Any], sign: str) -> None:
    function = ORDER[sign]
    x = make(X)
    for other in (tensor(Y), Variable(Y), Y, Y.tolist()):
        check(function(x, other), function(X, Y), "bool")
        check(function(other, x), function(Y, X), "bool")
    check(function(x, 0.25), function(X, 0.25), "bool")
    check(function(1, x), function(1, X), "bool")


@makes
def test_powers_and_products_of_matrices(make: Callable[[Any], Any]) -> None:
    x = make(X)
    check(x**2, X**2, "float32")
    check(2.0**x, 2.0**X, "float32")
    check(make([1, 2, 3]) ** 2, [1, 4, 9], "int32")
    check(2 ** make([1, 2, 3]), [2, 4, 8], "int32")
    check(x @ tensor(Y), X @ Y, "float32")
    check(x @ Y, X @ Y, "float32")
    check(Y @ x, Y @ X, "float32")


@makes
def test_signs_and_bits(make: Callable[[Any], Any]) -> None:
    check(-make(X), -X, "float32")
    check(abs(make(X)), abs(X), "float32")
    i, j = np.array([0b1100, 5]), np.array([0b1010, 3])
    for function in (operator.and_, operator.or_, operator.xor):
        check(function(make(i), tensor(j)), function(i, j), "int64")
        check(function(j, make(i)), function(j, i), "int64")
        check(function(make([12, 5]), 10), function(np.array([12, 5]), 10), "int32")
        check(function(10, make([12, 5])), function(10, np.array([12, 5])), "int32")
    check(~make(i), ~i, "int64")


@makes
def test_truth_values(make: Callable[[Any], Any]) -> None:
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    for function in (operator.and_, operator.or_, operator.xor):
        check(function(make(p), tensor(q)), function(p, q), "bool")
        check(function(make(p), True), function(p, True), "bool")
        check(function(False, make(p)), function(False, p), "bool")
    check(~make(p), ~p, "bool")
    # The product of the whole parts, as TensorFlow has it.
    for factor in (tensor([0.5, 2.0, -0.3, 256.0]), np.array([0.5, 2.0, -0.3, 256.0])):
        check(make([True, True, True, False]) * factor, [False, True, False, False], "bool")
    check_refused(operator.and_, make(X), make(X), text="[Op:BitwiseAnd]")
    check_refused(operator.invert, make(X), text="[Op:Invert]")


def test_integers_divide_as_python_s_do() -> None:
    i, j = tensor([7, -7, 7, -7]), tensor([2, 2, -2, -2])
    check(i / j, [3.5, -3.5, -3.5, 3.5], "float64")
    check(i // j, [3, -4, -4, 3], "int32")
    check(i % j, [1, 1, -1, -1], "int32")
    check_refused(operator.pow, i, -1, text="Integers to negative integer powers are not allowed")


@makes
def test_nothing_is_equal_to_none(make: Callable[[Any], Any]) -> None:
    x = make(X)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert x not in (None,)


@makes
def test_shapes_that_do_not_go_together_are_not_equal(make: Callable[[Any], Any]) -> None:
    x, y = make(np.zeros(2)), tensor(np.zeros(3))
    check(x == y, False, "bool")
    check(x != y, True, "bool")
    check_refused(operator.lt, x, y, text="Incompatible shapes: [2] vs. [3] [Op:Less]")
    check(x == 0.0, [True, True], "bool")


def test_types_that_do_not_go_together() -> None:
    for function in (operator.add, operator.eq, operator.lt):
        check_refused(
            function, tensor([1]), tensor([1.0]), text="input #1(zero-based) was expected to be a int32"
        )
    with pytest.raises(TypeError, match=r"Cannot convert 1\.5 to EagerTensor of dtype int32"):
        1.5 * tensor([1])
    with pytest.raises(ValueError, match="unsupported type"):
        tensor([1]) + None


def test_texts() -> None:
    x = tensor(["a", "b"])
    check(x + "x", np.array([b"ax", b"bx"], object), "string")
    check("x" + x, np.array([b"xa", b"xb"], object), "string")
    check(x == "a", [True, False], "bool")
    check(x != tensor("a"), [False, True], "bool")


def test_assigning_operators_make_new_tensors() -> None:
    x = y = tensor([1.0])
    y += 1
    y *= 3
    y -= 1
    check(y, [5], "float32")
    check(x, [1], "float32")
    array: Any = np.array([1.0, 2.0], np.float32)
    array += tensor([1.0, 1.0])
    check(array, [2, 3], "float32")


def test_numpy_leaves_operators_to_tensors() -> None:
    for left in (np.array([1.0, 2.0], np.float32), np.float32(3)):
        for function in (*ARITHMETIC.values(), *ORDER.values()):
            assert type(function(left, tensor([1.0, 2.0]))) is EagerTensor
    # Its functions take tensors for arrays.
    assert type(np.add(tensor([1.0]), 1)) is np.ndarray


def test_the_commonest_operators_have_no_frame_of_their_own() -> None:
    from allotment.tf.ops.math import arithmetic as math

    assert OPERATORS["__mul__"].__code__ is math.multiply.__code__
    assert EagerTensor.__mul__ is OPERATORS["__mul__"]
    assert Variable.__mul__ is OPERATORS["__mul__"]
