"""Some of NumPy's own tests, with every array of the process in a pool; `make test-numpy-suite` runs all."""

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).resolve().parents[3] / "numpy_suite" / "run.py"


#: Those that take a second or two, and between them make arrays in every way.
MODULES = (
    "test_casting_unittests",
    "test_datetime",
    "test_einsum",
    "test_function_base",
    "test_half",
    "test_indexing",
    "test_item_selection",
    "test_memmap",
)


def test_numpys_own_tests_pass_with_every_array_in_a_pool(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, RUN, *(f"numpy._core.tests.{module}" for module in MODULES)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 by nobody" in done.stdout
