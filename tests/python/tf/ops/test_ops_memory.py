"""Arithmetic, linear algebra and networks on a simulated GPU: the CPU's values, and not a byte more than they take."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as v1
from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.errors import ResourceExhaustedError
from allotment.testing import runtime
from allotment.tf.ops.array.creation import ones
from allotment.tf.tensors.tensor import EagerTensor
from support.tf.op_samples import inputs, samples


def gpu() -> Any:
    return next(each for each in context().ready().devices if each.kind == "GPU")


def requested() -> int:
    return int(gpu().pool.stats().requested)


def tensors(result: Any) -> list[Any]:
    if isinstance(result, EagerTensor):
        return [result]
    return [tensor for each in result for tensor in tensors(each)]


@runtime("1:64MiB")
def test_values_are_those_of_the_cpu() -> None:
    with device("/CPU:0"):
        given = inputs()
        wanted = {name: tensors(sample(given)) for name, sample in samples().items()}
    with device("/GPU:0"):
        given = inputs()
        for name, sample in samples().items():
            for result, expected in zip(tensors(sample(given)), wanted[name], strict=True):
                assert result.dtype is expected.dtype, name
                if result.dtype.is_floating or result.dtype.is_complex:
                    np.testing.assert_allclose(
                        result.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6, err_msg=name
                    )
                else:
                    np.testing.assert_array_equal(result.numpy(), expected.numpy(), name)


@runtime("1:64MiB")
def test_results_take_what_their_elements_take_and_give_it_back() -> None:
    with device("/GPU:0"):
        given = inputs()
        kept = requested()
        assert kept == sum(each._array.nbytes for each in given.values() if each.dtype.name != "int32")
        for name, sample in samples().items():
            result = sample(given)
            mine = {id(each): each._array for each in tensors(result) if each._home is gpu()}
            taken = requested() - kept
            assert taken == sum(array.nbytes for array in mine.values()), (name, taken)
            for each in tensors(result):
                assert each.device.endswith("GPU:0"), name
                assert each._array.flags.c_contiguous, name
            del result, mine, each
            assert requested() == kept, name
        del given
    assert requested() == 0
    assert gpu().pool.stats().in_use == 0


@runtime("1:64MiB")
def test_int32_is_computed_in_host_memory() -> None:
    with device("/GPU:0"):
        given = inputs()
        kept = requested()
        for name in ("add, int32", "floordiv, int32", "matmul, int32", "equal, int32"):
            result = samples()[name](given)
            assert result.device.endswith("GPU:0"), name
            assert result.backing_device.endswith("CPU:0"), name
            assert requested() == kept, name
        # A position is computed where the elements are.
        assert samples()["argmin"](given).backing_device.endswith("GPU:0")


@runtime("1:32MiB")
def test_memory_that_runs_out_within_an_operation_comes_back() -> None:
    with device("/GPU:0"):
        image = ones([1, 512, 512, 4])  # 4 MiB; with a result of 24 MiB, no copy with a border fits
        filters: Any = ones([3, 3, 4, 24])
        kept = requested()
        with pytest.raises(ResourceExhaustedError, match=r"OOM when allocating .*\[Op:Conv2D\]"):
            tf.nn.conv2d(image, filters, 1, "SAME")
        assert requested() == kept
        # All windows as rows would be 36 MiB.
        tf.nn.conv2d(image, filters[..., :1], 1, "SAME")
        assert tf.reduce_sum(image).numpy() == 1 << 20


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ResourceExhaustedError) as caught:
        call()
    assert (caught.value.limit, caught.value.verdict) == (64 << 20, "limit")
    return str(caught.value)


BEYOND = "OOM when allocating tensor of more than 9223372036854775552 bytes on"


@runtime("1:64MiB")
def test_a_result_of_a_size_that_cannot_be_asked_for_is_refused_with_the_devices_figures() -> None:
    with tf.device("GPU:0"):
        assert BEYOND in refused(lambda: tf.zeros([1 << 62]))
        assert BEYOND in refused(lambda: tf.tile(tf.zeros([1]), [1 << 62]))
    with v1.Graph().as_default():
        with v1.device("/gpu:0"):
            lengths = v1.placeholder(v1.int64, [1])
            many = v1.fill(lengths, 1.0)
        with v1.Session() as session:
            text = refused(lambda: session.run(many, {lengths: [1 << 62]}))
            assert "Node: 'Fill'\nOOM when allocating tensor of more than" in text
            assert session.run(many, {lengths: [3]}).sum() == 3


@pytest.mark.simulated_gpus("random numbers are drawn in host memory")
@runtime("1:64MiB")
def test_random_numbers_of_a_size_that_cannot_be_asked_for() -> None:
    with tf.device("GPU:0"):
        assert BEYOND in refused(lambda: tf.random.uniform([1 << 61]))
