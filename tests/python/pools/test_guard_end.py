"""Guard mode where a program ends, forks, or leaves the memory to NumPy: in processes of their own."""

import re

import pytest

from support.child import run_program
from support.devices import run_on_gpus

SETUP = """
import ctypes, os, sys
import numpy as np
from allotment import Pool

pool = Pool("1MiB", guard=True, name="mine")

def poke(address):
    ctypes.memset(address, 0, 1)
"""

LEAK = r"mine: 1 allocation was never freed, 1000 bytes\n  allocation 1: 1000 bytes at address 0x[0-9a-f]+\n"

#: What a program does, what is on stderr in the end, and its exit status.
PROGRAMS = {
    "nothing": ("", "", 0),
    "all freed": ("pool.free(pool.malloc(1000))", "", 0),
    "allocation live": ("a = pool.allocate(1000)", LEAK, 0),
    "address live": ("pool.malloc(1000)", LEAK, 0),
    "array live": ("a = np.frombuffer(pool.allocate(1000), np.uint8)", LEAK, 0),
    "pool gone first": ("a = pool.malloc(1000); del pool", LEAK, 0),
    "in a cycle": ("a = [pool.allocate(1000)]; a.append(a); del a", "", 0),
    "closed": ("a = pool.malloc(1000); pool.close()", LEAK, 0),
    "sys.exit": ("a = pool.malloc(1000); sys.exit(3)", LEAK, 3),
    "uncaught exception": ("a = pool.malloc(1000); raise SystemError('mine')", r"(?s).*mine\n" + LEAK, 1),
    "os._exit": ("a = pool.malloc(1000); os._exit(4)", "", 4),
    "freed in atexit": ("import atexit; a = pool.allocate(1000); atexit.register(a.free)", "", 0),
    "damage to a live one": (
        "a = pool.malloc(1000); poke(a + 1000)",
        r"mine: memory damaged: allocation 1, .* past its end.*\n" + LEAK,
        0,
    ),
    "damage after a free": (
        "a = pool.malloc(1000); pool.free(a); poke(a)",
        r"mine: memory damaged: allocation 1, .* after it was freed.*\n",
        0,
    ),
    "damage to a collected one": (
        "a = pool.allocate(1000); poke(a.address - 1); del a",
        r"mine: memory damaged: allocation 1, .* in front of its start.*\n",
        0,
    ),
    "module imported twice": (
        """
a = pool.malloc(1000); poke(a + 1000)
for name in [n for n in sys.modules if n.startswith("allotment")]:
    del sys.modules[name]
import allotment
allotment.Pool("1MiB", guard=True).malloc(0)
""",
        r"mine: memory damaged: allocation 1, .* past its end.*\n" + LEAK,
        0,
    ),
    "a logger that says it elsewhere": (
        """
import logging
logging.basicConfig(stream=sys.stderr, format="%(levelname)s:%(name)s:%(message)s")
a = pool.malloc(1000)
""",
        "WARNING:allotment.guard:" + LEAK,
        0,
    ),
    "a logger that fails": (
        """
import logging
class Failing(logging.Handler):
    def emit(self, record):
        raise ValueError("no")
logging.getLogger("allotment.guard").addHandler(Failing())
a = pool.malloc(1000)
""",
        r"(?s)(Exception ignored.*)?Traceback.*ValueError: no\n",
        0,
    ),
    "daemon thread allocates": (
        """
import threading, time
def churn():
    while True:
        pool.free(pool.malloc(1000))
threading.Thread(target=churn, daemon=True).start()
time.sleep(0.05)
""",
        r"(mine: 1 allocation was never freed.*\n.*\n)?",
        0,
    ),
    "forked child": (
        """
a = pool.malloc(1000)
if os.fork() == 0:
    try:
        pool.free(a)
    except RuntimeError:
        sys.exit(0)
    sys.exit(1)
assert os.wait()[1] == 0
pool.free(a)
""",
        "",
        0,
    ),
    "a pool of the forked child": (
        """
if os.fork() == 0:
    own = Pool("1MiB", guard=True, name="own")
    a = own.malloc(7)
    sys.exit(0)
assert os.wait()[1] == 0
""",
        r"own: 1 allocation was never freed, 7 bytes\n.*\n",
        0,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_end_says_what_is_left_and_the_status_is_the_programs_own(name: str) -> None:
    program, said, status = PROGRAMS[name]
    done = run_program(SETUP + program)
    assert re.fullmatch(said, done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.parametrize("name", ["allocation live", "address live"])
def test_without_guard_nothing_is_said(name: str) -> None:
    done = run_program(SETUP.replace("guard=True", "guard=False") + PROGRAMS[name][0])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ARRAYS = """
import ctypes
import numpy as np
import allotment.tf as tf

def poke(tensor, offset):
    ctypes.memset(tensor._array.ctypes.data + offset, 0, 1)

def info():
    return tf.config.experimental.get_memory_info("GPU:0")["current"]
"""


def test_tensors_on_a_simulated_gpu_work_under_guard() -> None:
    done = run_on_gpus(
        "1:4MiB",
        ARRAYS
        + """
with tf.device("GPU:0"):
    a = tf.reshape(tf.range(10_000, dtype=tf.float32), [100, 100])
    b = tf.matmul(a, tf.transpose(a))
    c = tf.reduce_sum(b) + tf.linalg.trace(tf.linalg.inv(tf.eye(50)))
    v = tf.Variable(tf.zeros([1000]))
    for step in range(200):
        v.assign_add(tf.ones([1000]))
    assert float(tf.reduce_sum(v)) == 200_000
expected = np.arange(10_000, dtype=np.float32).reshape(100, 100)
assert np.allclose(b.numpy(), expected @ expected.T)
del a, b, c, v
assert info() == 0
with tf.device("GPU:0"):
    try:
        tf.zeros([4 << 20], tf.uint8)
    except tf.errors.ResourceExhaustedError as refused:
        assert refused.limit == 4 << 20
    whole = tf.zeros([(4 << 20) - 512], tf.uint8)
    assert info() == 4 << 20
del whole
""",
        ALLOTMENT_GUARD="1",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_overrun_of_a_tensor_is_logged_with_the_next_array_and_harms_nothing() -> None:
    done = run_on_gpus(
        "1:4MiB",
        ARRAYS
        + """
with tf.device("GPU:0"):
    a = tf.zeros([100])
poke(a, 400)
del a
print("next")
with tf.device("GPU:0"):
    b = tf.ones([100])
assert float(tf.reduce_sum(b)) == 100
del b
""",
        ALLOTMENT_GUARD="1",
    )
    assert done.returncode == 0
    assert done.stdout == "next\n"
    assert re.fullmatch(
        r"GPU_0_bfc: memory damaged: allocation \d+, 400 bytes .* past its end.*\n", done.stderr
    )


def test_arrays_grow_shrink_and_are_zeroed_under_guard() -> None:
    done = run_program(
        """
        import contextvars
        import numpy as np
        from allotment import Pool
        from allotment._core import ArrayMemory

        pool = Pool("8MiB", guard=True)

        def work():
            ArrayMemory(pool).install()
            for size in (1, 31, 32, 33, 1000, 100_000):
                assert not np.zeros(size).any()
                grown = np.arange(size)
                grown.resize(size * 3 + 1, refcheck=False)
                grown.resize(size + 1, refcheck=False)
                assert (grown[:size] == np.arange(size)).all() and grown[size] == 0
            text = np.array(["a" * n for n in range(50)])
            assert np.fromiter((n for n in range(10_000)), np.int64).sum() == 49_995_000
            assert sum(map(len, text)) == 1225

        contextvars.copy_context().run(work)
        assert pool.stats().num_live == 0
        pool.trim()
        assert pool.stats().reserved == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
