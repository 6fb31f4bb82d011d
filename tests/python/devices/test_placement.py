"""Scopes, fallback, logs and policies, on the CPU, on two logical CPUs and on simulated GPUs."""

import contextlib
import logging
import re
import warnings
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.devices.dispatch import thread
from allotment.testing import runtime

J = "/job:localhost/replica:0/task:0/device:"


def three_cpus() -> None:
    """Configure three logical CPUs."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)


@pytest.mark.parametrize(
    ("scopes", "name"),
    [
        (["/job:foo"], "/job:foo/replica:0/task:0/device:CPU:0"),
        (["/job:foo", "/gpu:1"], "/job:foo/replica:0/task:0/device:GPU:1"),
        (["/job:foo", "/gpu:1", "/task:3"], "/job:foo/replica:0/task:3/device:GPU:1"),
        (["/job:foo", "/gpu:1", ""], "/job:foo/replica:0/task:0/device:GPU:1"),
        (["/job:foo", "/gpu:1", None, "/gpu:4"], J + "GPU:4"),
        (["/gpu:2", "CPU"], J + "CPU:2"),
        (["/gpu:2", "/gpu:*"], J + "GPU:2"),
        (["/task:7", "/job:bar"], "/job:bar/replica:0/task:7/device:CPU:0"),
        (["gpu"], J + "GPU:0"),
        (["/"], J + "CPU:0"),
    ],
)
@runtime()
def test_nested_scopes_merge_field_by_field(scopes: list[str | None], name: str) -> None:
    # The table of placement, section 3.
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            assert stack.enter_context(tf.device(scope)) is None
        requested = thread.state.request.name
    assert requested is not None
    assert requested.to_string() == name
    assert thread.state.request.name is None


@runtime()
def test_none_forgets_and_the_end_of_a_scope_restores() -> None:
    three_cpus()
    with tf.device("/cpu:1"):
        with tf.device(None):
            assert tf.constant([1.0]).device.endswith("CPU:0")
        assert tf.constant([1.0]).device.endswith("CPU:1")
        try:
            with tf.device("/cpu:2"):
                raise KeyError
        except KeyError:
            pass
        assert tf.constant([1.0]).device.endswith("CPU:1")
    again = tf.device(tf.DeviceSpec(device_type="CPU", device_index=2))
    for _ in range(2):
        with again, again:
            assert tf.constant([1.0]).device.endswith("CPU:2")
    with tf.device(tf.config.list_logical_devices("CPU")[1]):
        assert tf.constant([1.0]).device.endswith("CPU:1")


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (lambda op: "/cpu:0", RuntimeError, "tf.device does not support functions."),
        (3, ValueError, "Expecting a string device name. Got <class 'int'>(3)"),
        (b"/cpu:0", ValueError, "Expecting a string device name. Got <class 'bytes'>(b'/cpu:0')"),
        (
            tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU"),
            ValueError,
            "Expecting a string device name. Got <class",
        ),
        (
            "/foo:0",
            ValueError,
            "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:0'.",
        ),
        ("/GPU:0/CPU:0", ValueError, "Multiple device types are not allowed"),
        ("GPU:a", ValueError, "invalid literal for int() with base 10: 'a'"),
        ("GPU:0:1", ValueError, "Unknown attribute 'GPU'"),
        ("cuda:0", ValueError, "Unknown attribute 'cuda'"),
    ],
)
@runtime()
def test_what_is_no_device_is_refused(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)), tf.device(given):
        raise AssertionError("entered")


@runtime()
def test_leaving_the_outer_scope_first_is_an_error() -> None:
    a, b = tf.device("/cpu:0"), tf.device("/gpu:0")
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError) as caught:
        a.__exit__(None, None, None)
    error = caught.value
    assert str(error) == "Exiting device scope without proper scope nesting"


@runtime("2:64MiB")
def test_b022_every_name_that_is_printed_is_accepted() -> None:
    # Field report B022 (tensorflow#39857).
    names = [d.name for d in tf.config.list_logical_devices()]
    with tf.device("/GPU:1"):
        x = tf.constant([1.0])
    names += [x.device, x.backing_device]
    names += ["GPU:0", "gpu:0", "/gpu:0", "/GPU:0", "/device:GPU:0", "CPU", "/cpu:0"]
    for name in names:
        with tf.device(name):
            made = tf.constant([1.0]).device
        tf.config.experimental.get_memory_info(made) if "GPU" in made else None
    with (
        pytest.raises(ValueError, match="physical_device"),
        tf.device(tf.config.list_physical_devices("GPU")[0].name),
    ):
        pass


@pytest.mark.parametrize(("gpus", "fallback"), [("0", "CPU:0"), ("1:64MiB", "GPU:0")])
def test_b021_soft_placement_can_be_switched_at_any_time(gpus: str, fallback: str) -> None:
    # Field report B021 (tensorflow#29342).
    with runtime(gpus):
        a = tf.constant([1.0, 2.0])
        refused = rf"Could not satisfy device specification '{J}GPU:3'. enable_soft_placement=0\..*\[{J}CPU:0"
        for _ in range(2):
            tf.config.set_soft_device_placement(True)
            assert tf.config.get_soft_device_placement() is True
            with tf.device("/GPU:3"):
                assert tf.add(a, a).device.endswith(fallback)
            tf.config.set_soft_device_placement(False)
            assert tf.config.get_soft_device_placement() is False
            with pytest.raises(tf.errors.InvalidArgumentError, match=refused), tf.device("/GPU:3"):
                tf.add(a, a)


@runtime()
def test_soft_placement_is_off_until_it_is_set() -> None:
    assert tf.config.get_soft_device_placement() is False
    with pytest.raises(RuntimeError, match="GPU:0"), tf.device("/GPU:0"):
        tf.constant([1.0])
    tf.config.set_soft_device_placement(None)
    assert tf.config.get_soft_device_placement() is False


@runtime()
def test_soft_placement_does_not_cross_jobs_and_tasks() -> None:
    tf.config.set_soft_device_placement(True)
    a = tf.constant([1.0])
    for request in ("/job:worker", "/task:5", "/replica:1"):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught, tf.device(request):
            tf.add(a, a)
        error = caught.value
        assert "enable_soft_placement=1" in str(error)
    with pytest.raises(tf.errors.InvalidArgumentError) as refused, tf.device("/job:worker"):
        tf.constant([1.0])
    assert str(refused.value) == "/job:worker/replica:0/task:0/device:CPU:0 unknown device."


@runtime("2:64MiB")
def test_inputs_do_not_decide_where_an_operation_runs() -> None:
    with tf.device("/GPU:1"):
        b = tf.constant([3.0, 4.0])
    assert (b + b).device.endswith("GPU:0")
    assert tf.add_n([b, b]).device.endswith("GPU:0")
    assert tf.identity(b).device.endswith("GPU:0")
    assert tf.convert_to_tensor(b) is b
    assert tf.constant(b).device.endswith("GPU:1")
    with tf.device("/CPU:0"):
        c = b * 2.0
    assert c.device.endswith("CPU:0")
    assert c.numpy().tolist() == [6.0, 8.0]


@runtime()
def test_b023_the_log_says_one_line_an_operation_and_can_be_switched_off(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # Field report B023 (tensorflow#53424, #45465).
    a = tf.constant([[1.0]])
    counts = []
    for on, times in ((True, 3), (False, 3), (True, 1)):
        tf.debugging.set_log_device_placement(on)
        for _ in range(times):
            tf.matmul(a, a)
        counts.append(len(caplog.records))
    assert counts == [3, 3, 4]
    assert capsys.readouterr().err.splitlines() == [f"Executing op MatMul in device {J}CPU:0"] * 4


@pytest.mark.parametrize("level", "0123")
def test_the_log_is_hidden_by_the_level_of_the_environment(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with runtime(TF_CPP_MIN_LOG_LEVEL=level):
        tf.debugging.set_log_device_placement(True)
        tf.add(tf.constant(1.0), tf.constant(2.0))
    assert capsys.readouterr().err.count("Executing op") == (3 if level == "0" else 0)


@runtime("2:64MiB")
def test_the_log_names_the_device_that_was_used(capsys: pytest.CaptureFixture[str]) -> None:
    tf.config.set_soft_device_placement(True)
    tf.debugging.set_log_device_placement(True)
    with tf.device("/GPU:9"):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        b = tf.matmul(a, a)
    with tf.device("/CPU:0"):
        tf.add_n([a, b])
    lines = [line for line in capsys.readouterr().err.splitlines() if "_EagerConst" not in line]
    assert lines == [
        f"Executing op MatMul in device {J}GPU:0",
        f"Executing op AddN in device {J}CPU:0",
    ]


@runtime()
def test_the_policies(capsys: pytest.CaptureFixture[str]) -> None:
    three_cpus()
    with tf.device("/cpu:1"):
        b = tf.constant([3.0, 4.0])
        i = tf.constant([1, 2])
    c = tf.constant([1.0, 1.0])
    tf.config.experimental.set_device_policy("warn")
    assert tf.add(c, b).numpy().tolist() == [4.0, 5.0]
    assert capsys.readouterr().err.strip() == (
        f"before computing AddV2 input #1 was expected to be on {J}CPU:0 but is actually on {J}CPU:1 "
        f"(operation running on {J}CPU:0). This triggers a copy which can be a performance bottleneck."
    )
    for policy in ("explicit", "silent_for_int32"):
        tf.config.experimental.set_device_policy(policy)
        assert tf.add(i, i).numpy().tolist() == [2, 4]
        assert tf.identity(b).device.endswith("CPU:0")
        with pytest.raises(tf.errors.InvalidArgumentError) as refused:
            tf.add(b, b)
        assert str(refused.value) == (
            f"Tensors on conflicting devices: cannot compute AddV2 as input #0 was expected to be on {J}CPU:0 but is "
            f"actually on {J}CPU:1 (operation running on {J}CPU:0) Tensors can be copied explicitly using: "
            "`with tf.device(device_name): x = tf.identity(x)` or transparently copied by using "
            "tf.config.experimental.set_device_policy('silent'). Copying tensors between devices may slow down your "
            "model [Op:AddV2] name: "
        )
    tf.config.experimental.set_device_policy("silent")
    tf.add(b, b)
    assert capsys.readouterr().err == ""


@runtime()
def test_numpy_settings_of_the_program_stay_and_operations_are_quiet() -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        a = tf.constant([1.0, -1.0]) / tf.constant([0.0, 0.0])
        assert a.numpy().tolist() == [float("inf"), float("-inf")]
        tf.sqrt(tf.constant([-1.0]))
        assert np.geterr()["divide"] == "raise"
        with pytest.raises(FloatingPointError):
            np.ones(1) / np.zeros(1)


@runtime()
def test_the_logger_has_a_handler_of_ours_only_while_logging_is_on() -> None:
    logger = logging.getLogger("allotment.placement")
    seen = [len(logger.handlers)]
    for on in (True, True, False, True, None):
        tf.debugging.set_log_device_placement(on)
        seen.append(len(logger.handlers))
    assert seen == [0, 1, 1, 0, 1, 0]


@runtime()
def test_a_scope_may_be_entered_again_in_a_graph_and_outside_of_it() -> None:
    scope, graph = tf.device("/CPU:0"), tf.Graph()
    with scope:
        with graph.as_default():
            with scope, scope:
                inside = tf.constant(1.0)
            after = tf.constant(1.0)
        assert thread.state.request.name is not None
        with scope:
            pass
        assert thread.state.request.name is not None
    assert thread.state.request.name is None
    assert (inside.device, after.device) == ("/device:CPU:0", "")
    with pytest.raises(IndexError):
        scope.__exit__(None, None, None)
