"""All GPUs at once: `config.gpu`, from the documents 002 and 004."""

import math
from typing import Any

import pytest

import allotment.tf as tf
from support.devices import MIB, fresh, gpus, pools

Config = tf.config.LogicalDeviceConfiguration
GIB = 1024 * MIB
get_growth = tf.config.experimental.get_memory_growth


def test_a_share_does_not_go_with_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set."
    # Not even with those of the CPU, where there is a GPU.
    for device in (0, 1):
        fresh(monkeypatch, "1:64MiB")
        physical = tf.config.list_physical_devices()[device]
        tf.config.set_logical_device_configuration(physical, [Config(memory_limit=32 if device else None)])
        tf.config.gpu.set_per_process_memory_fraction(0.4)
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            tf.config.list_logical_devices()
        assert str(raised.value) == words
        tf.config.gpu.set_per_process_memory_fraction(0)
        tf.config.list_logical_devices()


def test_a_share_is_of_the_whole_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # Document 004: 40 per cent of each GPU.
    context = fresh(monkeypatch, "2:1GiB")
    assert tf.config.gpu.get_per_process_memory_fraction() == 0.0
    tf.gpu.set_per_process_memory_fraction(0.4)
    assert tf.config.gpu.get_per_process_memory_fraction() == 0.4
    assert [pool.limit for pool in pools(context)] == [int(0.4 * GIB)] * 2
    with pytest.raises(RuntimeError, match="GPU options must be set at program startup"):
        tf.config.gpu.set_per_process_memory_fraction(0.4)


@pytest.mark.parametrize(
    ("fraction", "error"),
    [
        (-0.1, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        ("0.4", TypeError),
        (True, TypeError),
    ],
)
def test_a_share_is_a_number(fraction: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    with pytest.raises(error, match="fraction must be"):
        tf.config.gpu.set_per_process_memory_fraction(fraction)


@pytest.mark.simulated_gpus("a share above 1 is refused in other words")
def test_more_than_all_needs_memory_that_a_simulated_gpu_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.gpu.set_per_process_memory_fraction(1.5)
    with pytest.raises(tf.errors.InternalError, match="does not support oversubscription"):
        tf.config.list_logical_devices()


def test_growth_of_all_gpus_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Document 004, and the spellings that programs use.
    calls: list[Any] = [
        lambda: tf.config.gpu.set_per_process_memory_growth(),
        lambda: tf.config.gpu.set_per_process_memory_growth(True),
        lambda: tf.gpu.set_per_process_memory_growth(enabled=True),
    ]
    for call in calls:
        context = fresh(monkeypatch, "2:64MiB")
        assert tf.config.gpu.get_per_process_memory_growth() is False
        call()
        assert tf.config.gpu.get_per_process_memory_growth() is True
        assert [get_growth(gpu) for gpu in gpus()] == [True, True]
        assert [pool.growth for pool in pools(context)] == [True, True]
        # Even the same value is refused then.
        with pytest.raises(RuntimeError, match="GPU options must be set at program startup"):
            tf.config.gpu.set_per_process_memory_growth(True)


def test_growth_of_all_gpus_loses_to_a_split_and_does_nothing_without_gpus(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch)
    tf.config.gpu.set_per_process_memory_growth()
    tf.config.gpu.set_per_process_memory_fraction(0.4)
    assert pools(context) == []
    context = fresh(monkeypatch, "1:64MiB")
    tf.config.set_logical_device_configuration(gpus()[0], [Config(memory_limit=32)])
    tf.config.gpu.set_per_process_memory_growth()
    (pool,) = pools(context)
    assert not pool.growth
    assert len(caplog.messages) == 1
