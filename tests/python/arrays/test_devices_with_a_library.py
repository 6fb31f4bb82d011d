"""Operations on a logical device whose values are strict device arrays, through the functions that programs call."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.devices.context import context
from allotment.devices.placement_log import logger
from allotment.errors import ResourceExhaustedError
from allotment.testing import runtime
from allotment.tf.tensors.tensor import EagerTensor
from support.arrays.strict_device import StrictDevice, StrictDeviceArray, StrictLibrary
from support.tf.op_samples import inputs, samples


def tensors(result: Any) -> list[Any]:
    if isinstance(result, EagerTensor):
        return [result]
    return [tensor for each in result for tensor in tensors(each)]


@pytest.fixture
def gpu() -> Iterator[Any]:
    with runtime("1:64MiB"):
        found = next(each for each in context().ready().devices if each.kind == "GPU")
        found.library = StrictLibrary(StrictDevice(), found.pool)
        with tf.device("GPU:0"):
            yield found


def test_values_are_those_of_the_cpu_and_stay_on_the_device(gpu: Any) -> None:
    with tf.device("CPU:0"):
        given = inputs()
        wanted = {name: tensors(sample(given)) for name, sample in samples().items()}
    given = inputs()
    for name, sample in samples().items():
        made = tensors(sample(given))
        for result, expected in zip(made, wanted[name], strict=True):
            assert isinstance(result._array, StrictDeviceArray) == (result._home is gpu), name
            assert result.dtype is expected.dtype, name
            tolerance = 4e-3 if result.dtype.name == "float16" else 1e-5
            np.testing.assert_allclose(
                result.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance, err_msg=name
            )


def test_the_pool_counts_the_arrays_and_gets_all_of_it_back(gpu: Any) -> None:
    x = tf.ones([1024, 1024])
    y = x + x
    assert gpu.pool.stats().requested == 8 << 20
    assert y.backing_device.endswith("GPU:0")
    del x, y
    assert gpu.pool.stats().requested == 0


def test_a_request_beyond_the_limit_is_refused_with_the_pools_report(gpu: Any) -> None:
    with pytest.raises(
        ResourceExhaustedError, match=r"OOM when allocating tensor with shape\[8192,4096\] and type float on"
    ) as caught:
        tf.zeros([8192, 4096])
    assert (caught.value.limit, caught.value.verdict) == (64 << 20, "limit")


def test_a_value_is_read_on_the_host_only_where_a_program_asks_for_it(gpu: Any) -> None:
    reads = gpu.library.device.reads
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y = tf.nn.softmax(tf.matmul(x, x) + 1.0)
    z = tf.reduce_sum(tf.reshape(y, [4]))
    assert reads == []
    assert float(z) == pytest.approx(2.0)
    assert len(reads) == 1
    assert y.numpy().shape == (2, 2)
    assert "numpy=" in repr(y)
    assert bool(z > 1.0)
    assert np.asarray(y).dtype == np.float32
    with tf.device("CPU:0"):
        copied = tf.identity(y)
    assert isinstance(copied._array, np.ndarray)


def test_a_row_of_the_list_computes_on_the_host_and_its_copies_are_logged(
    gpu: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with tf.device("CPU:0"):
        wanted = tf.math.zeta(2.0, 3.0).numpy(), tf.random.stateless_uniform([3], [1, 2]).numpy()
    tf.debugging.set_log_device_placement(False)
    from allotment.devices import placement_log

    x, q = tf.constant(2.0), tf.constant(3.0)
    placement_log.set_logs_copies(True)
    try:
        with caplog.at_level(logging.INFO, logger.name):
            made = tf.math.zeta(x, q)
    finally:
        placement_log.set_logs_copies(False)
    assert isinstance(made._array, StrictDeviceArray)
    drawn = tf.random.stateless_uniform([3], [1, 2])
    assert isinstance(drawn._array, StrictDeviceArray)
    np.testing.assert_array_equal(made.numpy(), wanted[0])
    np.testing.assert_array_equal(drawn.numpy(), wanted[1])
    text = caplog.text
    assert text.count("Copying input #") == 2
    assert "Copying result of op Zeta from device /job:localhost/replica:0/task:0/device:CPU:0 to" in text
    assert "under which CuPy has none" in text


def test_a_gradient_and_a_variable_stay_on_the_device(gpu: Any) -> None:
    weights = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    reads = gpu.library.device.reads
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(tf.matmul(weights, weights)) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    assert reads == []
    assert isinstance(weights._storage.array, StrictDeviceArray)
    with tf.device("CPU:0"):
        plain = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(tf.matmul(plain, plain)) ** 2)
        plain.assign_sub(0.01 * tape.gradient(loss, plain))
    np.testing.assert_allclose(weights.numpy(), plain.numpy(), rtol=1e-6)
