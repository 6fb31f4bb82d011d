"""The stub, the compiled module, and what users import agree."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

import allotment
import allotment.tf as tf

ROOT = Path(__file__).resolve().parents[2]


def test_the_stub_is_that_of_the_compiled_module() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy.stubtest",
            "allotment._core",
            "--allowlist",
            str(ROOT / "tests/python/stubtest-allowlist.txt"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", [allotment, tf])
def test_every_public_name_is_there_and_documented(package: types.ModuleType) -> None:
    for name in package.__all__:
        value = getattr(package, name)
        if isinstance(value, types.FunctionType | type | types.ModuleType):
            assert value.__doc__, name
            module = getattr(value, "__module__", value.__name__)
            assert module.partition(".")[0] == "allotment"


def test_importing_the_package_imports_no_framework() -> None:
    heavy = ["click", "rich", "torch", "cupy", "tensorflow", "rmm"]
    program = f"import sys, allotment; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
