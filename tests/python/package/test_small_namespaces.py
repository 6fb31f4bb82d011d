"""Logging, the list of local devices, and how this was built: names of TensorFlow that need little."""

import logging
from typing import Any

import pytest

import allotment
import allotment.tf as tf
import allotment.tf.v1 as v1
from support.child import run_program
from support.devices import run_on_gpus

log = tf.compat.v1.logging


def test_logging_writes_to_the_logger_and_to_stderr() -> None:
    done = run_program("""
import allotment.tf.v1 as tf
log = tf.logging
assert (log.get_verbosity(), log.DEBUG, log.INFO, log.WARN, log.ERROR, log.FATAL) == (30, 10, 20, 30, 40, 50)
log.info("not shown")
log.set_verbosity(log.INFO)
log.info("a %s", 3)
log.warn("w")
log.log(log.ERROR, "e %d", 1)
log.fatal("f")
log.set_verbosity("ERROR")
assert log.get_verbosity() == tf.get_logger().level == 40
log.flush()
""")
    assert done.returncode == 0, done.stderr
    lines = ["INFO:a 3", "WARNING:w", "ERROR:e 1", "CRITICAL:f"]
    assert done.stderr.splitlines() == [each.replace(":", ":tensorflow:", 1) for each in lines]


def test_a_program_that_configures_logging_gets_no_handler() -> None:
    done = run_program("""
import logging, sys
logging.basicConfig(stream=sys.stdout, format="mine %(message)s")
import allotment.tf as tf
tf.get_logger().error("x")
assert tf.get_logger() is logging.getLogger("tensorflow") and not tf.get_logger().handlers
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine x\n", "")


def test_levels_that_there_are_not() -> None:
    before = log.get_verbosity()
    levels: list[tuple[Any, type[Exception]]] = [(3.5, TypeError), ("LOUD", ValueError)]
    for wrong, error in levels:
        with pytest.raises(error):
            log.set_verbosity(wrong)
    assert log.get_verbosity() == before
    assert v1.get_logger() is tf.get_logger() is logging.getLogger("tensorflow")


def test_local_devices() -> None:
    done = run_on_gpus(
        "2:1GiB",
        """
import allotment.tf as tf
from allotment.tf.python.client import device_lib
cpu, *gpus = device_lib.list_local_devices()
assert (cpu.name, cpu.device_type, cpu.memory_limit, cpu.physical_device_desc) == ("/device:CPU:0", "CPU", 1 << 28, "")
assert [each.name for each in gpus if each.device_type == "GPU"] == ["/device:GPU:0", "/device:GPU:1"]
assert gpus[0].memory_limit == 1 << 30 and gpus[0].physical_device_desc.startswith("device: 0, name: ")
assert len({each.incarnation for each in (cpu, *gpus)}) == 3
assert str(cpu).startswith('name: "/device:CPU:0"\\ndevice_type: "CPU"\\nmemory_limit: 268435456\\nlocality {\\n}\\n')
# Nothing is made, so that all can still be configured.
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
config = tf.compat.v1.ConfigProto()
config.gpu_options.visible_device_list = "1"
config.gpu_options.per_process_gpu_memory_fraction = 0.25
cpu, gpu = device_lib.list_local_devices(config)
assert gpu.name == "/device:GPU:0" and gpu.memory_limit == 1 << 28 and "device: 1," in gpu.physical_device_desc
tf.zeros(2)
assert len(device_lib.list_local_devices()) == 3
try:
    device_lib.list_local_devices(3)
except TypeError as error:
    assert "must be a tf.ConfigProto, but got 'int'" in str(error)
""",
    )
    assert done.returncode == 0, done.stderr


def test_how_this_was_built() -> None:
    built = tf.sysconfig.get_build_info()
    assert dict(built) == {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}
    assert v1.sysconfig.get_build_info() == built


def test_devices_are_always_in_step() -> None:
    tf.test.experimental.sync_devices()
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="must only be called in Eager mode"):
        tf.test.experimental.sync_devices()


@pytest.mark.parametrize("root", [tf.compat.v1, v1], ids=["compat.v1", "v1"])
def test_versions_that_guards_of_programs_expect(root: Any) -> None:
    assert root.__version__ == root.VERSION == root.version.VERSION == tf.version.VERSION == "2.21.0"
    assert root.GRAPH_DEF_VERSION == tf.version.GRAPH_DEF_VERSION
    assert tf.compat.v2.__version__ == "2.21.0"
    assert tf.__version__ == "2.21.0" != allotment.__version__
