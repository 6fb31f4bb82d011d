"""Devices of OpenCL as GPUs: requests, details, limits, and kernels that write into tensors without a copy.

Longer than 300 lines: all tests need the one OpenCL context and the kernel at its top.
"""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment.devices import opencl_devices
from allotment.devices.context import context
from allotment.integrations import opencl as pooled
from allotment.testing import runtime
from support.child import run_program
from support.devices import MIB, gpus, pools, split
from support.guests.opencl import pyopencl, pyopencl_with_kernels

pytestmark = pytest.mark.not_opencl("these tests ask for devices of OpenCL by themselves")

DOUBLES = "kernel void doubles(global float *x) { x[get_global_id(0)] = 2 * get_global_id(0); }"
DEVICES = "ALLOTMENT_OPENCL_DEVICES"


@contextmanager
def opencl(devices: str, **environ: str) -> Iterator[None]:
    """Have devices of OpenCL as GPUs."""
    pyopencl()
    with runtime(**{DEVICES: devices, **environ}):
        yield


def write_doubles(cl: Any, owner: Any, array: np.ndarray[Any, Any]) -> None:
    """Let a kernel write 0, 2, 4, ... into an array in the memory of a context."""
    queue = cl.CommandQueue(owner)
    kernel = cl.Program(queue.context, DOUBLES).build().doubles
    kernel.set_arg(0, cl.SVM(array))
    cl.enqueue_nd_range_kernel(queue, kernel, array.shape, None)
    queue.finish()


def test_a_kernel_writes_into_a_tensor_without_a_copy() -> None:
    cl = pyopencl_with_kernels()
    with opencl("0:64MiB"):
        with tf.device("GPU:0"):
            x = tf.zeros(1000)
        (pool,) = pools(context())
        requests = pool.stats().num_allocs
        write_doubles(cl, pooled.context("GPU:0"), np.from_dlpack(x))
        assert pool.stats().num_allocs == requests
        assert x.numpy().tolist() == [2.0 * n for n in range(1000)]
        total = tf.reduce_sum(x)
        assert total.device.endswith("GPU:0")
        assert total.numpy() == 999_000
        assert tf.config.experimental.get_memory_info("GPU:0")["current"] == 4096 + 256
        del x, total
        gc.collect()
        assert pool.trim() > 0
        assert pool.stats().reserved == 0


def test_memory_that_a_kernel_has_written_is_zero_again() -> None:
    # Large arrays of zeros are cleared page by page: pages of OpenCL's memory may have any content.
    cl = pyopencl_with_kernels()
    with opencl("0:64MiB"), tf.device("GPU:0"):
        x = tf.zeros(4 << 20)
        write_doubles(cl, pooled.context("GPU:0"), np.from_dlpack(x))
        del x
        assert not np.any(tf.zeros(4 << 20).numpy())


def test_details() -> None:
    cl = pyopencl()
    device = cl.get_platforms()[0].get_devices()[0]
    with opencl("all"):
        details = tf.config.experimental.get_device_details(gpus()[0])
    assert details["memory"] == device.global_mem_size
    assert details["device_name"] == f"{device.name} (OpenCL CPU, {device.platform.name})"
    assert (details["opencl_device"], details["opencl_type"]) == (0, "CPU")
    assert details["opencl_version"] == device.version.strip()
    assert not details["simulated"]


def test_limits_splits_and_growth() -> None:
    with opencl("0:64MiB"):
        split(gpus()[0], 16, 32)
        small, large = pools(context())
        assert (small.limit, large.limit) == (16 * MIB, 32 * MIB)
        with tf.device("GPU:0"), pytest.raises(tf.errors.ResourceExhaustedError):
            tf.zeros(17 * MIB, tf.int8)
        with tf.device("GPU:1"):
            x = tf.zeros(17 * MIB, tf.int8)
        assert (small.stats().requested, large.stats().requested) == (0, 17 * MIB)
        del x
    with opencl("0:64MiB"):
        split(gpus()[0], 33, 32)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"33 [+] 32 MiB of memory, but it has 64 MiB"
        ):
            context().ready()
    with opencl("0:64MiB", TF_FORCE_GPU_ALLOW_GROWTH="true"):
        (pool,) = pools(context())
        pool.free(pool.malloc(1))
        assert pool.stats().reserved == 2 * MIB


def test_the_mask_applies() -> None:
    with opencl("0", CUDA_VISIBLE_DEVICES="-1"):
        assert gpus() == []
    with opencl("0", CUDA_VISIBLE_DEVICES="GPU-00000000"):
        assert len(gpus()) == 1


def test_no_region_is_longer_than_the_device_allows() -> None:
    cl = pyopencl()
    longest = cl.get_platforms()[0].get_devices()[0].max_mem_alloc_size
    with opencl("0"):
        (pool,) = pools(context())
        if pool.limit <= longest:
            pytest.skip("the device allows an allocation of all its memory")
        assert pool.can_allocate(MIB)
        assert not pool.can_allocate(longest + 256)
        with pytest.raises(allotment.OutOfMemoryError) as raised:
            pool.malloc(longest + 256)
        assert raised.value.verdict == "source"
        # The whole limit is not one region: the pool asks for less until it gets one.
        pool.malloc(MIB)
        assert MIB < pool.stats().reserved <= longest


def test_guard_mode_finds_damage() -> None:
    with opencl("0:64MiB", ALLOTMENT_GUARD="1"):
        (pool,) = pools(context())
        allocation = pool.allocate(1000)
        behind = ctypes.c_ubyte.from_address(allocation.address + 1000)
        behind.value = 7
        with pytest.raises(allotment.MemoryDamageError):
            allocation.free()


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ("x", "'x' is not the number of a device"),
        ("-1", "'-1' is not the number of a device"),
        ("0,", "'' is not the number of a device"),
        ("99999999999999999999", "is not the number of a device"),
        ("0:0", "a device cannot have 0 bytes"),
        ("0:many", "many"),
        ("0,1,0:1GiB", "it names a device twice"),
        ("all,0", "it names a device twice"),
        ("77", "asks for OpenCL device 77, which does not exist. There are: 0 "),
        ("0:1023TiB", "asks for 1023 TiB of OpenCL device 0"),
    ],
)
def test_requests_that_cannot_be_served(devices: str, text: str) -> None:
    with opencl(devices):
        for _ in range(2):
            with pytest.raises(ValueError, match=f"^{DEVICES}") as raised:
                tf.config.list_physical_devices()
            assert text in str(raised.value)


@pytest.mark.simulated_gpus("the details are the driver's")
def test_simulated_gpus_beside_it_are_an_error_and_those_of_a_program_come_first() -> None:
    with opencl("0"):
        allotment.testing.simulate_gpus("2:64MiB")
        assert len(gpus()) == 2
        assert tf.config.experimental.get_device_details(gpus()[0])["simulated"]
    # Also beside a number of simulated GPUs that is 0.
    for simulated in ({}, {"ALLOTMENT_SIMULATED_GPUS": "0"}):
        with opencl("0:64MiB", **simulated):
            assert len(gpus()) == 1
            with pytest.raises(RuntimeError, match=r"simulate_gpus\('0'\) comes too late"):
                allotment.testing.simulate_gpus(0)
    with (
        runtime("1:64MiB", **{DEVICES: "0"}),
        pytest.raises(
            ValueError, match=r"ALLOTMENT_SIMULATED_GPUS='1:64MiB' and .*='0' both say what the GPUs are"
        ),
    ):
        gpus()


def test_memory_cannot_be_elastic() -> None:
    with opencl("0:64MiB"):
        with pytest.raises(ValueError, match="cannot be elastic: OpenCL gives whole regions"):
            allotment.experimental.set_memory_elastic(gpus()[0], True)
        allotment.experimental.set_memory_elastic(gpus()[0], False)


def test_a_device_without_memory_for_the_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cl = pyopencl()

    class Old:
        @property
        def svm_capabilities(self) -> int:
            raise cl.LogicError("clGetDeviceInfo failed: INVALID_VALUE")

    coarse = SimpleNamespace(svm_capabilities=cl.device_svm_capabilities.COARSE_GRAIN_BUFFER)
    for device in (Old(), coarse):
        fault = opencl_devices._fault(cl, device)
        assert fault is not None
        assert fault.startswith("it has no fine-grained shared virtual memory")
    listed = [SimpleNamespace(number=0, name="old", platform="any", fault=fault)]
    monkeypatch.setattr(opencl_devices, "all_devices", lambda: tuple(listed))
    for devices in ("0", "all"):
        with (
            opencl(devices),
            pytest.raises(ValueError, match=r"cannot be a GPU here. Device 0 \(old\): it has no"),
        ):
            gpus()
    listed.clear()
    with opencl("0"), pytest.raises(ValueError, match='lists no CPU and no GPU: pip install "pyopencl'):
        gpus()


def test_contexts_of_other_devices() -> None:
    with opencl("0:64MiB"):
        assert pooled.context("GPU:0") == pooled.context("/device:GPU:0")
        with pytest.raises(ValueError, match=r"'CPU:0' is no device of OpenCL. ALLOTMENT_OPENCL_DEVICES=0"):
            pooled.context("CPU:0")
        wrong: Any = 7
        with pytest.raises(
            TypeError, match="expected a logical device or its name, such as '/GPU:0', not int"
        ):
            pooled.context(wrong)
    with runtime("1:64MiB"), pytest.raises(ValueError, match="is no device of OpenCL"):
        pooled.context("GPU:0")


def test_pools_share_the_memory_of_a_context() -> None:
    cl = pyopencl()
    own = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    memory = pooled.shared_memory(own, "16MiB")
    first, second = (allotment.Pool("16MiB", source=memory, growth=False) for _ in range(2))
    address = first.malloc(1)
    assert (memory.capacity, memory.used) == (16 * MIB, 16 * MIB)
    with pytest.raises(allotment.OutOfMemoryError):
        second.malloc(1)
    first.free(address)
    first.trim()
    assert memory.used == 0
    second.free(second.malloc(4000))
    wrong: Any = cl.CommandQueue(own)
    with pytest.raises(TypeError, match=r"expected a pyopencl.Context, not CommandQueue"):
        pooled.shared_memory(wrong, "1MiB")
    with pytest.raises(ValueError, match="capacity 0 is not between 1 and"):
        pooled.shared_memory(own, 0)


def test_a_kernel_writes_into_a_pool_over_the_memory_of_a_context() -> None:
    cl = pyopencl_with_kernels()
    own = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    pool = allotment.Pool("16MiB", source=pooled.shared_memory(own, "16MiB"))
    with pool.allocate(4000) as allocation:
        numbers = np.frombuffer(allocation, np.float32)
        write_doubles(cl, own, numbers)
        assert numbers.tolist() == [2.0 * n for n in range(1000)]
        del numbers


def test_several_devices_in_the_order_of_the_request() -> None:
    pyopencl()
    done = run_program(
        """
        import os
        os.environ["POCL_DEVICES"] = "pthread pthread pthread"
        os.environ["ALLOTMENT_OPENCL_DEVICES"] = "2:64MiB, 0:32MiB"
        import allotment.tf as tf
        from allotment.integrations import opencl as pooled
        gpus = tf.config.list_physical_devices("GPU")
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        assert [(one["opencl_device"], one["memory"] >> 20) for one in details] == [(2, 64), (0, 32)]
        with tf.device("GPU:0"):
            x = tf.ones(1000)
        with tf.device("GPU:1"):
            y = x + x
        used = [tf.config.experimental.get_memory_info(f"GPU:{n}")["current"] for n in range(2)]
        assert used == [4096, 4096], used
        assert y.numpy().sum() == 2000
        assert pooled.context("GPU:0") != pooled.context("GPU:1")
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_child_is_refused() -> None:
    pyopencl()
    done = run_program(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        os.environ["ALLOTMENT_OPENCL_DEVICES"] = "0:64MiB"
        import allotment, pyopencl
        import allotment.tf as tf
        from allotment.devices.context import context
        from allotment.integrations import opencl as pooled
        with tf.device("GPU:0"):
            x = tf.ones(1000)
        child = os.fork()
        if child == 0:
            assert x.numpy().sum() == 1000
            for make in (lambda: context().ready().devices[1].pool.malloc(1),
                         lambda: pooled.shared_memory(pooled.context("GPU:0"), "1MiB")):
                try:
                    make()
                except RuntimeError as error:
                    print(error, flush=True)
            del x
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert x.numpy().sum() == 1000
        """
    )
    assert done.returncode == 0, done.stderr
    of_pool, of_memory = done.stdout.splitlines()
    assert of_pool.startswith("the process was forked after this pool was made")
    assert of_memory.startswith("the process was forked after its parent used OpenCL")


def test_without_pyopencl_the_error_says_what_to_install() -> None:
    done = run_program(
        """
        import os, sys
        os.environ["ALLOTMENT_OPENCL_DEVICES"] = "0"
        sys.modules["pyopencl"] = None
        import allotment.tf as tf
        for _ in range(2):
            try:
                tf.config.list_physical_devices()
            except ModuleNotFoundError as error:
                assert str(error).startswith("memory of OpenCL needs pyopencl"), error
                assert 'pip install "pyopencl[pocl]"' in str(error)
            else:
                raise AssertionError
        """
    )
    assert done.returncode == 0, done.stderr
