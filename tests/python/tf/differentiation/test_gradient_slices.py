"""Gradients of lookups are ``IndexedSlices`` where TensorFlow's are, with TensorFlow's rows and numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.interpreter import FREE_THREADED

v1 = tf.compat.v1
X = np.arange(1, 13, dtype=np.float32).reshape(4, 3) / 10
Y = np.arange(1, 7, dtype=np.float32).reshape(3, 2)

#: Functions before a lookup with gradients that pass slices on, eagerly and in a graph.
KEPT: dict[str, Callable[[Any], Any]] = {
    "identity": tf.identity,
    "negative": lambda x: -x,
    "cast": lambda x: tf.cast(x, tf.float64),
    "a number added": lambda x: x + 1.0,
    "a number subtracted": lambda x: x - 1.0,
    "add_n": lambda x: tf.add_n([x, X]),
    "concat, first axis": lambda x: tf.concat([x, X], 0),
    "concat, second axis": lambda x: tf.concat([x, X], 1),
    "concat, from the end": lambda x: tf.concat([X, x], -1),
    "ensure_shape": lambda x: tf.ensure_shape(x, [4, 3]),
    "identity_n": lambda x: tf.identity_n([x])[0],
    "bias_add": lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0]),
    "gather": lambda x: tf.gather(x, [0, 0, 1, 3]),
    "custom gradient": lambda x: tf.custom_gradient(lambda y: (y * 1, lambda upstream: upstream))(x),
}
#: Functions with gradients that make a tensor of slices.
SUMMED: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * 2.0,
    "reshape": lambda x: tf.reshape(x, [2, 6]),
    "relu": tf.nn.relu,
    "check_numerics": lambda x: tf.debugging.check_numerics(x, "m"),
    "transpose": tf.transpose,
    "a lookup along the second axis": lambda x: tf.gather(x, [0, 0], axis=1),
    "a lookup in batches": lambda x: tf.gather(x, [[0, 0], [1, 1], [0, 2], [1, 1]], batch_dims=1),
    "the same axis from the end": lambda x: tf.gather(x, [0, 0], axis=-2),
    "elements": lambda x: tf.gather_nd(x, [[0, 1], [0, 1]]),
    "boolean_mask": lambda x: tf.boolean_mask(x, [True, True, False, True]),
}


def eagerly(function: Callable[[Any], Any]) -> Any:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = tf.gather(function(x), [0, 0, 1])
    return tape.gradient(found, x)


def in_graph(function: Callable[[Any], Any]) -> Any:
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [4, 3])
        return tf.gradients(tf.gather(function(x), [0, 0, 1]), x)[0]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("mode", [eagerly, in_graph])
def test_slices_pass(name: str, mode: Callable[..., Any]) -> None:
    assert isinstance(mode(KEPT[name]), tf.IndexedSlices)


@pytest.mark.parametrize("name", SUMMED)
@pytest.mark.parametrize("mode", [eagerly, in_graph])
def test_slices_become_tensors(name: str, mode: Callable[..., Any]) -> None:
    assert not isinstance(mode(SUMMED[name]), tf.IndexedSlices)


@pytest.mark.parametrize("function", [lambda x: x + X, lambda x: x - X, lambda x: x + X[0], lambda x: x + x])
def test_eager_sums_with_tensors_make_tensors_and_those_of_graphs_do_not(function: Any) -> None:
    assert not isinstance(eagerly(function), tf.IndexedSlices)
    assert isinstance(in_graph(function), tf.IndexedSlices)


def test_the_parts_of_slices() -> None:
    found = eagerly(lambda x: x)
    assert found.values.numpy().tolist() == np.ones((3, 3)).tolist()
    assert (found.indices.numpy().tolist(), found.indices.dtype) == ([0, 0, 1], tf.int32)
    assert (found.dense_shape.numpy().tolist(), found.dense_shape.dtype) == ([4, 3], tf.int32)
    assert found.shape == (4, 3)
    assert tf.convert_to_tensor(found).numpy().tolist() == [[2] * 3, [1] * 3, [0] * 3, [0] * 3]


def test_slices_beside_slices_are_joined_and_beside_tensors_are_added() -> None:
    v = tf.Variable(Y)
    with tf.GradientTape(persistent=True) as tape:
        first = tf.reduce_sum(tf.gather(v, [0, 1])) + 2.0 * tf.reduce_sum(
            tf.gather(v, tf.constant([2, 0], tf.int64))
        )
        second = first + tf.reduce_sum(v)
    joined = tape.gradient(first, v)
    assert sorted(joined.indices.numpy().tolist()) == [0, 0, 1, 2]
    assert joined.indices.dtype is tf.int64
    assert tf.linalg.global_norm([joined]).numpy() == pytest.approx(np.sqrt(20))
    assert tape.gradient(second, v).numpy().tolist() == [[4, 4], [2, 2], [3, 3]]


def test_gradients_of_slices() -> None:
    v = tf.Variable(Y)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            cubes = tf.reduce_sum(tf.gather(v, [0, 0, 2]) ** 3)
        found = inner.gradient(cubes, v)
        whole = tf.reduce_sum(tf.convert_to_tensor(found) ** 2)
    second = outer.gradient(whole, v)
    # The gradient is 6 x^2 in row 0, where both lookups are added, and 3 x^2 in row 2.
    expected = [144 * Y[0] ** 3, np.zeros(2), 36 * Y[2] ** 3]
    np.testing.assert_allclose(tf.convert_to_tensor(second), expected, rtol=1e-6)
    assert second.indices.numpy().tolist() == [0, 0, 2]


def test_a_gradient_function_gives_slices_and_may_return_them() -> None:
    seen = []

    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        def back(upstream: Any) -> Any:
            seen.append(upstream)
            return tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2]))

        return x * 2.0, back

    v = tf.Variable(Y)
    with tf.GradientTape() as tape:
        found = tf.gather(doubled(v), [1, 1])
    assert tf.convert_to_tensor(tape.gradient(found, v)).numpy().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert isinstance(seen[0], tf.IndexedSlices)


def test_slices_are_no_targets_and_no_sources() -> None:
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    with tf.GradientTape() as tape:
        with pytest.raises(ValueError, match="Passed in object IndexedSlices"):
            tape.watch(slices)
        x = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"a target of gradients must be a tensor.*take its `values`"):
        tape.gradient(slices, x)


def test_jacobians_and_zeros_are_tensors() -> None:
    v, other = tf.Variable(Y), tf.Variable(Y)
    with tf.GradientTape(persistent=True) as tape:
        sums = tf.reduce_sum(tf.gather(v, [0, 0]), 1)
    assert tape.jacobian(sums, v).numpy().tolist() == [[[1, 1], [0, 0], [0, 0]]] * 2
    assert tape.gradient(sums, other, unconnected_gradients="zero").numpy().tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("use_resource", [True, False])
def test_a_session_returns_the_parts(use_resource: bool) -> None:
    with v1.Graph().as_default():
        table = v1.get_variable("table", initializer=Y, use_resource=use_resource)
        numbers = v1.placeholder(tf.int32, [None])
        (found,) = tf.gradients(tf.gather(table, numbers) * 2.0, table)
        (weighted,) = tf.gradients(tf.identity(table), table, [found])
        changed = table.scatter_sub(found)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            values, indices, dense_shape = session.run(found, {numbers: [0, 2, 0]})
            again = session.run({"a": [weighted]}, {numbers: [1]})["a"][0]
            after = session.run(changed, {numbers: [0, 2, 0]})
    assert values.tolist() == [[2, 2]] * 3
    assert (indices.tolist(), dense_shape.tolist()) == ([0, 2, 0], [3, 2])
    assert again.indices.tolist() == [1]
    assert after.tolist() == [[-3, -2], [3, 4], [3, 4]]


def test_slices_are_fed_their_parts() -> None:
    with v1.Graph().as_default():
        slices = tf.IndexedSlices(v1.placeholder(tf.float32, [None, 2]), v1.placeholder(tf.int32, [None]))
        with v1.Session() as session:
            fed = {slices: ([[1.0, 2.0]], [5])}
            doubled, found = session.run([slices.values * 2, slices], fed)
    assert doubled.tolist() == [[2, 4]]
    assert (found.indices.tolist(), found.dense_shape) == ([5], None)


@pytest.mark.skipif(
    FREE_THREADED, reason="without a GIL no count of references is exact: a copy takes its place"
)
def test_the_gradient_of_a_lookup_takes_memory_for_its_rows_alone() -> None:
    from allotment.testing import runtime

    with runtime("1:4MiB"):
        v = tf.Variable(tf.zeros([2**18, 2]))
        # Of a gradient of the size of the table there is no room.
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(v, [0, 5, 5]) + 1.0)
        found = tape.gradient(loss, v)
        assert found.values.shape == (3, 2)
        tf.keras.optimizers.SGD(1.0).apply_gradients([(found, v)])
        assert tf.gather(v, [0, 5, 6]).numpy().tolist() == [[-1, -1], [-2, -2], [0, 0]]


def test_rows_without_coordinates_in_batches_are_slices_of_their_own() -> None:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather_nd(x, tf.zeros([4, 0], tf.int32), batch_dims=1)
    slope = tape.gradient(y, x)
    assert isinstance(slope, tf.IndexedSlices)
    assert slope.indices.numpy().tolist() == [0, 1, 2, 3]
    assert tf.convert_to_tensor(slope).numpy().tolist() == np.ones_like(X).tolist()
