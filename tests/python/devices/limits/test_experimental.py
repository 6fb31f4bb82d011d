"""What goes beyond TensorFlow: growth with splits, growth that differs, limits (B014)."""

from collections.abc import Callable
from typing import Any

import pytest

import allotment
import allotment.tf as tf
from allotment import Pool
from support.devices import MIB, fresh, gpus, limits, pools, split

Config = tf.config.LogicalDeviceConfiguration
set_growth = tf.config.experimental.set_memory_growth
TOO_LATE = "Physical devices cannot be modified after being initialized"


def reserved_for(pool: Pool, nbytes: int) -> int:
    pool.malloc(nbytes)
    return pool.stats().reserved


@pytest.mark.parametrize("split_first", [True, False])
def test_b014_our_own_growth_goes_with_a_split(
    split_first: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, "1:1024MiB")
    (gpu,) = gpus()
    steps: list[Callable[[], None]] = [
        lambda: tf.config.set_logical_device_configuration(gpu, [Config(memory_limit=256)] * 2),
        lambda: allotment.experimental.set_memory_growth(gpu, True),
    ]
    for step in steps if split_first else reversed(steps):
        step()
    for pool in pools(context):
        assert (pool.growth, pool.limit, reserved_for(pool, MIB)) == (True, 256 * MIB, 2 * MIB)
        with pytest.raises(allotment.OutOfMemoryError):
            pool.malloc(256 * MIB)
    assert caplog.messages == []


def test_our_own_growth_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "3:64MiB")
    first, second, third = gpus()
    allotment.experimental.set_memory_growth(first, True)
    allotment.experimental.set_memory_growth(second, False)
    set_growth(third, True)
    assert [allotment.experimental.get_memory_growth(gpu) for gpu in gpus()] == [True, False, True]
    assert [pool.growth for pool in pools(context)] == [True, False, True]
    allotment.experimental.set_memory_growth(first, True)
    with pytest.raises(RuntimeError, match=TOO_LATE):
        allotment.experimental.set_memory_growth(first, False)


def test_what_has_no_growth_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    cpu, gpu = tf.config.list_physical_devices()
    for call in (
        lambda: allotment.experimental.set_memory_growth(cpu, True),
        lambda: allotment.experimental.get_memory_growth(cpu),
    ):
        with pytest.raises(ValueError, match="Only a GPU's memory grows"):
            call()
    odd: Any = "yes"
    with pytest.raises(TypeError, match="'yes' has type str"):
        allotment.experimental.set_memory_growth(gpu, odd)


def test_a_limit_of_our_own_leaves_growth_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "2:64MiB")
    first, _ = gpus()
    allotment.experimental.set_memory_limit(first, "16MiB")
    for gpu in gpus():
        tf.config.experimental.set_memory_growth(gpu, True)
    assert limits(context) == [("GPU:0", 16), ("GPU:1", 64)]
    assert all(pool.growth for pool in pools(context))
    allotment.experimental.set_memory_limit(first, 16 * MIB)
    with pytest.raises(RuntimeError, match="Memory limits cannot be modified after being initialized"):
        allotment.experimental.set_memory_limit(first, "8MiB")


def test_splits_must_fit_into_a_limit_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    split(gpus()[0], 8, 8)
    allotment.experimental.set_memory_limit(gpus()[0], "15MiB")
    with pytest.raises(tf.errors.InvalidArgumentError, match="it has 15 MiB"):
        tf.config.list_logical_devices()
    allotment.experimental.set_memory_limit(gpus()[0], "16MiB")
    assert len(tf.config.list_logical_devices("GPU")) == 2


@pytest.mark.parametrize(
    ("size", "error"), [("65MiB", ValueError), (0, ValueError), (-1, ValueError), (1.5, TypeError)]
)
def test_a_limit_of_our_own_is_between_nothing_and_all(
    size: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "1:64MiB")
    with pytest.raises(error):
        allotment.experimental.set_memory_limit(gpus()[0], size)


def test_only_a_gpu_has_a_limit_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    with pytest.raises(ValueError, match="Only a GPU can have a memory limit"):
        allotment.experimental.set_memory_limit(tf.config.list_physical_devices("CPU")[0], "1MiB")
    stranger: Any = 0
    with pytest.raises(ValueError, match="Unrecognized device: 0"):
        allotment.experimental.set_memory_limit(stranger, "1MiB")
