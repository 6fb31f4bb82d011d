"""Limits of a pool in a Dask worker, and the settings of Dask's that go by them.

Dask's thresholds are shares of the worker's ``memory_limit``: ``target`` of the results it keeps, ``spill`` and
``pause`` of its process, ``terminate`` of the same as its nanny sees it. A pool's limit fits if a full pool and what
the process held before are below the pause: then the pool refuses before Dask acts. For what fits, ``fit`` sets

``worker.data.n``
    Results are spilled from the share ``target`` of the *pool's* limit on, if that is less than of the worker's. The
    rest of the pool is for what tasks need while they run. Not where a worker keeps its results in something other
    than Dask's ``SpillBuffer``.
``worker.monitor.get_process_memory``
    A pool keeps the regions of dead arrays for the next ones. Dask would take them for data, spill all there is, and
    stay paused. Where the process is above the lower one of ``spill`` and ``pause``, free regions go back to the
    system, and it is measured again.
``distributed.comm.tcp.host_array``, ``distributed.protocol.utils.host_array``
    What comes from other workers goes into the pool like every array, and beside it if it is full. Dask does not get
    over a refusal there: the task that needs the data would wait for ever. Once it is there, it counts towards ``n``.

``memory_limit`` and the shares stay as they are: the nanny has a copy of them, in another process.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from allotment._core import Pool, format_size, parse_size

if TYPE_CHECKING:
    from distributed import Worker

#: The metric that says of which total a worker's limit is a share.
TOTAL: Final = "allotment_total"


def check_size(value: Any) -> None:
    """Raise what ``size`` would for any worker.

    Raises:
        ValueError: Out of range.
        TypeError: Neither a number nor a text.
    """
    if isinstance(value, float):
        if not 0 < value <= 1:
            raise ValueError(f"a share of the worker's memory limit is above 0 and at most 1, not {value!r}")
    elif value is not None:
        parse_size(value)


def size(value: Any, worker: "Worker") -> int:
    """Bytes of a size, which may be a share of the worker's memory limit.

    Raises:
        ValueError: A share, and the worker has no memory limit.
    """
    if not isinstance(value, float):
        return parse_size(value)
    limit = worker.memory_manager.memory_limit
    if limit is None:
        raise ValueError(f"{value!r} is a share of the worker's memory limit, and it has none: give bytes")
    return int(value * limit)


def fitting(limit: int | None, worker: "Worker") -> int:
    """Return a limit, or the largest that fits if there is none.

    Raises:
        ValueError: It does not fit; or there is none, and the worker has no memory limit to go by.
    """
    most = _room(worker)
    if limit is None:
        if most is None:
            raise ValueError(
                "the worker has no memory_limit that a pool's limit could go by: give maximum_pool_size"
            )
        return most
    if most is not None and limit > most:
        raise ValueError(
            f"a pool of {format_size(limit)} ({limit} bytes) does not fit in the worker: by its memory_limit of "
            f"{format_size(worker.memory_manager.memory_limit or 0)}, Dask would pause or end it before the pool is "
            f"full. Give {most} bytes or less, or the worker a larger memory_limit"
        )
    return limit


async def share(worker: "Worker", total: int) -> int:
    """Return the worker's share of what the workers of its host may have together.

    Raises:
        ValueError: Others have so much of it already that no equal share is left.
    """
    workers = (await worker.scheduler.identity())["workers"]
    host = workers[worker.address]["host"]
    peers = [
        peer["metrics"]
        for address, peer in workers.items()
        if peer["host"] == host and address != worker.address
    ]
    equal = total // (len(peers) + 1)
    # Those that are being set up at the same time have no figures yet, and count the same workers.
    taken = sum(metrics["allotment_limit"] for metrics in peers if metrics.get(TOTAL) == total)
    if taken + equal > total:
        raise ValueError(
            f"of total_pool_size={total} bytes, {taken} are shared out among other workers of host {host!r} already: "
            "register the plugin when all workers are there, or give maximum_pool_size"
        )
    return equal


def fit(worker: "Worker", pool: Pool, undo: ExitStack) -> None:
    """Set what goes by a pool's limit, and note in ``undo`` what takes it back."""
    from distributed.spill import SpillBuffer

    manager = worker.memory_manager
    target = manager.memory_target_fraction
    if target and isinstance(manager.data, SpillBuffer):
        undo.callback(setattr, manager.data, "n", manager.data.n)
        manager.data.n = min(manager.data.n, int(target * pool.limit))

    acts = [share for share in (manager.memory_spill_fraction, manager.memory_pause_fraction) if share]
    if manager.memory_limit is None or not acts:
        return
    threshold = min(acts) * manager.memory_limit
    measured = worker.monitor.get_process_memory

    def measured_without_free_regions() -> int:
        held = measured()
        return measured() if held > threshold and pool.trim() else held

    monitor: Any = worker.monitor
    monitor.get_process_memory = measured_without_free_regions
    undo.callback(delattr, monitor, "get_process_memory")


def receive_without_refusals(undo: ExitStack) -> None:
    """Let data come in from other workers that the pool has no room for, and note in ``undo`` what ends that."""
    from distributed.comm import tcp
    from distributed.protocol import utils

    modules: tuple[Any, ...] = (tcp, utils)
    for module in modules:
        former: Callable[[int], memoryview] = module.host_array
        module.host_array = partial(_host_array, former)
        undo.callback(setattr, module, "host_array", former)


def _host_array(array: Callable[[int], memoryview], nbytes: int) -> memoryview:
    try:
        return array(nbytes)
    except MemoryError:
        return memoryview(bytearray(nbytes))


def _room(worker: "Worker") -> int | None:
    """Return the most that a pool may reserve so that its process stays below Dask's pause.

    ``None`` if the worker has no memory limit.

    Raises:
        ValueError: Its process is above the pause already.
    """
    import dask.config

    manager = worker.memory_manager
    if manager.memory_limit is None:
        return None
    terminate = dask.config.get("distributed.worker.memory.terminate")
    acts = [share for share in (manager.memory_pause_fraction, terminate) if share]
    ceiling = int(min(acts, default=1.0) * manager.memory_limit)
    held = worker.monitor.get_process_memory()
    if held >= ceiling:
        raise ValueError(
            f"no room for a pool: the worker's process has {format_size(held)}, and its memory_limit of "
            f"{format_size(manager.memory_limit)} allows {format_size(ceiling)} before Dask pauses or ends it"
        )
    return ceiling - held
