"""Scopes, fallback, logs and policies, on the CPU, on two logical CPUs and on simulated GPUs."""

import pytest

from support.child import run_program

J = "/job:localhost/replica:0/task:0/device:"

CPUS = """
import allotment.tf as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
"""


def run(program: str, gpus: str = "0", **env: str) -> tuple[str, str]:
    setting = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in env.items())
    done = run_program(
        f"import os\nos.environ['ALLOTMENT_SIMULATED_GPUS'] = {gpus!r}\n{setting}import allotment.tf as tf\n{program}"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


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
def test_nested_scopes_merge_field_by_field(scopes: list[str | None], name: str) -> None:
    # The table of placement, section 3; the wish is read from the error of a device that is not there.
    out, _ = run(f"""
import contextlib
a = tf.constant([1.0])
with contextlib.ExitStack() as stack:
    for scope in {scopes!r}:
        assert stack.enter_context(tf.device(scope)) is None
    from allotment.devices.dispatch import thread
    print(thread.state.request.name.to_string())
assert thread.state.request.name is None
""")
    assert out.strip() == name


def test_none_forgets_and_the_end_of_a_scope_restores() -> None:
    run(
        CPUS
        + """
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
"""
    )


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("lambda op: '/cpu:0'", "RuntimeError", "tf.device does not support functions."),
        ("3", "ValueError", "Expecting a string device name. Got <class 'int'>(3)"),
        ("b'/cpu:0'", "ValueError", "Expecting a string device name. Got <class 'bytes'>(b'/cpu:0')"),
        ("tf.config.list_physical_devices()[0]", "ValueError", "Expecting a string device name. Got <class"),
        (
            "'/foo:0'",
            "ValueError",
            "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:0'.",
        ),
        ("'/GPU:0/CPU:0'", "ValueError", "Multiple device types are not allowed"),
        ("'GPU:a'", "ValueError", "invalid literal for int() with base 10: 'a'"),
        ("'GPU:0:1'", "ValueError", "Unknown attribute 'GPU'"),
        ("'cuda:0'", "ValueError", "Unknown attribute 'cuda'"),
    ],
)
def test_what_is_no_device_is_refused(given: str, error: str, said: str) -> None:
    out, _ = run(f"""
try:
    with tf.device({given}):
        pass
except {error} as error:
    print(error)
""")
    assert said in out


def test_leaving_the_outer_scope_first_is_an_error() -> None:
    run("""
a, b = tf.device("/cpu:0"), tf.device("/gpu:0")
a.__enter__()
b.__enter__()
try:
    a.__exit__(None, None, None)
except RuntimeError as error:
    assert str(error) == "Exiting device scope without proper scope nesting"
else:
    raise AssertionError("not refused")
""")


def test_b022_every_name_that_is_printed_is_accepted() -> None:
    # Field report B022 (tensorflow#39857).
    run(
        """
names = [d.name for d in tf.config.list_logical_devices()]
with tf.device("/GPU:1"):
    x = tf.constant([1.0])
names += [x.device, x.backing_device]
names += "GPU:0 gpu:0 /gpu:0 /GPU:0 /device:GPU:0 CPU /cpu:0".split()
for name in names:
    with tf.device(name):
        made = tf.constant([1.0]).device
    tf.config.experimental.get_memory_info(made) if "GPU" in made else None
try:
    with tf.device(tf.config.list_physical_devices("GPU")[0].name):
        pass
except ValueError as error:
    assert "physical_device" in str(error)
else:
    raise AssertionError("not refused")
""",
        "2:64MiB",
    )


def test_b021_soft_placement_can_be_switched_at_any_time() -> None:
    # Field report B021 (tensorflow#29342).
    for gpus, fallback in (("0", "CPU:0"), ("1:64MiB", "GPU:0")):
        run(
            f"""
a = tf.constant([1.0, 2.0])
for on in (True, False, True, False):
    tf.config.set_soft_device_placement(on)
    assert tf.config.get_soft_device_placement() is on
    try:
        with tf.device("/GPU:3"):
            assert tf.add(a, a).device.endswith({fallback!r})
        assert on
    except tf.errors.InvalidArgumentError as error:
        assert not on
        assert "Could not satisfy device specification '{J}GPU:3'. enable_soft_placement=0." in str(error)
        assert "All available devices [{J}CPU:0" in str(error)
        assert isinstance(error, RuntimeError)
""",
            gpus,
        )


def test_soft_placement_is_off_until_it_is_set() -> None:
    run("""
assert tf.config.get_soft_device_placement() is False
try:
    with tf.device("/GPU:0"):
        tf.constant([1.0])
except RuntimeError as error:
    assert "GPU:0" in str(error)
else:
    raise AssertionError("not refused")
tf.config.set_soft_device_placement(None)
assert tf.config.get_soft_device_placement() is False
""")


def test_soft_placement_does_not_cross_jobs_and_tasks() -> None:
    run("""
tf.config.set_soft_device_placement(True)
a = tf.constant([1.0])
for wish in ("/job:worker", "/task:5", "/replica:1"):
    try:
        with tf.device(wish):
            tf.add(a, a)
    except tf.errors.InvalidArgumentError as error:
        assert "enable_soft_placement=1" in str(error)
    else:
        raise AssertionError("not refused")
try:
    with tf.device("/job:worker"):
        tf.constant([1.0])
except tf.errors.InvalidArgumentError as error:
    assert str(error) == "/job:worker/replica:0/task:0/device:CPU:0 unknown device."
""")


def test_inputs_do_not_decide_where_an_operation_runs() -> None:
    run(
        """
with tf.device("/GPU:1"):
    b = tf.constant([3.0, 4.0])
assert (b + b).device.endswith("GPU:0")
assert tf.add_n([b, b]).device.endswith("GPU:0")
assert tf.identity(b).device.endswith("GPU:0")
assert tf.convert_to_tensor(b) is b
assert tf.constant(b).device.endswith("GPU:1")
with tf.device("/CPU:0"):
    c = b * 2.0
assert c.device.endswith("CPU:0") and c.numpy().tolist() == [6.0, 8.0]
""",
        "2:64MiB",
    )


def test_b023_the_log_says_one_line_an_operation_and_can_be_switched_off() -> None:
    # Field report B023 (tensorflow#53424, #45465).
    out, err = run("""
import logging
seen = []
class Seen(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
logging.getLogger("allotment.placement").addHandler(Seen())
a = tf.constant([[1.0]])
for on, count in ((True, 3), (False, 3), (True, 1)):
    tf.debugging.set_log_device_placement(on)
    for _ in range(count):
        tf.matmul(a, a)
    print(len(seen))
""")
    assert out.split() == ["3", "3", "4"]
    assert err.splitlines() == [f"Executing op MatMul in device {J}CPU:0"] * 4


def test_the_log_is_hidden_by_the_level_of_the_environment() -> None:
    program = "tf.debugging.set_log_device_placement(True)\ntf.add(tf.constant(1.0), tf.constant(2.0))"
    assert run(program)[1].count("Executing op") == 3
    for level in "123":
        assert run(program, TF_CPP_MIN_LOG_LEVEL=level)[1] == ""


def test_the_log_names_the_device_that_was_used() -> None:
    _, err = run(
        """
tf.config.set_soft_device_placement(True)
tf.debugging.set_log_device_placement(True)
with tf.device("/GPU:9"):
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    b = tf.matmul(a, a)
with tf.device("/CPU:0"):
    c = tf.add_n([a, b])
""",
        "2:64MiB",
    )
    lines = [line for line in err.splitlines() if "_EagerConst" not in line]
    assert lines == [
        f"Executing op MatMul in device {J}GPU:0",
        f"Executing op AddN in device {J}CPU:0",
    ]


def test_the_policies() -> None:
    out, err = run(
        CPUS
        + """
with tf.device("/cpu:1"):
    b = tf.constant([3.0, 4.0])
    i = tf.constant([1, 2])
c = tf.constant([1.0, 1.0])
x = tf.config.experimental
x.set_device_policy("warn")
assert tf.add(c, b).numpy().tolist() == [4.0, 5.0]
for policy in ("explicit", "silent_for_int32"):
    x.set_device_policy(policy)
    assert tf.add(i, i).numpy().tolist() == [2, 4]
    assert tf.identity(b).device.endswith("CPU:0")
    try:
        tf.add(b, b)
    except tf.errors.InvalidArgumentError as error:
        print(error)
    else:
        raise AssertionError("not refused")
x.set_device_policy("silent")
tf.add(b, b)
"""
    )
    assert err.strip() == (
        f"before computing AddV2 input #1 was expected to be on {J}CPU:0 but is actually on {J}CPU:1 "
        f"(operation running on {J}CPU:0). This triggers a copy which can be a performance bottleneck."
    )
    assert (
        out.splitlines()
        == [
            f"Tensors on conflicting devices: cannot compute AddV2 as input #0 was expected to be on {J}CPU:0 but is "
            f"actually on {J}CPU:1 (operation running on {J}CPU:0) Tensors can be copied explicitly using: "
            "`with tf.device(device_name): x = tf.identity(x)` or transparently copied by using "
            "tf.config.experimental.set_device_policy('silent'). Copying tensors between devices may slow down your "
            "model [Op:AddV2] name: "
        ]
        * 2
    )


def test_numpy_settings_of_the_program_stay_and_operations_are_quiet() -> None:
    run("""
import warnings
import numpy as np
warnings.simplefilter("error")
np.seterr(all="raise")
a = tf.constant([1.0, -1.0]) / tf.constant([0.0, 0.0])
assert a.numpy().tolist() == [float("inf"), float("-inf")]
tf.sqrt(tf.constant([-1.0]))
assert np.geterr()["divide"] == "raise"
try:
    np.ones(1) / np.zeros(1)
except FloatingPointError:
    pass
else:
    raise AssertionError("the program's own setting is gone")
""")


def test_the_logger_has_a_handler_of_ours_only_while_logging_is_on() -> None:
    out, _ = run("""
import logging
logger = logging.getLogger("allotment.placement")
for on in (None, True, True, False, True, None):
    if on is not None:
        tf.debugging.set_log_device_placement(on)
    print(len(logger.handlers))
tf.debugging.set_log_device_placement(None)
print(len(logger.handlers))
""")
    assert out.split() == ["0", "1", "1", "0", "1", "1", "0"]


def test_a_scope_may_be_entered_again_in_a_graph_and_outside_of_it() -> None:
    run("""
from allotment.devices.dispatch import thread
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
try:
    scope.__exit__(None, None, None)
except IndexError:
    pass
else:
    raise AssertionError("left twice")
""")
