"""A compiled module for tvm-ffi, whose function ``empty`` creates tensors."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("tvm_ffi_empty.cc")
Empty = Callable[..., Any]


def compiled(folder: Path) -> Path:
    """Compile the module; skip the test without tvm-ffi or a C++ compiler."""
    tvm_ffi: Any = pytest.importorskip("tvm_ffi", reason="tvm-ffi is not installed")
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    target = folder / "empty.so"
    info = tvm_ffi.libinfo
    headers = [f"-I{info.find_include_path()}", f"-I{info.find_dlpack_include_path()}"]
    command = [
        compiler,
        "-std=c++17",
        "-shared",
        "-fPIC",
        *headers,
        SOURCE,
        info.find_libtvm_ffi(),
        "-o",
        target,
    ]
    subprocess.run(command, check=True, timeout=100)
    return target


def loaded(library: Path) -> Empty:
    """Return the module's function, with texts for types and devices."""
    import tvm_ffi

    function: Any = tvm_ffi.load_module(str(library)).empty

    def empty(*shape: int, dtype: str = "float32", device: str = "cpu") -> Any:
        return function(shape, tvm_ffi.dtype(dtype), tvm_ffi.device(device, 0))

    return empty
