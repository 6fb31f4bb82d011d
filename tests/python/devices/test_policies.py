"""Device policies: which input is in the wrong place, in TensorFlow's numbers; and whose memory values are in."""

import pytest

from support.child import run_program
from support.devices import run_on_gpus

J = "/job:localhost/replica:0/task:0/device:"

HEAD = """
import os
os.environ["ALLOTMENT_SIMULATED_GPUS"] = "0"
import allotment
import allotment.tf as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
a, i0 = tf.constant([1.0]), tf.constant([0])
V = tf.Variable([1.0])
with tf.device("/cpu:1"):
    b = tf.constant([1.0])
    one = tf.identity(tf.constant(1.0))
    ri = tf.identity(tf.constant([1]))
    s = tf.constant(["s"])
"""


def run(program: str) -> str:
    done = run_program(HEAD + program)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("expression", "op", "number"),
    [
        ("V.assign(b)", "AssignVariableOp", 1),
        ("V.assign_add(b)", "AssignAddVariableOp", 1),
        ("V.assign_sub(b)", "AssignSubVariableOp", 1),
        ("tf.Variable(b)", "AssignVariableOp", 1),
        ("V.scatter_nd_update([[0]], b)", "ResourceScatterNdUpdate", 2),
        ("V[0].assign(one)", "ResourceStridedSliceAssign", 4),
        ("tf.shape(b)", "Shape", 0),
        ("tf.shape_n([a, b])", "ShapeN", 1),
        ("tf.one_hot(ri, 3)", "OneHot", 0),
        ("tf.one_hot(i0, 3, one, 0.0)", "OneHot", 2),
        ("tf.split(b, 1)", "Split", 1),
        ("tf.scatter_nd([[0]], b, [1])", "ScatterNd", 1),
        ("tf.tensor_scatter_nd_update(a, [[0]], b)", "TensorScatterUpdate", 2),
        ("tf.add(a, b)", "AddV2", 1),
    ],
)
def test_the_input_that_is_elsewhere_has_tensorflows_number(expression: str, op: str, number: int) -> None:
    out = run(f"""
tf.config.experimental.set_device_policy("explicit")
try:
    {expression}
except tf.errors.InvalidArgumentError as error:
    print(error)
""")
    assert out.startswith(
        f"Tensors on conflicting devices: cannot compute {op} as input #{number} was expected to be on {J}CPU:0 but is "
        f"actually on {J}CPU:1 (operation running on {J}CPU:0)"
    )


def test_what_is_not_looked_at_may_be_anywhere() -> None:
    run("""
tf.config.experimental.set_device_policy("explicit")
tf.size(b), tf.rank(b), tf.identity(b), tf.strings.join([s, s]), tf.strings.length(s)
with tf.device("/cpu:1"):
    tf.shape(b), tf.broadcast_dynamic_shape(i0, i0)
    try:
        tf.shape(a)
    except tf.errors.InvalidArgumentError as error:
        assert "cannot compute Shape as input #0" in str(error)
    else:
        raise AssertionError("not refused")
tf.config.experimental.set_device_policy("silent_for_int32")
tf.shape(ri), tf.one_hot(ri, 3)
""")


def test_texts_and_int32_shapes_are_on_the_host() -> None:
    out = run("""
with tf.device("/cpu:1"):
    for made in (
        tf.strings.join([s, s]), s + s, tf.reshape(s, [1]), s[0], tf.identity(s), tf.zeros([2], tf.string),
        tf.strings.as_string(b), tf.Variable(["s"]).read_value(), tf.shape(b), tf.size(b), tf.rank(b),
        tf.broadcast_dynamic_shape(ri, ri),
    ):
        assert made.device.endswith("CPU:1")
        print(made.backing_device[-1], end="")
    print()
    for made in (
        tf.shape(b, out_type=tf.int64), tf.size(b, tf.int64), tf.shape_n([b, b], tf.int64)[0], tf.add(ri, ri),
        tf.strings.length(s), tf.cast(b, tf.int32),
    ):
        assert made.device.endswith("CPU:1")
        print(made.backing_device[-1], end="")
""")
    assert out.split() == ["0" * 12, "1" * 6]


def test_each_input_is_warned_of_also_if_it_is_there_twice() -> None:
    done = run_program(
        HEAD + 'tf.config.experimental.set_device_policy("warn")\nb + b\ntf.add_n([b, b, b])\n'
    )
    lines = done.stderr.splitlines()
    expected = [("AddV2", 0), ("AddV2", 1), ("AddN", 0), ("AddN", 1), ("AddN", 2)]
    assert len(lines) == len(expected)
    for line, (op, number) in zip(lines, expected, strict=True):
        assert line.startswith(f"before computing {op} input #{number} was expected to be on {J}CPU:0")


def test_copies_are_logged_if_asked() -> None:
    done = run_program(
        HEAD
        + """
tf.add(a, b)
allotment.experimental.set_log_device_copies(True)
tf.add(a, b), tf.add(b, b), tf.add(a, a)
allotment.experimental.set_log_device_copies(False)
tf.add(a, b)
"""
    )
    line = "Copying input #{} of op AddV2 from device " + f"{J}CPU:1 to device {J}CPU:0: 4 bytes"
    assert done.stderr.splitlines() == [line.format(1), line.format(0)]


def test_what_has_no_kernel_for_a_device_that_is_there_runs_on_the_cpu() -> None:
    done = run_on_gpus(
        "1:16MiB",
        """
import sys
import allotment
import allotment.tf as tf
with tf.device("/GPU:0"):
    tf.print("text", tf.constant([1.0]), output_stream=sys.stdout)
    made = [tf.constant("a"), tf.strings.length("ab"), tf.Variable("s")]
assert all(each.device.endswith("CPU:0") for each in made)
def refused(device):
    try:
        with tf.device(device):
            tf.constant("a")
    except tf.errors.InvalidArgumentError as error:
        return "Supported device types [CPU]" in str(error)
assert refused("/GPU:1")
tf.config.set_soft_device_placement(False)
assert refused("/GPU:0")
""",
    )
    assert (done.returncode, done.stdout) == (0, "text [1]\n"), done.stderr
