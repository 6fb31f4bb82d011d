"""ONNX Runtime's sessions with their memory in a pool."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment._core import set_tag
from allotment.integrations import onnxruntime as pooled
from support.child import run_program
from support.models import mlp
from support.pools.owners import in_use, requested_by_owner

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

WIDTH = 64
WEIGHTS = 3 * WIDTH * WIDTH * 4
X = np.random.default_rng(1).random((16, WIDTH), np.float32)


@pytest.fixture(scope="module")
def model() -> bytes:
    return mlp(WIDTH)


@pytest.fixture
def pool() -> Pool:
    return Pool("32MiB", name="guests", owner_tags=True)


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Iterator[None]:
    yield
    with pytest.raises(RuntimeError, match="nothing to uninstall"):
        pooled.uninstall()


def session(model: bytes) -> Any:
    options = pooled.session_options()
    options.intra_op_num_threads = 1
    # A refusal is logged as an error, too.
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def expected(model: bytes) -> "np.ndarray":
    """The output of a session with ONNX Runtime's own memory."""
    plain = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    result: np.ndarray = plain.run(None, {"x": X})[0]
    return result


def test_weights_activations_and_outputs_are_in_the_pool_and_go_home(model: bytes, pool: Pool) -> None:
    with pooled.use(pool):
        made = session(model)
    assert requested_by_owner(pool) == {"onnxruntime": WEIGHTS}
    before = pool.stats().num_allocs
    (result,) = made.run(None, {"x": X})
    assert pool.stats().num_allocs > before
    assert requested_by_owner(pool) == {"onnxruntime": WEIGHTS + result.nbytes}
    assert np.array_equal(result, expected(model))
    del made
    assert requested_by_owner(pool) == {"onnxruntime": result.nbytes}
    del result
    assert in_use(pool) == 0
    assert pool.trim() > 0
    assert pool.stats().reserved == 0


def test_a_session_keeps_its_pool_and_later_ones_have_their_own_memory(model: bytes, pool: Pool) -> None:
    pooled.install(pool)
    made = session(model)
    pooled.uninstall()
    before = pool.stats().num_allocs
    later = session(model)
    later.run(None, {"x": X})
    assert pool.stats().num_allocs == before
    made.run(None, {"x": X})
    assert pool.stats().num_allocs > before
    del made
    assert in_use(pool) == 0


def test_options_without_the_entry_leave_a_session_outside(model: bytes, pool: Pool) -> None:
    with pooled.use(pool):
        expected(model)
    assert pool.stats().num_allocs == 0


def test_blocks_nest(model: bytes, pool: Pool) -> None:
    inner = Pool("32MiB", name="inner")
    with pooled.use(pool):
        with pooled.use(inner):
            first = session(model)
        second = session(model)
    assert inner.stats().in_use == pool.stats().in_use == WEIGHTS
    del first, second
    assert in_use(inner) == in_use(pool) == 0


def test_a_block_inside_an_installation_returns_to_it(model: bytes, pool: Pool) -> None:
    inner = Pool("32MiB", name="inner")
    pooled.install(pool)
    with pooled.use(inner), pytest.raises(RuntimeError, match=r"uninstall\(\) inside a use\(\) block"):
        pooled.uninstall()
    made = session(model)
    pooled.uninstall()
    assert (pool.stats().in_use, inner.stats().num_allocs) == (WEIGHTS, 0)
    del made


def test_a_pool_is_installed_again_and_again(model: bytes, pool: Pool) -> None:
    for _ in range(100):
        pooled.install(pool)
        pooled.uninstall()
    with pooled.use(pool):
        made = session(model)
    assert pool.stats().in_use == WEIGHTS
    del made


def test_a_refused_run_has_the_report_and_harms_nothing(model: bytes, pool: Pool) -> None:
    with pooled.use(pool):
        made = session(model)
    before = pool.stats().in_use
    with pytest.raises(Exception, match=r"pool 'guests': out of memory: asked for 64 MiB") as refused:
        made.run(None, {"x": np.zeros((64 << 20 >> 8, WIDTH), np.float32)})
    assert type(refused.value).__module__.startswith("onnxruntime.")
    assert "verdict        the request alone is above the limit" in str(refused.value)
    del refused
    assert in_use(pool) == before
    assert np.array_equal(made.run(None, {"x": X})[0], expected(model))


def test_a_model_that_does_not_fit_leaves_nothing(model: bytes) -> None:
    small = Pool(2 * WIDTH * WIDTH * 4, name="small")
    with pooled.use(small), pytest.raises(Exception, match=r"pool 'small': out of memory") as refused:
        session(model)
    assert type(refused.value).__module__.startswith("onnxruntime.")
    del refused
    assert in_use(small) == 0
    with pooled.use(small):
        assert session(mlp(WIDTH, layers=1)).run(None, {"x": X[:1]})[0].shape == (1, WIDTH)


def test_a_closed_pool_refuses_and_says_so(model: bytes, pool: Pool) -> None:
    with pooled.use(pool):
        made = session(model)
    pool.close()
    with pytest.raises(
        Exception, match=r"pool 'guests' is closed, and onnxruntime still takes its memory from it"
    ):
        made.run(None, {"x": X})
    del made
    assert in_use(pool) == 0


def test_the_tag_of_the_thread_comes_first(model: bytes, pool: Pool) -> None:
    former = set_tag("weights")
    try:
        with pooled.use(pool):
            made = session(model)
    finally:
        set_tag(former)
    assert requested_by_owner(pool) == {"weights": WEIGHTS}
    del made


def test_a_logical_device_is_named_as_for_numpy() -> None:
    with pytest.raises(TypeError, match="expected a Pool, a logical device or its name"):
        pooled.install(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="onnxruntime needs memory of this process"):
        pooled.use(Pool("1MiB", source="address-space"))


def test_one_installation_at_a_time(pool: Pool) -> None:
    pooled.install(pool)
    with pytest.raises(RuntimeError, match="is in a pool already"):
        pooled.install(pool)
    pooled.uninstall()


def test_another_threads_block_is_in_the_way(pool: Pool) -> None:
    with pooled.use(pool), ThreadPoolExecutor(1) as threads:
        entered = threads.submit(pooled.use(pool).__enter__)
        with pytest.raises(RuntimeError, match="another thread is in a use"):
            entered.result()


def test_without_onnxruntime_the_error_says_what_to_install(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnxruntime"):
        pooled.install(pool)


def test_sessions_on_many_threads(model: bytes, pool: Pool) -> None:
    result = expected(model)
    with pooled.use(pool):
        shared = session(model)
    start = threading.Barrier(8)

    def work(made: Any) -> bool:
        start.wait()
        return all(np.array_equal(made.run(None, {"x": X})[0], result) for _ in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, [shared] * 8))
    del shared
    assert in_use(pool) == 0


PROGRAM = """
import os, sys, threading, time, gc
sys.path[:0] = {path!r}
import numpy as np, onnxruntime, allotment
from allotment.integrations import onnxruntime as pooled
from support.models import mlp
model, x = mlp({width}), np.ones((4, {width}), np.float32)
pool = allotment.Pool("32MiB", name="guests")
def session():
    options = pooled.session_options()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(model, options)
pooled.install(pool)
"""

ENDS = {
    "alive at exit": "made = session(); result = made.run(None, {'x': x})",
    "pool deleted first": "made = session(); del pool; made.run(None, {'x': x})",
    "pool closed first": "made = session(); pool.close()",
    "uninstalled, alive": "made = session(); result = made.run(None, {'x': x}); pooled.uninstall()",
    "in a cycle": "made = [session()]; made.append(made); del made",
    "kept by the library": "onnxruntime.mine = session()",
    "made in atexit": "import atexit; atexit.register(lambda: session().run(None, {'x': x}))",
    # A daemon thread inside `run` at the end of the process aborts it, with ONNX Runtime's own memory, too.
    "held by a daemon thread": """
def hold():
    made = session()
    result = made.run(None, {'x': x})
    held.set()
    time.sleep(60)
held = threading.Event()
threading.Thread(target=hold, daemon=True).start()
held.wait()
""",
    "another allocator was registered": """
pooled.uninstall()
onnxruntime.create_and_register_allocator(
    onnxruntime.OrtMemoryInfo("Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0,
        onnxruntime.OrtMemType.DEFAULT), None)
pooled.install(pool)
made = session()
assert pool.stats().in_use > 0
pooled.uninstall()
session().run(None, {'x': x})
""",
    "a forked child runs, makes and drops sessions": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
made = session()
(kept,) = made.run(None, {'x': x})
before = pool.stats().in_use
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        (result,) = made.run(None, {'x': x})
        assert np.array_equal(result, kept)
        child = session()
        assert np.array_equal(child.run(None, {'x': x})[0], kept)
        del kept, made, child, result
        gc.collect()
        pooled.uninstall()
        os._exit(0)  # ONNX Runtime aborts at the exit of a forked child, whatever its allocator
    assert os.waitpid(pid, 0)[1] == 0
assert pool.stats().in_use == before
""",
    "os._exit": "made = session(); os._exit(0)",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_process_is_silent(name: str) -> None:
    # The threads of a session do not survive a fork, whatever its allocator.
    threads = 1 if "fork" in name else 2
    setting = PROGRAM.format(path=sys.path, width=WIDTH).replace("THREADS", str(threads))
    done = run_program(setting + ENDS[name])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
