"""Variances, norms, counts, and sums of exponentials."""

import math

import numpy as np
import pytest

from allotment.tf import GradientTape, linalg
from allotment.tf import math as tf_math
from allotment.tf.ops.reduction.norms import clip_by_global_norm, clip_by_norm
from support.tf.tensors import check, check_refused, tensor


def test_variances() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    check(tf_math.reduce_variance(x), 3.5, "float32")
    check(tf_math.reduce_variance(x, 0), [1, 4], "float32")
    check(tf_math.reduce_std(x, 0, keepdims=True), [[1, 2]], "float32")
    check(tf_math.reduce_variance(tensor([1 + 1j, 1 - 1j])), 1, "float64")
    with pytest.raises(TypeError, match=r"Input must be either real or complex\. Received integer type"):
        tf_math.reduce_variance(tensor([1, 2]))


def test_logarithms_of_sums_of_exponentials() -> None:
    check(tf_math.reduce_logsumexp(tensor([[0.0, 0.0], [0.0, 0.0]])), math.log(4), "float32")
    check(tf_math.reduce_logsumexp(tensor([1000.0, 1000.0])), 1000 + math.log(2), "float32")
    check(
        tf_math.reduce_logsumexp(tensor([[0.0, math.log(3)], [5.0, 5.0]]), 1),
        [math.log(4), 5 + math.log(2)],
        "float32",
    )
    check(tf_math.reduce_logsumexp(tensor([[-np.inf, -np.inf]]), 1, keepdims=True), [[-np.inf]], "float32")
    check(tf_math.reduce_logsumexp(tensor([np.inf, 0.0])), np.inf, "float32")


def test_counts() -> None:
    check(tf_math.count_nonzero(tensor([[0, 1], [2, 3]])), 3, "int64")
    check(tf_math.count_nonzero(tensor([[0.0, 1.0], [2.0, 0.5]]), axis=0), [1, 2], "int64")
    check(tf_math.count_nonzero(tensor([True, False]), keepdims=True, dtype="int32"), [1], "int32")
    check(tf_math.count_nonzero(tensor(["", "a", "b"])), 2, "int64")


def test_norms_of_vectors() -> None:
    x = tensor([[3.0, -4.0], [6.0, 8.0]])
    check(linalg.norm(x), math.sqrt(125), "float32")
    check(linalg.norm(x, axis=1), [5, 10], "float32")
    check(linalg.norm(x, ord=1, axis=1), [7, 14], "float32")
    check(linalg.norm(x, ord=np.inf, axis=-1), [4, 8], "float32")
    check(linalg.norm(x, ord=3, axis=1), [91 ** (1 / 3), 728 ** (1 / 3)], "float32")
    check(linalg.norm(x, axis=0, keepdims=True), [[math.sqrt(45), math.sqrt(80)]], "float32")
    check(linalg.norm(tensor([3 + 4j])), 5, "complex128")


def test_norms_of_matrices() -> None:
    x = tensor([[1.0, -2.0], [3.0, 4.0]])
    check(linalg.norm(x, ord="fro", axis=[0, 1]), math.sqrt(30), "float32")
    check(linalg.norm(x, ord=1, axis=(0, 1)), 6, "float32")
    check(linalg.norm(x, ord=np.inf, axis=(0, 1)), 7, "float32")
    # The larger singular value of [[1, -2], [3, 4]]: the root of (30 + sqrt(30² - 4·10²)) / 2.
    check(linalg.norm(x, ord=2, axis=(0, 1)), math.sqrt((30 + math.sqrt(500)) / 2), "float32")
    batch = tensor(np.arange(12.0).reshape(2, 3, 2))
    for order in ("fro", 1, 2, np.inf):
        for axes in ([0, 1], [-1, 0], [1, 2]):
            expected = np.linalg.norm(batch.numpy(), order, tuple(axes))
            check(linalg.norm(batch, ord=order, axis=axes), expected, "float64", rtol=1e-12)
            kept = np.linalg.norm(batch.numpy(), order, tuple(axes), keepdims=True)
            check(linalg.norm(batch, ord=order, axis=axes, keepdims=True), kept, "float64", rtol=1e-12)


def test_norms_that_are_not_there() -> None:
    x = tensor([[1.0, 2.0]])
    with pytest.raises(ValueError, match="'ord' must be a supported matrix norm"):
        linalg.norm(x, ord=3, axis=[0, 1])
    for order in ("fro", "nuc", -1, 0):
        with pytest.raises(ValueError, match="'ord' must be a supported vector norm"):
            linalg.norm(x, ord=order, axis=0)
    for axis in ([0, 0], [0, 1, 2], []):
        with pytest.raises(
            ValueError, match="'axis' must be None, an integer, or a tuple of 2 unique integers"
        ):
            linalg.norm(x, axis=axis)
    check_refused(linalg.norm, x, axis=2, text="Invalid reduction dimension (2 for input with 2 dimension(s)")


def test_normalisation() -> None:
    check(tf_math.l2_normalize(tensor([[3.0, 4.0], [0.0, 2.0]]), 1), [[0.6, 0.8], [0, 1]], "float32")
    check(tf_math.l2_normalize(tensor([3.0, 4.0])), [0.6, 0.8], "float32")
    check(tf_math.l2_normalize(tensor([3e-8, 4e-8])), [0.03, 0.04], "float32", rtol=1e-5)
    check(tf_math.l2_normalize(tensor([3j, 4])), [0.6j, 0.8], "complex128")


def test_a_normalised_zero_has_a_second_derivative() -> None:
    x = tensor([0.5 - 0.5j, 0j, -1 - 0.5j], "complex64")
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = tf_math.l2_normalize(x)
        first = inner.gradient(y, x, tensor([1 + 0j, 2 + 1j, -1j], "complex64"))
    assert first is not None
    second = outer.gradient(first, x, tensor([1j, 2 + 0j, 0.3 + 0j], "complex64"))
    expected = [-0.8145523 + 0.7281604j, -0.17278379 + 0.34556758j, 2.190652 + 0.8145523j]
    check(second, expected, "complex64", rtol=1e-5)


def test_clipping_by_a_norm() -> None:
    x = tensor([3.0, 4.0])
    check(clip_by_norm(x, 10.0), [3, 4], "float32")
    check(clip_by_norm(x, 1.0), [0.6, 0.8], "float32")
    check(clip_by_norm(tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0, axes=[1]), [[0.6, 0.8], [0.3, 0.4]], "float32")
    check(clip_by_norm(tensor([0.0, 0.0]), 1.0), [0, 0], "float32")


def test_clipping_together() -> None:
    clipped, norm = clip_by_global_norm([tensor([3.0]), None, tensor([[4.0]])], 1.0)
    check(norm, 5, "float32")
    check(clipped[0], [0.6], "float32")
    assert clipped[1] is None
    check(clipped[2], [[0.8]], "float32")
    same, _ = clip_by_global_norm([tensor([3.0])], 10.0)
    check(same[0], [3], "float32")
    lost, norm = clip_by_global_norm([tensor([np.inf]), tensor([1.0])], 1.0)
    assert np.isnan(lost[1].numpy()).all()  # type: ignore[union-attr]
    check(linalg.global_norm([tensor([3.0]), tensor([4.0])]), 5, "float32")
    with pytest.raises(TypeError, match="`t_list` should be a sequence"):
        clip_by_global_norm(3, 1.0)  # type: ignore[arg-type]
