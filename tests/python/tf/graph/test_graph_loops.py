"""``map_fn``, ``foldl``, ``foldr`` and ``scan`` over slices of which only a session knows how many there are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.child import run_program

v1 = tf.compat.v1

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


def run(function: Callable[[Any], Any], shape: Any, fed: Any = X) -> list[Any]:
    """Return the values of a function of ``fed``, and the gradients of half the sum of their squares."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, shape)
        made = tf.nest.flatten(function(x))
        floats = [each for each in made if each.dtype.is_floating]
        sources = [x, *v1.trainable_variables()]
        slopes = tf.gradients([each * each / 2 for each in floats], sources)
        session.run(v1.global_variables_initializer())
        return session.run([*made, *map(tf.convert_to_tensor, slopes)], {x: fed})  # type: ignore[no-any-return]


def recurrent(x: Any) -> Any:
    def cell(state: Any, row: Any) -> Any:
        # Made at the first step, and used at each.
        with v1.variable_scope("cell", reuse=v1.AUTO_REUSE):
            weights = v1.get_variable("weights", [2, 2], initializer=v1.constant_initializer(0.3))
            bias = v1.get_variable("bias", [2], initializer=v1.constant_initializer(0.1), use_resource=True)
        return tf.tanh(tf.linalg.matvec(weights, state) + row * 0.1 + bias)

    return tf.scan(cell, x, initializer=tf.zeros([2]))


#: Functions with the same result where the number of slices is known, and each is computed by nodes of its own.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: tf.map_fn(lambda row: row * row, x),
    "map to scalars": lambda x: tf.map_fn(tf.reduce_sum, x),
    "map with a tensor from outside": lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(x), x),
    "map of two": lambda x: tf.map_fn(
        lambda rows: rows[0] * rows[1], (x, x * 2), fn_output_signature=tf.float32
    ),
    "map to two": lambda x: tf.map_fn(
        lambda row: (tf.size(row), row * 3), x, fn_output_signature=(tf.int32, tf.float32)
    ),
    "map in map": lambda x: tf.map_fn(lambda row: tf.foldl(lambda a, e: a + e * e, row, initializer=0.0), x),
    "foldl": lambda x: tf.foldl(lambda a, row: a * row, x),
    "foldr": lambda x: tf.foldr(lambda a, row: a * 2 + row, x, initializer=tf.ones([2])),
    "scan": lambda x: tf.scan(lambda a, row: a * row, x),
    "scan backwards": lambda x: tf.scan(lambda a, row: a * 2 + row, x, reverse=True),
    "scan of two": lambda x: tf.scan(
        lambda a, row: (a[0] + row, a[1] + 1), x, initializer=(tf.zeros([2]), 0)
    ),
    "recurrent": recurrent,
    "second gradients": lambda x: tf.gradients(tf.scan(lambda a, row: a * row, x), x)[0],
}


@pytest.mark.parametrize("shape", [(None, 2), (None, None)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_compute_what_as_many_nodes_compute(name: str, shape: Any) -> None:
    for found, expected in zip(run(FUNCTIONS[name], shape), run(FUNCTIONS[name], (3, 2)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_unknown_rank() -> None:
    value, slope = run(lambda x: tf.map_fn(lambda row: row * row, x), None)
    assert (value.tolist(), slope.tolist()) == ((X * X).tolist(), (2 * X**3).tolist())


def test_values_and_gradients_of_a_product() -> None:
    value, slope = run(lambda x: tf.foldl(lambda a, row: a * row, x), (None, 2))
    assert value.tolist() == [15, 48]
    assert slope.tolist() == [[225, 1152], [75, 576], [45, 384]]


def test_no_slices() -> None:
    nothing = np.zeros((0, 2), np.float32)
    assert run(lambda x: tf.map_fn(tf.square, x), (None, 2), nothing)[0].shape == (0, 2)
    assert run(lambda x: tf.foldl(tf.add, x, initializer=tf.ones([2])), (None, 2), nothing)[0].tolist() == [
        1,
        1,
    ]


def test_random_numbers_of_each_step_are_those_of_its_gradient() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8])
        kept = tf.map_fn(lambda row: tf.nn.dropout(row, 0.5), x)
        value, slope = session.run([kept, tf.gradients(kept, x)[0]], {x: np.ones((9, 8))})
    assert value.tolist() == slope.tolist()
    assert len({tuple(row) for row in value.tolist()}) > 1


def test_what_the_loop_waits_for_runs_once() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        count, x = (
            v1.get_variable("count", initializer=0, use_resource=True),
            v1.placeholder(tf.float32, [None]),
        )
        with tf.control_dependencies([count.assign_add(1)]):
            doubled = tf.map_fn(lambda each: each * 2, x)
        session.run(v1.global_variables_initializer())
        assert session.run(doubled, {x: [1, 2, 3]}).tolist() == [2, 4, 6]
        assert session.run(count) == 1


def test_checks_inside_of_a_loop() -> None:
    def positive(each: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_positive(each)]):
            return tf.identity(each)

    with tf.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(tf.float32, [None]), v1.placeholder(tf.float32, [None])
        checked = tf.map_fn(positive, x)
        assert session.run(checked, {x: [1, 2]}).tolist() == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            session.run(checked, {x: [1, -2]})
        both = tf.map_fn(lambda pair: pair[0] + pair[1], (x, y), fn_output_signature=tf.float32)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Trying to access element 1 in a list with 1 el"
        ):
            session.run(both, {x: [1, 2], y: [1]})


def test_a_recurrent_network_is_trained() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(tf.float32, [None, None, 2]), v1.placeholder(tf.float32, [None, 3])
        weights = v1.get_variable("weights", [5, 3], initializer=v1.constant_initializer(0.1))
        state = tf.foldl(
            lambda state, row: tf.tanh(tf.matmul(tf.concat([state, row], 1), weights)),
            x,
            initializer=tf.zeros([tf.shape(x)[1], 3]),
        )
        loss = tf.reduce_mean((state - y) ** 2)
        step = v1.train.AdamOptimizer(0.05).minimize(loss)
        session.run(v1.global_variables_initializer())
        numbers = np.random.RandomState(0)
        feeds = {x: numbers.randn(7, 4, 2), y: numbers.rand(4, 3)}
        losses = [session.run([loss, step], feeds)[0] for _ in range(30)]
    # TensorFlow 2.21 prints 0.0603 after the last step.
    assert losses[0] > 0.2
    np.testing.assert_allclose(losses[-1], 0.0603, atol=5e-5)


def test_loops_run_on_the_cpu_whatever_a_scope_says() -> None:
    done = run_program("""
import allotment, allotment.tf as tf
allotment.testing.simulate_gpus("1:64MiB")
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    x = v1.placeholder(tf.float32, [None])
    with tf.device("/GPU:0"):
        scale = v1.get_variable("scale", initializer=3.0)
        made = tf.map_fn(lambda each: each * scale, x * 2)
        slope = tf.gradients(made, scale)[0]
    session.run(v1.global_variables_initializer())
    print([each.tolist() for each in session.run([made, slope], {x: [1, 2]})])
""")
    assert done.stdout == "[[6.0, 12.0], 6.0]\n", done.stderr
