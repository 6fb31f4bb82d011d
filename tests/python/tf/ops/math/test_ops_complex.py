"""Complex numbers and their parts."""

import math

import numpy as np
import pytest

from allotment.tf import math as tf_math
from allotment.tf.ops.math.complex_numbers import complex as make_complex
from support.tf.tensors import check, tensor


def test_parts() -> None:
    x = tensor([1 + 2j, -3.5j])
    check(tf_math.real(x), [1, 0], "float64")
    check(tf_math.imag(x), [2, -3.5], "float64")
    check(tf_math.conj(x), [1 - 2j, 3.5j], "complex128")
    check(tf_math.real(tensor([[1 + 2j]], "complex64")), [[1]], "float32")
    check(tf_math.imag(tensor(1 + 2j, "complex64")), 2, "float32")


def test_parts_hold_their_own_elements() -> None:
    x = tensor([1 + 2j, 3j])
    assert tf_math.real(x)._array.base is None
    assert tf_math.imag(x)._array.base is None


def test_real_numbers() -> None:
    x = tensor([1.5, -2.0])
    assert tf_math.real(x) is x
    assert tf_math.conj(x) is x
    check(tf_math.imag(x), [0, 0], "float32")
    check(tf_math.angle(x), [0, math.pi], "float32")


def test_angles() -> None:
    check(tf_math.angle(tensor([1j, -1, 1 - 1j])), [math.pi / 2, math.pi, -math.pi / 4], "float64")
    check(tf_math.angle(tensor([1j], "complex64")), [math.pi / 2], "float32")


def test_complex_numbers_are_put_together() -> None:
    check(make_complex(tensor([1.0, 2.0]), tensor([3.0, 4.0])), [1 + 3j, 2 + 4j], "complex64")
    check(make_complex(tensor(1.0, "float64"), tensor([3.0, 4.0], "float64")), [1 + 3j, 1 + 4j], "complex128")
    check(make_complex(1.0, 2.0), 1 + 2j, "complex64")
    with pytest.raises(TypeError, match="incorrect types: float32 float64"):
        make_complex(tensor(1.0), tensor(1.0, "float64"))
    with pytest.raises(TypeError, match="incorrect types: int32 int32"):
        make_complex(1, 2)


def test_texts_have_no_parts() -> None:
    with pytest.raises(TypeError, match="input must be a numeric tensor"):
        tf_math.real(tensor("a"))


def test_a_sigmoid_keeps_an_imaginary_part_of_positive_zero() -> None:
    # TensorFlow's sign.
    found = tf_math.sigmoid(tensor([2 + 0j, 5e-6 + 0j], "complex64")).numpy()
    np.testing.assert_allclose(found, [0.8807971, 0.50000125], rtol=1e-6)
    assert not np.signbit(found.imag).any()
