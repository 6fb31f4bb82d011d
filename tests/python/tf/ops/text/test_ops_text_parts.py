"""Parts of texts, joining along axes; and random seeds."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.errors import OutOfRangeError
from support.tf.tensors import check, check_refused


def texts(value: Any) -> Any:
    return np.array(value, object)


def test_parts() -> None:
    check(tf.strings.substr("hello", 1, 3), texts(b"ell"), "string")
    check(tf.strings.substr("wörld", 1, 2, unit="UTF8_CHAR"), texts("ör".encode()), "string")
    check(tf.strings.substr("abc", [0, -2], [1, -1]), texts([b"a", b"bc"]), "string")
    # In characters, a negative length is none, and refused from the end.
    check(tf.strings.substr("abc", 1, -1, unit="UTF8_CHAR"), texts(b""), "string")
    check_refused(tf.strings.substr, "abc", -1, -1, "UTF8_CHAR", text="pos -1 out of range for string b'abc'")
    # The bytes that no character begins with are one in front of the others.
    check(
        tf.strings.substr(b"\x80\x80a", [0, -1], [1, 5], unit="UTF8_CHAR"),
        texts([b"\x80\x80", b"a"]),
        "string",
    )
    check_refused(
        tf.strings.substr, "abc", 5, 1, text="pos 5 out of range for string b'abc' at index 0 [Op:Substr]"
    )
    check_refused(
        tf.strings.substr, "abc", 0, [1], text="pos and len should have the same shape, got: [] vs. [1]"
    )
    check_refused(
        tf.strings.substr, "abc", 0, 1, "X", text="Value for attr 'unit' of \"X\" is not in the list"
    )


def test_joining_along_axes() -> None:
    x = [["a", "b"], ["c", "d"]]
    check(tf.strings.reduce_join(x), texts(b"abcd"), "string")
    check(tf.strings.reduce_join(x, axis=0), texts([b"ac", b"bd"]), "string")
    check(tf.strings.reduce_join(x, axis=[0, 1]), texts(b"acbd"), "string")
    check(tf.strings.reduce_join(x, axis=[1, 0]), texts(b"abcd"), "string")
    check(tf.strings.reduce_join(x, 1, separator="-", keepdims=True), texts([[b"a-b"], [b"c-d"]]), "string")
    with pytest.raises(OutOfRangeError, match="Invalid reduction dimension 3 for input with 2 dimension"):
        tf.strings.reduce_join(x, axis=3)


def test_seeds_of_seeds() -> None:
    made = tf.random.split([1, 2], 3)
    assert made.shape == [3, 2]
    assert made.dtype is tf.int32
    assert len(np.unique(made)) == 6
    check(tf.random.split([1, 2], 3), made.numpy(), "int32")
    assert (tf.random.fold_in([1, 2], 3).numpy() != tf.random.fold_in([1, 2], 4).numpy()).any()
    check_refused(tf.random.split, [1], text="seed must have shape [2], not [1]")
    drawn = tf.random.stateless_categorical([[0.0, 0.0]], 5, [1, 2])
    check(tf.random.stateless_categorical([[0.0, 0.0]], 5, [1, 2]), drawn.numpy(), "int64")


def test_generators_of_states() -> None:
    first = tf.random.Generator(state=[1, 2, 3], alg="philox")
    second = tf.random.Generator(copy_from=first)
    check(first.normal([3]), second.normal([3]).numpy(), "float32")
    with pytest.raises(AssertionError):
        tf.random.Generator()


def test_convolution_along_one_axis_and_back() -> None:
    x = tf.reshape(tf.cast(tf.range(6), tf.float32), [1, 6, 1])
    check(tf.nn.conv1d(x, tf.ones([3, 1, 1]), 1, "VALID"), [[[3], [6], [9], [12]]], "float32")
    check(tf.nn.max_pool1d(x, 2, 2, "VALID"), [[[1], [3], [5]]], "float32")
    check(tf.nn.avg_pool1d(x, 2, 1, "SAME"), [[[0.5], [1.5], [2.5], [3.5], [4.5], [5]]], "float32")
    spread = tf.nn.conv2d_transpose(
        np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1),
        np.arange(9, dtype=np.float32).reshape(3, 3, 1, 1),
        [1, 4, 4, 1],
        2,
    )
    wanted = [[0, 0, 0, 1], [0, 0, 3, 4], [0, 2, 10, 10], [6, 8, 19, 12]]
    check(spread, np.array(wanted)[None, ..., None], "float32")
    images = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2)
    filters = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    found = tf.nn.depthwise_conv2d(images, filters, [1, 1, 1, 1], "SAME")
    check(found[0, 0], [[152, 168, 216, 236], [200, 224, 280, 308], [80, 94, 120, 136]], "float32")
    check(found[0, 2, 2], [0, 16, 34, 51], "float32")
    check_refused(
        tf.nn.conv2d_transpose,
        tf.ones([1, 2, 2, 1]),
        tf.ones([3, 3, 1, 1]),
        [1, 7, 7, 1],
        2,
        "VALID",
        text="Size of out_backprop doesn't match computed: actual = 2, computed = 3",
    )


def test_losses_and_activations() -> None:
    check(tf.nn.crelu([1.0, -2.0]), [1, 0, 0, 2], "float32")
    found = tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.5, -0.5], 2.0)
    check(found, [0.948154, 0.474077], "float32")
    with pytest.raises(ValueError, match="`logits` and `labels` must have the same shape"):
        tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.5], 2.0)
