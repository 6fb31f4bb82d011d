"""What variables refuse, and what they keep from the days of graphs."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.variables.variable import Variable
from support.tf.tensors import check


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            operator.iadd,
            "`variable += value` with `tf.Variable`s is not supported. Use `variable.assign_add(value)` to modify the "
            "variable, or `out = variable + value` if you need to get a new output Tensor.",
        ),
        (
            operator.isub,
            "`variable -= value` with `tf.Variable`s is not supported. Use `variable.assign_sub(value)` to modify the "
            "variable, or `out = variable * value` if you need to get a new output Tensor.",
        ),
        *(
            (
                change,
                f"`var {name}= value` with `tf.Variable`s is not supported. Use `var.assign(var {name} value)` to "
                f"modify the variable, or `out = var {name} value` if you need to get a new output Tensor.",
            )
            for change, name in ((operator.imul, "*"), (operator.itruediv, "/"), (operator.ipow, "**"))
        ),
    ],
)
def test_augmented_assignment_is_refused(change: Callable[[Any, Any], Any], text: str) -> None:
    v = Variable([[1.0]])
    with pytest.raises(RuntimeError) as raised:
        change(v, [[2.0]])
    assert str(raised.value) == text
    check(v.value(), [[1]], "float32")


def test_other_augmented_assignments_make_tensors() -> None:
    changes: list[tuple[Callable[..., Any], float]] = [
        (operator.ifloordiv, 0),
        (operator.imod, 1),
        (operator.imatmul, 2),
    ]
    for change, wanted in changes:
        check(change(Variable([[1.0]]), [[2.0]]), [[wanted]], "float32")


def test_what_is_left_of_graphs() -> None:
    v = Variable(1.0)
    check(v.is_initialized(), True, "bool")
    assert v.initializer is None
    v.load(5.0)
    check(v.value(), 5, "float32")
    assert v.experimental_ref() == v.ref()
    for name in ("op", "graph"):
        with pytest.raises(
            AttributeError, match=f"Tensor.{name} is undefined when eager execution is enabled"
        ):
            getattr(v, name)
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        v.eval()
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        _ = v.initial_value


def test_shapes_that_are_said_later() -> None:
    v = Variable([1.0], shape=[None])
    v.set_shape([1])
    assert v.shape == [1]
    any_shape = Variable([1.0], shape=TensorShape(None))
    any_shape.set_shape([None])
    assert any_shape.shape == [None]
    with pytest.raises(ValueError, match=r"Shapes \(\) and \(2,\) are not compatible"):
        Variable(1.0).set_shape([2])
