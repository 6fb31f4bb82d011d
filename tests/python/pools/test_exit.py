"""The end of the interpreter, with memory still out (field report B027: torch-spyre#476, cupy#2658)."""

import pytest

from support.child import run_program

SETUP = """
import gc, os, sys, threading, time
import numpy as np
from allotment import Pool

class Numbers:
    next = 1 << 20
    def reserve(self, nbytes, alignment):
        self.next += nbytes
        return self.next - nbytes, nbytes
    def release(self, address, nbytes):
        pass

pool = Pool("64MiB")
"""

PROGRAMS = {
    "live at exit": ("a = pool.allocate(1000); b = np.frombuffer(a, np.uint8)", 0),
    "raw address at exit": ("a = pool.malloc(1000)", 0),
    "in a cycle": ("a = [pool.allocate(1000)]; a.append(a); del a", 0),
    "in a cycle, collector off": ("gc.disable(); a = [pool.allocate(1000)]; a.append(a); del a", 0),
    "pool gone first": ("a = np.frombuffer(pool.allocate(1000), np.uint8); del pool; a[:] = 1", 0),
    "python source": ("p = Pool('64MiB', source=Numbers()); a = p.allocate(1000); b = p.malloc(5000)", 0),
    "python source in a cycle": (
        "s = Numbers(); s.pool = Pool('64MiB', source=s); s.a = s.pool.allocate(1000); del s",
        0,
    ),
    "closed with a live allocation": ("a = pool.allocate(1000); pool.close()", 0),
    "daemon thread holds it": (
        """
def hold():
    a = pool.allocate(1000)
    time.sleep(60)
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    "daemon thread allocates": (
        """
def churn():
    while True:
        a = [pool.allocate(1000) for _ in range(10)]
threading.Thread(target=churn, daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    "daemon thread in a slow source": (
        """
class Slow(Numbers):
    def reserve(self, nbytes, alignment):
        time.sleep(60)
        return super().reserve(nbytes, alignment)
p = Pool('64MiB', source=Slow())
threading.Thread(target=p.malloc, args=(1,), daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    "daemon thread waits for memory": (
        """
p = Pool('1MiB', growth=False, wait_seconds=60)
p.malloc('1MiB')
threading.Thread(target=p.malloc, args=(1,), daemon=True).start()
time.sleep(0.05)
""",
        0,
    ),
    # The process outlives the interpreter by a second: the C library calls sleep(exit status) on its way out.
    "daemon thread waits longer than the interpreter lives": (
        """
import ctypes
p = Pool('1MiB', growth=False, wait_seconds=60)
p.malloc('1MiB')
threading.Thread(target=p.malloc, args=(1,), daemon=True).start()
time.sleep(0.05)
libc = ctypes.CDLL(None)
libc.on_exit(ctypes.cast(libc.sleep, ctypes.c_void_p), None)
sys.exit(1)
""",
        1,
    ),
    "sys.exit": ("a = pool.allocate(1000); sys.exit(3)", 3),
    "uncaught exception": ("a = pool.allocate(1000); raise SystemError('mine')", 1),
    "os._exit": ("a = pool.allocate(1000); os._exit(0)", 0),
    "freed in atexit": ("import atexit; a = pool.allocate(1000); atexit.register(a.free)", 0),
    "module removed and imported again": (
        """
a = pool.allocate(1000)
for name in [n for n in sys.modules if n.startswith('allotment')]:
    del sys.modules[name]
import allotment
b = allotment.Pool('1MiB').allocate(10)
pool.free(pool.malloc(10))
""",
        0,
    ),
}


def check(name: str) -> None:
    program, status = PROGRAMS[name]
    done = run_program(SETUP + program)
    errors = done.stderr.strip().splitlines()
    if name == "uncaught exception":
        assert errors[-1] == "SystemError: mine"
        assert errors[0].startswith("Traceback")
        assert len(errors) < 6
    else:
        assert errors == []
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_b027_the_status_is_the_programs_own_and_nothing_is_said(name: str) -> None:
    check(name)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROGRAMS)
def test_b027_two_hundred_times(name: str) -> None:
    for _ in range(200):
        check(name)
