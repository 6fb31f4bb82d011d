"""Runs pyarrow's own tests of its wheel with every buffer in a pool, and sees that the pool is empty afterwards.

``run_pyarrow.py PATH... [-- PYTEST ARGUMENTS]``: files or folders of ``pyarrow/tests``. Exit status: pytest's, or 1 if
a buffer is left.
"""

import gc
import sys
import tempfile
from pathlib import Path

import pyarrow
import pytest

from allotment import Pool
from allotment.integrations import pyarrow as pooled

#: Tests that are left out, and why.
LEFT_OUT = {
    "test_default_backend_name": "says that the default pool is one of Arrow's; here it is ours",
    "test_undefined_logical_type": "needs files that are not in the wheel",
    "test_column_chunk_key_value_metadata": "the same",
    "test_geospatial_types": "the same",
    "test_read_undefined_logical_type": "the same",
}


def main(arguments: list[str]) -> int:
    """Run and check; the exit status."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    folder = Path(pyarrow.__file__).parent / "tests"
    paths = [str(folder / each) for each in arguments[:split]]
    pool = Pool("8GiB", name="suite")
    with tempfile.TemporaryDirectory() as root, pooled.use(pool):
        settings = [
            "-q",
            "-c",
            "/dev/null",
            "--rootdir",
            root,
            "-p",
            "no:cacheprovider",
            "-p",
            "no:benchmark",
        ]
        chosen = ["-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
        status = int(pytest.main([*settings, *chosen, *paths, *arguments[split + 1 :]]))
    served = pool.stats()
    # What test modules hold goes with them.
    for name in [name for name in sys.modules if ".tests" in name or name.startswith("test_")]:
        del sys.modules[name]
    gc.collect()
    left = pool.stats().num_live
    print(f"{served.num_allocs:,} allocations, {served.peak_in_use:,} bytes at the most")
    print(f"{left} buffers are left")
    return status or left > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
