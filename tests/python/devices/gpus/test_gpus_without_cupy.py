"""Real GPUs where CuPy is absent, broken, or without a device: nothing computes there, and it is said once."""

import subprocess
from pathlib import Path

import pytest

from support.cuda import check, run_on_stand_in

ABSENT = "import sys; sys.modules['cupy'] = None\n"
WHY = "an array on a CUDA device needs cupy, which is not installed: pip install cupy-cuda12x or cupy-cuda13x"


def warned_once(done: subprocess.CompletedProcess[str], why: str = WHY) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"Operations do not run on real GPUs: {why}")
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_needs_no_device_of_its_own_runs_on_the_cpu_with_one_warning() -> None:
    warned_once(
        run_on_stand_in(
            ABSENT + "import allotment.tf as tf\n"
            "assert len(tf.config.list_physical_devices('GPU')) == 2\n"
            "for index in range(2):\n"
            "    x = tf.constant([1.0, 2.0]) + 1.0\n"
            "    assert x.device.endswith('CPU:0'), x.device\n"
            "    with tf.device(f'GPU:{index}'):\n"
            "        assert (x * x).device.endswith('CPU:0')\n"
            "        assert tf.Variable(1.0).device.endswith('CPU:0')\n"
            "with tf.compat.v1.Session(graph=(graph := tf.Graph())) as session, graph.as_default():\n"
            "    with tf.device('CPU:0'):\n"
            "        assert session.run(tf.constant(2.0) * 3.0) == 6.0\n"
            "    assert session.run(tf.constant(2.0) * 3.0) == 6.0\n"
            "assert outstanding() == {}, outstanding()\n",
            ALLOTMENT_STAND_IN_DEVICES="2",
        )
    )


def test_a_gpu_that_must_be_used_is_an_error_that_says_what_to_install() -> None:
    warned_once(
        run_on_stand_in(
            ABSENT + "import allotment.tf as tf\n"
            "tf.config.set_soft_device_placement(False)\n"
            "def refusal(call):\n"
            "    try:\n"
            "        call()\n"
            "    except tf.errors.InvalidArgumentError as error:\n"
            f"        assert {WHY!r} in str(error), error\n"
            "        return str(error)\n"
            "    raise AssertionError('nothing can run there')\n"
            "with tf.device('GPU:0'):\n"
            "    text = refusal(lambda: tf.zeros([2]))\n"
            "    assert 'Supported device types [CPU].' in text, text\n"
            "    refusal(lambda: tf.Variable(1.0))\n"
            "with tf.compat.v1.Session(graph=(graph := tf.Graph())) as session, graph.as_default():\n"
            "    with tf.device('GPU:0'):\n"
            "        made = tf.constant(2.0) * 3.0\n"
            "    text = refusal(lambda: session.run(made))\n"
            "    assert 'because no supported kernel for GPU devices is available' in text, text\n"
        )
    )


def test_a_copy_to_the_gpu_is_an_error_of_its_own() -> None:
    warned_once(
        run_on_stand_in(
            ABSENT + "import logging\n"
            "import allotment.tf as tf\n"
            "logging.getLogger('allotment.tf.names.deprecation').disabled = True\n"
            "try:\n"
            "    tf.constant(1.0).gpu()\n"
            "except tf.errors.UnimplementedError as error:\n"
            f"    assert {WHY!r} in str(error), error\n"
            "else:\n"
            "    raise AssertionError\n"
        )
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "raise ImportError('libcudart.so.12: no such file')",
            "CuPy is installed, and its import fails: ImportError: libcudart.so.12: no such file",
        ),
        ("1 / 0", "CuPy is installed, and its import fails: ZeroDivisionError: division by zero"),
        (
            "class ndarray: pass\n"
            "class cuda:\n"
            "    class runtime:\n"
            "        def deviceGetPCIBusId(device):\n"
            "            raise RuntimeError('cudaErrorNoDevice: no CUDA-capable device is detected')\n"
            "__version__ = '14.2.0'\n",
            "CuPy cannot use CUDA device 0: RuntimeError: cudaErrorNoDevice: no CUDA-capable device is detected",
        ),
    ],
)
def test_a_cupy_that_cannot_compute_is_as_good_as_none(source: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(source)
    warned_once(
        run_on_stand_in(
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "import allotment.tf as tf\n"
            "for _ in range(2):\n"
            "    assert tf.zeros([2]).device.endswith('CPU:0')\n"
        ),
        why,
    )


def test_cupy_is_not_imported_before_something_may_run_on_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise AssertionError('nothing needs it')")
    check(
        run_on_stand_in(
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "import allotment\n"
            "import allotment.tf as tf\n"
            "gpu, = tf.config.list_physical_devices('GPU')\n"
            "tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(64)] * 2)\n"
            "assert len(tf.config.list_logical_devices('GPU')) == 2\n"
            "tf.config.experimental.get_memory_info('GPU:1')\n"
            "with tf.device('CPU:0'):\n"
            "    tf.zeros([2]) + 1.0\n"
            "assert 'cupy' not in sys.modules\n"
        )
    )
