"""Access to NumPy's memory handlers through its C API: names, and direct calls of the installed handler."""

import ctypes
import importlib
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from support.child import run_program

OURS, DEFAULT = "allotment", "default_allocator"


def handler_name(*array: "np.ndarray[Any, Any]") -> str | None:
    """Return the name of an array's handler, or of the current context's; `None` if the array does not own its data."""
    from numpy._core.multiarray import get_handler_name

    name: str | None = get_handler_name(*array)
    return name


def address_of(array: "np.ndarray[Any, Any]") -> int:
    address: int = array.ctypes.data
    return address


class Functions(ctypes.Structure):
    """The C structure `PyDataMemAllocator` of NumPy."""

    _fields_ = (
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("calloc", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)),
        ("realloc", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("free", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
    )


class CurrentHandler:
    """Calls the functions of the current context's handler without the interpreter's lock, as NumPy does."""

    def __init__(self) -> None:
        capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API

        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
        #: Keeps the handler alive.
        self.capsule = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305] or 0)()
        self._functions = Functions.from_address(pointer(self.capsule, b"mem_handler") + 128)

    def malloc(self, nbytes: int) -> int | None:
        address: int | None = self._functions.malloc(self._functions.ctx, nbytes)
        return address

    def calloc(self, count: int, each: int) -> int | None:
        address: int | None = self._functions.calloc(self._functions.ctx, count, each)
        return address

    def realloc(self, address: int | None, nbytes: int) -> int | None:
        moved: int | None = self._functions.realloc(self._functions.ctx, address, nbytes)
        return moved

    def free(self, address: int | None, nbytes: int) -> None:
        self._functions.free(self._functions.ctx, address, nbytes)


#: First lines of the tests' programs.
PROGRAM = f"""
import sys
sys.path.append({str(Path(__file__).resolve().parents[2])!r})
import asyncio, contextvars, gc, os, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from numpy._core.multiarray import get_handler_name
from allotment import Pool
from allotment.integrations import numpy as pooled
pool = Pool("512MiB")
"""


def run_numpy_program(text: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that starts with `PROGRAM`."""
    return run_program(PROGRAM + textwrap.dedent(text))


def passes(text: str) -> None:
    """Run a program that starts with `PROGRAM`, and check that it prints nothing and succeeds."""
    done = run_numpy_program(text)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
