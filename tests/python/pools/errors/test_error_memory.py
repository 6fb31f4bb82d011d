"""What a caught error keeps alive: without its traceback, nothing (field report B211)."""

import ast
from pathlib import Path

import pytest

import allotment
from support.devices import run_on_gpus
from support.interpreter import COLLECTOR_RUNS, FREE_THREADED

SETUP = """
import gc
import numpy as np
import allotment
import allotment.tf as tf

v1, MIB = tf.compat.v1, 1 << 20

def big(mib=60):
    return tf.fill([mib * MIB // 4], 1.0)

def rows(mib, columns):
    return tf.reshape(big(mib), [-1, columns])

def used():
    return [tf.config.experimental.get_memory_info(f"GPU:{number}")["current"] for number in range(2)]

def error_of(call):
    try:
        call()
    except Exception as error:
        return error.with_traceback(None)

def check(call, kind, collections=0):
    # Nothing but a reference that is still there keeps memory: cycles would.
    gc.disable()
    error = error_of(call)
    assert type(error) is kind, repr(error)
    for _ in range(collections):
        gc.collect()
    assert used() == [0, 0], used()
    del error
    gc.enable()
    gc.collect()
    print("done")

OOM, INVALID = tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError
"""

#: Each fails, with at least 20 MiB of 100 as inputs or temporaries.
PROGRAMS = {
    "three inputs": ("lambda: tf.concat([big(20), big(20), big(20)], 0)", "OOM"),
    "two inputs of a pair": ("lambda: big(40) + big(40)", "OOM"),
    "one input": ("lambda: tf.exp(big())", "OOM"),
    "more than can be asked for": ("lambda: tf.tile(rows(60, 1), [1, 2**40])", "OOM"),
    "shapes of a pair": ("lambda: big(30) + big(25)", "INVALID"),
    "element types": ("lambda: big() + tf.constant(1)", "INVALID"),
    "shapes of matrices": ("lambda: tf.matmul(rows(30, 1024), rows(20, 512))", "INVALID"),
    "a product": ("lambda: tf.matmul(rows(30, 512), rows(20, 512), transpose_b=True)", "OOM"),
    "an equation": ("lambda: tf.einsum('ij,kj->ik', rows(30, 512), rows(20, 512))", "OOM"),
    "no inverse": ("lambda: tf.linalg.inv(tf.reshape(big(16), [2048, 2048]))", "INVALID"),
    "not positive definite": ("lambda: tf.linalg.cholesky(tf.reshape(-big(36), [-1, 1024, 1024]))", "OOM"),
    "a list of tensors": ("lambda: tf.convert_to_tensor([big(40), big(40)])", "OOM"),
    "a list of a tensor and a text": ("lambda: tf.convert_to_tensor([big(), 'x'])", "TypeError"),
    "a constant of a tensor": ("lambda: tf.constant([big()])", "ValueError"),
    "a tensor as an axis": ("lambda: tf.reduce_sum(big(30), axis=big(20))", "INVALID"),
    "an array of the host": ("lambda: (big(), tf.constant(np.ones(60 * MIB // 4, np.float32)))", "OOM"),
    "a function": ("lambda: tf.function(tf.exp)(big())", "OOM"),
    "a branch": ("lambda: tf.cond(True, lambda: tf.exp(big()), lambda: big())", "OOM"),
    "a loop": ("lambda: tf.while_loop(lambda a: True, lambda a: (tf.concat([a, a], 0),), [big(10)])", "OOM"),
    "a cap of a scope": (
        """
def program():
    with allotment.experimental.memory_scope("step", device="GPU:0", limit="70MiB"):
        tf.exp(big())
""",
        "OOM",
    ),
    "a copy between devices": (
        """
def program():
    with tf.device("GPU:1"):
        far = big()
    near = big()
    tf.identity(far)
""",
        "OOM",
    ),
    "a variable": (
        """
def program():
    made = tf.Variable(big(40))
    made.assign_add(tf.concat([made, made], 0))
""",
        "OOM",
    ),
    "a gradient": (
        """
def program():
    x = big(20)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(x))
    more = big(40)
    tape.gradient(y, x)
""",
        "OOM",
    ),
    "a recorded operation": (
        """
def program():
    x = big(40)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) * x
""",
        "OOM",
    ),
    "an optimizer": (
        """
def program():
    made = tf.Variable(big(30))
    v1.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.concat([made, made], 0), made)])
""",
        "OOM",
    ),
    "a layer": ("lambda: tf.keras.layers.Dense(8192)(rows(60, 2048))", "OOM"),
    "a session": (
        """
def program():
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, [None])
        made = tf.concat([fed * 1.0, fed * 2.0, fed * 3.0], 0)
        v1.Session().run(made, {fed: np.ones(30 * MIB // 4, np.float32)})
""",
        "OOM",
    ),
    "a session with shapes that do not fit": (
        """
def program():
    with tf.Graph().as_default():
        x, y = v1.placeholder(tf.float32, [None]), v1.placeholder(tf.float32, [None])
        made = x * 2.0 + y * 2.0
        v1.Session().run(made, {x: np.ones(30 * MIB // 4, np.float32), y: np.ones(20 * MIB // 4, np.float32)})
""",
        "INVALID",
    ),
    "replicas": ("lambda: STRATEGY.run(lambda: tf.exp(big()))", "OOM"),
    "a reduction": (
        "lambda: STRATEGY.run(lambda: tf.distribute.get_replica_context().all_reduce('SUM', big()))",
        "OOM",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_without_its_traceback_keeps_no_array(name: str) -> None:
    text, kind = PROGRAMS[name]
    if text.startswith("lambda"):
        text = f"program = {text}\n"
    collections = 0
    if "STRATEGY" in text:
        text = "STRATEGY = tf.distribute.MirroredStrategy(['GPU:0', 'GPU:1'])\n" + text
        # Without a GIL a collection frees what threads of replicas made, and cycles with it.
        collections = COLLECTOR_RUNS if FREE_THREADED else 0
    done = run_on_gpus("2:100MiB", f"{SETUP}{text}\ncheck(program, {kind}, {collections})\n")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_feeds_keep_nothing() -> None:
    done = run_on_gpus(
        "1:100MiB",
        f"""{SETUP}
import weakref
class Fed(np.ndarray): pass
for value, dtype in (("x", object), ({{}}, object), (2**70, object), ("x", np.str_)):
    wrong = np.array([value], dtype).view(Fed)
    looked_at = weakref.ref(wrong)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.int32, [None])
        error = error_of(lambda: v1.Session().run(x, {{x: wrong}}))
    del wrong
    print(type(error).__name__, looked_at() is None)
""",
    )
    assert done.returncode == 0, done.stderr
    kinds = ("ValueError", "TypeError", "TypeError", "ValueError")
    assert done.stdout.splitlines() == [f"{kind} True" for kind in kinds]


#: Modules in which no exception has arrays in its frames: what they read are settings, files and packages.
_WITHOUT_ARRAYS = ("cli/", "metrics.py", "trace/", "devices/", "tf/distribute/processes/")


def _handlers() -> list[tuple[str, ast.ExceptHandler]]:
    package = Path(allotment.__file__).parent
    return [
        (str(path.relative_to(package)), node)
        for path in sorted(package.rglob("*.py"))
        if not str(path.relative_to(package)).startswith(_WITHOUT_ARRAYS)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
    ]


def test_no_exception_is_raised_with_the_frames_of_another_as_its_context() -> None:
    # One that is raised while another is handled refers to it, and by its traceback to all that had failed.
    handlers = _handlers()
    assert len(handlers) > 50
    for path, handler in handlers:
        raised = [
            node
            for node in ast.walk(handler)
            if isinstance(node, ast.Raise) and node.exc is not None and ast.unparse(node.exc) != handler.name
        ]
        text = ast.unparse(handler)
        dropped = f"{handler.name}.__traceback__" in text or f"_let_go({handler.name}, " in text
        assert not raised or dropped, f"{path}:{handler.lineno}"
