"""What TensorFlow shows on GPUs only, on simulated ones: memory, exact figures, limits that bind.

Longer than 300 lines: one rule after the other of one device, with the same few helpers.
"""

import gc
from typing import Any

import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment import Pool
from allotment.devices.context import context
from allotment.testing import runtime
from support.child import run_program

MIB = 1 << 20

SETUP = """
import os
os.environ["ALLOTMENT_SIMULATED_GPUS"] = "{gpus}"
import gc
import numpy as np
import allotment
import allotment.tf as tf
MIB = 1 << 20
def used(device="GPU:0"):
    return tf.config.experimental.get_memory_info(device)["current"]
def peak(device="GPU:0"):
    return tf.config.experimental.get_memory_info(device)["peak"]
def pool(index=0):
    from allotment.devices.context import context
    return [d for d in context().ready().devices if d.kind == "GPU"][index].pool
"""


def used(device: str = "GPU:0") -> int:
    """Bytes in use on a device."""
    return tf.config.experimental.get_memory_info(device)["current"]


def peak(device: str = "GPU:0") -> int:
    """The most bytes in use on a device since the last reset."""
    return tf.config.experimental.get_memory_info(device)["peak"]


def pool(index: int = 0) -> Pool:
    """The pool of a GPU."""
    found = [each for each in context().ready().devices if each.kind == "GPU"][index].pool
    assert found is not None
    return found


def run(program: str, gpus: str = "1:1GiB") -> str:
    done = run_program(SETUP.format(gpus=gpus) + program)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@runtime("1:1GiB")
def test_without_growth_the_whole_limit_is_reserved_at_first_use() -> None:
    tf.config.list_logical_devices()
    assert pool().stats().reserved == 0
    tf.constant([1.0])
    assert pool().stats().reserved == 1 << 30


@runtime("1:1GiB")
def test_with_growth_a_few_mebibytes_are_reserved() -> None:
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.add(tf.constant([1.0]), tf.constant([2.0]))
    assert pool().stats().reserved == 2 * MIB


@runtime("1:1GiB")
def test_the_figures_are_exact_after_every_kind_of_operation() -> None:
    assert used() == 0
    a = tf.zeros([1000])  # 4,000 bytes: 16 granules
    assert used() == 4096
    b = a + a
    assert used() == 2 * 4096
    c = tf.reshape(b, [10, 100])  # shares the memory
    assert used() == 2 * 4096
    del b
    assert used() == 2 * 4096
    d = tf.transpose(c)
    assert used() == 3 * 4096
    e = c[0]  # 400 bytes: two granules
    assert used() == 3 * 4096 + 512
    f = tf.reduce_sum(a)
    assert used() == 3 * 4096 + 512 + 256
    g = tf.cast(a, tf.float64)
    assert used() == 3 * 4096 + 512 + 256 + 8192
    v = tf.Variable(a)  # shares the memory until it changes, as TensorFlow's
    assert used() == 3 * 4096 + 512 + 256 + 8192
    v.assign_add(a)
    assert used() == 4 * 4096 + 512 + 256 + 8192
    host = a.numpy()
    assert used() == 4 * 4096 + 512 + 256 + 8192
    del a, c, d, e, f, g, v, host
    gc.collect()
    assert used() == 0


@runtime("1:1GiB")
def test_temporaries_count_and_go() -> None:
    a = tf.ones([MIB // 4])
    tf.config.experimental.reset_memory_stats("GPU:0")
    assert (used(), peak()) == (MIB, MIB)
    b = a + a * a  # the product is alive beside the sum
    assert (used(), peak()) == (2 * MIB, 3 * MIB)
    del b
    tf.config.experimental.reset_memory_stats("GPU:0")
    c = ((a + a) + a) + a  # each sum dies as soon as the next is there
    assert (used(), peak()) == (2 * MIB, 3 * MIB)
    tf.config.experimental.reset_memory_stats("GPU:0")
    tf.nn.softmax(tf.reshape(a, [512, 512]))
    assert used() == 2 * MIB
    assert peak() > 3 * MIB


@runtime("1:1GiB")
def test_the_limit_is_hit_with_a_text_that_helps_and_nothing_is_lost() -> None:
    a = tf.ones([100 * MIB // 4])
    before = used()
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.ones([1000 * MIB // 4])
    error = caught.value
    text = str(error)
    assert "OOM when allocating tensor with shape[262144000] and type float" in text
    assert "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill]" in text
    assert "1 GiB" in text
    assert "largest free" in text
    assert "in use" in text
    assert (error.limit, error.in_use, error.requested) == (1 << 30, before, 1000 * MIB)
    assert isinstance(error, MemoryError)
    assert isinstance(error, RuntimeError)
    del error
    assert used() == before
    b = a + a
    assert float(tf.reduce_max(b)) == 2.0


@runtime("1:1GiB")
def test_an_operation_whose_result_does_not_fit_fails() -> None:
    a = tf.ones([1 << 14, 16])
    b = tf.ones([16, 1 << 14])
    before = used()
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.matmul(a, b)  # 2^28 floats: 1 GiB
    error = caught.value
    assert "[Op:MatMul]" in str(error)
    # What CuPy cannot allocate within a kernel is known by its size.
    assert "shape[16384,16384]" in str(error) or "allocating 1073741824 bytes" in str(error)
    del error
    assert used() == before
    assert tf.matmul(b, a).shape == (16, 16)


@runtime("1:1GiB")
def test_tensors_in_cycles_are_collected_before_memory_is_refused() -> None:
    threshold = gc.get_threshold()
    gc.freeze()  # collecting the objects of other tests takes long
    gc.set_threshold(1 << 30)  # on, and never due by itself
    try:
        for _ in range(10):
            cycle: list[Any] = [tf.ones([300 * MIB // 4])]
            cycle.append(cycle)
            del cycle
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()


@runtime("2:1GiB")
def test_copies_between_devices_count_where_they_are() -> None:
    with tf.device("/CPU:0"):
        a = tf.ones([MIB // 4])
    assert (used("GPU:0"), used("GPU:1")) == (0, 0)
    with tf.device("/GPU:1"):
        b = a + a  # the input is copied for the operation
    assert (used("GPU:1"), peak("GPU:1")) == (MIB, 2 * MIB)
    with tf.device("/GPU:0"):
        c = tf.identity(b)
    assert (used("GPU:0"), used("GPU:1")) == (MIB, MIB)
    with tf.device("/CPU:0"):
        d = tf.identity(b)
    assert d.device.endswith("CPU:0")
    assert d.backing_device == d.device
    assert (used("GPU:0"), used("GPU:1")) == (MIB, MIB)
    assert float(tf.reduce_sum(c)) == 2 * (MIB // 4)


@runtime("1:32MiB")
def test_b003_the_growth_step_shrinks_to_what_the_device_has() -> None:
    # Field report B003 (rmm#496).
    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
    blocks = [tf.fill([8 * MIB // 4], float(n)) for n in range(3)]
    blocks.append(tf.fill([15 * MIB // 8], 3.0))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.zeros([MIB // 4])
    for n, block in enumerate(blocks):
        assert (block.numpy() == n).all()


@pytest.mark.parametrize(("size", "count"), [(1 << 20, 256), (1 << 16, 4096), (100 << 20, 2)])
@runtime("1:1GiB")
def test_b006_a_split_holds_exactly_its_limit(size: int, count: int) -> None:
    # Field report B006 (tensorflow#53822).
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=256)])
    held = [tf.zeros([size // 4]) for _ in range(count)]
    assert pool().stats().reserved <= 256 * MIB
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.zeros([size // 4])
    error = caught.value
    assert error.limit == 256 * MIB
    assert "256 MiB" in str(error)


@pytest.mark.parametrize("total", [1_000_000_007, 3 << 30])
@pytest.mark.parametrize("share", [0.1, 0.3, 1 / 3, 0.7, 1.0])
def test_b005_the_share_of_a_device_can_be_filled(total: int, share: float) -> None:
    # Field report B005 (pytorch#179444), through the fraction of the early names.
    with runtime(f"1:{total}"):
        tf.config.gpu.set_per_process_memory_fraction(share)
        tf.config.list_logical_devices()
        limit = pool().limit
        assert abs(limit - share * total) <= 1
        whole = limit // 256 * 256
        pool().free(pool().malloc(whole))
        with pytest.raises(allotment.OutOfMemoryError):
            pool().malloc(whole + 1)


@runtime("1:1GiB")
def test_b024_every_kind_of_number_says_where_it_is() -> None:
    # Field report B024 (tensorflow#33835, #34071).
    names = [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    for name in names:
        before = used()
        with tf.device("/GPU:0"):
            x = tf.constant(np.ones(1000, tf.as_dtype(name).as_numpy_dtype))
        assert x.device.endswith("device:GPU:0"), name
        if name == "int32":
            assert x.backing_device.endswith("device:CPU:0")
            assert used() == before
        else:
            assert x.backing_device == x.device
            assert used() - before == -(-1000 * x.dtype.size // 256) * 256, name
        del x
    # A kernel is missing there, and the device is not: the text goes to the CPU, unless that was turned off.
    with tf.device("/GPU:0"):
        assert tf.constant(["text"]).device.endswith("CPU:0")
    assert tf.constant(["text"]).device.endswith("CPU:0")
    tf.config.set_soft_device_placement(False)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught, tf.device("/GPU:0"):
        tf.constant(["text"])
    error = caught.value
    assert "Supported device types [CPU]" in str(error)


@runtime("1:1GiB")
def test_int32_arithmetic_stays_on_the_host_and_shapes_do() -> None:
    a = tf.constant([1, 2, 3])
    b = a + a
    assert (b.device[-5:], b.backing_device[-5:]) == ("GPU:0", "CPU:0")
    assert used() == 0
    x = tf.ones([3, 4])
    s = tf.shape(x)
    assert (s.device[-5:], s.backing_device[-5:]) == ("GPU:0", "CPU:0")
    i = tf.cast(x, tf.int32)
    assert i.backing_device.endswith("GPU:0")
    assert (a + 1).numpy().tolist() == [2, 3, 4]


def test_a_pool_that_closes_with_the_process_says_nothing() -> None:
    out = run("""
a = tf.ones([1000])
b = [a]
b.append(b)
print(float(tf.reduce_sum(a)))
""")
    assert out == "1000.0\n"


def test_threads_have_scopes_of_their_own_and_results_are_right() -> None:
    run(
        threads_program(2),
        "4:64MiB",
    )


@pytest.mark.long
@pytest.mark.timeout(300)
def test_threads_for_twenty_seconds() -> None:
    run(threads_program(20), "4:64MiB")


def threads_program(seconds: float) -> str:
    return f"""
import threading, time
from threadpoolctl import threadpool_limits
threadpool_limits(1, "blas")  # or the threads of all products wait for each other
tf.reduce_sum(tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])))  # first uses load modules, which takes long
end = time.monotonic() + {seconds}
errors = []
rounds = [0] * 8
def work(n):
    try:
        device = f"/GPU:{{n % 4}}"
        rng = np.random.default_rng(n)
        while time.monotonic() < end:
            size = int(rng.integers(1, 300))
            x = rng.random((size, size), np.float32)
            with tf.device(device):
                a = tf.constant(x)
                assert a.device.endswith(device[1:])
                b = tf.matmul(a, a) + a
            with tf.device("/CPU:0"):
                total = tf.reduce_sum(b)
                assert total.device.endswith("CPU:0")
            assert abs(float(total) - (x @ x + x).sum()) <= 1e-3 * abs(float(total))
            assert b.device.endswith(device[1:])
            rounds[n] += 1
            del a, b, total
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not errors, errors[0]
assert min(rounds) > 3, rounds
gc.collect()
assert [used(f"GPU:{{n}}") for n in range(4)] == [0] * 4
"""
