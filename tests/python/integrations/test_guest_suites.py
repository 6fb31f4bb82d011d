"""Some of pyarrow's and ONNX's own tests with their memory in a pool; `make test-guest-suites` runs many more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = Path(__file__).parents[2] / "guest_suites"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, SUITES / name, *arguments], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_pyarrows_tests_of_memory() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = run("run_pyarrow.py", "test_memory.py", "test_tensor.py")
    passed = re.search(r"(\d+) passed", out)
    assert passed is not None
    assert int(passed[1]) > 30
    assert out.endswith("0 buffers are left\n")


@pytest.mark.long
def test_onnxs_tests_of_some_operators() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    out = run("run_onnx.py", "test_conv*")
    assert re.search(r"0 of (\d{2,}) tests differ", out) is not None
    assert out.endswith("0 allocations are left\n")
