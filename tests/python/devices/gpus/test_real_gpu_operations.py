"""Operations on real GPUs: a driver that stands in for NVIDIA's, and strict arrays that stand in for CuPy's."""

from pathlib import Path

from support.cuda import check, run_on_stand_in

MIB = 1 << 20

STRICT = f"""
import sys
sys.path.append({str(Path(__file__).parents[2])!r})
from support.arrays.stand_in_gpus import use_strict_arrays
use_strict_arrays()
import allotment.tf as tf
"""


def test_figures_limits_and_refusals_are_those_of_the_pool_over_the_driver() -> None:
    check(
        run_on_stand_in(
            STRICT
            + """
info = tf.config.experimental.get_memory_info
gpu, = tf.config.list_physical_devices("GPU")
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(limit) for limit in (8, 64)])
with tf.device("GPU:0"):
    x = tf.ones([256, 1024])
    assert info("GPU:0") == {"current": 1 << 20, "peak": 1 << 20}
    y = x + x
    assert outstanding()["bytes"] == 8 << 20
    del y
    assert info("GPU:0") == {"current": 1 << 20, "peak": 2 << 20}
    tf.config.experimental.reset_memory_stats("GPU:0")
    assert info("GPU:0")["peak"] == 1 << 20
    try:
        tf.zeros([2, 1024, 1024])
    except tf.errors.ResourceExhaustedError as error:
        assert "OOM when allocating tensor with shape[2,1024,1024] and type float on" in str(error), error
        assert (error.limit, error.verdict) == (8 << 20, "full"), error
    else:
        raise AssertionError
with tf.device("GPU:1"):
    try:
        tf.zeros([1 << 20])
    except tf.errors.ResourceExhaustedError as error:
        # The limits of a split are not compared with the memory of a real GPU: the first device has half of it.
        assert (error.limit, error.verdict) == (64 << 20, "source"), error
    else:
        raise AssertionError
    assert tf.zeros([1 << 18]).device.endswith("GPU:1")
assert info("GPU:1")["current"] == 0
""",
            ALLOTMENT_STAND_IN_MEMORY=str(11 * MIB),
        )
    )


def test_the_placement_log_names_real_gpus_and_the_copies_of_what_computes_on_the_host() -> None:
    done = run_on_stand_in(
        STRICT
        + """
import logging
logging.getLogger("allotment.devices").setLevel(logging.INFO)
logging.getLogger("allotment.devices").addHandler(logging.StreamHandler())
x = tf.constant([[1.0, 2.0]])
tf.debugging.set_log_device_placement(True)
tf.matmul(x, x, transpose_b=True)
with tf.device("CPU:0"):
    tf.identity(x)
tf.debugging.set_log_device_placement(False)
x + x
"""
    )
    assert done.returncode == 0, done.stderr
    name = "/job:localhost/replica:0/task:0/device:"
    assert done.stderr.splitlines() == [
        f"Created device {name}GPU:0 with 799 MB memory:  -> device: 0, name: Stand-in GPU, pci bus id: 0000:3a:00.0, "
        "compute capability: 9.0",
        f"Executing op MatMul in device {name}GPU:0",
        f"Executing op Identity in device {name}CPU:0",
    ]


def test_every_call_of_the_driver_fails_in_turn_and_nothing_stays_behind() -> None:
    check(
        run_on_stand_in(
            STRICT
            + """
import gc, logging
from allotment.devices import dispatch, physical
from allotment.devices.context import context

class Kept(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())

told = []
logging.getLogger("allotment.settings").addHandler(Kept())
logging.getLogger("allotment.settings").propagate = False

def compute():
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    with tf.device("GPU:0"):
        weights = tf.Variable(tf.ones([256, 1024]))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights)
        weights.assign_sub(tape.gradient(loss, weights))
        large = tf.zeros([1 << 21])
    with tf.device("GPU:1"):
        copied = tf.identity(large)
    return float(loss), float(tf.reduce_sum(weights)), float(tf.reduce_sum(copied))

def play():
    told.clear()
    physical._real.cache_clear()
    with context().replaced({"ALLOTMENT_COLLECT_GARBAGE": "0"}), dispatch.new_state():
        try:
            return compute()
        except (tf.errors.OpError, RuntimeError) as error:
            told.append(str(error))
    gc.collect()

right = 256 * 1024.0, -256 * 1024.0, 0.0
before = calls()
assert play() == right and not told
assert outstanding() == {}, outstanding()
count, named = calls() - before, set()
assert count > 40
for nth in range(1, count + 1):
    fail_at(nth)
    found = play()
    call = failed().decode()
    fail_at(0)
    assert outstanding() == {}, (nth, call, outstanding())
    if told:
        # Where no GPU can be listed, the one that the program requests is not there.
        assert call + " failed: CUDA_ERROR_UNKNOWN (999), unknown error" in told[0], (nth, call, told)
        assert len(told) <= 2, (nth, told)
        named.add(call)
    else:
        # What is to be given back is given back at the next try.
        assert found == right, (nth, call, found)
assert {"cuMemAlloc_v2", "cuMemGetInfo_v2", "cuDevicePrimaryCtxRetain", "cuDeviceGetCount"} <= named, named
assert play() == right and not told
""",
            ALLOTMENT_STAND_IN_DEVICES="2",
        )
    )
