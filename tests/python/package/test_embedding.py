"""Programs that embed Python: imports that happen again, other interpreters of the process, and what a wheel claims."""

import importlib
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import allotment
from allotment import Pool
from support.child import run_program


def test_b038_another_interpreter_gets_a_clean_error_and_disturbs_nobody() -> None:
    # Field report B038 (PyO3#2523, #3451).
    program = """
import _xxsubinterpreters as interpreters
from allotment import Pool

pool = Pool("1MiB")
held = pool.malloc(1000)
other = interpreters.create()
for _ in range(2):
    try:
        interpreters.run_string(other, "import allotment._core")
    except interpreters.RunFailedError as error:
        print(str(error))
interpreters.destroy(other)
assert pool.stats().num_live == 1
pool.free(held)
print(pool.stats().num_live, Pool("1MiB").malloc(1) > 0)
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    *errors, last = done.stdout.splitlines()
    assert last == "0 True"
    assert len(errors) == 2
    for error in errors:
        assert "ImportError" in error
        assert "one interpreter can have it" in error


#: What an interpreter has done that is not ended before the process, by name.
LEFT_BEHIND = {
    "imported": "import allotment",
    "a leak in guard mode": "from allotment import Pool; pool = Pool('1MiB', guard=True); pool.malloc(10)",
    "a pool that is closed at exit": """
import atexit
from allotment import Pool
pool = Pool("1MiB", guard=True)
held = pool.allocate(10)
atexit.register(pool.close)
""",
    "a pool that is trimmed when idle": """
from allotment import Pool
pool = Pool("1MiB", idle_trim_seconds=0.01)
pool.free(pool.malloc(10))
""",
    "a block that was never left": """
from allotment import Pool
pool = Pool("1MiB")
def steps():
    with pool, pool.scope("step", limit=1000), pool.allocate(10):
        yield
entered = steps()
next(entered)
""",
    "arrays in a pool": """
import numpy as np
from allotment import Pool
from allotment.integrations import numpy as pooled
pooled.install(Pool("1MiB"))
arrays = [np.ones(size) for size in range(50)]
""",
}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_b214_a_process_ends_with_an_interpreter_that_was_not_ended(name: str) -> None:
    # Field report B214 (PyO3#4874): a thread that lets go of the interpreter's lock there never gets it back.
    program = "import warnings; warnings.simplefilter('ignore')\n" + LEFT_BEHIND[name]
    done = run_program(f"""
import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, {program!r})
print("end", flush=True)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_b214_calls_at_the_end_of_such_an_interpreter_do_not_wait(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    reached.write_bytes(b"no ")
    at_exit = f"""
import atexit, ctypes, mmap, warnings
warnings.simplefilter("ignore")
from allotment import InvalidFreeError, OutOfMemoryError, Pool
with open({str(reached)!r}, "r+b") as file:
    shown = mmap.mmap(file.fileno(), 0)
# Its end is a call of the system: the interpreter lets go of its lock for those.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(shown))
pool = Pool("1MiB", growth=False)
def at_exit():
    with pool.scope("step", limit="512KiB") as scope, pool.allocate(1000):
        for call, kind in ((lambda: pool.malloc("2MiB"), OutOfMemoryError), (lambda: pool.free(5), InvalidFreeError)):
            try:
                call()
            except kind:
                pass
    pool.stats(), pool.snapshot(), pool.explain(10), pool.trim(), pool.close(), scope.peak
    shown[:] = b"yes"
atexit.register(at_exit)
"""
    done = run_program(f"""
import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, {at_exit!r})
print("end", flush=True)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    assert reached.read_bytes() == b"yes"


def test_another_interpreter_does_not_get_the_compiled_module_of_the_first() -> None:
    # Without NumPy in front of it. Its classes are those of the interpreter that made them.
    second = f"""
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("allotment._core", {allotment._core.__file__!r})
spec.loader.exec_module(module_from_spec(spec))
"""
    done = run_program(f"""
import _xxsubinterpreters as interpreters
from allotment import Pool
pool = Pool("1MiB")
try:
    interpreters.run_string(interpreters.create(), {second!r})
except interpreters.RunFailedError as error:
    print(str(error))
pool.free(pool.malloc(10))
""")
    assert done.returncode == 0, done.stderr
    assert "ImportError" in done.stdout
    assert "interpreter 0 of this process" in done.stdout


def test_b038_a_second_import_is_of_the_same_pools() -> None:
    pool = Pool("1MiB")
    held = pool.malloc(1000)
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "allotment"}
    try:
        for name in kept:
            del sys.modules[name]
        again = importlib.import_module("allotment._core")
        assert isinstance(pool, again.Pool)
        again.Pool("1MiB").malloc(1)
        with pytest.raises(again.OutOfMemoryError):
            pool.malloc("2MiB")
        with pytest.raises(allotment.OutOfMemoryError):
            again.Pool("1MiB").malloc("2MiB")
    finally:
        sys.modules.update(kept)
    assert pool.stats().num_live == 1
    pool.free(held)


def test_b039_the_wheel_is_the_one_that_was_meant() -> None:
    # Field report B039 (dhi#58, maturin#2772): one stable-ABI wheel from Python 3.11 on, none for free-threaded ones.
    wheel = distribution("allotment").read_text("WHEEL")
    assert wheel is not None
    tags = [line.removeprefix("Tag: ") for line in wheel.splitlines() if line.startswith("Tag: ")]
    assert tags
    assert all(tag.startswith("cp311-abi3-") for tag in tags), tags
