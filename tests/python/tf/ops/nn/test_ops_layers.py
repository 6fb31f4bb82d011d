"""Biases, dropout, normalisation, embeddings and what else layers need."""

import math

import numpy as np
import pytest

from allotment.tf import math as tf_math
from allotment.tf import nn
from allotment.tf import random as tf_random
from support.tf.tensors import check, check_refused, tensor


def test_biases() -> None:
    x, bias = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([10.0, 20.0])
    check(nn.bias_add(x, bias), [[11, 22], [13, 24]], "float32")
    check(nn.bias_add(x, [10.0, 20.0], data_format="NHWC"), [[11, 22], [13, 24]], "float32")
    check(nn.bias_add(tensor([[[1, 1]], [[2, 2]]]), [5], "NCHW"), [[[6, 6]], [[7, 7]]], "int32")
    check_refused(
        nn.bias_add,
        x,
        [1.0],
        text="Must provide as many biases as the last dimension of the input tensor: [1] vs. [2,2]",
    )
    check_refused(nn.bias_add, x, [[1.0, 2.0]], text="Biases must be 1D: [1,2]")
    check_refused(nn.bias_add, tensor([1.0]), [1.0], text="Input tensor must be at least 2D: [1]")
    with pytest.raises(ValueError, match="`data_format` must be of the form"):
        nn.bias_add(x, bias, "CHWN")


def test_half_of_all_squares() -> None:
    check(nn.l2_loss(tensor([[1.0, 2.0], [3.0, 4.0]])), 15, "float32")
    check(nn.l2_loss(tensor([300.0], "float16")), 45000, "float16")
    check(nn.l2_loss(t=tensor(np.zeros((0, 2)))), 0, "float64")
    check_refused(nn.l2_loss, tensor([1]), text="[Op:L2Loss]")


def test_dropout_scales_what_it_keeps() -> None:
    tf_random.set_seed(5)
    x = tensor(np.ones(10_000, np.float32))
    found = nn.dropout(x, 0.25).numpy()
    np.testing.assert_allclose(np.unique(found), [0, 4 / 3], rtol=1e-6)
    # Five standard deviations of 10,000 draws.
    assert abs((found == 0).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 10_000)


def test_dropout_of_whole_rows() -> None:
    x = tensor(np.ones((50, 4), np.float64))
    for shape in ([50, 1], (None, 1), tensor([50, 1])):
        found = nn.dropout(x, rate=0.5, noise_shape=shape, seed=1).numpy()
        assert found.dtype == np.float64
        assert set(map(tuple, found)) == {(0, 0, 0, 0), (2, 2, 2, 2)}


def test_dropout_of_nothing_and_of_too_much() -> None:
    x = tensor([1.0])
    assert nn.dropout(x, 0) is x
    for rate in (-0.1, 1.0, 2):
        with pytest.raises(
            ValueError, match=r"`rate` must be a scalar tensor or a float in the range \[0, 1\)"
        ):
            nn.dropout(x, rate)
    with pytest.raises(ValueError, match=r"`x\.dtype` must be a floating point tensor"):
        nn.dropout(tensor([1]), 0.5)


def test_moments() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, variance = nn.moments(x, [0])
    check(mean, [2, 4], "float32")
    check(variance, [1, 4], "float32")
    mean, variance = nn.moments(x, axes=[0, 1], keepdims=True)
    check(mean, [[3]], "float32")
    check(variance, [[3.5]], "float32")
    mean, variance = nn.moments(tensor(np.full((4096,), 7, np.float16)), 0)
    check(mean, 7, "float16")
    check(variance, 0, "float16")


def test_batch_normalisation() -> None:
    x = tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, variance = tensor([2.0, 4.0]), tensor([1.0, 4.0])
    plain = [[-1, -1], [1, 1]]
    check(nn.batch_normalization(x, mean, variance, None, None, 0.0), plain, "float32")
    check(nn.batch_normalization(x, mean, variance, 10.0, [2.0, 3.0], 0.0), [[8, 7], [12, 13]], "float32")
    check(
        nn.batch_normalization(x, mean, tensor([0.0, 0.0]), None, None, 0.25), [[-2, -4], [2, 4]], "float32"
    )


def test_embeddings() -> None:
    table = tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    check(nn.embedding_lookup(table, [2, 1]), [[0, 2], [3, 4]], "float32")
    check(nn.embedding_lookup(table, tensor([[0], [1]])), [[[1, 0]], [[3, 4]]], "float32")
    check(nn.embedding_lookup(table, [1, 0], max_norm=1.0), [[0.6, 0.8], [1, 0]], "float32")
    check(nn.embedding_lookup(tensor([1.0, -3.0, 0.5]), [0, 1, 2], max_norm=2.0), [1, -2, 0.5], "float32")
    check(nn.embedding_lookup([table, table], [4, 0]), [[3, 4], [1, 0]], "float32")
    check_refused(nn.embedding_lookup, table, [3], text="[Op:GatherV2]")
    with pytest.raises(ValueError, match="params should not be empty"):
        nn.embedding_lookup([], [0])


def test_targets_among_the_largest() -> None:
    predictions = tensor([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0], [np.nan, 1.0, 2.0]])
    check(tf_math.in_top_k([1, 1, 2], predictions, 1), [True, True, False], "bool")
    check(tf_math.in_top_k([0, 2, 0], predictions, 2), [False, False, False], "bool")
    check(
        tf_math.in_top_k(targets=tensor([2, 3, -1], "int64"), predictions=predictions, k=2),
        [True, False, False],
        "bool",
    )
    check_refused(
        tf_math.in_top_k,
        [0],
        predictions,
        1,
        text="First dimension of predictions 3 must match length of targets 1",
    )
    check_refused(tf_math.in_top_k, [0], tensor([1.0]), 1, text="predictions must be 2-dimensional")
    check_refused(tf_math.in_top_k, [[0]], predictions, 1, text="targets must be 1-dimensional")


def test_the_share_of_zeros() -> None:
    check(nn.zero_fraction(tensor([0.0, 1.0, 0.0, 2.0])), 0.5, "float32")
    check(nn.zero_fraction(tensor([[1, 0], [1, 1]])), 0.25, "float32")
    check(nn.zero_fraction(tensor(np.zeros(0))), np.nan, "float32")
