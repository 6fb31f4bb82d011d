"""Arguments of operations on arrays: what TensorFlow refuses, with its class of error, and what it takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.compat.v1 as v1

ONE_PLACE = tf.constant([1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tf.slice(tf.constant(3), [], []), tf.errors.InvalidArgumentError),
        (lambda: tf.strided_slice([3], 0, 1), tf.errors.InvalidArgumentError),
        (
            lambda: tf.strided_slice([[3]], [0, 0], [1, 1], [-1, 1], shrink_axis_mask=1),
            tf.errors.InvalidArgumentError,
        ),
        (lambda: tf.strided_slice([[3]], [0], [1, 1]), tf.errors.InvalidArgumentError),
        (lambda: tf.transpose([3], 0), tf.errors.InvalidArgumentError),
        (lambda: tf.transpose([3], 0.5), TypeError),
        (lambda: tf.roll([1, 2], 1.5, 0), tf.errors.InvalidArgumentError),
        (lambda: tf.reduce_sum(tf.constant([1.0]), 1.5), TypeError),
        (lambda: tf.gather([1], [0], axis=0.5), tf.errors.InvalidArgumentError),
        (lambda: tf.pad([1], [[1.5, 1]], mode="edge"), ValueError),
        (lambda: tf.pad(tf.constant([1], tf.int8), [1, 1], constant_values=1.5), TypeError),
        (lambda: tf.tile(tf.zeros([2], tf.uint16), [2]), tf.errors.UnimplementedError),
        (lambda: tf.repeat(tf.zeros([2], tf.uint16), 3), tf.errors.UnimplementedError),
        (lambda: tf.where(tf.zeros([2], tf.float16)), tf.errors.UnimplementedError),
        (lambda: tf.where(tf.constant([1]), tf.constant([1]), 1.5), TypeError),
        (lambda: tf.unstack(tf.constant(1)), ValueError),
        (lambda: tf.unstack(tf.constant(1), num=2), tf.errors.InvalidArgumentError),
        (lambda: tf.unstack(tf.constant([1]), num=-1), tf.errors.InvalidArgumentError),
        (lambda: tf.concat([tf.constant([1])], axis=[0]), ValueError),
        (lambda: tf.split(tf.zeros([2, 2]), [-1]), tf.errors.InvalidArgumentError),
        (lambda: tf.gather_nd(tf.zeros([2]), [[0]], batch_dims=-1), ValueError),
        (lambda: tf.gather_nd(tf.zeros([2]), [1, 1], batch_dims=9), ValueError),
        (lambda: tf.scatter_nd(ONE_PLACE, tf.constant(3), [5]), tf.errors.InvalidArgumentError),
        (lambda: tf.scatter_nd(ONE_PLACE, tf.ones([3]), [5, 3]), tf.errors.InvalidArgumentError),
        (
            lambda: tf.scatter_nd(tf.zeros([1, 0], tf.int32), tf.zeros([1, 5]), [5]),
            tf.errors.InvalidArgumentError,
        ),
        (
            lambda: tf.scatter_nd(tf.constant([[1]], tf.int64), tf.ones([1]), tf.constant([5])),
            tf.errors.InvalidArgumentError,
        ),
        (
            lambda: tf.scatter_nd(tf.constant([[1]], tf.int16), tf.ones([1]), tf.constant([5], tf.int16)),
            tf.errors.NotFoundError,
        ),
        (lambda: tf.meshgrid(["a"]), TypeError),
        (lambda: tf.meshgrid([1], [2.0]), tf.errors.InvalidArgumentError),
    ],
)
def test_what_tensorflow_refuses_is_refused_with_its_error(
    call: Callable[[], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: tf.reshape(tf.zeros([3, 0, 2]), [0, -1]), np.zeros((0, 6))),
        (lambda: tf.reshape(tf.zeros([3, 0, 2]), [4, 0, -1]), np.zeros((4, 0, 1))),
        (lambda: tf.reverse(tf.constant(3), 7), 3),
        (lambda: tf.reverse(tf.zeros([0]), [7, 7]), np.zeros(0)),
        (lambda: tf.pad(3, np.zeros((0, 2), int), "REFLECT"), 3),
        (lambda: tf.squeeze([[1]], axis=0.5), [1]),
        (lambda: tf.gather(tf.zeros([2, 0]), [-5]), np.zeros((1, 0))),
        (
            lambda: tf.gather([[1, 2, 3], [4, 5, 6]], [[0], [1]], axis=0, batch_dims=1),
            [[[1, 2, 3]], [[4, 5, 6]]],
        ),
        (
            lambda: tf.gather_nd([[1, 2], [3, 4]], tf.zeros([2, 2, 0], tf.int32), 1),
            [[[1, 2]] * 2, [[3, 4]] * 2],
        ),
        (lambda: tf.dynamic_stitch([[1]], [tf.zeros([1, 0])]), np.zeros((2, 0))),
        (lambda: tf.meshgrid([True, False], [2])[1], [[True, True]]),
        (lambda: tf.constant([2, 0]) * tf.constant([True, True]), [True, False]),
        (lambda: tf.constant([[1, 2], [3, 4]])[0, True], 2),
    ],
)
def test_what_tensorflow_takes_is_taken(made: Callable[[], Any], expected: Any) -> None:
    result = np.asarray(made())

    assert result.shape == np.shape(expected)
    assert np.array_equal(result, expected)


def test_masked_gradients_are_sums() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.boolean_mask(x, [True, False])

    found = np.asarray(tape.gradient(y, x, tf.constant([-0.0])))

    assert not np.signbit(found).any()


X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16"])
def test_narrow_integers_are_taken_where_tensorflow_takes_them(dtype: str) -> None:
    calls: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda one: tf.argmax(X, one), [2, 2]),
        (lambda one: tf.eye(one), [[1]]),
        (lambda one: tf.linspace(3.0, 4.0, one), [3]),
        (lambda one: tf.repeat([5, 6], one + one), [5, 5, 6, 6]),
    ]
    for call, expected in calls:
        np.testing.assert_array_equal(call(tf.constant(1, dtype)).numpy(), expected)
        with v1.Graph().as_default(), v1.Session() as session:
            np.testing.assert_array_equal(session.run(call(tf.constant(1, dtype))), expected)


def test_int16_is_taken_by_slices_and_top_k() -> None:
    one = tf.constant([1], tf.int16)
    assert tf.strided_slice([5, 6, 7], one, one + one).numpy().tolist() == [6]
    assert tf.math.top_k([3.0, 4.0], one[0]).values.numpy().tolist() == [4.0]
    assert [part.numpy().tolist() for part in tf.split([5, 6, 7], tf.constant([1, 2], tf.int8))] == [
        [5],
        [6, 7],
    ]
    with v1.Graph().as_default(), v1.Session() as session:
        assert session.run(tf.constant([5, 6])[tf.constant(1, tf.int16)]) == 6


@pytest.mark.parametrize(
    ("call", "eagerly", "in_graph"),
    [
        (lambda: tf.zeros(tf.constant(2, tf.int8)), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.reshape(X, tf.constant([6], tf.int16)), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.one_hot([1], tf.constant(3, tf.int64)), ValueError, TypeError),
        (lambda: tf.split(X, 3, tf.constant(1, tf.int64)), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.sequence_mask([1], tf.constant(3, tf.int8)), tf.errors.NotFoundError, None),
        (lambda: tf.zeros({"a": 1}), ValueError, TypeError),
        (lambda: tf.linalg.expm(tf.zeros([2, 3], tf.float16)), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.linalg.expm(tf.zeros([2, 2], tf.float16)), tf.errors.NotFoundError, None),
    ],
)
def test_types_of_arguments_are_refused_with_their_errors(
    call: Callable[[], Any], eagerly: type[Exception], in_graph: type[Exception] | None
) -> None:
    """``None`` for what a graph takes and a session refuses."""
    with pytest.raises(eagerly):
        call()
    if in_graph is not None:
        with v1.Graph().as_default(), pytest.raises(in_graph):
            call()


@pytest.mark.parametrize(
    ("call", "eagerly", "in_graph"),
    [
        (lambda: tf.gather(X, [0], axis=[1]), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.gather(X, [0], axis=True), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.split(X, 3, [1]), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.math.top_k(X, [1]), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.tile(X[0], 2), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.tile([1], 2.0), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.scatter_nd([[0]], [1.0], 3), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.roll(X, 1, [1]), tf.errors.InvalidArgumentError, ValueError),
        (lambda: tf.roll(X, True, 1), tf.errors.InvalidArgumentError, TypeError),
        (lambda: tf.math.unsorted_segment_sum([1.0], [0], [1]), tf.errors.InvalidArgumentError, ValueError),
        (
            lambda: tf.linalg.band_part(X, [1], 0),
            tf.errors.InvalidArgumentError,
            tf.errors.InvalidArgumentError,
        ),
        (lambda: tf.dynamic_partition([1.0], [0], [1]), TypeError, TypeError),
        (lambda: tf.repeat(X, 2, axis=tf.constant(1)), TypeError, TypeError),
        (lambda: tf.squeeze(X[:, :1], np.array([1])), TypeError, TypeError),
        (lambda: tf.nn.max_pool2d(tf.zeros([1, 2, 2, 1]), np.array(1), 1, "VALID"), TypeError, TypeError),
        (lambda: tf.norm(X, axis=[1]), ValueError, ValueError),
        (lambda: tf.norm(X, axis=1.0), ValueError, ValueError),
        (lambda: tf.norm(X, axis=np.int64(1)), ValueError, ValueError),
        (lambda: tf.sort(X, axis=[1]), ValueError, ValueError),
        (lambda: tf.argsort(X, axis=None), ValueError, ValueError),
        (lambda: tf.math.bincount([1], axis="0"), ValueError, ValueError),
        (lambda: tf.eye(None), TypeError, TypeError),
        (lambda: tf.eye(np.array(2)), TypeError, TypeError),
    ],
)
def test_numbers_lists_and_truth_values_are_told_apart(
    call: Callable[[], Any], eagerly: type[Exception], in_graph: type[Exception]
) -> None:
    with pytest.raises(eagerly):
        call()
    with v1.Graph().as_default(), pytest.raises(in_graph):
        call()


def test_graphs_refuse_lists_that_operations_take_eagerly() -> None:
    assert tf.concat([[1], [2]], [0]).numpy().tolist() == [1, 2]
    assert tf.linspace(0.0, 1.0, [2]).numpy().tolist() == [0.0, 1.0]
    with v1.Graph().as_default():
        with pytest.raises(ValueError, match="must be a scalar"):
            tf.concat([[1], [2]], [0])
        with pytest.raises(ValueError, match="must be a scalar"):
            tf.linspace(0.0, 1.0, [2])


def test_numbers_of_a_graph_are_indices_and_axes() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        place = v1.get_variable("place", initializer=1)
        x = tf.constant([[1, 2], [3, 4]])
        session.run(v1.global_variables_initializer())
        assert session.run([x[place], x[:, place], tf.sort([3, 1], tf.constant(0))])[1].tolist() == [2, 4]
        assert tf.sequence_mask([1, 3]).shape.as_list() == [2, 3]
        with pytest.raises(ValueError, match="constant scalar"):
            tf.sort([3, 1], v1.placeholder(tf.int32, []))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([True], [1]), ({}, []), ({2}, [2]), (set(), []), (np.array([True]), [1]), (np.array([2.0]), [2])],
)
def test_shapes_that_a_tensor_shape_takes_are_taken(shape: Any, expected: list[int]) -> None:
    for make in (tf.zeros, tf.ones):
        assert make(shape).shape.as_list() == expected
        with v1.Graph().as_default():
            assert make(shape).shape.as_list() == expected


def test_the_exponential_of_no_matrix_is_none_in_any_type() -> None:
    assert tf.linalg.expm(tf.zeros([0, 0], tf.int32)).dtype is tf.int32


@pytest.mark.parametrize("switch", [1, 0, np.bool_(True), "x", [True]])
def test_switches_that_are_attributes_are_truth_values(switch: Any) -> None:
    for call in (
        lambda: tf.cumsum(X, exclusive=switch),
        lambda: tf.matmul(X, X, transpose_a=switch),
        lambda: tf.linalg.inv(tf.eye(2), adjoint=switch),
        lambda: tf.linalg.svd(X, compute_uv=switch),
        lambda: tf.math.top_k(X, 1, sorted=switch),
        lambda: tf.strings.as_string(X, scientific=switch),
        lambda: tf.math.bincount([1], binary_output=switch),
    ):
        with pytest.raises(TypeError, match="Expected bool for argument"):
            call()
    # Of batches TensorFlow's function looks at the switch itself.
    batch = tf.constant([X[:, :2], X[:, 1:]])
    assert (
        tf.matmul(batch, batch, transpose_a=bool(switch)).shape
        == tf.matmul(batch, batch, transpose_a=switch).shape
    )


def test_switches_and_numbers_that_are_none_are_the_defaults() -> None:
    none: Any = None
    number: Any = tf.constant(1)
    assert tf.linalg.triangular_solve(
        [[1.0, 9.0], [0.0, 2.0]], [[1.0], [4.0]], lower=none
    ).numpy().tolist() == [
        [1.0],
        [2.0],
    ]
    assert tf.strings.as_string(1.5, precision=none, width=none, scientific=none).numpy() == b"1.500000"
    assert tf.strings.as_string(1.5, precision=True).numpy() == b"1.5"
    assert tf.strings.as_string(1.5, precision=number).numpy() == b"1.5"


def test_batches_of_least_squares_are_broadcast_on_the_fast_way() -> None:
    matrices = tf.constant([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    wanted = [[[0.5], [0.5]], [[1.0], [2.0]]]
    for right in ([[1.0], [2.0]], [[[1.0], [2.0]]]):
        np.testing.assert_allclose(tf.linalg.lstsq(matrices, tf.constant(right)), wanted, rtol=1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.linalg.lstsq(matrices, tf.constant(right), fast=False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.linalg.lstsq(matrices, tf.zeros([3, 2, 1]))


def test_a_number_is_repeated_along_no_axes() -> None:
    assert tf.tile(tf.constant(5), np.array([])).numpy() == 5
