"""``tf.IndexedSlices``, and the operations that take slices without making tensors of them."""

import math
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1


def slices() -> tf.IndexedSlices:
    values = tf.constant([[1.0, -2.0], [3.0, 4.0], [5.0, -6.0]])
    return tf.IndexedSlices(values, tf.constant([0, 2, 0]), tf.constant([3, 2]))


def parts(found: Any) -> tuple[Any, Any, Any]:
    assert isinstance(found, tf.IndexedSlices)
    values, indices, shape = (
        each.numpy().tolist() for each in (found.values, found.indices, found.dense_shape)
    )
    return values, indices, shape


def test_what_slices_tell() -> None:
    one: Any = slices()
    assert (one.shape, one.dtype, one.device) == ((3, 2), tf.float32, one.values.device)
    assert one.consumers() == []
    assert tf.IndexedSlices(one.values, one.indices).shape.rank is None
    assert tf.is_tensor(one)
    with pytest.raises(AttributeError):
        _ = one.name


def test_texts() -> None:
    one = tf.IndexedSlices(tf.constant([[1.0, -2.0]]), tf.constant([0]))
    assert str(one) == (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([[ 1. -2.]], shape=(1, 2), dtype=float32))"
    )
    more = tf.IndexedSlices(one.values, one.indices, tf.constant([3, 2]))
    assert str(more).endswith(", dense_shape=tf.Tensor([3 2], shape=(2,), dtype=int32))")
    assert "IndexedSlices object at" in repr(one)


def test_conversion_adds_rows_of_one_number_up() -> None:
    assert tf.convert_to_tensor(slices()).numpy().tolist() == [[6, -8], [0, 0], [3, 4]]
    assert tf.reduce_sum(slices()).numpy() == 5
    assert (tf.constant(2.0) * slices()).numpy().tolist() == [[12, -16], [0, 0], [6, 8]]
    assert tf.add_n([slices(), slices()]).numpy().tolist() == [[12, -16], [0, 0], [6, 8]]
    assert tf.Variable(slices()).numpy().tolist() == [[6, -8], [0, 0], [3, 4]]


def test_conversions_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="requested to `dtype` float64 for IndexedSlices"):
        tf.convert_to_tensor(slices(), tf.float64)
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))
    with pytest.raises(tf.errors.InvalidArgumentError, match="7 is out of range"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([7]), tf.constant([3, 2])))
    with pytest.raises(TypeError):
        slices() * 2.0  # type: ignore[operator]
    with pytest.raises(ValueError, match="same dtype and shape"):
        tf.math.accumulate_n([slices(), slices()])


def test_what_keeps_slices() -> None:
    indices, shape = [0, 2, 0], [3, 2]
    same = ([[1, -2], [3, 4], [5, -6]], indices, shape)
    assert parts(-slices()) == ([[-1, 2], [-3, -4], [-5, 6]], indices, shape)
    assert parts(tf.identity(slices())) == parts(tf.stop_gradient(slices())) == same
    assert parts(tf.cast(slices(), tf.float64)) == parts(tf.cast(slices(), tf.float32)) == same
    assert tf.cast(slices(), tf.float64).dtype is tf.float64
    assert parts(tf.math.scalar_mul(2.0, slices())) == ([[2, -4], [6, 8], [10, -12]], indices, shape)
    assert parts(v1.convert_to_tensor_or_indexed_slices(slices())) == same
    assert v1.convert_to_tensor_or_indexed_slices([1.0]).numpy().tolist() == [1]
    with pytest.raises(ValueError, match="Incompatible tensor conversion requested to `dtype` float64"):
        v1.convert_to_tensor_or_indexed_slices(slices(), tf.float64)


def test_norms_and_clips_are_those_of_the_rows() -> None:
    squares = 1 + 4 + 9 + 16 + 25 + 36
    assert tf.linalg.global_norm([slices(), None, tf.constant([3.0])]).numpy() == pytest.approx(
        math.sqrt(squares + 9)
    )
    rows = np.array([[1, -2], [3, 4], [5, -6]])
    values, *rest = parts(tf.clip_by_norm(slices(), 2.0))
    np.testing.assert_allclose(values, rows * 2 / math.sqrt(squares), rtol=1e-6)
    assert rest == [[0, 2, 0], [3, 2]]
    values, *_ = parts(tf.clip_by_norm(slices(), 2.0, axes=[1]))
    np.testing.assert_allclose(values, rows * 2 / np.linalg.norm(rows, axis=1, keepdims=True), rtol=1e-6)
    assert parts(tf.clip_by_value(slices(), -1.0, 2.0))[0] == [[1, -1], [2, 2], [2, -1]]
    tensor: Any
    (clipped, nothing, tensor), norm = tf.clip_by_global_norm([slices(), None, tf.constant([3.0])], 1.0)
    assert norm.numpy() == pytest.approx(10)
    np.testing.assert_allclose(parts(clipped)[0], rows / 10, rtol=1e-6)
    assert (nothing, tensor.numpy().tolist()) == (None, pytest.approx([0.3]))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("scatter_add", [[7, -6], [3, 4], [8, 10]]),
        ("scatter_sub", [[-5, 10], [3, 4], [2, 2]]),
        ("scatter_max", [[5, 2], [3, 4], [5, 6]]),
        ("scatter_min", [[1, -6], [3, 4], [3, 4]]),
        ("scatter_mul", [[5, 24], [3, 4], [15, 24]]),
        ("scatter_div", [[0.2, 2 / 12], [3, 4], [5 / 3, 1.5]]),
        pytest.param(
            "scatter_update",
            [[5, -6], [3, 4], [3, 4]],
            marks=pytest.mark.simulated_gpus(
                "which of two values for one element stays is not defined on a GPU"
            ),
        ),
    ],
)
def test_variables_take_slices(method: str, expected: list[list[float]]) -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_allclose(getattr(v, method)(slices()).numpy(), expected, rtol=1e-6)
    with pytest.raises(TypeError, match=r"must be a `tf\.IndexedSlices`"):
        getattr(v, method)(tf.ones([3, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 3\)"):
        getattr(v, method)(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([7])))
