"""Names of the results of functions in graphs, by which programs fetch and feed them: those of TensorFlow 2.21."""

from collections.abc import Callable
from typing import Any, Final

import pytest

import allotment.tf as tf

v1 = tf.compat.v1


def _floats(*lengths: int) -> Any:
    return v1.placeholder(tf.float32, lengths, name="fed")


def _whole(*lengths: int) -> Any:
    return v1.placeholder(tf.int32, lengths, name="fed")


#: The function, and the name of its result without and with ``name="nn"``.
_NAMES: Final[dict[str, tuple[Callable[..., Any], str, str]]] = {
    "add": (lambda **k: tf.add(_floats(2), _floats(2), **k), "Add:0", "nn:0"),
    "argsort": (lambda **k: tf.argsort(_floats(2), **k), "argsort/TopKV2:1", "nn/TopKV2:1"),
    "batch_normalization": (
        lambda **k: tf.nn.batch_normalization(
            _floats(2, 2), _floats(2), _floats(2), _floats(2), _floats(2), 0.1, **k
        ),
        "batchnorm/add_1:0",
        "nn/add_1:0",
    ),
    "bincount": (
        lambda **k: tf.math.bincount(_whole(2), **k),
        "bincount/DenseBincount:0",
        "nn/DenseBincount:0",
    ),
    "boolean_mask": (
        lambda **k: tf.boolean_mask(_floats(2), [True, False], **k),
        "boolean_mask/GatherV2:0",
        "nn/GatherV2:0",
    ),
    "clip_by_norm": (lambda **k: tf.clip_by_norm(_floats(2), 1.0, **k), "clip_by_norm:0", "nn:0"),
    "clip_by_value": (lambda **k: tf.clip_by_value(_floats(2), 0.0, 1.0, **k), "clip_by_value:0", "nn:0"),
    "confusion_matrix": (
        lambda **k: tf.math.confusion_matrix([0, 1], [1, 0], **k),
        "confusion_matrix/ScatterNd:0",
        "nn/ScatterNd:0",
    ),
    "conv1d": (
        lambda **k: tf.nn.conv1d(_floats(1, 4, 1), _floats(2, 1, 1), 1, "SAME", **k),
        "conv1d/Squeeze:0",
        "nn/Squeeze:0",
    ),
    "count_nonzero": (lambda **k: tf.math.count_nonzero(_floats(2), **k), "count_nonzero/Sum:0", "nn/Sum:0"),
    "divide": (lambda **k: tf.divide(_floats(2), _floats(2), **k), "truediv:0", "nn:0"),
    "dropout": (lambda **k: tf.nn.dropout(_floats(2), 0.5, **k), "dropout/SelectV2:0", "nn/SelectV2:0"),
    "einsum": (
        lambda **k: tf.einsum("ij,jk->ik", _floats(2, 2), _floats(2, 2), **k),
        "einsum/Einsum:0",
        "nn/Einsum:0",
    ),
    "embedding_lookup": (
        lambda **k: tf.nn.embedding_lookup(_floats(2, 2), _whole(2), **k),
        "embedding_lookup/Identity:0",
        "nn/Identity:0",
    ),
    "eye": (lambda **k: tf.eye(2, **k), "eye/diag:0", "nn/diag:0"),
    "floordiv": (lambda **k: tf.math.floordiv(_floats(2), _floats(2), **k), "floordiv:0", "nn:0"),
    "gelu": (lambda **k: tf.nn.gelu(_floats(2), **k), "Gelu/mul_2:0", "nn/mul_2:0"),
    "global_norm": (
        lambda **k: tf.linalg.global_norm([_floats(2), _floats(2)], **k),
        "global_norm/global_norm:0",
        "nn/global_norm:0",
    ),
    "l2_normalize": (lambda **k: tf.nn.l2_normalize(_floats(2), **k), "l2_normalize:0", "nn:0"),
    "linspace": (lambda **k: tf.linspace(0.0, 1.0, 3, **k), "linspace/Slice:0", "nn/Slice:0"),
    "log_sigmoid": (lambda **k: tf.math.log_sigmoid(_floats(2), **k), "LogSigmoid:0", "nn:0"),
    "matmul of batches": (
        lambda **k: tf.matmul(_floats(2, 2, 2), _floats(2, 2, 2), **k),
        "MatMul:0",
        "nn:0",
    ),
    "matvec": (
        lambda **k: tf.linalg.matvec(_floats(2, 2), _floats(2), **k),
        "MatVec/Squeeze:0",
        "nn/Squeeze:0",
    ),
    "meshgrid": (lambda **k: tf.meshgrid(_floats(2), _floats(3), **k)[0], "meshgrid/mul:0", "nn/mul:0"),
    "moments": (
        lambda **k: tf.nn.moments(_floats(2, 2), [0], **k)[1],
        "moments/Squeeze_1:0",
        "nn/Squeeze_1:0",
    ),
    "norm": (lambda **k: tf.norm(_floats(2), **k), "norm/Squeeze:0", "nn/Squeeze:0"),
    "one_hot": (lambda **k: tf.one_hot(_whole(2), 3, **k), "one_hot:0", "nn:0"),
    "ones": (lambda **k: tf.ones([2], **k), "ones:0", "nn:0"),
    "ones_like": (lambda **k: tf.ones_like(_floats(2), **k), "ones_like:0", "nn:0"),
    "random normal": (lambda **k: tf.random.normal([2], **k), "random_normal:0", "nn:0"),
    "random uniform": (
        lambda **k: tf.random.uniform([2], **k),
        "random_uniform/RandomUniform:0",
        "nn/RandomUniform:0",
    ),
    "random uniform between": (lambda **k: tf.random.uniform([2], 1.0, 2.0, **k), "random_uniform:0", "nn:0"),
    "random uniform up to": (
        lambda **k: tf.random.uniform([2], maxval=3.0, **k),
        "random_uniform/Mul:0",
        "nn/Mul:0",
    ),
    "reduce_logsumexp": (lambda **k: tf.reduce_logsumexp(_floats(2), **k), "ReduceLogSumExp:0", "nn:0"),
    "reduce_std": (lambda **k: tf.math.reduce_std(_floats(2), **k), "reduce_std/Sqrt:0", "nn/Sqrt:0"),
    "reduce_variance": (
        lambda **k: tf.math.reduce_variance(_floats(2), **k),
        "reduce_variance/Mean_1:0",
        "nn/Mean_1:0",
    ),
    "repeat": (lambda **k: tf.repeat(_floats(2), 2, **k), "Repeat/Reshape_1:0", "nn/Reshape_1:0"),
    "sequence_mask": (lambda **k: tf.sequence_mask(_whole(2), 3, **k), "SequenceMask/Less:0", "nn/Less:0"),
    "sigmoid_cross_entropy": (
        lambda **k: tf.nn.sigmoid_cross_entropy_with_logits(_floats(2), _floats(2), **k),
        "logistic_loss:0",
        "nn:0",
    ),
    "softmax_cross_entropy": (
        lambda **k: tf.nn.softmax_cross_entropy_with_logits(_floats(2, 2), _floats(2, 2), **k),
        "softmax_cross_entropy_with_logits/Reshape_2:0",
        "nn/Reshape_2:0",
    ),
    "trace": (lambda **k: tf.linalg.trace(_floats(2, 2), **k), "Trace:0", "nn:0"),
    "zero_fraction": (
        lambda **k: tf.nn.zero_fraction(_floats(2), **k),
        "zero_fraction/fraction:0",
        "nn/fraction:0",
    ),
    "zeros": (lambda **k: tf.zeros([2], **k), "zeros:0", "nn:0"),
}


@pytest.mark.parametrize("function", _NAMES)
def test_results_have_the_names_that_tensorflow_gives_them(function: str) -> None:
    make, alone, given = _NAMES[function]
    with tf.Graph().as_default():
        assert make().name == alone
    with tf.Graph().as_default():
        assert make(name="nn").name == given


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (v1.losses.mean_squared_error, "mean_squared_error/value:0"),
        (v1.losses.absolute_difference, "absolute_difference/value:0"),
        (v1.losses.sigmoid_cross_entropy, "sigmoid_cross_entropy_loss/value:0"),
        (v1.losses.softmax_cross_entropy, "softmax_cross_entropy_loss/value:0"),
    ],
)
def test_losses_have_the_names_that_tensorflow_gives_them(loss: Callable[..., Any], name: str) -> None:
    with tf.Graph().as_default():
        assert loss(_floats(2, 2), _floats(2, 2)).name == name
