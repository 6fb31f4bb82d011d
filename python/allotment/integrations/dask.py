"""Pools in the workers of a Dask cluster: a plugin that gives each worker its share, shows it and keeps Dask to it.

::

    from allotment.integrations.dask import AllotmentSetup

    client.register_plugin(AllotmentSetup(maximum_pool_size="4GiB"))

From then on NumPy's arrays of every task are in its worker's pool. The plugin comes back with a restarted worker and
comes to workers that join late, as Dask's plugins do; a task that is sent there first may run before it.

**Limits.** Dask watches the memory of a worker's process: from shares of the worker's ``memory_limit`` on it spills
(0.7) and pauses (0.8), and its nanny ends the process (0.95). A pool refuses one request, with a report, and the
worker goes on. So that this comes first, a full pool and what the process held before it stay below the pause: that
is the limit if none is given, and a larger one is an error. From where on Dask spills, and what it measures, is
fitted to the pool until the plugin is gone; ``dask_limits`` says how.

**Refusals.** A task that asks for more than its pool has ends with ``allotment.OutOfMemoryError``, its report and its
figures, at the client, caused by NumPy's ``MemoryError``. The worker lives on.

**One process, one pool.** NumPy's arrays of a process can be in one pool only. Several workers in one process
(``processes=False`` with ``n_workers`` above 1) are an error.
"""

import contextvars
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from allotment import experimental, testing
from allotment._core import OutOfMemoryError, Pool, parse_size
from allotment.devices.context import context
from allotment.devices.live import with_pool
from allotment.errors import ResourceExhaustedError
from allotment.integrations import dask_limits
from allotment.integrations import numpy as pooled

if TYPE_CHECKING:
    from dask._task_spec import Task
    from distributed import Status, Worker, WorkerPlugin
else:
    try:
        from dask._task_spec import Task
        from distributed import Status, WorkerPlugin
    except ModuleNotFoundError:  # told to whom makes one
        WorkerPlugin = object

#: Libraries whose memory can come from a pool.
_LIBRARIES: Final = ("numpy",)
#: Figures of ``PoolStats`` that a worker reports.
_FIGURES: Final = ("in_use", "reserved", "limit", "peak_in_use", "peak_reserved", "num_refused")


class AllotmentSetup(WorkerPlugin):
    """Put the NumPy arrays of each worker into a pool.

    A task reaches its worker's pool as ``get_worker().plugins["allotment"].pool``, too.

    Sizes are bytes, texts such as ``"2GiB"``, or shares of the worker's ``memory_limit`` such as ``0.5``.

    The scheduler has the figures of every worker's pool, ``allotment_in_use``, ``allotment_reserved``,
    ``allotment_limit``, ``allotment_peak_in_use``, ``allotment_peak_reserved`` (bytes) and ``allotment_num_refused``:
    in ``Client.scheduler_info()["workers"][address]["metrics"]``, and in the dashboard's table of workers. A worker
    that joins late and gets no pool has the reason there, as ``allotment_error``.

    Args:
        initial_pool_size: What the pool reserves at once; ``None``: it starts small.
        maximum_pool_size: The pool's limit; ``None``: what Dask's thresholds leave, or of a ``device`` its own limit.
        total_pool_size: Instead, the limit of all workers of a host together, in equal shares among those that are
            there when the plugin is set up.
        external_lib_list: The libraries whose memory comes from the pool: ``["numpy"]``, or none.
        simulated_gpus: GPUs that each worker simulates, as for ``testing.simulate_gpus``.
        device: A logical device, such as ``"/GPU:0"``: the pool is that device's, and none is made.

    Raises:
        ModuleNotFoundError: Dask's ``distributed`` is not installed.
        NotImplementedError: A library that has no door to a pool.
        ValueError: A size is out of range, or both a maximum and a total are given.
        TypeError: A size is neither a number nor a text.
    """

    #: A worker has one of them: registering another replaces it.
    name = "allotment"

    def __init__(
        self,
        initial_pool_size: float | str | None = None,
        maximum_pool_size: float | str | None = None,
        *,
        total_pool_size: int | str | None = None,
        external_lib_list: Sequence[str] | None = _LIBRARIES,
        simulated_gpus: int | str | None = None,
        device: str | None = None,
    ) -> None:
        if WorkerPlugin is object:
            raise ModuleNotFoundError(
                "AllotmentSetup needs Dask's distributed: pip install 'allotment[dask]'"
            )
        if maximum_pool_size is not None and total_pool_size is not None:
            raise ValueError(
                f"maximum_pool_size={maximum_pool_size!r} is of one worker, total_pool_size={total_pool_size!r} of all "
                "workers of a host: give one of them"
            )
        for library in external_lib_list or ():
            if library not in _LIBRARIES:
                raise NotImplementedError(f"{library!r} cannot take its memory from a pool: 'numpy' can")
        for size in (initial_pool_size, maximum_pool_size):
            dask_limits.check_size(size)
        self._initial = initial_pool_size
        self._maximum = maximum_pool_size
        self._total = None if total_pool_size is None else parse_size(total_pool_size)
        self._libraries = tuple(external_lib_list or ())
        self._simulated_gpus = simulated_gpus
        self._device = device
        #: The pool, in a worker: ``get_worker().plugins["allotment"].pool``.
        self.pool: Pool | None = None
        #: What takes back what ``setup`` did, in a worker that has done it.
        self._undo: ExitStack | None = None
        #: What is done to a task before it runs, by its key.
        self._explain: Callable[[Any], None] | None = None

    async def setup(self, worker: "Worker") -> None:
        """Make the pool, and fit Dask to it.

        Raises:
            RuntimeError: Another worker is in this process, or something is installed in NumPy already.
            ValueError: The limit does not fit under Dask's thresholds, or a host's total is shared out already.
            MemoryError: There is no memory for the initial size.
        """
        try:
            with ExitStack() as undo:
                await self._set_up(worker, undo)
                self._undo = undo.pop_all()
        except Exception as error:
            # Dask tells whom registers the plugin; of a worker that joins later, only that one's log would say it.
            worker.metrics["allotment_error"] = partial(_constant, str(error))
            raise

    def teardown(self, worker: "Worker") -> None:
        """Take back what ``setup`` did. Arrays stay where they are until they die."""
        worker.metrics.pop("allotment_error", None)
        if self._undo is not None:
            self._undo.close()
            self._undo = None

    def transition(self, key: Any, start: Any, finish: Any, **kwargs: Any) -> None:  # noqa: ARG002 - Dask's
        """See to it that a task that is about to run tells why its pool refused memory to it."""
        if finish == "executing" and self._explain is not None:
            self._explain(key)

    async def _set_up(self, worker: "Worker", undo: ExitStack) -> None:
        _require_own_process(worker)
        if self._simulated_gpus is not None:
            testing.simulate_gpus(self._simulated_gpus)
        pool = await self._pool(worker)
        if self._initial is not None:
            pool.free(pool.malloc(dask_limits.size(self._initial, worker)))
        if "numpy" in self._libraries:
            pooled.install(pool, process_wide=True)
            undo.callback(contextvars.Context().run, pooled.uninstall)
            dask_limits.receive_without_refusals(undo)
            self._explain = partial(_explain, worker)
            undo.callback(setattr, self, "_explain", None)
        dask_limits.fit(worker, pool, undo)
        self._report(worker, pool, undo)
        self.pool = pool
        undo.callback(setattr, self, "pool", None)

    async def _pool(self, worker: "Worker") -> Pool:
        limit = None
        if self._total is not None:
            limit = await dask_limits.share(worker, self._total)
        elif self._maximum is not None:
            limit = dask_limits.size(self._maximum, worker)
        if self._device is None:
            return Pool(
                dask_limits.fitting(limit, worker), name="dask_worker", limit_set_by=type(self).__name__
            )
        if limit is not None:
            experimental.set_memory_limit(self._device, limit)
        _, pool = with_pool(context().ready().devices, self._device)
        dask_limits.fitting(pool.limit, worker)
        return pool

    def _report(self, worker: "Worker", pool: Pool, undo: ExitStack) -> None:
        metrics: dict[str, Callable[[Any], int]] = {
            f"allotment_{figure}": partial(_figure, pool, figure) for figure in _FIGURES
        }
        if self._total is not None:
            metrics[dask_limits.TOTAL] = partial(_constant, self._total)
        worker.metrics.update(metrics)
        for name in metrics:
            undo.callback(worker.metrics.pop, name, None)


class _Explained:
    """A task's function that raises the pool's refusal where NumPy raises the ``MemoryError`` that follows it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pooled.take_refusal()  # what an earlier task got over
        try:
            return self.function(*args, **kwargs)
        except (OutOfMemoryError, ResourceExhaustedError):
            raise  # has its report
        except MemoryError as error:
            refusal = pooled.take_refusal()
            if refusal is None:
                raise
            # The frames of the task are those of the refusal; its cause must not keep them as well.
            refusal.__traceback__, error.__traceback__ = error.__traceback__, None
            raise refusal from error

    def __repr__(self) -> str:
        return repr(self.function)


def _explain(worker: "Worker", key: Any) -> None:
    task = worker.state.tasks[key].run_spec
    if isinstance(task, Task) and not task.is_coro and not isinstance(task.func, _Explained):
        task.func = _Explained(task.func)


def _require_own_process(worker: "Worker") -> None:
    """Raise if other workers are in the worker's process.

    Raises:
        RuntimeError: One is: NumPy's arrays of both would be in one pool.
    """
    others = [
        other.address
        for other in type(worker)._instances
        if other is not worker and other.status in (Status.running, Status.paused)
    ]
    if others:
        raise RuntimeError(
            f"worker {worker.address} is in one process with {', '.join(others)}: NumPy's arrays of a process are in "
            "one pool, so none of them can have a limit of its own. Start them with processes=True, or only one"
        )


def _figure(pool: Pool, figure: str, _worker: "Worker") -> int:
    value: int = getattr(pool.stats(), figure)
    return value


def _constant(value: Any, _worker: "Worker") -> Any:
    return value


__all__ = ["AllotmentSetup"]
