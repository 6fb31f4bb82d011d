"""Device policies: which input is in the wrong place, in TensorFlow's numbers; and whose memory values are in."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import allotment
import allotment.tf as tf

J = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture(name="values")
def fixture_values() -> Iterator[Any]:
    """Make values on two logical CPUs: ``a``, ``i0`` and ``V`` on the first, the others on the second."""
    with allotment.testing.runtime():
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        made = SimpleNamespace(tf=tf, a=tf.constant([1.0]), i0=tf.constant([0]), V=tf.Variable([1.0]))
        with tf.device("/cpu:1"):
            made.b = tf.constant([1.0])
            made.one = tf.identity(tf.constant(1.0))
            made.ri = tf.identity(tf.constant([1]))
            made.s = tf.constant(["s"])
        yield made


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
def test_the_input_that_is_elsewhere_has_tensorflows_number(
    values: Any, expression: str, op: str, number: int
) -> None:
    tf.config.experimental.set_device_policy("explicit")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        eval(expression, vars(values))
    assert str(caught.value).startswith(
        f"Tensors on conflicting devices: cannot compute {op} as input #{number} was expected to be on {J}CPU:0 but is "
        f"actually on {J}CPU:1 (operation running on {J}CPU:0)"
    )


def test_what_is_not_looked_at_may_be_anywhere(values: Any) -> None:
    tf.config.experimental.set_device_policy("explicit")
    for call in (tf.size, tf.rank, tf.identity):
        call(values.b)
    tf.strings.join([values.s, values.s])
    tf.strings.length(values.s)
    with tf.device("/cpu:1"):
        tf.shape(values.b)
        tf.broadcast_dynamic_shape(values.i0, values.i0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute Shape as input #0"):
            tf.shape(values.a)
    tf.config.experimental.set_device_policy("silent_for_int32")
    tf.shape(values.ri)
    tf.one_hot(values.ri, 3)


def test_texts_and_int32_shapes_are_on_the_host(values: Any) -> None:
    b, ri, s = values.b, values.ri, values.s
    with tf.device("/cpu:1"):
        in_host_memory: tuple[Any, ...] = (
            tf.strings.join([s, s]),
            s + s,
            tf.reshape(s, [1]),
            s[0],
            tf.identity(s),
            tf.zeros([2], tf.string),
            tf.strings.as_string(b),
            tf.Variable(["s"]).read_value(),
            tf.shape(b),
            tf.size(b),
            tf.rank(b),
            tf.broadcast_dynamic_shape(ri, ri),
        )
        others: tuple[Any, ...] = (
            tf.shape(b, out_type=tf.int64),
            tf.size(b, tf.int64),
            tf.shape_n([b, b], tf.int64)[0],
            tf.add(ri, ri),
            tf.strings.length(s),
            tf.cast(b, tf.int32),
        )
    assert {made.device[-5:] for made in in_host_memory + others} == {"CPU:1"}
    assert [made.backing_device[-5:] for made in in_host_memory] == ["CPU:0"] * len(in_host_memory)
    assert [made.backing_device[-5:] for made in others] == ["CPU:1"] * len(others)


def test_each_input_is_warned_of_also_if_it_is_there_twice(
    values: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    b = values.b
    tf.config.experimental.set_device_policy("warn")
    b + b
    tf.add_n([b, b, b])
    lines = capfd.readouterr().err.splitlines()
    expected = [("AddV2", 0), ("AddV2", 1), ("AddN", 0), ("AddN", 1), ("AddN", 2)]
    assert len(lines) == len(expected)
    for line, (op, number) in zip(lines, expected, strict=True):
        assert line.startswith(f"before computing {op} input #{number} was expected to be on {J}CPU:0")


def test_copies_are_logged_if_asked(values: Any, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = values.a, values.b
    tf.add(a, b)
    allotment.experimental.set_log_device_copies(True)
    for x, y in ((a, b), (b, b), (a, a)):
        tf.add(x, y)
    allotment.experimental.set_log_device_copies(False)
    tf.add(a, b)
    line = "Copying input #{} of op AddV2 from device " + f"{J}CPU:1 to device {J}CPU:0: 4 bytes"
    assert capfd.readouterr().err.splitlines() == [line.format(1), line.format(0)]


def test_what_has_no_kernel_for_a_device_that_is_there_runs_on_the_cpu(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with allotment.testing.runtime("1:16MiB"):
        with tf.device("/GPU:0"):
            tf.print("text", tf.constant([1.0]), output_stream=sys.stdout)
            made: list[Any] = [tf.constant("a"), tf.strings.length("ab"), tf.Variable("s")]
        assert all(each.device.endswith("CPU:0") for each in made)
        assert capsys.readouterr().out == "text [1]\n"

        def check_refused(device: str) -> None:
            with (
                pytest.raises(tf.errors.InvalidArgumentError, match=r"Supported device types \[CPU\]"),
                tf.device(device),
            ):
                tf.constant("a")

        check_refused("/GPU:1")
        tf.config.set_soft_device_placement(False)
        check_refused("/GPU:0")
