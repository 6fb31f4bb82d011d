"""Where a GPU is missed, what hides it is said."""

from collections.abc import Callable

import pytest

import allotment
import allotment.tf as tf
from support.devices import fresh, gpus, run_on_gpus

GPU_0 = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
HIDES = "CUDA_VISIBLE_DEVICES='-1' hides all 2 GPUs."


def run_on_gpu() -> None:
    with tf.Graph().as_default(), tf.device("/GPU:0"):
        tf.compat.v1.Session().run(tf.constant(1.0) + 1.0)


@pytest.mark.parametrize(
    "miss",
    [
        run_on_gpu,
        lambda: tf.config.experimental.get_memory_info("GPU:0"),
        lambda: allotment.experimental.trim("GPU:0"),
        lambda: allotment.experimental.memory_scope("step"),
        lambda: tf.config.experimental.set_memory_growth(GPU_0, True),
        lambda: allotment.experimental.set_memory_limit(GPU_0, 1000),
        lambda: tf.config.set_logical_device_configuration(GPU_0, [tf.config.LogicalDeviceConfiguration(1)]),
        lambda: tf.config.set_visible_devices(GPU_0, "GPU"),
    ],
)
def test_a_mask_that_hides_a_gpu_is_named(
    miss: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "2:64MiB", CUDA_VISIBLE_DEVICES="-1")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as raised:
        miss()
    assert HIDES in str(raised.value)


def test_operations_name_the_mask() -> None:
    program = """
    import allotment
    import allotment.tf as tf
    try:
        with tf.device("/GPU:1"):
            tf.zeros([2])
    except tf.errors.InvalidArgumentError as error:
        print(str(error).splitlines()[-1])
    with tf.Graph().as_default(), tf.device("/GPU:1"):
        try:
            tf.compat.v1.Session().run(tf.constant(1.0))
        except tf.errors.InvalidArgumentError as error:
            print("hides 1 of 2 GPUs." in str(error))
    """
    done = run_on_gpus("2:64MiB", program, CUDA_VISIBLE_DEVICES="1")
    assert done.stdout == "CUDA_VISIBLE_DEVICES='1' hides 1 of 2 GPUs.\nTrue\n", done.stderr


def test_a_call_that_hides_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.set_visible_devices([], "GPU")
    with pytest.raises(ValueError, match="set_visible_devices hides /physical_device:GPU:0"):
        tf.config.experimental.get_memory_info("GPU:0")
    assert len(gpus()) == 1


def test_a_mask_of_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB", CUDA_VISIBLE_DEVICES="\xa00")
    assert gpus() == []
    with pytest.raises(ValueError, match=r"CUDA_VISIBLE_DEVICES='\\xa00' hides the only GPU"):
        tf.config.experimental.get_memory_info("GPU:0")


def test_nothing_is_added_where_nothing_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    with pytest.raises(ValueError, match="No matching") as raised:
        tf.config.experimental.get_memory_info("GPU:7")
    assert "hides" not in str(raised.value)
    fresh(monkeypatch, "0")
    with pytest.raises(ValueError, match="No matching") as raised:
        tf.config.experimental.get_memory_info("GPU:0")
    assert str(raised.value) == "No matching devices found for 'GPU:0'"
