"""Logical device configurations: what is accepted, and how devices are numbered (B015)."""

from typing import Any

import pytest

import allotment
import allotment.tf as tf
from allotment.devices.context import Context
from support.devices import MIB, fresh, gpus, limits, pools, split

Config = tf.config.LogicalDeviceConfiguration


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    return fresh(monkeypatch)


def cpu() -> tf.config.PhysicalDevice:
    return tf.config.list_physical_devices("CPU")[0]


def test_the_cpu_can_be_split() -> None:
    mine = [Config(), Config()]
    tf.config.set_logical_device_configuration(cpu(), mine)
    assert tf.config.get_logical_device_configuration(cpu()) is mine
    # By reference: what happens to the list later counts, as in TensorFlow.
    mine.append(Config())
    names = [device.name for device in tf.config.list_logical_devices()]
    assert names == ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert len(tf.config.list_physical_devices()) == 1


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (Config(memory_limit=100), "Setting memory limit on CPU virtual devices is currently not supported"),
        (Config(memory_limit=0), "Setting memory limit on CPU virtual devices is currently not supported"),
        (
            Config(experimental_priority=1),
            "Setting experimental_priority on CPU virtual  devices is currently not supported",
        ),
        (
            Config(experimental_device_ordinal=0),
            "Setting experimental_device_ordinal on CPU virtual  devices is currently not supported",
        ),
    ],
)
def test_what_the_cpu_cannot_have(split: Any, text: str) -> None:
    with pytest.raises(ValueError, match="currently not supported") as raised:
        tf.config.set_logical_device_configuration(cpu(), [Config(), split])
    assert str(raised.value) == text
    assert tf.config.get_logical_device_configuration(cpu()) is None
    # Also when the runtime is ready: a bad argument is reported first.
    tf.config.list_logical_devices()
    with pytest.raises(ValueError, match="currently not supported"):
        tf.config.set_logical_device_configuration(cpu(), [split])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (None, TypeError),
        (5, TypeError),
        (Config(), AttributeError),
        ([None], AttributeError),
        ("ab", AttributeError),
    ],
)
def test_what_is_no_list_of_configurations(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tf.config.set_logical_device_configuration(cpu(), bad)


@pytest.mark.parametrize("device", ["CPU:0", None, 3, [("/physical_device:CPU:0", "CPU")]])
def test_only_devices_have_configurations(device: Any) -> None:
    for ask in (
        tf.config.get_logical_device_configuration,
        lambda device: tf.config.set_logical_device_configuration(device, [Config()]),
    ):
        with pytest.raises(ValueError, match="Unrecognized device") as raised:
            ask(device)
        assert str(raised.value) == f"Unrecognized device: {device!r}"


def test_both_spellings_of_the_second_argument() -> None:
    # The documents have virtual_devices, TensorFlow 2.21 has logical_devices.
    tf.config.set_logical_device_configuration(cpu(), virtual_devices=[Config()] * 2)
    assert len(tf.config.get_logical_device_configuration(cpu()) or ()) == 2
    tf.config.experimental.set_virtual_device_configuration(cpu(), logical_devices=[Config()] * 3)
    assert len(tf.config.get_logical_device_configuration(cpu()) or ()) == 3
    with pytest.raises(TypeError, match="not both"):
        tf.config.set_logical_device_configuration(cpu(), [Config()], virtual_devices=[Config()])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'logical_devices'"):
        tf.config.set_logical_device_configuration(cpu())


def test_no_logical_cpu_is_no_cpu() -> None:
    tf.config.set_logical_device_configuration(cpu(), [])
    assert tf.config.get_logical_device_configuration(cpu()) == []
    with pytest.raises(tf.errors.NotFoundError, match="No CPU devices are available"):
        tf.config.list_logical_devices()
    tf.config.set_logical_device_configuration(cpu(), [Config(), Config()])
    assert len(tf.config.list_logical_devices()) == 2


def test_b015_splits_are_numbered_gpu_by_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B015 (tensorflow#35083).
    context = fresh(monkeypatch, "2:256MiB")
    first, second = gpus()
    split(first, 64, 96)
    names = [device.name for device in tf.config.list_logical_devices("GPU")]
    assert names == ["/device:GPU:0", "/device:GPU:1", "/device:GPU:2"]
    details = [allotment.experimental.get_logical_device_details(name) for name in names]
    assert [each["physical_device"] for each in details] == [first, first, second]
    assert [each["memory_limit"] for each in details] == [64 * MIB, 96 * MIB, 256 * MIB]
    assert [each["pool"] for each in details] == ["GPU_0_bfc", "GPU_1_bfc", "GPU_2_bfc"]
    zero, one, _ = pools(context)
    with pytest.raises(allotment.OutOfMemoryError):
        zero.allocate("65MiB")
    one.allocate("65MiB").free()


@pytest.mark.simulated_gpus("limits of splits are not compared with the memory")
def test_b015_splits_that_ask_for_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "2:256MiB")
    split(gpus()[0], 200, 200)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        tf.config.list_logical_devices()
    for part in ("/physical_device:GPU:0", "200 + 200 MiB", "256 MiB"):
        assert part in str(raised.value)
    # The documents' programs catch it, and the configuration can be put right.
    assert isinstance(raised.value, RuntimeError)
    assert not context.is_ready
    split(gpus()[0], 200, 56)
    assert [pool.limit for pool in pools(context)] == [200 * MIB, 56 * MIB, 256 * MIB]


def test_ordinals_order_logical_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    # Worked examples of the record, in MiB.
    context = fresh(monkeypatch, "2:64MiB")
    for gpu, (low, high) in zip(gpus(), ((1, 2), (3, 4)), strict=True):
        split(gpu, Config(low, None, 10), Config(high, None, 20))
    assert limits(context) == [("GPU:0", 1), ("GPU:1", 3), ("GPU:0", 2), ("GPU:1", 4)]
    context = fresh(monkeypatch, "1:64MiB")
    split(gpus()[0], Config(1, None, 2), Config(2, None, 1))
    assert limits(context) == [("GPU:0", 2), ("GPU:0", 1)]


@pytest.mark.parametrize(
    ("first", "second", "error", "text"),
    [
        (
            [Config(1, 0), Config(1)],
            [Config(1)],
            ValueError,
            "priority must be specified for all virtual devices",
        ),
        (
            [Config(1, None, 0), Config(1)],
            [Config(1)],
            ValueError,
            "device_ordinals must be specified for all virtual devices",
        ),
        (
            [Config(1)],
            [Config(1, -1)],
            tf.errors.InvalidArgumentError,
            "Priority must be set for all virtual devices or none.",
        ),
        (
            [Config(1, -1)],
            [Config(1)],
            tf.errors.InvalidArgumentError,
            "Priority must be set for all virtual devices or none.",
        ),
        (
            [Config(1)],
            [Config(1, None, 3)],
            tf.errors.InvalidArgumentError,
            "Device ordinals must be set for all virtual devices or none.",
        ),
        (
            [Config(1, 7)],
            [Config(1, -1)],
            tf.errors.InvalidArgumentError,
            "Priority 7 is outside the range of supported priorities",
        ),
        (
            [],
            [Config(1)],
            tf.errors.UnknownError,
            "Not enough GPUs to create virtual devices. num_gpus_to_use: 1 #virtual_devices: 2",
        ),
    ],
)
def test_configurations_that_do_not_go_together(
    first: Any, second: Any, error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = fresh(monkeypatch, "2:64MiB")
    for gpu, configurations in zip(gpus(), (first, second), strict=True):
        tf.config.set_logical_device_configuration(gpu, configurations)
    with pytest.raises(error) as raised:
        tf.config.list_logical_devices()
    assert str(raised.value).startswith(text)
    assert not context.is_ready


def test_an_empty_list_beside_enough_others_is_a_whole_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    # The record's rule for an entry with no numbers.
    context = fresh(monkeypatch, "2:64MiB")
    tf.config.set_logical_device_configuration(gpus()[0], [])
    split(gpus()[1], 1, 2)
    assert limits(context) == [("GPU:0", 64), ("GPU:1", 1), ("GPU:1", 2)]
