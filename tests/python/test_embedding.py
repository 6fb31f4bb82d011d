"""Programs that embed Python: imports that happen again, other interpreters of the process, and what a wheel claims."""

import importlib
import sys
from importlib.metadata import distribution

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
        # NumPy's word, which is imported first: it has one interpreter to a process.
        assert "more than once per process" in error


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
