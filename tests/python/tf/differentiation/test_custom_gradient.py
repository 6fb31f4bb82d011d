"""Functions that bring their own gradient."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf


def gradient(function: Any, *values: float) -> Any:
    inputs = [tf.constant(each) for each in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    found = [None if each is None else each.numpy() for each in tape.gradient(result, inputs)]
    return found[0] if len(found) == 1 else found


def test_a_function_has_the_gradient_it_brings() -> None:
    @tf.custom_gradient
    def log_of_exp(x: Any) -> Any:
        """Logarithm of one and an exponential."""
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    assert gradient(log_of_exp, 100.0) == 1
    assert log_of_exp.__doc__ == "Logarithm of one and an exponential."
    assert np.isnan(gradient(lambda x: tf.math.log(1 + tf.exp(x)), 100.0))


def test_several_arguments_and_results() -> None:
    @tf.custom_gradient
    def both(x: Any, y: Any) -> Any:
        return [x + y, x * y], lambda up, down: (up * 10, down * 100)

    assert gradient(both, 2.0, 3.0) == [10, 100]


def test_arguments_may_be_numbers_and_nested() -> None:
    @tf.custom_gradient
    def pair(values: Any, factor: Any) -> Any:
        return values[0] * values[1] * factor, lambda upstream: (upstream, upstream * 2, None)

    assert gradient(lambda x, y: pair([x, y], 3.0), 2.0, 5.0) == [1, 2]


def test_an_argument_that_is_returned_as_it_is() -> None:
    @tf.custom_gradient
    def reversed_slope(x: Any) -> Any:
        return x, lambda upstream: -upstream

    assert gradient(reversed_slope, 2.0) == -1
    assert gradient(lambda x: reversed_slope(x) + x, 2.0) == 0


def test_keywords_are_constants() -> None:
    @tf.custom_gradient
    def scaled(x: Any, *, factor: Any = 2.0) -> Any:
        return x * factor, lambda upstream: upstream * 7

    assert gradient(scaled, 1.0) == 7
    assert gradient(lambda x: scaled(x, factor=x), 1.0) == 7
    assert gradient(lambda x: tf.recompute_grad(lambda x, y: x * y)(x, y=x), 3.0) == 3
    assert gradient(lambda x: tf.grad_pass_through(lambda x, y: x * y)(x, y=x), 3.0) == 1


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: tf.recompute_grad(lambda x, y: x * y)(x, x), 6),
        (lambda x: tf.recompute_grad(lambda x, y, z: x * y * z)(x, x, x), 27),
        (lambda x: tf.recompute_grad(lambda pair: pair[0] * pair[1])([x, x]), 6),
        (lambda x: tf.recompute_grad(lambda x: (x, x * x))(x), 7),
    ],
)
def test_a_tensor_in_several_places_has_a_gradient_in_each(function: Any, slope: float) -> None:
    assert gradient(function, 3.0) == slope


@pytest.mark.parametrize(
    "function",
    [
        tf.custom_gradient(lambda x: (x * x, lambda upstream: upstream * 3)),
        tf.grad_pass_through(lambda x: x * x),
        tf.recompute_grad(lambda x: x * x),
    ],
)
@pytest.mark.parametrize("fed", [False, True])
def test_one_result_in_a_graph_has_its_own_shape(function: Any, fed: bool) -> None:
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        given = tf.compat.v1.placeholder(tf.float32) if fed else tf.constant(1.0)
        x = given * tf.constant([1.0, 2.0])
        twice = function(function(x))
        slope = tf.compat.v1.gradients(twice, x)[0]
        values, slopes = session.run([twice, slope], {given: 1.0})
    assert values.tolist() == [1, 16]
    assert slopes.shape == (2,)


def test_the_decorator_takes_methods() -> None:
    class Layer:
        @tf.custom_gradient
        def call(x: Any) -> Any:  # noqa: N805 - a function in a class
            return x * 2, lambda upstream: upstream * 5

    assert gradient(Layer.call, 1.0) == 5
    assert tf.custom_gradient()(lambda x: (x, lambda upstream: upstream * 3))(tf.constant(1.0)).numpy() == 1


def test_variables_have_gradients_of_their_own() -> None:
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def product(x: Any) -> Any:
        def back(upstream: Any, variables: Any) -> Any:
            assert variables == [w]
            return upstream * 100, [upstream * 1000]

        return x * w, back

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = product(x) * 2
    assert [each.numpy() for each in tape.gradient(y, [x, w])] == [200, 2000]


def test_a_variable_that_is_an_argument_is_no_other_one() -> None:
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda upstream: upstream * 100

    with tf.GradientTape() as tape:
        y = square(w)
    assert tape.gradient(y, w).numpy() == 100


def test_variables_that_nobody_takes_are_an_error() -> None:
    w = tf.Variable(3.0)
    bad = tf.custom_gradient(lambda x: (x * w, lambda upstream: upstream))
    with pytest.raises(
        TypeError, match="grad_fn must accept keyword argument 'variables', since function uses"
    ):
        bad(tf.constant(1.0))


def test_gradients_are_counted() -> None:
    two = tf.custom_gradient(lambda x: (x * 1, lambda upstream: (upstream, upstream)))
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2 instead"):
        gradient(two, 1.0)
    w = tf.Variable(3.0)
    none = tf.custom_gradient(lambda x: (x * w, lambda upstream, variables: (upstream, [])))
    with pytest.raises(
        ValueError, match="Must return gradient for each variable from @custom_gradient grad_fn"
    ):
        gradient(none, 1.0)


def test_own_gradients_have_gradients() -> None:
    @tf.custom_gradient
    def cube(x: Any) -> Any:
        return x**3, lambda upstream: upstream * 3 * x**2

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        slope = inner.gradient(y, x)
    assert (slope.numpy(), outer.gradient(slope, x).numpy()) == (12, 12)


def test_nothing_inside_is_recorded_by_tapes_around() -> None:
    @tf.custom_gradient
    def with_a_tape(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        slope = tape.gradient(y, x)
        return y, lambda upstream: upstream * slope * 10

    assert gradient(with_a_tape, 3.0) == 60


def test_gradients_pass_through_what_has_none() -> None:
    assert gradient(tf.round, 1.4) is None
    assert gradient(lambda x: tf.grad_pass_through(tf.round)(x * 3), 1.4) == 3
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(lambda x: x * w)(w * 5)
    assert tape.gradient(y, w).numpy() == 5


def test_a_function_is_called_again_instead_of_kept() -> None:
    calls, w = [], tf.Variable(2.0)

    @tf.recompute_grad
    def layer(x: Any, factor: Any, count: Any) -> Any:
        """A layer."""
        calls.append(count)
        return tf.sin(x * w) * factor, tf.exp(x)

    def plain(x: Any, factor: Any) -> Any:
        return tf.sin(x * w) * factor, tf.exp(x)

    assert layer.__doc__ == "A layer."
    x, factor = tf.constant(0.5), tf.constant(3.0)
    found: list[Any] = []
    functions: list[Callable[[], Any]] = [lambda: layer(x, factor, tf.constant(1)), lambda: plain(x, factor)]
    for function in functions:
        with tf.GradientTape() as outer:
            outer.watch([x, factor])
            with tf.GradientTape() as tape:
                tape.watch([x, factor])
                y = function()
            first = tape.gradient(y, [x, factor, w])
        found.append([each.numpy() for each in [*first, outer.gradient(first[2], x)]])
    assert len(calls) == 2
    assert found[0] == pytest.approx(found[1])


def test_tapes_record_the_tensors_of_the_function() -> None:
    kept = []

    @tf.custom_gradient
    def x_exp(x: Any) -> Any:
        grown = tf.exp(x)
        kept.append(grown)
        return grown * x, lambda upstream: upstream * (x * grown + grown)

    x = tf.Variable(1.0)
    with tf.GradientTape() as second:
        with tf.GradientTape() as first:
            y = x_exp(x)
        slope = first.gradient(y, x)
    np.testing.assert_allclose(second.gradient(slope, x), 3 * math.e, rtol=1e-6)
    with tf.GradientTape() as tape:
        y = x_exp(x) + kept.pop() + tf.stop_gradient(kept[0])
    np.testing.assert_allclose(tape.gradient(y, x), 3 * math.e, rtol=1e-6)


def test_arguments_that_no_tape_watches_leave_the_gradients_of_the_function() -> None:
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        square = w * w
        scaled = tf.custom_gradient(lambda x: (x * square, lambda upstream: upstream * square))
        y = scaled(tf.constant(2.0))
    assert tape.gradient(y, w) == 12


def test_a_tape_that_watches_an_argument_knows_no_other_way_to_what_the_function_uses() -> None:
    x, w = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape(persistent=True) as tape:
            square = w * w
            y = tf.custom_gradient(lambda x: (x * square, lambda upstream: upstream * square))(x)
        assert tape.gradient(y, w) is None
        slope = tape.gradient(y, x)
    assert outer.gradient(slope, w) == 6
    kept = []

    def tripled(x: Any) -> Any:
        kept.append(x * 3)
        return kept[0] * x, lambda upstream: upstream * 100

    with tf.GradientTape(persistent=True) as tape:
        y = tf.custom_gradient(tripled)(x)
    assert tape.gradient(y, kept[0]) is None
    assert (tape.gradient(y, x), tape.gradient(kept[0], x)) == (100, 3)


def test_the_variables_of_a_function_in_a_function() -> None:
    v = tf.Variable(2.0)
    inner = tf.custom_gradient(lambda x: (x * v, lambda upstream, variables: (upstream * 7, [upstream * 9])))
    outer = tf.custom_gradient(
        lambda x: (inner(x), lambda upstream, variables: (upstream * 70, [upstream * 90 for _ in variables]))
    )
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = outer(x)
    assert [float(each) for each in tape.gradient(y, [x, v])] == [70, 90]
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda x: x * v * v)(x)
    assert [float(each) for each in tape.gradient(y, [x, v])] == [4, 4]
