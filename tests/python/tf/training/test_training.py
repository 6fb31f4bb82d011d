"""Optimizers of TensorFlow 1, eagerly and in graphs, against plain NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as tf1

v1: Any = tf.compat.v1
STEPS = 4
START = np.array([1.0, -2.0])


def descent(x: Any) -> Any:
    return x - 0.1 * 3 * x**2


def plain(update: Callable[[Any, Any, dict[str, Any]], Any], **state: Any) -> Any:
    """Some steps down the slope of the sum of cubes, one NumPy line each."""
    x = START.copy()
    for _ in range(STEPS):
        x = x - update(x, 3 * x**2, state)
    return x


def momentum(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["m"] = 0.9 * state["m"] + g
    return 0.01 * state["m"]


def nesterov(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["m"] = 0.9 * state["m"] + g
    return 0.01 * (g + 0.9 * state["m"])


def adagrad(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["s"] = state["s"] + g**2
    return 0.1 * g / np.sqrt(state["s"])


def rms(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["s"] = 0.8 * state["s"] + 0.2 * g**2
    state["m"] = 0.3 * state["m"] + 0.1 * g / np.sqrt(state["s"] + 1e-6)
    return state["m"]


def centered(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["s"] = 0.9 * state["s"] + 0.1 * g**2
    state["a"] = 0.9 * state["a"] + 0.1 * g
    return 0.1 * g / np.sqrt(state["s"] - state["a"] ** 2 + 1e-10)


def adam(x: Any, g: Any, state: dict[str, Any]) -> Any:
    state["t"] += 1
    state["m"] = 0.9 * state["m"] + 0.1 * g
    state["v"] = 0.999 * state["v"] + 0.001 * g**2
    rate = 0.1 * np.sqrt(1 - 0.999 ** state["t"]) / (1 - 0.9 ** state["t"])
    return rate * state["m"] / (np.sqrt(state["v"]) + 1e-8)


OPTIMIZERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "gradient descent": (
        lambda: tf.train.GradientDescentOptimizer(0.01),
        plain(lambda x, g, state: 0.01 * g),
    ),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.01, 0.9), plain(momentum, m=0.0)),
    "nesterov": (
        lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
        plain(nesterov, m=0.0),
    ),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.1), plain(adagrad, s=0.1)),
    "rms": (
        lambda: tf.train.RMSPropOptimizer(0.1, decay=0.8, momentum=0.3, epsilon=1e-6),
        plain(rms, s=1.0, m=0.0),
    ),
    "rms, centered": (
        lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
        plain(centered, s=1.0, a=0.0),
    ),
    "adam": (lambda: tf.train.AdamOptimizer(0.1), plain(adam, m=0.0, v=0.0, t=0)),
}


def cubes(variable: Any) -> Any:
    return tf.reduce_sum(variable * variable * variable)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_variables_change_as_the_method_says(name: str) -> None:
    make, expected = OPTIMIZERS[name]
    variable, step, optimizer = tf.Variable(START), tf.Variable(0, dtype=tf.int64), make()
    for _ in range(STEPS):
        assert optimizer.minimize(lambda: cubes(variable), global_step=step) is None
    np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5)
    assert step.numpy() == STEPS


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("resource", [True, False])
def test_variables_of_graphs_change_alike(name: str, resource: bool) -> None:
    make, expected = OPTIMIZERS[name]
    with tf.Graph().as_default() as graph:
        variable = v1.get_variable("v", initializer=START, use_resource=resource)
        step = v1.train.get_or_create_global_step()
        optimizer = make()
        train = optimizer.minimize(cubes(variable), global_step=step)
        assert train.name == optimizer.get_name()
        assert graph.get_collection("train_op") == [train]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(STEPS):
                session.run(train)
            np.testing.assert_allclose(session.run(variable), expected, rtol=1e-5)
            assert session.run(step) == STEPS


def test_slots_are_named_and_placed_as_their_variables() -> None:
    variable = tf.Variable([1.0, 2.0], name="v")
    optimizer = tf.train.AdamOptimizer()
    optimizer.minimize(lambda: cubes(variable))
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(variable, "m").shape == (2,)
    assert optimizer.get_slot(variable, "momentum") is None
    assert [each.name for each in optimizer.variables()] == [
        *("beta1_power:0", "beta2_power:0", "v/Adam:0", "v/Adam_1:0")
    ]
    assert not any(each.trainable for each in optimizer.variables())
    with tf.Graph().as_default():
        w, b = (v1.get_variable(name, initializer=[1.0]) for name in ("w", "b"))
        with v1.name_scope("outer"):
            tf.train.AdamOptimizer().minimize(cubes(w * b))
        # The order is TensorFlow's: programs zip it with values.
        assert [each.name for each in v1.global_variables()] == [
            *("w:0", "b:0", "outer/beta1_power:0", "outer/beta2_power:0"),
            *("w/Adam:0", "w/Adam_1:0", "b/Adam:0", "b/Adam_1:0"),
        ]
        assert [each.name for each in v1.trainable_variables()] == ["w:0", "b:0"]


def test_gradients_can_be_changed_before_they_are_applied() -> None:
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(lambda: 0.5)
    pairs = optimizer.compute_gradients(lambda: a * 10 + b * 20, var_list=[a, b])
    assert [(gradient.numpy(), variable) for gradient, variable in pairs] == [(10, a), (20, b)]
    optimizer.apply_gradients([(tf.clip_by_value(pairs[0][0], -1.0, 1.0), a), (None, b)])
    assert (a.numpy(), b.numpy()) == (0.5, 1)


def test_gradients_of_losses_can_be_weighed() -> None:
    a = tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    assert optimizer.compute_gradients(lambda: a * 10, grad_loss=tf.constant(3.0))[0][0].numpy() == 30
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=1.0)
        ((found, _),) = optimizer.compute_gradients(w * 10, grad_loss=tf.constant(3.0))
        with v1.Session() as session:
            assert session.run(found) == 30


def test_constraints_hold_after_each_step() -> None:
    variable = tf.Variable(1.0, constraint=lambda x: tf.maximum(x, 0.5))
    tf.train.GradientDescentOptimizer(1.0).minimize(lambda: variable * 5)
    assert variable.numpy() == 0.5
    with tf.Graph().as_default():
        w = tf.Variable(1.0, constraint=lambda x: tf.maximum(x, 0.5))
        train = tf.train.GradientDescentOptimizer(1.0).minimize(w * 5)
        with v1.Session() as session:
            session.run(w.initializer)
            session.run(train)
            assert session.run(w) == 0.5


def test_programs_of_tensorflow_1_train() -> None:
    with tf1.Graph().as_default():
        x = tf1.placeholder(tf1.float32, [None])
        w, b = tf1.Variable(0.0), tf1.Variable(0.0)
        loss = tf1.reduce_mean(tf1.square(w * x + b - (3 * x + 1)))
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(200):
                session.run(train, {x: [-1.0, 0.0, 1.0, 2.0]})
            np.testing.assert_allclose(session.run([w, b]), [3, 1], atol=1e-3)


def test_a_loss_that_has_its_value_already_is_refused() -> None:
    a = tf.Variable(1.0)
    text = (
        "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled."
    )
    with pytest.raises(RuntimeError, match=text):
        tf.train.GradientDescentOptimizer(0.1).minimize(a * 2)


def test_what_cannot_be_optimized_is_named() -> None:
    a = tf.Variable(1.0, name="a")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(
        ValueError, match=r"No gradients provided for any variable, check your graph for ops .*'a:0'"
    ):
        optimizer.minimize(lambda: tf.constant(1.0), var_list=[a])
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match=r"No gradients provided for any variable: \[.*'a:0'"):
        optimizer.apply_gradients([(None, a)])
    with pytest.raises(TypeError, match="Gradient must be convertible to a Tensor or IndexedSlices, or None"):
        optimizer.apply_gradients([(object(), a)])
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(lambda: a * 2, gate_gradients=7)
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")
    with pytest.raises(ValueError, match="initial_accumulator_value must be positive: 0"):
        tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="No variables to optimize"):
        optimizer.minimize(tf.constant(1.0))


def test_a_method_has_to_say_how_variables_change() -> None:
    a = tf.Variable(1.0)
    with pytest.raises(NotImplementedError, match="does not update variables"):
        tf.train.Optimizer(False, "mine").minimize(lambda: a * 2)


def test_a_program_has_one_counter_of_steps() -> None:
    with tf.Graph().as_default() as graph:
        assert v1.train.get_global_step() is None
        step = v1.train.create_global_step()
        assert (step.name, step.dtype, step.trainable) == ("global_step:0", tf.int64, False)
        assert v1.train.get_or_create_global_step(graph) is step
        with pytest.raises(ValueError, match='"global_step" already exists'):
            v1.train.create_global_step()
    assert v1.train.get_or_create_global_step(tf.Graph()) is not step
