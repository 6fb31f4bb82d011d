"""Which devices are used: `set_visible_devices`. Facts of TensorFlow 2.21."""

from typing import Any

import pytest

import allotment
import allotment.tf as tf
from allotment.devices.context import Context
from support.devices import fresh

CPU_REPR = "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    return fresh(monkeypatch)


def cpu() -> tf.config.PhysicalDevice:
    return tf.config.list_physical_devices("CPU")[0]


@pytest.mark.parametrize("devices", ["CPU:0", ["/physical_device:CPU:0"], None, 3, (cpu,)])
def test_what_is_no_device_is_not_recognized(devices: Any) -> None:
    first = devices[0] if isinstance(devices, list) else devices
    with pytest.raises(ValueError, match="Unrecognized device") as raised:
        tf.config.set_visible_devices(devices)
    assert str(raised.value) == f"Unrecognized device: {first!r}"


def test_devices_that_do_not_exist_or_are_of_another_type_are_not_recognized() -> None:
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    logical: Any = tf.config.LogicalDevice("/device:CPU:0", "CPU")
    for device, kind in ((gpu, "GPU"), (logical, None), (cpu(), "GPU"), (cpu(), "cpu")):
        with pytest.raises(ValueError, match="Unrecognized device") as raised:
            tf.config.set_visible_devices([device], kind)
        assert str(raised.value) == f"Unrecognized device: {device!r}"


def test_one_device_is_a_list_of_one() -> None:
    tf.config.set_visible_devices(cpu())
    assert tf.config.get_visible_devices() == [cpu()]
    tf.config.set_visible_devices(devices=[cpu()], device_type="CPU")
    assert tf.config.get_visible_devices() == [cpu()]


def test_an_equal_tuple_is_a_device_until_its_type_is_asked_for() -> None:
    plain: Any = [("/physical_device:CPU:0", "CPU")]
    tf.config.set_visible_devices(plain)
    assert repr(tf.config.get_visible_devices()) == f"[{CPU_REPR}]"
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'device_type'"):
        tf.config.set_visible_devices(plain, "CPU")


def test_the_same_device_twice_is_one_logical_device() -> None:
    tf.config.set_visible_devices([cpu(), cpu()])
    assert len(tf.config.get_visible_devices()) == 2
    assert len(tf.config.list_logical_devices()) == 1


def test_a_type_replaces_its_own_and_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "3:64MiB")
    host, a, b, c = tf.config.list_physical_devices()
    tf.config.set_visible_devices([c, a], "GPU")
    assert tf.config.get_visible_devices() == [host, c, a]
    tf.config.set_visible_devices(host, "CPU")
    assert tf.config.get_visible_devices() == [c, a, host]
    # Numbers follow the physical order all the same.
    names = [allotment.experimental.get_logical_device_details(f"GPU:{n}")["physical_device"] for n in (0, 1)]
    assert names == [a, c]
    assert b not in names


def test_without_a_cpu_nothing_starts_and_it_can_be_put_right() -> None:
    devices = tf.config.list_physical_devices()
    for kind in (None, "CPU"):
        tf.config.set_visible_devices([], kind)
        with pytest.raises(tf.errors.NotFoundError) as raised:
            tf.config.list_logical_devices()
        assert str(raised.value) == "No CPU devices are available in this process"
    tf.config.set_visible_devices(devices)
    assert len(tf.config.list_logical_devices()) == 1


def test_a_gpu_alone_hides_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[0])
    with pytest.raises(tf.errors.NotFoundError, match="No CPU devices are available"):
        tf.config.list_logical_devices()
