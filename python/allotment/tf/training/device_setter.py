"""``tf.train.ClusterSpec`` and ``replica_device_setter``, which spreads variables over parameter servers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from allotment.devices.device_spec import DeviceSpec

#: Types of the nodes that are placed on parameter servers by default.
_VARIABLES: Final = (
    *("Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2"),
    *("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable"),
    *("MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp"),
    "BoostedTreesQuantileStreamResourceHandleOp",
)


class ClusterSpec:
    """The addresses of the tasks of each job. As ``tf.train.ClusterSpec``.

    Args:
        cluster: A dictionary from each job's name to a list of addresses, or to a dictionary from task numbers to
            addresses; or a ``ClusterSpec``.

    Raises:
        TypeError: ``cluster`` is none of these, or an address is not a text.
        ValueError: A task number is not a number.
    """

    def __init__(self, cluster: Any) -> None:
        given = cluster._tasks if isinstance(cluster, ClusterSpec) else cluster
        if not isinstance(given, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
                f"`ClusterSpec`, not {cluster!r}"
            )
        self._tasks: dict[str, dict[int, str]] = {}
        for job, tasks in given.items():
            if isinstance(tasks, Mapping):
                numbered = {int(number): address for number, address in tasks.items()}
            elif isinstance(tasks, list | tuple):
                numbered = dict(enumerate(tasks))
            else:
                raise TypeError(
                    f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
                )
            for address in numbered.values():
                if not isinstance(address, str | bytes):
                    raise TypeError(f"Task address {address!r} must be bytes or unicode")
            self._tasks[str(job)] = dict(sorted(numbered.items()))

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._tasks)

    def as_dict(self) -> dict[str, Any]:
        """Return the addresses by job: a list, or a dictionary by task number if numbers are missing."""
        return {
            job: list(tasks.values()) if [*tasks] == list(range(len(tasks))) else dict(tasks)
            for job, tasks in sorted(self._tasks.items())
        }

    def num_tasks(self, job_name: str) -> int:
        """Return the number of tasks of a job.

        Raises:
            ValueError: The job does not exist.
        """
        return len(self._tasks_of(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the numbers of the tasks of a job."""
        return list(self._tasks_of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of a task.

        Raises:
            ValueError: The job or the task does not exist.
        """
        tasks = self._tasks_of(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return the list of a job's addresses, with ``None`` at missing task numbers."""
        tasks = self._tasks_of(job_name)
        return [tasks.get(number) for number in range(max(tasks, default=-1) + 1)]

    def _tasks_of(self, job_name: str) -> dict[int, str]:
        if job_name not in self._tasks:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._tasks[job_name]

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._tasks == other._tasks

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()})"


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str | None = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Iterable[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """Create a device function for ``tf.device`` that spreads variables over the tasks of a job.

    As ``tf.compat.v1.train.replica_device_setter``.

    Args:
        ps_tasks: Number of tasks for variables.
        ps_device: Device of the variables.
        worker_device: Device of all other nodes.
        merge_devices: Whether to complete the partial devices of inner scopes; otherwise they stay unchanged.
        cluster: A ``ClusterSpec``, or an argument of it, that determines the number of tasks.
        ps_ops: Types of the nodes to treat as variables.
        ps_strategy: A function from a node to its task's number; round robin by default.

    Returns:
        A device function, or ``None`` if there are no tasks for variables.

    Raises:
        TypeError: ``cluster`` is invalid, or ``ps_strategy`` is not callable.
    """
    if cluster is not None:
        job = DeviceSpec.from_string(ps_device).job or ps_device
        tasks = ClusterSpec(cluster)
        if job not in tasks.jobs or not tasks.num_tasks(job):
            return None
        ps_tasks = tasks.num_tasks(job)
    if ps_tasks == 0:
        return None
    if ps_strategy is not None and not callable(ps_strategy):
        raise TypeError(f"ps_strategy must be callable, not {ps_strategy!r}")
    return _DeviceFunction(
        ps_tasks,
        DeviceSpec.from_string(ps_device),
        DeviceSpec.from_string(worker_device or ""),
        merge_devices,
        frozenset(_VARIABLES if ps_ops is None else ps_ops),
        ps_strategy,
    )


class _DeviceFunction:
    """Device function that ``replica_device_setter`` returns: maps a node to its device."""

    def __init__(
        self,
        tasks: int,
        ps: DeviceSpec,
        worker: DeviceSpec,
        merge: bool,
        holders: frozenset[str],
        strategy: Callable[[Any], int] | None,
    ) -> None:
        self._tasks, self._ps, self._worker, self._merge = tasks, ps, worker, merge
        self._holders, self._strategy = holders, strategy
        self._next = 0

    def __call__(self, op: Any) -> str:
        if not self._merge and op.device:
            return str(op.device)
        requested = DeviceSpec.from_string(op.device or "")
        device = self._worker
        if op.type in self._holders:
            device = self._ps
            if device.job and requested.job in (None, device.job):
                device = device.replace(task=self._task(op))
        return device.make_merged_spec(requested).to_string()

    def _task(self, op: Any) -> int:
        if self._strategy is not None:
            return self._strategy(op)
        task, self._next = self._next, (self._next + 1) % self._tasks
        return task


__all__ = ["ClusterSpec", "replica_device_setter"]
