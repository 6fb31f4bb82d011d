"""Runs programs with a CUDA driver that stands in for NVIDIA's: `make develop` builds it."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from allotment.devices.environment.settings import VARIABLES
from support.child import run_program

_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target"))
DRIVER = _TARGET / "debug" / "liballotment_cuda_stand_in.so"

#: The start of each program: `outstanding()` counts what the driver has not got back, by kind; `fail_at(n)` lets the
#: nth call from now on fail, `calls()` and `failed()` tell how many there were and which one failed.
_PROLOGUE = """
import ctypes
driver = ctypes.CDLL({driver!r})
driver.standInFailed.restype = ctypes.c_char_p
driver.standInCalls.restype = ctypes.c_uint64
driver.standInFailAt.argtypes = (ctypes.c_uint64, ctypes.c_uint)

def outstanding():
    counts = (ctypes.c_uint64 * 7)()
    driver.standInOutstanding(counts)
    names = ("allocations", "ranges", "handles", "mappings", "contexts", "bytes", "events")
    return {{name: count for name, count in zip(names, counts) if count}}

def fail_at(nth, status=999):
    driver.standInFailAt(nth, status)

calls, failed = driver.standInCalls, driver.standInFailed
"""


def run_on_stand_in(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter with the stand-in as its CUDA driver.

    Args:
        program: The program, after definitions of `outstanding`, `fail_at`, `calls` and `failed`.
        **environ: Further environment variables, such as those of the stand-in's README.
    """
    if not DRIVER.exists():
        pytest.fail(f"{DRIVER} is not there: make develop builds it")
    names = [*(variable.name for variable in VARIABLES)]
    wanted = {"ALLOTMENT_CUDA_DRIVER": str(DRIVER), **environ}
    first = f"import os; [os.environ.pop(name, None) for name in {names}]; os.environ.update({wanted})\n"
    return run_program(first + _PROLOGUE.format(driver=str(DRIVER)) + textwrap.dedent(program))


def check(done: subprocess.CompletedProcess[str]) -> None:
    """Fail unless a program has ended well and printed nothing on stderr."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
