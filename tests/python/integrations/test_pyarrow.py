"""pyarrow's buffers in a pool."""

import io
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import pyarrow as pooled
from allotment.integrations import pyarrow_build
from support.child import run_program
from support.pools.owners import in_use, requested_by_owner

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="there is no C++ compiler"
)


@pytest.fixture
def pool() -> Pool:
    return Pool("64MiB", name="guests", owner_tags=True)


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Iterator[None]:
    own = pyarrow.default_memory_pool().backend_name
    yield
    assert pyarrow.default_memory_pool().backend_name == own != "allotment"


def test_what_pyarrow_allocates_is_in_the_pool_and_goes_home(pool: Pool) -> None:
    import pyarrow.compute
    import pyarrow.parquet

    with pooled.use(pool):
        assert pyarrow.default_memory_pool().backend_name == "allotment"
        a = pyarrow.array(range(100_000))
        b = pyarrow.compute.add(a, a)
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"b": b}), file)
        file.seek(0)
        table = pyarrow.parquet.read_table(file)
        assert requested_by_owner(pool) == {"pyarrow": pyarrow.total_allocated_bytes()}
        assert pyarrow.total_allocated_bytes() >= 3 * 800_000
    assert table["b"].combine_chunks() == b == pyarrow.array(range(0, 200_000, 2))
    del a, b, table, file
    assert in_use(pool) == 0
    assert pool.trim() > 0
    assert pool.stats().reserved == 0


def test_one_call_with_a_pool_of_its_own(pool: Pool) -> None:
    memory = pooled.memory_pool(pool)
    array = pyarrow.array([1.5] * 1000, memory_pool=memory)
    assert memory.bytes_allocated() == sum(requested_by_owner(pool).values()) >= 8000
    assert pooled.memory_pool(pool) is memory
    del array
    assert (memory.bytes_allocated(), in_use(pool)) == (0, 0)
    assert memory.max_memory() >= 8000


@pytest.mark.parametrize("sizes", [(0,), (1, 0, 5), (100, 1 << 20, 1 << 10), (1 << 20, (1 << 20) - 1, 1)])
def test_buffers_keep_their_data_when_they_are_resized(sizes: tuple[int, ...], pool: Pool) -> None:
    memory = pooled.memory_pool(pool)
    buffer = pyarrow.allocate_buffer(10, memory_pool=memory, resizable=True)
    kept = b"0123456789"
    np.frombuffer(buffer, np.uint8)[:] = bytearray(kept)
    for size in sizes:
        buffer.resize(size, shrink_to_fit=True)
        kept = kept[:size]
        assert (buffer.size, buffer.to_pybytes()[: len(kept)]) == (size, kept)
        assert memory.bytes_allocated() == sum(requested_by_owner(pool).values())
    del buffer
    assert in_use(pool) == 0


def test_a_buffer_that_shrinks_gives_its_chunk_back(pool: Pool) -> None:
    buffer = pyarrow.allocate_buffer(1 << 20, memory_pool=pooled.memory_pool(pool), resizable=True)
    buffer.resize(1 << 10, shrink_to_fit=True)
    assert pool.stats().in_use == 1 << 10
    del buffer


def test_a_refusal_is_pyarrows_memory_error_with_the_report(pool: Pool) -> None:
    import pyarrow.compute

    with pooled.use(pool):
        values = pyarrow.array(np.zeros(5 << 20))  # NumPy's own 40 MiB
        with pytest.raises(MemoryError, match="pool 'guests': out of memory: asked for 80 MiB") as refused:
            pyarrow.allocate_buffer(80 << 20)
        assert type(refused.value) is pyarrow.ArrowMemoryError
        assert "verdict        the request alone is above the limit" in str(refused.value)
        first = pyarrow.compute.add(values, 1)
        with pytest.raises(pyarrow.ArrowMemoryError, match="verdict        full"):
            pyarrow.compute.add(values, 1)
        del first
        assert pyarrow.compute.add(values, 1)[0].as_py() == 1
    assert in_use(pool) == 0


def test_a_resize_that_is_refused_changes_nothing(pool: Pool) -> None:
    memory = pooled.memory_pool(pool)
    buffer = pyarrow.allocate_buffer(10, memory_pool=memory, resizable=True)
    before = buffer.to_pybytes()
    with pytest.raises(pyarrow.ArrowMemoryError):
        buffer.resize(1 << 30)
    assert (buffer.size, buffer.to_pybytes(), memory.bytes_allocated()) == (10, before, 64)
    del buffer
    assert in_use(pool) == 0


def test_a_closed_pool_refuses_and_says_so(pool: Pool) -> None:
    memory = pooled.memory_pool(pool)
    buffer = pyarrow.allocate_buffer(10, memory_pool=memory)
    pool.close()
    with pytest.raises(
        pyarrow.ArrowMemoryError, match="pool 'guests' is closed, and pyarrow still takes its memory"
    ):
        pyarrow.allocate_buffer(10, memory_pool=memory)
    del buffer
    assert in_use(pool) == 0


def test_installing_and_blocks(pool: Pool) -> None:
    inner = Pool("64MiB", name="inner")
    pooled.install(pool)
    with pytest.raises(RuntimeError, match="is in a pool already"):
        pooled.install(pool)
    with pooled.use(inner):
        kept = pyarrow.allocate_buffer(1000)
        with pytest.raises(RuntimeError, match="inside a use"):
            pooled.uninstall()
    outer = pyarrow.allocate_buffer(2000)
    pooled.uninstall()
    with pytest.raises(RuntimeError, match="nothing to uninstall"):
        pooled.uninstall()
    plain = pyarrow.allocate_buffer(4000)
    assert (inner.stats().in_use, pool.stats().in_use) == (1024, 2048)
    del kept, outer, plain
    assert in_use(inner) == in_use(pool) == 0


def test_the_programs_own_choice_comes_back(pool: Pool) -> None:
    own = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        with pooled.use(pool):
            pass
        assert pyarrow.default_memory_pool().backend_name == "system"
    finally:
        pyarrow.set_memory_pool(own)


def test_what_is_not_a_pool_of_this_process() -> None:
    with pytest.raises(TypeError, match="expected a Pool, a logical device or its name"):
        pooled.install(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pyarrow needs memory of this process"):
        pooled.memory_pool(Pool("1MiB", source="address-space"))


def test_many_threads(pool: Pool) -> None:
    import pyarrow.compute

    with pooled.use(pool), ThreadPoolExecutor(8) as threads:
        start = threading.Barrier(8)

        def work(seed: int) -> bool:
            start.wait()
            values = pyarrow.array(np.random.default_rng(seed).random(10_000))
            return all(
                pyarrow.compute.sum(pyarrow.compute.subtract(values, values)).as_py() == 0 for _ in range(50)
            )

        assert all(threads.map(work, range(8)))
    assert in_use(pool) == 0


def test_without_a_compiler_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pool: Pool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"there is no C\+\+ compiler on the PATH"):
        pooled.memory_pool(pool)
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho too old >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    with pytest.raises(RuntimeError, match="which needs C\\+\\+20:\ntoo old"):
        pooled.memory_pool(pool)
    assert list((tmp_path / ".cache" / "allotment").iterdir()) == []


def test_the_library_is_kept_for_the_version_it_was_compiled_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pyarrow_build.library()
    (kept,) = (tmp_path / ".cache" / "allotment").iterdir()
    assert kept.name.startswith(f"pyarrow-{pyarrow.__version__}-")
    monkeypatch.setenv("PATH", str(tmp_path))
    pyarrow_build.library()


def test_a_home_that_cannot_be_written_to_costs_the_cache_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".cache").write_text("not a folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    pyarrow_build.library()


def test_without_pyarrow_the_error_says_what_to_install(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        pooled.memory_pool(pool)


PROGRAM = """
import os, sys, threading, time, gc
sys.path[:0] = {path!r}
import numpy as np, pyarrow, pyarrow.compute, allotment
from allotment.integrations import pyarrow as pooled
pool = allotment.Pool("32MiB", name="guests")
pooled.install(pool)
def made(): return pyarrow.compute.add(pyarrow.array(range(10_000)), 1)
"""

ENDS = {
    "alive at exit": "a = made()",
    "pool deleted first": "a = made(); del pool; b = made()",
    "pool closed first": "a = made(); pool.close()",
    "uninstalled, alive": "a = made(); pooled.uninstall(); b = made()",
    "in a cycle": "a = [made()]; a.append(a); del a",
    "kept by the library": "pyarrow.mine = made()",
    "made in atexit": "import atexit; atexit.register(made)",
    "a daemon thread makes arrays": """
def churn():
    while True: a = [made() for _ in range(10)]
threading.Thread(target=churn, daemon=True).start()
time.sleep(0.1)
""",
    "forked children make, resize and drop arrays": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
kept = made()
buffer = pyarrow.allocate_buffer(1000, resizable=True)
np.frombuffer(buffer, np.uint8)[:] = 7
before = pool.stats().in_use
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        assert kept[-1].as_py() == 10_000
        buffer.resize(1 << 20)
        assert (np.frombuffer(buffer, np.uint8)[:1000] == 7).all()
        for _ in range(100): again = pyarrow.array(range(1000))
        del kept, buffer, again
        gc.collect()
        pooled.uninstall()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
assert pool.stats().in_use == before
""",
    "os._exit": "a = made(); os._exit(0)",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_process_is_silent(name: str) -> None:
    done = run_program(PROGRAM.format(path=sys.path) + ENDS[name])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
