"""Simulated GPUs: exact, and looking at them costs nothing (B016)."""

import pytest

import allotment
import allotment.tf as tf
from support.devices import MIB, fresh, next_line, run_on_gpus


@pytest.mark.simulated_gpus("the details are the driver's")
@pytest.mark.not_opencl("the details are those of OpenCL's device")
def test_details_of_a_simulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    cpu, gpu = tf.config.list_physical_devices()
    assert tf.config.experimental.get_device_details(cpu) == {}
    assert tf.config.experimental.get_device_details(gpu) == {
        "device_name": "Simulated GPU (hardware 0, 64 MiB of host memory)",
        "compute_capability": (0, 0),
        "hardware_index": 0,
        "uuid": "GPU-00000000-0000-4000-8000-000000000000",
        "memory": 64 * MIB,
        "simulated": True,
    }


@pytest.mark.simulated_gpus("the memory is not for the host to write to")
def test_sizes_are_exact_and_memory_is_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    context = fresh(monkeypatch, "1:1MiB,1:2MiB")
    _, small, large = context.ready().devices
    assert small.pool is not None
    assert large.pool is not None
    assert (small.pool.limit, large.pool.limit) == (MIB, 2 * MIB)
    with small.pool.allocate(MIB) as allocation:
        numbers = np.frombuffer(allocation, np.uint8)
        numbers[:] = 7
        assert numbers.sum() == 7 * MIB
        del numbers
    with pytest.raises(allotment.OutOfMemoryError):
        small.pool.allocate(MIB + 1)


@pytest.mark.not_opencl("a context of OpenCL takes memory of the host")
def test_b016_looking_reserves_nothing_and_settles_nothing() -> None:
    # Field report B016 (tensorflow#26460), with GPUs that no machine could really hold.
    done = run_on_gpus(
        "4:1TiB",
        """
        import resource
        import allotment
        import allotment.tf as tf
        from allotment.devices.context import context

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

        x = tf.config.experimental
        tf.config.list_physical_devices()
        before = resident()
        for _ in range(100):
            gpus = tf.config.list_physical_devices("GPU")
            for gpu in gpus:
                x.get_device_details(gpu), x.get_memory_growth(gpu)
                tf.config.get_logical_device_configuration(gpu)
            tf.config.get_visible_devices()
            tf.config.get_soft_device_placement()
        assert not context().is_ready
        tf.config.set_visible_devices(gpus[:3], "GPU")
        tf.config.set_visible_devices(tf.config.list_physical_devices("CPU")[0], "CPU")
        for gpu in gpus[:3]:
            x.set_memory_growth(gpu, True)
        tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(1024)] * 2)
        assert len(tf.config.list_logical_devices("GPU")) == 4
        pools = [device.pool for device in context().ready().devices if device.pool]
        assert [pool.stats().reserved for pool in pools] == [0] * 4
        assert [x.get_memory_info(f"GPU:{n}") for n in range(4)] == [{"current": 0, "peak": 0}] * 4
        grown = resident() - before
        assert grown <= 5 << 20, grown
        """,
    )
    assert done.returncode == 0, done.stderr


def test_simulated_gpus_by_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "8:64MiB", CUDA_VISIBLE_DEVICES="1,0")
    allotment.testing.simulate_gpus("4:16MiB")
    allotment.testing.simulate_gpus("2:32MiB,1:16MiB")
    assert [
        tf.config.experimental.get_device_details(gpu)["memory"]
        for gpu in tf.config.list_physical_devices("GPU")
    ] == [32 * MIB, 32 * MIB]
    # The same again changes nothing and is fine.
    allotment.testing.simulate_gpus("2:32MiB,1:16MiB")


def test_simulated_gpus_by_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    allotment.testing.simulate_gpus(2)
    assert len(tf.config.list_physical_devices("GPU")) == 2


def test_simulating_too_late_names_who_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    line = next_line()
    tf.config.get_visible_devices()
    with pytest.raises(RuntimeError, match=r"simulate_gpus\('2'\) comes too late") as raised:
        allotment.testing.simulate_gpus("2")
    assert f"get_visible_devices() in {__file__}, line {line}" in str(raised.value)
    assert len(tf.config.list_physical_devices("GPU")) == 1


def test_simulated_gpus_that_make_no_sense_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    with pytest.raises(ValueError, match="many"):
        allotment.testing.simulate_gpus("many")
    assert tf.config.list_physical_devices("GPU") == []


@pytest.mark.simulated_gpus("they have a compute capability")
def test_the_helpers_of_tf_test(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch)
    assert (tf.test.is_gpu_available(), tf.test.gpu_device_name()) == (False, "")
    context = fresh(monkeypatch, "1:64MiB")
    assert (tf.test.is_gpu_available(cuda_only=True), tf.test.gpu_device_name()) == (True, "/device:GPU:0")
    assert not tf.test.is_gpu_available(True, (3, 0))
    assert not context.is_ready
    built = (
        tf.test.is_built_with_cuda(),
        tf.test.is_built_with_gpu_support(),
        tf.test.is_built_with_rocm(),
        tf.test.is_built_with_xla(),
    )
    assert built == (False,) * 4
