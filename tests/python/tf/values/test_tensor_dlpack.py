"""Tensors and other libraries by DLPack: in host memory with NumPy, on a device with a stand-in for CuPy's arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.devices.context import context
from allotment.testing import runtime
from support.arrays.device_dlpack import CUDA, to_capsule
from support.arrays.strict_device import StrictDevice, StrictLibrary

dlpack = tf.experimental.dlpack


@pytest.fixture
def gpu() -> Iterator[Any]:
    with runtime("1:64MiB"):
        found = next(each for each in context().ready().devices if each.kind == "GPU")
        found.library = StrictLibrary(StrictDevice(), found.pool)
        yield found


@pytest.mark.simulated_gpus("it is on a machine without GPUs")
@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "int8", "int64", "uint16", "complex64", "bool"]
)
def test_a_tensor_goes_through_a_capsule(kind: str) -> None:
    x = tf.constant(np.arange(6).reshape(2, 3).astype(kind))
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert np.array_equal(y.numpy(), x.numpy())
    assert y.device.endswith("CPU:0")


@pytest.mark.simulated_gpus("the memory is not for NumPy to read")
def test_numpy_takes_a_tensor_and_does_not_share_its_memory() -> None:
    x = tf.constant([1.0, 2.0])
    array = np.from_dlpack(x)
    array[0] = 5.0
    assert x.numpy().tolist() == [1.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)
    assert not hasattr(x, "__cuda_array_interface__")


def test_a_tensor_is_made_over_numpys_memory() -> None:
    array = np.arange(4, dtype=np.float32)
    x = dlpack.from_dlpack(array.__dlpack__())
    assert x._array.ctypes.data == array.ctypes.data
    assert float(tf.reduce_sum(x)) == 6.0
    assert dlpack.from_dlpack(np.ones((0, 2)).__dlpack__()).shape == (0, 2)


def test_a_capsule_is_taken_once() -> None:
    capsule = np.ones(3).__dlpack__()
    dlpack.from_dlpack(capsule)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r'got "used_dltensor".*at most once'):
        dlpack.from_dlpack(capsule)


def test_what_tensorflow_refuses_is_refused() -> None:
    for value in (np.ones(3), [1.0], tf.Variable([1.0]), tf.constant("text")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"to_dlpack|not supported by dlpack"):
            dlpack.to_dlpack(value)
    for other in (np.ones(3), 3):
        with pytest.raises(TypeError, match="takes a capsule"):
            dlpack.from_dlpack(other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="dltensor_versioned"):
        dlpack.from_dlpack(np.ones(3).__dlpack__(max_version=(1, 0)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid strides"):
        dlpack.from_dlpack(np.arange(12).reshape(3, 4).T.__dlpack__())
    with pytest.raises(AttributeError):
        tf.Variable([1.0]).__dlpack__()  # type: ignore[attr-defined]


def test_on_a_device_memory_is_shared_both_ways(gpu: Any) -> None:
    with tf.device("GPU:0"):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    used = gpu.pool.stats().requested
    assert x.__dlpack_device__() == (CUDA, 0)
    assert x.__cuda_array_interface__["data"][0] == x._array._inner.ctypes.data  # type: ignore[attr-defined]
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    assert y.device.endswith("GPU:0")
    assert y.backing_device.endswith("GPU:0")
    assert gpu.pool.stats().requested == used
    with tf.device("GPU:0"):
        assert float(tf.reduce_sum(y + y)) == 20.0
    del x
    assert y.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_memory_of_a_device_without_a_logical_device_is_refused(gpu: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"DLPack's device \(2, 5\)"):
        dlpack.from_dlpack(to_capsule(np.ones(3), 5))
