"""Dask plugin that puts the NumPy arrays of each worker into a pool with a limit and reports the pool's figures.

::

    from allotment.integrations.dask import AllotmentSetup

    client.register_plugin(AllotmentSetup(maximum_pool_size="4GiB"))

From then on the NumPy arrays of every task are in its worker's pool. Dask installs its plugins in restarted workers
and in workers that join later, too; a task that reaches such a worker first may run before the plugin.

**Limits.** Dask watches the memory of a worker's process: at shares of the worker's ``memory_limit`` it spills (0.7)
and pauses (0.8), and its nanny terminates the process (0.95). A pool instead refuses one request, with a report, and
the worker goes on. For the pool to act first, the memory of a full pool plus that of the process before it must stay
below the pause threshold. The default limit is the largest that satisfies this; a larger one is an error. Until its
teardown the plugin also adapts Dask's spilling and its memory measurement to the pool: see ``dask_limits``.

**Refusals.** A task that requests more than its pool has fails at the client with ``allotment.OutOfMemoryError``,
including the pool's report and figures; its cause is NumPy's ``MemoryError``. The worker goes on.

**One process, one pool.** The NumPy arrays of a process can be in one pool only. Several workers in one process
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
from allotment.devices.memory.live_changes import with_pool
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
    except ModuleNotFoundError:  # the constructor raises it
        WorkerPlugin = object

#: Libraries whose memory can come from a pool.
_LIBRARIES: Final = ("numpy",)
#: Figures of ``PoolStats`` that a worker reports.
_FIGURES: Final = ("in_use", "reserved", "limit", "peak_in_use", "peak_reserved", "num_refused")


class AllotmentSetup(WorkerPlugin):
    """Dask worker plugin that puts the NumPy arrays of each worker into a pool.

    A task can access its worker's pool as ``get_worker().plugins["allotment"].pool``.

    Sizes are bytes, texts such as ``"2GiB"``, or shares of the worker's ``memory_limit`` such as ``0.5``.

    The scheduler shows the figures of every worker's pool, ``allotment_in_use``, ``allotment_reserved``,
    ``allotment_limit``, ``allotment_peak_in_use``, ``allotment_peak_reserved`` (bytes) and ``allotment_num_refused``:
    in ``Client.scheduler_info()["workers"][address]["metrics"]``, and in the dashboard's table of workers. If the
    setup fails in a worker that joins later, the reason is among its metrics as ``allotment_error``.

    Args:
        initial_pool_size: Size that the pool reserves during setup; ``None``: it starts small.
        maximum_pool_size: The pool's limit; ``None``: the most that Dask's thresholds allow, or ``device``'s.
        total_pool_size: Instead of a maximum, the limit of all workers of a host together, in equal shares among the
            workers present when the plugin is set up.
        external_lib_list: The libraries that take their memory from the pool: ``["numpy"]``, or none.
        simulated_gpus: GPUs that each worker simulates, as for ``testing.simulate_gpus``.
        device: A logical device, such as ``"/GPU:0"``, whose pool to use instead of creating one.

    Raises:
        ModuleNotFoundError: Dask's ``distributed`` is not installed.
        NotImplementedError: A library cannot take its memory from a pool.
        ValueError: A size is out of range, or both a maximum and a total are given.
        TypeError: A size is neither a number nor a text.
    """

    #: Dask's key of the plugin: a worker has one, and registering another replaces it.
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
        #: The pool of this worker, after ``setup``.
        self.pool: Pool | None = None
        #: Callbacks that undo ``setup``, in a worker where it succeeded.
        self._undo: ExitStack | None = None
        #: Called with the key of each task before it runs.
        self._before_task: Callable[[Any], None] | None = None

    async def setup(self, worker: "Worker") -> None:
        """Create the worker's pool and adapt Dask's thresholds to it. Dask calls this in each worker.

        Raises:
            RuntimeError: Another worker is in this process, or NumPy's arrays are in a pool already.
            ValueError: The limit is above Dask's thresholds, or the workers of the host have shared out the total.
            MemoryError: The pool has no memory for the initial size.
        """
        try:
            with ExitStack() as undo:
                await self._set_up(worker, undo)
                self._undo = undo.pop_all()
        except Exception as error:
            # Dask raises the error in the client that registers the plugin. Without the metric, the failure of a
            # worker that joins later would be in that worker's log only.
            worker.metrics["allotment_error"] = partial(_constant, str(error))
            raise

    def teardown(self, worker: "Worker") -> None:
        """Undo ``setup``. Dask calls this when the plugin is removed. Live arrays stay in the pool."""
        worker.metrics.pop("allotment_error", None)
        if self._undo is not None:
            self._undo.close()
            self._undo = None

    def transition(self, key: Any, start: Any, finish: Any, **kwargs: Any) -> None:  # noqa: ARG002 - Dask's
        """Wrap the function of a task that is about to run, so that it raises the pool's report of a refusal."""
        if finish == "executing" and self._before_task is not None:
            self._before_task(key)

    async def _set_up(self, worker: "Worker", undo: ExitStack) -> None:
        _require_own_process(worker)
        if self._simulated_gpus is not None:
            testing.simulate_gpus(self._simulated_gpus)
        pool = await self._pool(worker)
        if self._initial is not None:
            pool.free(pool.malloc(dask_limits.size_in_bytes(self._initial, worker)))
        if "numpy" in self._libraries:
            pooled.install(pool, process_wide=True)
            undo.callback(contextvars.Context().run, pooled.uninstall)
            dask_limits.receive_outside_full_pool(undo)
            self._before_task = partial(_wrap_task, worker)
            undo.callback(setattr, self, "_before_task", None)
        dask_limits.adapt_thresholds(worker, pool, undo)
        self._report(worker, pool, undo)
        self.pool = pool
        undo.callback(setattr, self, "pool", None)

    async def _pool(self, worker: "Worker") -> Pool:
        limit = None
        if self._total is not None:
            limit = await dask_limits.equal_share(worker, self._total)
        elif self._maximum is not None:
            limit = dask_limits.size_in_bytes(self._maximum, worker)
        if self._device is None:
            return Pool(
                dask_limits.allowed_limit(limit, worker), name="dask_worker", limit_set_by=type(self).__name__
            )
        if limit is not None:
            experimental.set_memory_limit(self._device, limit)
        _, pool = with_pool(context().ready().devices, self._device)
        dask_limits.allowed_limit(pool.limit, worker)
        return pool

    def _report(self, worker: "Worker", pool: Pool, undo: ExitStack) -> None:
        metrics: dict[str, Callable[[Any], int]] = {
            f"allotment_{figure}": partial(_stat, pool, figure) for figure in _FIGURES
        }
        if self._total is not None:
            metrics[dask_limits.TOTAL] = partial(_constant, self._total)
        worker.metrics.update(metrics)
        for name in metrics:
            undo.callback(worker.metrics.pop, name, None)


class _RaisesRefusal:
    """Wrapper of a task's function that raises the pool's ``OutOfMemoryError`` in place of NumPy's ``MemoryError``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pooled.take_refusal()  # discard a refusal that an earlier task has caught
        try:
            return self.function(*args, **kwargs)
        except (OutOfMemoryError, ResourceExhaustedError):
            raise  # these have a report already
        except MemoryError as error:
            refusal = pooled.take_refusal()
            if refusal is None:
                raise
            # Move the task's frames to the raised error: two tracebacks would keep the task's arrays alive twice.
            refusal.__traceback__, error.__traceback__ = error.__traceback__, None
            raise refusal from error

    def __repr__(self) -> str:
        return repr(self.function)


def _wrap_task(worker: "Worker", key: Any) -> None:
    task = worker.state.tasks[key].run_spec
    if isinstance(task, Task) and not task.is_coro and not isinstance(task.func, _RaisesRefusal):
        task.func = _RaisesRefusal(task.func)


def _require_own_process(worker: "Worker") -> None:
    """Raise an error if the process runs other workers, whose arrays would be in the same pool.

    Raises:
        RuntimeError: The process runs another worker.
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


def _stat(pool: Pool, figure: str, _worker: "Worker") -> int:
    value: int = getattr(pool.stats(), figure)
    return value


def _constant(value: Any, _worker: "Worker") -> Any:
    return value


__all__ = ["AllotmentSetup"]
