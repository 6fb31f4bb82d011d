"""Tensors of tvm-ffi in a pool."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import tvm_ffi as pooled
from support.child import run_program
from support.guests.tvm_ffi_module import Empty, compiled, loaded
from support.pools.owners import in_use, requested_by_owner


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("tvm_ffi"))


@pytest.fixture(scope="module")
def empty(library: Path) -> Empty:
    return loaded(library)


@pytest.fixture
def pool() -> Pool:
    return Pool("4MiB", name="guests", owner_tags=True)


@pytest.fixture(autouse=True)
def nothing_stays_installed(empty: Empty) -> Iterator[None]:
    yield
    with pytest.raises(RuntimeError, match="allocator is nullptr"):
        empty(1)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_tensors_are_in_the_pool_and_go_home(
    shape: tuple[int, ...], dtype: str, pool: Pool, empty: Empty
) -> None:
    with pooled.use(pool):
        tensor = empty(*shape, dtype=dtype)
    array = np.from_dlpack(tensor)
    expected = np.empty(shape, dtype)
    assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, expected.dtype, True)
    # The smallest request is one byte.
    assert requested_by_owner(pool) == {"tvm_ffi": max(expected.nbytes, 1)}
    array[...] = 1
    del tensor
    assert pool.stats().in_use > 0
    del array
    assert in_use(pool) == 0


def test_elements_of_less_than_a_byte_share_bytes(pool: Pool, empty: Empty) -> None:
    with pooled.use(pool):
        tensor = empty(5, dtype="float4_e2m1fn")
    assert requested_by_owner(pool) == {"tvm_ffi": 3}
    del tensor


def test_a_refusal_is_a_memory_error_with_the_report(pool: Pool, empty: Empty) -> None:
    with pooled.use(pool):
        with pytest.raises(MemoryError, match="pool 'guests': out of memory: asked for 32 MiB"):
            empty(1 << 23)
        assert empty(1 << 18).shape == (1 << 18,)
    assert in_use(pool) == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"shape": (-1,)}, r"no tensor can have the shape \[-1\]"),
        ({"shape": (0, -1)}, r"no tensor can have the shape \[0, -1\]"),
        ({"shape": (1 << 40, 1 << 40)}, "no tensor can have the shape"),
        ({"shape": (1,), "device": "cuda"}, "holds memory of the CPU"),
    ],
)
def test_what_cannot_be_in_the_pool(arguments: dict[str, Any], reason: str, pool: Pool, empty: Empty) -> None:
    with pooled.use(pool), pytest.raises(ValueError, match=reason):
        empty(*arguments.pop("shape"), **arguments)
    assert pool.stats().num_allocs == 0


def test_more_bytes_than_there_are_addresses(pool: Pool, empty: Empty) -> None:
    with pooled.use(pool), pytest.raises(MemoryError, match="cannot allocate"):
        empty((1 << 62), dtype="float64")


def test_a_block_applies_to_its_thread_and_an_installation_to_all(pool: Pool, empty: Empty) -> None:
    outer = Pool("4MiB", name="outer")
    with ThreadPoolExecutor(1) as other:
        with pooled.use(pool), pytest.raises(RuntimeError, match="allocator is nullptr"):
            other.submit(empty, 1).result()
        pooled.install(outer)
        with pytest.raises(RuntimeError, match="is in a pool already"):
            pooled.install(pool)
        with pooled.use(pool):
            here, there = empty(1), other.submit(empty, 300).result()
        assert (pool.stats().requested, outer.stats().requested) == (4, 1200)
        after = empty(10)
        assert outer.stats().requested == 1240
        pooled.uninstall()
    with pytest.raises(RuntimeError, match="nothing to uninstall"):
        pooled.uninstall()
    del here, there, after
    assert in_use(pool) == in_use(outer) == 0


def test_blocks_nest(pool: Pool, empty: Empty) -> None:
    inner = Pool("4MiB", name="inner")
    with pooled.use(pool):
        with pooled.use(inner):
            first = empty(1)
        second = empty(2)
    assert (inner.stats().requested, pool.stats().requested) == (4, 8)
    del first, second


def test_what_is_not_a_pool_of_this_process() -> None:
    with pytest.raises(TypeError, match="expected a Pool, a logical device or its name"):
        pooled.install(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tvm_ffi needs memory of this process"):
        pooled.use(Pool("1MiB", source="address-space"))


def test_without_tvm_ffi_the_error_says_what_to_install(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm_ffi.libinfo", None)
    with pytest.raises(ModuleNotFoundError, match="pip install apache-tvm-ffi"):
        pooled.install(pool)


def test_many_threads(pool: Pool, empty: Empty) -> None:
    start = threading.Barrier(8)

    def work(value: int) -> bool:
        start.wait()
        for size in range(200):
            array = np.from_dlpack(empty(size))
            array[:] = value
            if not (array == value).all():
                return False
        return True

    pooled.install(pool)
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))
    pooled.uninstall()
    assert in_use(pool) == 0


PROGRAM = """
import os, sys, gc
sys.path[:0] = {path!r}
import numpy as np, tvm_ffi, allotment
from allotment.integrations import tvm_ffi as pooled
empty = tvm_ffi.load_module({library!r}).empty
pool = allotment.Pool("32MiB", name="guests")
pooled.install(pool)
def made(n=1000): return np.from_dlpack(empty((n,), tvm_ffi.dtype("float32"), tvm_ffi.device("cpu", 0)))
"""

ENDS = {
    "alive at exit": "a = made()",
    "pool deleted first": "a = made(); del pool; b = made()",
    "pool closed first": "a = made(); pool.close()",
    "uninstalled, alive": "a = made(); pooled.uninstall()",
    "kept by the library": "tvm_ffi.mine = made()",
    "made in atexit": "import atexit; atexit.register(made)",
    "forked children make and drop tensors": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
kept = made()
kept[:] = 3
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        assert (kept == 3).all()
        own = [made(n) for n in (1, 10**6)]
        del kept, own
        pooled.uninstall()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
assert pool.stats().requested == 4000
""",
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_the_process_is_silent(name: str, library: Path) -> None:
    done = run_program(PROGRAM.format(path=sys.path, library=str(library)) + ENDS[name])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
