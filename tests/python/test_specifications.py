"""What a scope's whole name means: parts left open, names that are none, and scopes left out of order."""

import pytest

from support.child import run_program

J = "/job:localhost/replica:0/task:0/device:"

HEAD = """
import os
os.environ["ALLOTMENT_SIMULATED_GPUS"] = "0"
import allotment.tf as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
a = tf.constant([1.0])
v = tf.Variable([1.0])
"""


def run(program: str) -> str:
    done = run_program(HEAD + program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def outcome(scope: str, expression: str) -> str:
    """The device of an expression's value in a scope, or the first line of its error."""
    return run(f"""
try:
    with tf.device({scope!r}):
        made = {expression}
    print(made.device)
except tf.errors.InvalidArgumentError as error:
    print(error)
""").splitlines()[0]


def not_satisfied(name: str) -> str:
    return f"Could not satisfy device specification '{name}'. enable_soft_placement=0. Supported device types [CPU]."


@pytest.mark.parametrize(
    ("scope", "index"),
    [
        ("/device:*:0", 0),
        ("/device:*:1", 1),
        ("/device:*:*", 0),
        ("/job:*/cpu:1", 1),
        ("/device:CPU:01", 1),
    ],
)
def test_a_star_is_a_part_that_is_not_set(scope: str, index: int) -> None:
    out = run(f"""
with tf.device({scope!r}):
    print(tf.constant([1.0]).device, tf.add(a, a).device, tf.Variable([1.0]).device, tf.Variable(a).device, a[0].device)
""")
    assert out.split() == [f"{J}CPU:{index}"] * 5


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        ("/device:*:9", "/job:localhost/replica:0/task:0"),
        ("/job:*/device:*:9", "/replica:0/task:0"),
        ("/job:*/replica:1", "/replica:1/task:0/device:CPU:0"),
        ("/job:*/device:FOO:*", "/replica:0/task:0/device:FOO:0"),
    ],
)
def test_errors_leave_out_what_is_not_set(scope: str, shown: str) -> None:
    assert outcome(scope, "tf.add(a, a)").startswith(not_satisfied(shown))


@pytest.mark.parametrize(
    "expression",
    [
        "tf.constant([1.0])",
        "tf.Variable([1.0])",
        "a[0]",
        "tf.reshape(a, [1])",
        "tf.reduce_sum(a)",
        "tf.concat([a, a], 0)",
        "tf.argmax(a)",
        "tf.expand_dims(a, 0)",
        "tf.sort(a)",
        "tf.split(a, 1)",
        "tf.tile(a, [2])",
        "tf.size(a)",
        "tf.rank(a)",
        "tf.random.uniform([2])",
    ],
)
@pytest.mark.parametrize("part", ["/job:worker/replica:0/task:0", "/job:localhost/replica:1/task:0"])
def test_constants_are_made_first_and_know_their_cpu_by_name(part: str, expression: str) -> None:
    assert outcome(part, expression) == f"{part}/device:CPU:0 unknown device."


def test_constants_of_other_devices_are_placed_as_operations_are() -> None:
    for expression in ("tf.constant([1.0])", "a[0]"):
        said = outcome("/job:worker/cpu:1", expression)
        assert said.startswith(not_satisfied("/job:worker/replica:0/task:0/device:CPU:1"))
        assert said.endswith("CPU:3].")
        assert outcome("/job:*", expression) == "/job:*/replica:0/task:0/device:CPU:0 unknown device."
    for expression in ("tf.add(a, a)", "tf.shape(a)", "tf.identity(a)"):
        assert outcome("/job:*", expression) == f"{J}CPU:0"
        assert f"[Op:{'AddV2' if 'add' in expression else ''}" in outcome("/job:worker", expression)


@pytest.mark.parametrize(
    ("scope", "name", "constant"),
    [
        ("/device::0", f"{J}:0", "malformed"),
        ("/cpu:-1", f"{J}CPU:-1", "malformed"),
        ("/device:9x:0", f"{J}9x:0", "malformed"),
        ("/device:a-b:0", f"{J}a-b:0", "malformed"),
        ("/job:1bad/cpu:0", "/job:1bad/replica:0/task:0/device:CPU:0", "unknown"),
        ("/job:/cpu:0", "/job:/replica:0/task:0/device:CPU:0", "unknown"),
        ("/job:a b", "/job:a b/replica:0/task:0/device:CPU:0", "unknown"),
        ("/task:-2", "/job:localhost/replica:0/task:-2/device:CPU:0", "unknown"),
    ],
)
def test_what_the_runtime_cannot_read_is_malformed(scope: str, name: str, constant: str) -> None:
    said = f"Malformed device specification '{name}' in eager op: Name: "
    for expression, op in (
        ("tf.add(a, a)", "AddV2"),
        ("tf.Variable(a)", "VarHandleOp"),
        ("v.assign(a)", "AssignVariableOp"),
        ("tf.shape(a)", "Shape"),
    ):
        assert outcome(scope, expression) == said + op
    wanted = said + "_EagerConst" if constant == "malformed" else f"{name} unknown device."
    assert outcome(scope, "tf.constant([1.0])") == wanted
    # The tensor's own method does not ask where the scope is.
    assert outcome(scope, "a.cpu()") == f"{J}CPU:0"


@pytest.mark.parametrize(
    ("names", "order", "outcomes"),
    [
        (("/cpu:0", None, "/cpu:0"), (0, 1, 2), "ok no no"),
        (("/cpu:0", None, "/cpu:0"), (0, 2, 1), "ok no no"),
        (("/cpu:0", None, "/cpu:0"), (2, 1, 0), "ok ok ok"),
        (("/cpu:0", "/cpu:0", "/cpu:0"), (0, 1, 2), "no ok no"),
        (("/cpu:1", "/cpu:2"), (0, 1, 0), "no ok ok"),
        (("/cpu:1",), (0, 0), "ok none"),
    ],
)
def test_scopes_left_out_of_order(
    names: tuple[str | None, ...], order: tuple[int, ...], outcomes: str
) -> None:
    out = run(f"""
scopes = [tf.device(name) for name in {names!r}]
for scope in scopes:
    scope.__enter__()
for index in {order!r}:
    try:
        scopes[index].__exit__(None, None, None)
        print("ok")
    except RuntimeError as error:
        assert str(error) == "Exiting device scope without proper scope nesting"
        print("no")
    except IndexError as error:
        assert str(error) == "list index out of range"
        print("none")
""")
    assert out.split() == outcomes.split()


def test_a_scope_that_was_never_entered_cannot_be_left() -> None:
    run("""
try:
    tf.device("/cpu:0").__exit__(None, None, None)
except IndexError as error:
    assert str(error) == "list index out of range"
else:
    raise AssertionError("not refused")
""")
