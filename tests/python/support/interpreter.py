"""The interpreter that runs the tests."""

import gc
import sysconfig

#: Whether it was built without a GIL.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
#: Runs of the collector that a pool makes at once before a refusal.
COLLECTOR_RUNS = 4 if FREE_THREADED else 1


def free_what_waits() -> None:
    """Free what an interpreter without a GIL frees late: objects of which the last reference was another thread's.

    Such an object is freed when the thread that made it runs Python code again, or by a collection; then its contents.
    """
    if FREE_THREADED:
        for _ in range(COLLECTOR_RUNS):
            gc.collect()
