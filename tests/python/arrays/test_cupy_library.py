"""CuPy as the library of a device: when it is imported, and what hinders it from computing there."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.arrays.cupy import CupyLibrary
from allotment.errors import InternalError

BUS = "0000:3a:00.0"
MEMORY = SimpleNamespace(UnownedMemory=object, MemoryPointer=object, OutOfMemoryError=MemoryError)


def library() -> CupyLibrary:
    return CupyLibrary(Pool("1MiB"), 0, BUS)


class _Block:
    """A device or an allocator in force, for a ``with`` block."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def fake_cupy(bus: str | Exception) -> Any:
    """Return as much of CuPy as a look at one device needs."""

    def bus_id(device: int) -> str:
        assert device == 0
        if isinstance(bus, Exception):
            raise bus
        return bus

    runtime = SimpleNamespace(deviceGetPCIBusId=bus_id, getDevice=lambda: 0)
    cuda = SimpleNamespace(
        runtime=runtime, Device=_Block, using_allocator=_Block, memory=MEMORY, get_current_stream=lambda: None
    )
    return SimpleNamespace(__version__="14.2.0", cuda=cuda, ndarray=list, dtype=np.dtype, empty=refused)


def refused(shape: tuple[int, ...], dtype: Any) -> None:
    raise MemoryError


def test_a_cupy_that_is_absent_is_a_fault_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    fault = library().fault
    assert fault is not None
    assert "cupy, which is not installed: pip install cupy-cuda12x or cupy-cuda13x" in fault


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('libcudart.so.12: no such file')", "ImportError: libcudart.so.12: no such file"),
        ("raise OSError('bad ELF header')", "OSError: bad ELF header"),
        ("import a_package_of_cupys", "ModuleNotFoundError: No module named 'a_package_of_cupys'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        (
            "try:\n    raise ImportError('libnvrtc.so.12: no such file')\nexcept ImportError as first:\n"
            "    raise ImportError('=====\\nadvice\\n=====') from first",
            "ImportError: libnvrtc.so.12: no such file",
        ),
    ],
)
def test_an_import_of_cupy_that_fails_is_a_fault_with_its_reason(
    source: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cupy.py").write_text(source)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert library().fault == f"CuPy is installed, and its import fails: {reason}"


@pytest.mark.parametrize(
    ("bus", "fault"),
    [
        (BUS, None),
        (BUS.upper(), None),
        (f"0000{BUS}", None),
        (
            AttributeError("module 'cupy' has no attribute 'cuda'"),
            "CuPy cannot use CUDA device 0: AttributeError: module 'cupy' has no attribute 'cuda'",
        ),
        (
            RuntimeError("cudaErrorInsufficientDriver: too old"),
            "CuPy cannot use CUDA device 0: RuntimeError: cudaErrorInsufficientDriver: too old",
        ),
        (
            "0000:01:00.0",
            f"CUDA device 0 is the one at {BUS}, and CuPy's device of that number the one at 0000:01:00.0: CuPy works "
            "with another CUDA driver",
        ),
    ],
)
def test_cupys_device_must_be_there_and_be_the_same(
    bus: str | Exception, fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(bus))
    found = library()
    assert found.fault == fault
    if fault is None:
        assert found.call(int, "11", base=2) == 3
    else:
        with pytest.raises(RuntimeError) as caught:
            found.call(int)
        assert str(caught.value) == fault


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_cupys_wheel_without_a_device_is_a_fault() -> None:
    cupy: Any = importlib.import_module("cupy")
    if cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    fault = library().fault
    assert fault is not None
    assert fault.startswith("CuPy cannot use CUDA device 0: CUDARuntimeError: cudaError")


class _CudaError(RuntimeError):
    """An error of CuPy's, by its module."""


_CudaError.__module__ = "cupy_backends.cuda.api.runtime"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cudaErrorIllegalAddress: an illegal memory access was encountered", InternalError),
        ("cudaErrorMemoryAllocation: out of memory", MemoryError),
    ],
)
def test_a_failure_of_cuda_is_an_error_of_this_package(
    text: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(BUS))

    def fail() -> None:
        raise _CudaError(text)

    with pytest.raises(kind, match=f"_CudaError: {text}") as caught:
        library().call(fail)
    assert caught.value.__context__ is None


def test_other_errors_of_a_kernel_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(BUS))
    with pytest.raises(ValueError, match="invalid literal"):
        library().call(int, "x")


def test_an_array_that_does_not_fit_is_known_by_shape_and_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(BUS))
    with pytest.raises(MemoryError) as caught:
        library().empty((1 << 20, 3), np.dtype(np.float32))
    error: Any = caught.value
    assert (error.shape, error.dtype) == ((1 << 20, 3), np.float32)


def test_an_array_beyond_all_addresses_is_refused_before_cupy_computes_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(BUS))
    with pytest.raises(ValueError, match="array is too big"):
        library().empty((1 << 62,), np.float32)
