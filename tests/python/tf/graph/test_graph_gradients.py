"""Gradients of graphs: the nodes that are added, and that their values are those of tapes."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as tf1
from allotment.tf.graph.nodes.node import SymbolicTensor
from support.tf.derivatives import flat, taped, weights_of
from support.tf.gradient_samples import samples
from support.tf.static_shapes import check, tensors_of

v1: Any = tf.compat.v1
SAMPLES = samples()

#: Graphs have no Python loops and branches over tensors.
EAGER_ONLY = {
    *("iteration", "map_fn", "foldl", "foldr", "scan"),
    *("while_loop", "cond", "case", "switch_case"),
}


def in_session(function: Any, arrays: Any, shapes: Any) -> list[Any]:
    """The gradients of a function, computed in a graph with placeholders of these shapes."""
    weights = [each.numpy() for each in weights_of(flat(function(*map(tf.constant, arrays))))]
    with tf.Graph().as_default():
        inputs = [v1.placeholder(each.dtype, shape) for each, shape in zip(arrays, shapes, strict=True)]
        results = flat(function(*inputs))
        found = tf.gradients(results, inputs, [tf.constant(each) for each in weights])
        found = [None if each is None else tf.convert_to_tensor(each) for each in found]
        for each, given in zip(found, inputs, strict=True):
            assert each is None or each.shape.is_compatible_with(given.shape)
        tensors = tensors_of(tf1.get_default_graph())
        with v1.Session() as session:
            values, every = session.run(
                [[each for each in found if each is not None], tensors],
                dict(zip(inputs, arrays, strict=True)),
            )
        check(tensors, every)
        left = iter(values)
        return [None if each is None else next(left) for each in found]


def compare(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in EAGER_ONLY])
def test_values_are_those_of_a_tape(name: str) -> None:
    function, arrays = SAMPLES[name]
    compare(in_session(function, arrays, [each.shape for each in arrays]), taped(function, arrays))


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in EAGER_ONLY | {"svd, full"}])
@pytest.mark.parametrize("kind", ["batch", "rank"])
def test_lengths_need_not_be_known(name: str, kind: str) -> None:
    function, arrays = SAMPLES[name]
    shapes = [
        (None,) * each.ndim if kind == "rank" else (None, *each.shape[1:]) if each.ndim else ()
        for each in arrays
    ]
    # Whether there are more rows than columns, and how many outputs, must be known before a session.
    sides = name.split(",")[0] == "qr" and any(None in shape[-2:] for shape in shapes)
    if sides or (name, kind) == ("unstack", "rank"):
        with pytest.raises((NotImplementedError, ValueError), match="must be known when the graph is built"):
            in_session(function, arrays, shapes)
        return
    found = in_session(function, arrays, shapes)
    compare(found, taped(function, arrays))


def test_nodes_are_called_after_those_they_are_gradients_of() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 3], name="x")
        y = tf.reduce_sum(tf.matmul(x, tf.ones([3, 2]), name="product") ** 2, name="loss")
        (found,) = tf.gradients(y, x)
        names = [each.name for each in graph.get_operations()]
        (again,) = tf.gradients(y, x, name="slopes")
    assert found.name == "gradients/product_grad/MatMul:0"
    assert "gradients/grad_ys_0" in names
    assert again.name == "slopes/product_grad/MatMul:0"
    assert (found.shape, found.dtype) == ((2, 3), tf.float32)


def test_gradients_of_several_targets_are_added_up() -> None:
    with tf.Graph().as_default():
        x, y = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
        found = tf.gradients([x * y, x * 3], [x, y])
        assert found[0].op.type == "AddN"
        with v1.Session() as session:
            assert session.run(found, {x: 2, y: 5}) == [8, 2]


def test_second_derivatives() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float64, [])
        (first,) = tf.gradients(x**4, x)
        (second,) = tf.gradients(first, x)
        (third,) = tf.gradients(second, x)
        with v1.Session() as session:
            assert session.run([first, second, third], {x: 2}) == [32, 48, 48]


def test_what_stops_gradients_counts_as_a_constant() -> None:
    with tf.Graph().as_default():
        a = v1.placeholder(tf.float32, [])
        b = 2 * a
        total = a + b
        plain = tf.gradients(total, [a, b])
        stopped = tf.gradients(total, [a, b], stop_gradients=[a, b])
        inside = tf.gradients(a + tf.stop_gradient(b), [a, b])
        with v1.Session() as session:
            assert session.run(plain, {a: 1}) == [3, 1]
            assert session.run(stopped, {a: 1}) == [1, 1]
            assert session.run(inside[0], {a: 1}) == 1
        assert inside[1] is None


def test_unconnected_tensors_have_none_or_zeros() -> None:
    with tf.Graph().as_default():
        x, other = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [2])
        assert tf.gradients(x * 2, [other]) == [None]
        (zeros,) = tf.gradients(x * 2, other, unconnected_gradients="zero")
        with v1.Session() as session:
            assert session.run(zeros, {other: [1, 2]}).tolist() == [0, 0]
        with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nothing'"):
            tf.gradients(x, x, unconnected_gradients="nothing")


def test_gradients_without_a_graph_are_a_tapes() -> None:
    text = "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
    with pytest.raises(RuntimeError, match=text):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


def test_misuse_is_named() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2], name="x")
        with tf.Graph().as_default():
            foreign = tf.constant(1.0)
        with pytest.raises(ValueError, match="is no tensor or variable of the default graph"):
            tf.gradients(x, foreign)
        with pytest.raises(ValueError, match="2 grad_ys for 1 ys"):
            tf.gradients(x, x, [x, x])
        with pytest.raises(ValueError, match=r"grad_ys\[0\] must have the type and shape of its y"):
            tf.gradients(x, x, tf.ones([3]))
        with pytest.raises(TypeError, match=r"Gradients of complex tensors \(.*\) must set grad_ys"):
            tf.gradients(tf.cast(x, tf.complex64), x)
        with pytest.raises(
            LookupError,
            match=r"No gradient defined for operation'UniqueWithCounts' \(op type: UniqueWithCounts\)",
        ):
            tf.gradients(tf.unique_with_counts(x)[0], x)


@pytest.mark.parametrize("resource", [True, False])
def test_variables_of_both_kinds_have_gradients(resource: bool) -> None:
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=[[1.0], [2.0]], use_resource=resource)
        x = v1.placeholder(tf.float32, [None, 2])
        y = tf.reduce_mean(tf.matmul(x, w))
        found = tf.gradients(y, [w, x])
        assert found[0].shape == (2, 1)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            by_w, by_x = session.run(found, {x: [[1, 2], [3, 4]]})
        assert by_w.tolist() == [[2], [3]]
        assert by_x.tolist() == [[0.5, 1], [0.5, 1]]


def test_gradients_can_be_put_beside_what_they_are_of() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        with tf.device("/gpu:1"):
            y = tf.exp(x)
        (plain,) = v1.gradients(y, x)
        besides = [*v1.gradients(y, x, colocate_gradients_with_ops=True), *tf.gradients(y, x)]
    assert plain.device == ""
    assert [each.device for each in besides] == ["/device:GPU:1"] * 2


def test_a_default_value_passes_gradients_on() -> None:
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        y = v1.placeholder_with_default(x * 2, [])
        (found,) = tf.gradients(y * y, x)
        with v1.Session() as session:
            assert session.run(found, {x: 3.0}) == 24


def test_programs_of_tensorflow_1_have_gradients() -> None:
    with tf1.Graph().as_default():
        x = tf1.placeholder(tf1.float32, [])
        w = tf1.Variable(3.0)
        (found,) = tf1.gradients(w * x, [w])
        assert isinstance(found, SymbolicTensor)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(found, {x: 5.0}) == 5


def test_a_tape_records_what_is_recorded() -> None:
    w = tf1.Variable(3.0)
    with tf1.GradientTape() as tape:
        y = w * w
    found = tape.gradient(y, w)
    assert tape.watched_variables() == (w,)
    with tf1.Session() as session:
        session.run(w.initializer)
        assert session.run(found) == 6


def test_functions_bring_their_own_gradient_into_a_graph() -> None:
    @tf.custom_gradient
    def steep(x: Any) -> Any:
        return x * 2, lambda upstream: upstream * 100

    @tf.custom_gradient
    def two(x: Any, y: Any) -> Any:
        return (x + y, x * y), lambda up, down: (up * 10, down * 1000)

    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [])
        found = [tf.gradients(steep(x) * 3, x)[0], tf.gradients(sum(two(x, x * 1.0)), x)[0]]
        with v1.Session() as session:
            assert session.run(found, {x: 1.0}) == [300, 1010]
        with pytest.raises(ValueError, match="keywords arguments only when eager execution is enabled"):
            steep(x=x)


def test_factors_of_unknown_rank_are_matrices() -> None:
    with tf.compat.v1.Graph().as_default():
        x, keep = v1.placeholder(tf.float32, [None, 4]), v1.placeholder(tf.float32)
        weights = tf.constant(np.ones((4, 2), np.float32))
        # Dropped by a share of which not even the rank is known.
        product = v1.matmul(v1.nn.dropout(x, keep), weights) + v1.matmul(
            v1.placeholder_with_default(x, None), weights
        )
        (found,) = v1.gradients(v1.reduce_sum(product), weights)
        with v1.Session() as session:
            made = session.run(found, {x: np.ones((3, 4)), keep: 1.0})
    assert made.tolist() == [[6.0] * 2] * 4


@pytest.mark.parametrize("axes", [[0, 2], [-1], [], 1])
@pytest.mark.parametrize("given", [False, True])
def test_products_and_norms_of_unknown_rank(axes: Any, given: bool) -> None:
    values = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    x = tf.constant(values)
    with tf.GradientTape() as tape:
        tape.watch(x)
        product = tf.reduce_prod(x, axes) + tf.linalg.norm(x, 2, [2, 0], keepdims=True)[0, 0, 0]
    wanted = tape.gradient(product, x)
    with tf.compat.v1.Graph().as_default():
        fed, places = v1.placeholder(tf.float32), v1.placeholder(tf.int32, [None])
        product = tf.reduce_prod(fed, places if given else axes)
        product += tf.linalg.norm(fed, 2, [2, 0], keepdims=True)[0, 0, 0]
        with v1.Session() as session:
            found = session.run(
                tf.gradients(product, fed)[0], {fed: values, places: np.atleast_1d(np.int32(axes))}
            )
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
