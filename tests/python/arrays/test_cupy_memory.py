"""The allocator for CuPy: chunks, streams and refusals, with CuPy's wheel where it is installed, else a stand-in.

Nothing here needs a GPU: addresses are of host memory, and no array is read.
"""

import gc
import importlib.util
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from allotment import OutOfMemoryError, Pool
from allotment.arrays.cupy import PoolAllocator, load_cupy
from support.arrays.cupy_memory import Cupy

REAL = importlib.util.find_spec("cupy") is not None


class FakeStream:
    """A stream with a handle."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Machine:
    """CuPy with our allocator, on a device whose streams and number the test sets."""

    def __init__(self, cupy: Any, limit: str = "1MiB") -> None:
        self.cupy = cupy
        self.stream = FakeStream(0)
        self.device = 0
        self.pool = Pool(limit, source="host")
        self.allocator = PoolAllocator(self.pool, 0, lambda: self.stream, lambda: self.device)
        cupy.cuda.set_allocator(self.allocator)

    def empty(self, size: int) -> Any:
        return self.cupy.empty(size, "f4")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    if not REAL:
        monkeypatch.setitem(sys.modules, "cupy", Cupy())
    cupy = load_cupy()
    made = Machine(cupy)
    yield made
    cupy.cuda.set_allocator(None)


def test_an_array_keeps_its_chunk_until_its_last_view_is_gone(machine: Machine) -> None:
    array = machine.empty(1000)
    assert machine.pool.stats().requested == 4000
    assert array.data.ptr % 256 == 0
    assert array.data.mem.size == 4000
    assert array.data.device_id == 0
    view = array[10:]
    assert view.data.ptr == array.data.ptr + 40
    del array
    assert machine.pool.stats().num_live == 1
    del view
    assert machine.pool.stats().num_live == 0


def test_an_array_without_elements_has_an_address_of_its_own(machine: Machine) -> None:
    first, second = machine.empty(0), machine.empty(0)
    assert 0 != first.data.ptr != second.data.ptr
    del first, second
    assert machine.pool.stats().in_use == 0


def test_a_refusal_is_cupys_error_with_the_report_of_the_pool(machine: Machine) -> None:
    kept = machine.empty(100_000)
    with pytest.raises(
        machine.cupy.cuda.memory.OutOfMemoryError, match="allocating 1,200,000 bytes"
    ) as caught:
        machine.empty(300_000)
    cause = caught.value.__cause__
    assert isinstance(cause, OutOfMemoryError)
    assert cause.limit == 1 << 20
    assert any("out of memory: asked for" in note for note in caught.value.__notes__)
    assert machine.pool.stats().requested == 400_000
    del kept


def test_an_array_keeps_the_stream_that_its_memory_is_freed_behind(machine: Machine) -> None:
    array = machine.empty(10)
    stream = weakref.ref(machine.stream)
    machine.stream = FakeStream(7)
    gc.collect()
    assert stream() is not None
    del array
    gc.collect()
    assert stream() is None


def test_memory_under_an_array_is_freed_by_the_array_alone(machine: Machine) -> None:
    array = machine.empty(10)
    with pytest.raises(BufferError):
        machine.pool.free(array.data.ptr)
    del array
    assert machine.pool.stats().num_live == 0


def test_another_current_device_is_refused(machine: Machine) -> None:
    machine.device = 1
    with pytest.raises(ValueError, match="CUDA device 0, and device 1 is the current one"):
        machine.empty(10)
    assert machine.pool.stats().num_live == 0


def test_without_cupy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ModuleNotFoundError, match="pip install cupy-cuda12x") as caught:
        PoolAllocator(Pool("1MiB"), 0)
    assert caught.value.__context__ is None or caught.value.__context__.__traceback__ is None


def test_a_cupy_that_is_broken_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match=r"import fails with ImportError: libcudart\.so\.12") as caught:
        load_cupy()
    assert isinstance(caught.value.__cause__, ImportError)
