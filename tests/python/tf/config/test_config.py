"""Names, values and lists of `config`. Facts of TensorFlow 2.21."""

from typing import Any

import pytest

import allotment.tf as tf
from allotment.devices.context import Context
from support.devices import CPU, fresh

Config = tf.config.LogicalDeviceConfiguration
CPU_REPR = "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    return fresh(monkeypatch)


def cpu() -> tf.config.PhysicalDevice:
    return tf.config.list_physical_devices("CPU")[0]


def test_an_older_name_is_the_same_object() -> None:
    new, old = tf.config, tf.config.experimental
    same = [
        (new.list_physical_devices, old.list_physical_devices),
        (new.list_logical_devices, old.list_logical_devices),
        (new.get_visible_devices, old.get_visible_devices),
        (new.set_visible_devices, old.set_visible_devices),
        (new.get_logical_device_configuration, old.get_virtual_device_configuration),
        (new.set_logical_device_configuration, old.set_virtual_device_configuration),
        (new.LogicalDeviceConfiguration, old.VirtualDeviceConfiguration),
        (tf.compat.v1.config, new),
        (tf.compat.v2.config, new),
        (tf.compat.v2.DeviceSpec, tf.DeviceSpec),
        (tf.gpu, new.gpu),
    ]
    assert all(a is b for a, b in same)


def test_devices_are_tuples() -> None:
    device = cpu()
    assert str(device) == repr(device) == CPU_REPR
    assert device == ("/physical_device:CPU:0", "CPU")
    assert hash(device) == hash(tuple(device))
    assert device._fields == ("name", "device_type")
    assert device._replace(name="x") == tf.config.PhysicalDevice(name="x", device_type="CPU")
    with pytest.raises(AttributeError, match="can't set attribute"):
        device.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        tf.config.PhysicalDevice()  # type: ignore[call-arg]
    logical = tf.config.LogicalDevice("/device:GPU:3", "GPU")
    assert repr(logical) == "LogicalDevice(name='/device:GPU:3', device_type='GPU')"


def test_a_configuration_is_a_tuple_too() -> None:
    empty = "LogicalDeviceConfiguration(memory_limit=None, experimental_priority=None, "
    assert repr(Config()) == empty + "experimental_device_ordinal=None)"
    assert Config(100, 1, 2) == (100, 1, 2)
    assert Config(1) == Config(memory_limit=1) != Config(2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'memory'"):
        Config(memory=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", ["GPU", "TPU", "cpu", "", 7, 0, False])
def test_a_type_that_nothing_has_lists_nothing(kind: Any) -> None:
    assert tf.config.list_physical_devices(kind) == []
    assert tf.config.get_visible_devices(kind) == []
    assert tf.config.list_logical_devices(kind) == []


def test_lists_are_fresh() -> None:
    for ask in (
        tf.config.list_physical_devices,
        tf.config.get_visible_devices,
        tf.config.list_logical_devices,
    ):
        ask().clear()
        assert len(ask()) == 1


def test_listing_takes_one_argument() -> None:
    with pytest.raises(TypeError, match="takes from 0 to 1 positional arguments but 2 were given"):
        tf.config.list_physical_devices("CPU", "GPU")  # type: ignore[call-arg]


def test_the_cpu_and_its_logical_device() -> None:
    assert tf.config.list_physical_devices() == [tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")]
    assert tf.config.list_logical_devices() == [tf.config.LogicalDevice("/device:CPU:0", "CPU")]


def test_what_the_runtime_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = fresh(monkeypatch, "1:64MiB").ready()
    host, gpu = ready.devices
    assert (host.name, host.short_name, host.kind, host.index) == (CPU, "/device:CPU:0", "CPU", 0)
    assert (gpu.name, gpu.kind, gpu.index) == (CPU.replace("CPU", "GPU"), "GPU", 0)
    assert host.pool is None
    assert gpu.pool is not None
    assert gpu.pool.name == "GPU_0_bfc"
    assert gpu.physical.device == ("/physical_device:GPU:0", "GPU")
    assert host != gpu


def test_details_list_nothing_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    made = tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
    obtain = (
        "The PhysicalDevice must be one obtained from calling `tf.config.list_physical_devices`, but got: "
    )
    with pytest.raises(ValueError, match="must be one obtained") as raised:
        tf.config.experimental.get_device_details(made)
    assert str(raised.value) == obtain + CPU_REPR
    tf.config.list_physical_devices()
    assert tf.config.experimental.get_device_details(made) == {}
    missing = tf.config.PhysicalDevice("/physical_device:GPU:9", "GPU")
    with pytest.raises(ValueError, match="must be one obtained") as raised:
        tf.config.experimental.get_device_details(missing)
    assert str(raised.value) == f"{obtain}{missing}"
    others: list[Any] = ["CPU:0", None, tf.config.LogicalDevice("/device:CPU:0", "CPU")]
    for other in others:
        with pytest.raises(ValueError, match="device must be") as raised:
            tf.config.experimental.get_device_details(other)
        assert str(raised.value) == f"device must be a tf.config.PhysicalDevice, but got: {other}"
