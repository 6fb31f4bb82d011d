"""Optimizers: their steps beside the same in plain NumPy, and what else they do with gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf import train
from allotment.tf.keras import optimizers
from allotment.tf.ops.array.constants import constant
from allotment.tf.variables.variable import Variable
from support.tf.tensors import check_refused

START = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
draw = np.random.default_rng(0)
GRADIENTS = draw.standard_normal((6, *START.shape))


def descent(rate: float) -> Any:
    value = START.copy()
    for gradient in GRADIENTS:
        value = value - rate * gradient
    return value


def momentum(rate: float, kept: float, nesterov: bool) -> Any:
    value, velocity = START.copy(), np.zeros_like(START)
    for gradient in GRADIENTS:
        velocity = kept * velocity - rate * gradient
        value = value + (kept * velocity - rate * gradient if nesterov else velocity)
    return value


def adam(rate: float, beta_1: float, beta_2: float, epsilon: float, largest: bool) -> Any:
    value, first, second = START.copy(), np.zeros_like(START), np.zeros_like(START)
    top = np.zeros_like(START)
    for step, gradient in enumerate(GRADIENTS, 1):
        first = beta_1 * first + (1 - beta_1) * gradient
        second = beta_2 * second + (1 - beta_2) * gradient**2
        top = np.maximum(top, second)
        length = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        value = value - length * first / (np.sqrt(top if largest else second) + epsilon)
    return value


def rms_prop(rate: float, rho: float, kept: float, centered: bool) -> Any:
    value, squares, mean, velocity = START.copy(), *np.zeros((3, *START.shape))
    for gradient in GRADIENTS:
        squares = rho * squares + (1 - rho) * gradient**2
        mean = rho * mean + (1 - rho) * gradient
        spread = squares - mean**2 if centered else squares
        velocity = kept * velocity + rate * gradient / np.sqrt(spread + 1e-7)
        value = value - velocity
    return value


def adagrad(rate: float, first: float) -> Any:
    value, squares = START.copy(), np.full_like(START, first)
    for gradient in GRADIENTS:
        squares = squares + gradient**2
        value = value - rate * gradient / np.sqrt(squares + 1e-7)
    return value


CASES: dict[str, tuple[Callable[[], optimizers.Optimizer], Any]] = {
    "descent": (lambda: optimizers.SGD(0.1), descent(0.1)),
    "momentum": (lambda: optimizers.SGD(0.1, momentum=0.8), momentum(0.1, 0.8, False)),
    "nesterov": (lambda: optimizers.SGD(0.1, 0.8, nesterov=True), momentum(0.1, 0.8, True)),
    "adam": (lambda: optimizers.Adam(), adam(0.001, 0.9, 0.999, 1e-7, False)),
    "adam, other": (lambda: optimizers.Adam(0.1, 0.5, 0.7, 0.01), adam(0.1, 0.5, 0.7, 0.01, False)),
    "amsgrad": (lambda: optimizers.Adam(0.1, 0.5, 0.7, amsgrad=True), adam(0.1, 0.5, 0.7, 1e-7, True)),
    "rms": (lambda: optimizers.RMSprop(0.1), rms_prop(0.1, 0.9, 0, False)),
    "rms, momentum": (lambda: optimizers.RMSprop(0.1, 0.7, 0.5), rms_prop(0.1, 0.7, 0.5, False)),
    "rms, centered": (lambda: optimizers.RMSprop(0.1, centered=True), rms_prop(0.1, 0.9, 0, True)),
    "rms, both": (lambda: optimizers.RMSprop(0.1, 0.9, 0.5, centered=True), rms_prop(0.1, 0.9, 0.5, True)),
    "adagrad": (lambda: optimizers.Adagrad(0.1), adagrad(0.1, 0.1)),
    "adagrad, other": (lambda: optimizers.Adagrad(0.1, 2.0), adagrad(0.1, 2.0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_are_what_numpy_makes(case: str, dtype: str) -> None:
    make, wanted = CASES[case]
    optimizer, variable = make(), Variable(START, dtype=dtype)
    other = Variable(START[0], dtype=dtype)
    read = variable.value()
    for step, gradient in enumerate(GRADIENTS, 1):
        given = constant(gradient, dtype)
        count = optimizer.apply_gradients([(given, variable), (given[0], other)])
        assert count == optimizer.iterations == step
        # Nothing that somebody else holds has changed.
        np.testing.assert_array_equal(given.numpy(), gradient.astype(dtype))
    # The rate is kept in single precision, as Keras keeps it.
    rtol = 1e-5 if dtype == "float32" else 1e-7
    np.testing.assert_allclose(variable.numpy(), wanted, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(other.numpy(), wanted[0], rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(read.numpy(), START.astype(dtype))


def one_step(optimizer: optimizers.Optimizer, *gradients: Any) -> list[Any]:
    """How far a step with rate 1 takes variables that start at zero."""
    variables = [Variable(np.zeros_like(gradient)) for gradient in gradients]
    optimizer.apply_gradients([(constant(each), v) for each, v in zip(gradients, variables, strict=True)])
    return [-variable.numpy() for variable in variables]


def test_gradients_are_cut() -> None:
    a, b = np.array([3.0, 4.0]), np.array([0.0, 12.0])
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"clipvalue": 3.5}, ([3, 3.5], [0, 3.5])),
        ({"clipnorm": 2.5}, (a / 2, b / 12 * 2.5)),
        ({"global_clipnorm": 6.5}, (a / 2, b / 2)),
        ({"clipnorm": 100.0}, (a, b)),
    ]
    for given, wanted in cases:
        found = one_step(optimizers.SGD(1.0, **given), a, b)
        np.testing.assert_allclose(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1])
    with pytest.raises(ValueError, match="Only one of `clipnorm`, `clipvalue` and `global_clipnorm`"):
        optimizers.SGD(clipnorm=1.0, clipvalue=1.0)


def test_a_constraint_moves_a_variable_where_it_may_be() -> None:
    variable = Variable([1.0, 1.0], constraint=lambda value: abs(value.value()))
    optimizers.SGD(1.0).apply_gradients([(constant([0.5, 3.0]), variable)])
    np.testing.assert_allclose(variable.numpy(), [0.5, 2])


def test_the_learning_rate_is_read_and_set() -> None:
    optimizer = optimizers.SGD(0.25)
    assert float(optimizer.learning_rate) == 0.25
    assert optimizer.learning_rate.numpy() == np.float32(0.25)
    assert float(optimizer.learning_rate * 2) == 0.5
    optimizer.learning_rate = 0.5
    assert float(optimizer.lr) == 0.5
    optimizer.learning_rate.assign(2.0)
    np.testing.assert_allclose(one_step(optimizer, np.ones(1))[0], [2])
    assert f"{optimizer.learning_rate:.1f}" == "2.0"
    assert repr(optimizer.learning_rate) == f"<learning rate of {optimizer.name}: 2>"
    with pytest.raises(ValueError, match="Argument `learning_rate` should be float"):
        optimizer.learning_rate = "fast"


def test_what_an_optimizer_keeps() -> None:
    optimizer, variable = optimizers.Adam(name="adam"), Variable(START, name="w")
    assert optimizer.variables == []
    optimizer.build([variable])
    assert [each.name for each in optimizer.variables] == ["adam/w_momentum:0", "adam/w_velocity:0"]
    assert all(tuple(each.shape) == START.shape and not each.trainable for each in optimizer.variables)
    optimizer.apply([constant(GRADIENTS[0])])
    assert (variable.numpy() != START).any()


def test_variables_without_a_gradient_stay() -> None:
    optimizer, one, other = optimizers.SGD(1.0), Variable(1.0), Variable(1.0, name="other")
    with pytest.warns(UserWarning, match=r"Gradients do not exist for variables \['other:0'\]"):
        optimizer.apply_gradients([(constant(0.5), one), (None, other)])
    assert (one.numpy(), other.numpy()) == (0.5, 1.0)
    for nothing in ([], [(None, one)]):
        with pytest.raises(ValueError, match="No gradients provided for any variable"):
            optimizer.apply_gradients(nothing)


def test_a_gradient_of_another_shape_is_refused_and_changes_nothing() -> None:
    variable = Variable(START)
    wrong = [(constant(START[0]), variable)]
    check_refused(optimizers.Adam().apply_gradients, wrong, text="do not have the same shape[2,3] [3]")
    np.testing.assert_array_equal(variable.numpy(), START)


def test_optimizers_by_name() -> None:
    for name, kind in (("sgd", optimizers.SGD), ("Adam", optimizers.Adam), ("RMSprop", optimizers.RMSprop)):
        assert isinstance(optimizers.get(name), kind)
    early = train.GradientDescentOptimizer(0.1)
    assert optimizers.get(early) is early
    for wrong in ("foo", 3, optimizers.Optimizer):
        with pytest.raises(ValueError, match="Could not interpret optimizer identifier"):
            optimizers.get(wrong)


def test_arguments_that_are_of_no_use() -> None:
    with pytest.raises(ValueError, match=r"Argument\(s\) not recognized: \{'foo': 1\}"):
        optimizers.Adam(foo=1)
    with pytest.raises(ValueError, match="`momentum` must be a float between"):
        optimizers.SGD(momentum=2)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"learning_rate": 1}, "`learning_rate` should be float"),
        ({"clipnorm": 1.0, "clipvalue": 1.0}, "Only one of"),
        ({"gradient_accumulation_steps": 1}, "must be an integer >= 2"),
    ]
    for arguments, text in wrong:
        with pytest.raises(ValueError, match=text):
            optimizers.Adam(**arguments)


#: The variable after three steps from 2.0 with the gradients 1.0, -0.5 and 3.0, as Keras 3 of TensorFlow 2.21 has it.
STEPS: list[tuple[Any, float]] = [
    (lambda: optimizers.SGD(0.1), 1.64999986),
    (lambda: optimizers.SGD(0.1, momentum=0.9), 1.52400005),
    (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True), 1.22160006),
    (lambda: optimizers.SGD(0.1, weight_decay=0.1), 1.59208798),
    (lambda: optimizers.SGD(0.1, clipvalue=0.6), 1.93000007),
    (lambda: optimizers.SGD(0.1, clipnorm=0.6), 1.93000007),
    (lambda: optimizers.SGD(0.1, global_clipnorm=0.6), 1.93000007),
    (lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2), 1.97500002),
    (lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)), 1.8499999),
    (lambda: optimizers.SGD(lambda: 0.2), 1.29999995),
    (lambda: optimizers.Adam(0.1), 1.80631793),
    (lambda: optimizers.Adam(0.1, amsgrad=True), 1.80631793),
    (lambda: optimizers.Adam(0.1, gradient_accumulation_steps=2), 1.90000188),
    (lambda: optimizers.RMSprop(0.1), 1.5317378),
    (lambda: optimizers.RMSprop(0.1, momentum=0.9), 1.12368631),
    (lambda: optimizers.RMSprop(0.1, centered=True), 1.49725378),
    (lambda: optimizers.Adagrad(0.1), 1.8544364),
    (lambda: optimizers.Adagrad(0.1, initial_accumulator_value=-0.5), 1.8202368),
]


@pytest.mark.parametrize(("make", "wanted"), STEPS)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_steps_of_every_rank_and_argument(make: Any, wanted: float, shape: tuple[int, ...]) -> None:
    optimizer, variable = make(), Variable(np.full(shape, 2.0, np.float32))
    for gradient in (1.0, -0.5, 3.0):
        optimizer.apply_gradients([(constant(gradient, "float32", shape), variable)])
    np.testing.assert_allclose(variable.numpy(), np.full(shape, wanted), rtol=2e-6)


def test_arguments_that_are_not_offered_are_refused_by_name() -> None:
    wrong: list[dict[str, Any]] = [{"use_ema": True}, {"loss_scale_factor": 2.0}]
    for arguments in wrong:
        with pytest.raises(NotImplementedError, match=f"`{next(iter(arguments))}` is not offered"):
            optimizers.SGD(0.1, **arguments)
    assert float(optimizers.SGD(0.1, use_ema=False).learning_rate) == np.float32(0.1)


def test_a_variable_that_an_optimizer_was_not_built_with_is_refused() -> None:
    optimizer, one, other = optimizers.SGD(1.0), Variable(1.0), Variable(1.0)
    optimizer.apply([constant(0.5)], [one])
    for grads, variables in (([constant(0.5)], [other]), ([constant(0.5), constant(0.5)], None)):
        with pytest.raises(ValueError, match=r"Unknown variable|the optimizer was built with"):
            optimizer.apply(grads, variables)
    assert (float(one), float(other)) == (0.5, 1.0)


def test_a_number_of_a_function_is_of_single_precision() -> None:
    rates: list[Any] = [0.1, lambda: 0.1, lambda: np.float32(0.1)]
    found = []
    for rate in rates:
        variable = Variable(np.float64(1))
        optimizers.SGD(rate).apply_gradients([(constant(1.0, "float64"), variable)])
        found.append(variable.numpy())
    assert found == [1 - float(np.float32(0.1))] * 3
