"""``allotment.testing.runtime``: the process's devices and settings, replaced for a block."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment._core import all_stats
from allotment.devices.context import context
from allotment.devices.dispatch import thread
from allotment.testing import runtime
from support.interpreter import free_what_waits


def gpus() -> list[str]:
    return [each.name for each in tf.config.list_logical_devices("GPU")]


def pools() -> list[str]:
    return [name for name, _, _ in all_stats() if name.startswith("GPU_")]


def test_devices_and_settings_are_those_of_a_new_process_and_then_as_before() -> None:
    before, flags = gpus(), context().flags_version
    tf.config.set_soft_device_placement(True)
    with runtime("2:64MiB,1:32MiB", TF_FORCE_GPU_ALLOW_GROWTH="true"):
        assert not context().is_ready
        assert not tf.config.get_soft_device_placement()
        first, *_ = tf.config.list_physical_devices("GPU")
        tf.config.set_logical_device_configuration(
            first, [tf.config.LogicalDeviceConfiguration(8), tf.config.LogicalDeviceConfiguration(16)]
        )
        assert gpus() == [f"/device:GPU:{index}" for index in range(4)]
        with tf.device("/GPU:1"):
            x = tf.ones([1024])
        assert x.device == "/job:localhost/replica:0/task:0/device:GPU:1"
        details = allotment.experimental.get_logical_device_details("GPU:1")
        assert (details["memory_limit"], details["memory_growth"]) == (16 << 20, True)
        tf.config.set_soft_device_placement(True)
        tf.config.experimental.set_device_policy("explicit")
    assert gpus() == before
    assert context().flags_version > flags
    assert tf.config.get_soft_device_placement()
    assert tf.config.experimental.get_device_policy() == "silent"
    tf.config.set_soft_device_placement(False)


def test_scopes_graphs_tapes_and_strategies_stay_outside() -> None:
    with (
        tf.device("/CPU:0"),
        tf.distribute.OneDeviceStrategy("/CPU:0").scope(),
        tf.Graph().as_default() as graph,
    ):
        outer = thread.state
        with runtime():
            assert thread.state.graph is None
            assert thread.state.request.name is None
            assert not tf.distribute.has_strategy()
            assert tf.executing_eagerly()
        assert thread.state is outer
        assert outer.graph is graph
        assert tf.distribute.has_strategy()


def test_the_memory_of_its_devices_is_given_back() -> None:
    gc.collect()
    before = pools()
    with ThreadPoolExecutor(1) as idle:
        idle.submit(tf.ones, [1]).result()
        with runtime("1:64MiB"):
            idle.submit(lambda: float(tf.ones([1 << 20])[0])).result()
            with tf.device("/GPU:0"), tf.GradientTape() as tape:
                v = tf.Variable(tf.ones([1 << 20]))
                y = v * v
            tape.gradient(y, v)
            assert pools() == [*before, "GPU_0_bfc"]
            del v, y, tape
        # The idle thread that computed inside holds nothing of the devices.
        free_what_waits()
        assert pools() == before


def test_a_tensor_that_outlives_the_block_keeps_its_memory() -> None:
    before = pools()
    with runtime("1:64MiB"), tf.device("/GPU:0"):
        x = tf.ones([1024])
    assert pools() == [*before, "GPU_0_bfc"]
    assert float(tf.reduce_sum(x)) == 1024
    del x
    assert pools() == before


def test_everything_is_restored_after_an_error() -> None:
    before, state = gpus(), thread.state
    with pytest.raises(ValueError, match="of a test"), runtime("3:64MiB"), tf.device("/GPU:2"):  # noqa: PT012
        tf.debugging.set_log_device_placement(True)
        raise ValueError("of a test")
    assert gpus() == before
    assert thread.state is state
    assert not tf.debugging.get_log_device_placement()


def test_blocks_nest() -> None:
    with runtime("1:64MiB"), tf.device("/GPU:0"):
        with runtime("2:32MiB"):
            assert len(gpus()) == 2
            assert "CPU:0" not in tf.ones([]).device
        assert len(gpus()) == 1
        assert tf.ones([]).device.endswith("GPU:0")


def test_threads_that_start_inside_belong_to_it() -> None:
    tf.config.list_logical_devices()
    seen = []

    def look() -> None:
        with tf.device("/GPU:1"):
            seen.append((len(gpus()), tf.ones([]).device))

    with runtime("2:64MiB"):
        started = threading.Thread(target=look)
        started.start()
        started.join()
    assert seen == [(2, "/job:localhost/replica:0/task:0/device:GPU:1")]


def test_an_idle_thread_finds_the_devices_of_the_present() -> None:
    def device() -> str:
        name: str = tf.constant([1.0]).device
        return name

    with ThreadPoolExecutor(1) as pool:
        outside = pool.submit(device).result()
        with runtime("1:64MiB"):
            assert pool.submit(device).result().endswith("GPU:0")
        assert pool.submit(device).result() == outside


def test_another_thread_is_refused() -> None:
    def enter() -> None:
        with runtime():
            raise AssertionError("entered")

    with runtime(), ThreadPoolExecutor(1) as pool:
        refused = pool.submit(enter).exception()
    assert isinstance(refused, RuntimeError)
    assert "Another thread has replaced the runtime" in str(refused)


def test_a_program_of_graphs_ends_with_the_block() -> None:
    with runtime("1:64MiB"):
        tf.compat.v1.disable_eager_execution()
        with tf.compat.v1.Session() as session:
            assert session.run(tf.constant(2.0) * 3.0) == 6.0
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(tf.executing_eagerly).result()
    assert tf.executing_eagerly()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(tf.executing_eagerly).result()
    tf.compat.v1.reset_default_graph()


def test_the_environment_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with runtime("2:64MiB"):
        assert len(gpus()) == 2
    with runtime("2:64MiB", CUDA_VISIBLE_DEVICES="1"):
        assert allotment.experimental.get_logical_device_details("GPU:0")["hardware_index"] == 1


@pytest.mark.parametrize(
    ("arguments", "variables", "text"),
    [
        (("two",), {}, "'two' is not a number of GPUs"),
        ((), {"ALOTMENT_GUARD": "1"}, "ALOTMENT_GUARD is not a"),
    ],
)
def test_what_cannot_be_used_is_refused(
    arguments: tuple[str, ...], variables: dict[str, str], text: str
) -> None:
    state = thread.state
    with pytest.raises(ValueError, match=text), runtime(*arguments, **variables):
        raise AssertionError("entered")
    assert thread.state is state


def test_a_tensor_of_outside_may_be_used_inside() -> None:
    x = tf.constant([1.0, 2.0])
    with runtime("1:64MiB"):
        y = x + x
        assert y.device.endswith("GPU:0")
        assert np.array_equal(y.numpy(), [2.0, 4.0])
