"""Runs programs with a CUDA driver that stands in for NVIDIA's: `make develop` builds it."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from allotment.devices.environment.settings import VARIABLES
from support.child import run_program

_TESTS = Path(__file__).parents[1]
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target"))
DRIVER = _TARGET / "debug" / "liballotment_cuda_stand_in.so"

#: The start of each program: `outstanding()` counts what the driver has not got back, by kind; `fail_at(n)` lets the
#: nth call from now on fail, `calls()` and `failed()` tell how many there were and which one failed. `create_stream()`
#: and `destroy_stream(handle)` are the driver's; `queue_work(handle)` queues work, and `is_behind(handle, work)` tells
#: whether the next work of a stream would come after it.
_PROLOGUE = """
import ctypes, sys
sys.path.insert(0, {tests!r})
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

driver.standInQueueWork.argtypes = driver.standInStreamNumber.argtypes = (ctypes.c_uint64,)
driver.standInQueueWork.restype = driver.standInStreamNumber.restype = ctypes.c_uint64
driver.standInIsBehind.argtypes = (ctypes.c_uint64,) * 3
driver.standInIsBehind.restype = ctypes.c_bool
driver.cuCtxPushCurrent_v2.argtypes = (ctypes.c_void_p,)
driver.cuStreamDestroy_v2.argtypes = (ctypes.c_uint64,)

def enter_context(device=0):
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0

def create_stream():
    stream = ctypes.c_uint64()
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    return stream.value

def destroy_stream(stream):
    assert driver.cuStreamDestroy_v2(stream) == 0

def queue_work(stream):
    return driver.standInStreamNumber(stream), driver.standInQueueWork(stream)

def is_behind(stream, work):
    return driver.standInIsBehind(stream, *work)
"""


def run_on_stand_in(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter with the stand-in as its CUDA driver.

    Args:
        program: The program, after definitions of `outstanding`, `fail_at` and others, see above.
        **environ: Further environment variables, such as those of the stand-in's README.
    """
    if not DRIVER.exists():
        pytest.fail(f"{DRIVER} is not there: make develop builds it")
    names = [*(variable.name for variable in VARIABLES)]
    wanted = {"ALLOTMENT_CUDA_DRIVER": str(DRIVER), **environ}
    first = f"import os; [os.environ.pop(name, None) for name in {names}]; os.environ.update({wanted})\n"
    return run_program(
        first + _PROLOGUE.format(driver=str(DRIVER), tests=str(_TESTS)) + textwrap.dedent(program)
    )


def check(done: subprocess.CompletedProcess[str]) -> None:
    """Fail unless a program has ended well and printed nothing on stderr."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
