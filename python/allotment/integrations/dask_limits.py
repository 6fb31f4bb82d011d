"""Limits of a pool in a Dask worker, and the adaptation of Dask's memory thresholds to them.

Dask's thresholds are shares of the worker's ``memory_limit``: ``target`` is compared with the size of the stored
results, ``spill`` and ``pause`` with the memory of the process, ``terminate`` with the same as the nanny measures it.
A limit is allowed if the memory of a full pool plus that of the process before it is below ``pause``: then the pool
refuses a request before Dask acts. These settings of Dask's are changed:

``worker.data.n``
    Dask spills results above the share ``target`` of the *pool's* limit, if that is less than of the worker's. The
    rest of the pool is left for the tasks' temporaries. Workers whose store is not Dask's ``SpillBuffer`` keep theirs.
``worker.monitor.get_process_memory``
    A pool keeps the regions of dead arrays for later ones. Dask would count them as data, spill everything and stay
    paused. If the process is above the lower one of ``spill`` and ``pause``, the pool is trimmed and the process is
    measured again.
``distributed.comm.tcp.host_array``, ``distributed.protocol.utils.host_array``
    Data from other workers goes into the pool like every array, but into memory outside it if the pool is full. Dask
    cannot handle a refusal there: the task that needs the data would wait forever. The data counts towards ``n``.

``memory_limit`` and the shares are unchanged, because the nanny has a copy of them in another process.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from allotment._core import Pool, format_size, parse_size

if TYPE_CHECKING:
    from distributed import Worker

#: Name of the metric with the host's total of which a worker's limit is a share.
TOTAL: Final = "allotment_total"


def check_size(value: Any) -> None:
    """Validate a size: bytes, a text such as ``"2GiB"``, or a share of a worker's memory limit.

    Raises:
        ValueError: The size is out of range.
        TypeError: The size is neither a number nor a text.
    """
    if isinstance(value, float):
        if not 0 < value <= 1:
            raise ValueError(f"a share of the worker's memory limit is above 0 and at most 1, not {value!r}")
    elif value is not None:
        parse_size(value)


def size_in_bytes(value: Any, worker: "Worker") -> int:
    """Convert a size, which may be a share of the worker's memory limit, to bytes.

    Raises:
        ValueError: The size is a share, and the worker has no memory limit.
    """
    if not isinstance(value, float):
        return parse_size(value)
    limit = worker.memory_manager.memory_limit
    if limit is None:
        raise ValueError(f"{value!r} is a share of the worker's memory limit, and it has none: give bytes")
    return int(value * limit)


def allowed_limit(limit: int | None, worker: "Worker") -> int:
    """Check a pool's limit, in bytes, against Dask's thresholds, or choose the largest allowed one.

    Args:
        limit: The limit; ``None`` chooses the largest allowed one.
        worker: The pool's worker.

    Returns:
        The limit in bytes.

    Raises:
        ValueError: The limit is too large; or it is ``None``, and the worker has no memory limit.
    """
    most = _largest_limit(worker)
    if limit is None:
        if most is None:
            raise ValueError(
                "the worker has no memory_limit to derive the pool's limit from: give maximum_pool_size"
            )
        return most
    if most is not None and limit > most:
        raise ValueError(
            f"a pool of {format_size(limit)} ({limit} bytes) does not fit in the worker: by its memory_limit of "
            f"{format_size(worker.memory_manager.memory_limit or 0)}, Dask would pause or end it before the pool is "
            f"full. Give {most} bytes or less, or the worker a larger memory_limit"
        )
    return limit


async def equal_share(worker: "Worker", total: int) -> int:
    """Return the worker's equal share of a total number of bytes for all workers of its host.

    Raises:
        ValueError: Other workers have so much of the total that no equal share is left.
    """
    workers = (await worker.scheduler.identity())["workers"]
    host = workers[worker.address]["host"]
    peers = [
        peer["metrics"]
        for address, peer in workers.items()
        if peer["host"] == host and address != worker.address
    ]
    equal = total // (len(peers) + 1)
    # Workers in setup at the same time have no metrics yet; they count the same workers and get the same share.
    taken = sum(metrics["allotment_limit"] for metrics in peers if metrics.get(TOTAL) == total)
    if taken + equal > total:
        raise ValueError(
            f"of total_pool_size={total} bytes, {taken} are shared out among other workers of host {host!r} already: "
            "register the plugin when all workers are there, or give maximum_pool_size"
        )
    return equal


def adapt_thresholds(worker: "Worker", pool: Pool, undo: ExitStack) -> None:
    """Adapt the worker's spilling and memory measurement to the pool's limit; ``undo`` receives the reversal."""
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


def receive_outside_full_pool(undo: ExitStack) -> None:
    """Make Dask receive data in memory outside the pool if the pool is full; ``undo`` receives the reversal."""
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


def _largest_limit(worker: "Worker") -> int | None:
    """Return the most bytes that a pool may reserve with its process below Dask's pause threshold.

    ``None`` if the worker has no memory limit.

    Raises:
        ValueError: The process is above the threshold already.
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
