"""Runs another library's own tests with every array's data in a pool, and sees that the pool is empty afterwards.

``run.py MODULE... [-- PYTEST ARGUMENTS]``: the tests of installed modules. Exit status: pytest's, or 1 if data is left
that nobody can reach any more.
"""

import gc
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment.integrations import numpy as pooled

#: Tests that are left out, by name, and why.
DESELECTED = {
    "test_default_policy_singleton": "says that the default handler is called default_allocator; here it is ours",
    "test_context_locality": "the same",
    "test_thread_locality": "the same, in a thread, whose failure is but a warning",
}


class Deselect:
    """Leaves tests out."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Take them out of the list."""
        out = [item for item in items if item.name.partition("[")[0] in DESELECTED]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def chunks_in_use(pool: Pool) -> set[int]:
    """Addresses of all live data."""
    return {chunk.address for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use}


def held_by_somebody() -> set[int]:
    """Addresses of the data of every array that can be reached from what Python's collector knows."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting: list[Any] = list(gc.get_objects())
    # The collector does not look into what is in here: an array keeps another one alive as its base.
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        waiting += gc.get_referents(each)
        if isinstance(each, np.ndarray):
            found.add(each.__array_interface__["data"][0])
            waiting.append(each.base)
            if each.dtype.hasobject and each.dtype.names is None and each.dtype.kind == "O":
                waiting += each.ravel().tolist()
        elif isinstance(each, memoryview):
            waiting.append(each.obj)
        elif isinstance(each, np.void | np.flatiter):
            waiting.append(each.base)
    return found


def path_of(module: str) -> Path:
    """Where a module's file is, or the folder of a package.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"no module named {module!r}")
    return Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)


def main(arguments: list[str]) -> int:
    """Run and check; the exit status."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    modules, more = arguments[:split], arguments[split + 1 :]
    pool = Pool("8GiB", name="suite")
    pooled.install(pool, process_wide=True)
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "-q",
            "-c",
            "/dev/null",
            "--rootdir",
            folder,
            "-p",
            "no:cacheprovider",
            "-p",
            "no:benchmark",
        ]
        # By path: a library's own options are known only where pytest finds its conftest at the start.
        paths = [str(path_of(module)) for module in modules]
        status = int(pytest.main([*options, *paths, *more], plugins=[Deselect()]))
    pooled.uninstall()
    served = pool.stats()
    # What test modules hold goes with them.
    for name in [name for name in sys.modules if ".tests" in name or name.startswith("test_")]:
        del sys.modules[name]
    for _ in range(3):
        gc.collect()
    left = chunks_in_use(pool)
    lost = left - set(held_by_somebody())
    print(f"{served.num_allocs:,} allocations, {served.peak_in_use:,} bytes at the most")
    print(f"{len(left)} arrays are still held by Python objects, {len(lost)} by nobody")
    return status or bool(lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
