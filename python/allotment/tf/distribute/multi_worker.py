"""``MultiWorkerMirroredStrategy``: replicas in several processes, which MPI starts and connects.

Each process is a worker with replicas on its own devices, as with ``MirroredStrategy``. A reduction adds up between
the devices of each process first, and then between the processes. ::

    mpirun -n 4 python train.py
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from allotment import errors
from allotment.devices.context import context
from allotment.tf.distribute.input.context import InputContext
from allotment.tf.distribute.mirrored import MirroredExtended, local_devices
from allotment.tf.distribute.processes.communication import CommunicationImplementation, CommunicationOptions
from allotment.tf.distribute.processes.group import ProcessGroup
from allotment.tf.distribute.processes.start import process_group
from allotment.tf.distribute.reductions.members import Array, Member
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import DistributedValues, PerReplica
from allotment.tf.names.deprecation import deprecated
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import shared_generator, started
from allotment.tf.tensors.dtype import string
from allotment.tf.tensors.tensor import EagerTensor

_logger: Final = logging.getLogger("tensorflow")


@dataclass(frozen=True, slots=True)
class WorkerRole:
    """The role of a process among the workers, as programs read it from a ``cluster_resolver``."""

    #: Its MPI rank. The first worker is the chief.
    task_id: int
    task_type: Literal["worker"] = "worker"


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas in several processes, with variables that are equal on all.

    As ``tf.distribute.MultiWorkerMirroredStrategy``. Every process runs the same program and makes the strategy; a
    process that MPI did not start is the only worker. The strategy takes all logical GPUs of its process, or all
    logical CPUs if there are none. Variables start with the first worker's values. Each process iterates over the same
    data set and takes the parts of its replicas from each batch; random numbers that a ``tf.data.Dataset`` or ``fit``
    draws without a seed, such as the order of shuffled samples, are equal in all processes.

    A worker that fails, ends or hangs while others wait for it ends the whole program: the others raise an
    ``UnavailableError`` that names it, or, if it does not answer, a ``DeadlineExceededError`` after the deadline. An
    uncaught error ends all processes. ``mpirun`` names a process that was killed, and ends the others. Only a step that
    fails in every process, such as one that is too large for all, can be tried again.

    Args:
        cluster_resolver: ``None``: MPI decides which processes there are.
        communication_options: A ``CommunicationOptions``.

    Raises:
        ModuleNotFoundError: ``mpi4py`` is not installed.
        RuntimeError: This machine has no MPI.
        ValueError: A cluster resolver; options of another type; a ``TF_CONFIG`` with several workers, of which MPI
            has started one; or workers that have not the same number of devices.
        DeadlineExceededError: Another process did not make its strategy in time.
    """

    extended: "MultiWorkerMirroredExtended"

    def __init__(
        self, cluster_resolver: None = None, communication_options: CommunicationOptions | None = None
    ) -> None:
        if cluster_resolver is not None:
            raise ValueError(
                f"cluster_resolver={cluster_resolver!r}: MPI decides which processes there are, as in `mpirun -n 4 "
                "python train.py`; leave it out"
            )
        if not isinstance(communication_options, CommunicationOptions | None):
            raise ValueError(
                "communication_options must be an instance of tf.distribute.experimental.CommunicationOptions"
            )
        options = communication_options or CommunicationOptions()
        if options.implementation is CommunicationImplementation.NCCL:
            _logger.warning(
                "CommunicationImplementation.NCCL has no effect: MPI carries values between processes."
            )
        super().__init__(MultiWorkerMirroredExtended(self, options))

    @property
    def cluster_resolver(self) -> WorkerRole:
        """The role of this process among the workers."""
        return WorkerRole(self.extended.group.rank)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """The strategy under its older name. As ``tf.distribute.experimental.MultiWorkerMirroredStrategy``.

    Args:
        communication: A ``CollectiveCommunication``, or its name in any case.
        cluster_resolver: ``None``, as in ``MultiWorkerMirroredStrategy``.
    """

    def __init__(
        self,
        communication: Any = CommunicationImplementation.AUTO,
        cluster_resolver: None = None,
    ) -> None:
        deprecated("MultiWorkerMirroredStrategy", "use distribute.MultiWorkerMirroredStrategy instead")
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))


ExperimentalMultiWorkerMirroredStrategy.__name__ = "MultiWorkerMirroredStrategy"


class MultiWorkerMirroredExtended(MirroredExtended):
    """Runs the replicas of this process, and exchanges values with the other processes.

    Args:
        strategy: The strategy.
        options: Options of the communication.
    """

    def __init__(self, strategy: Strategy, options: CommunicationOptions) -> None:
        super().__init__(strategy, local_devices())
        self._options = options
        #: All processes of the program.
        self.group: Final[ProcessGroup] = process_group(self._deadline)
        _check_tf_config(self.group.size)
        count = len(self._devices)
        self._first_replica = self.group.rank * count
        if self.group.size > 1:
            counts = [int(each[0]) for each in self._gathered(np.array([count]), "the number of devices")]
            if set(counts) != {count}:
                told = ", ".join(f"{self.group.named(rank)} has {each}" for rank, each in enumerate(counts))
                raise ValueError(f"all workers must have the same number of devices; {told}")

    @property
    def _num_replicas(self) -> int:
        return len(self._devices) * self.group.size

    @property
    def _deadline(self) -> float | None:
        timeout = self._options.timeout_seconds
        return self.replica_deadline if timeout is None else timeout

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # The others would wait for this process: they are told of its errors, except of the end of a data set.
        try:
            return super()._call(fn, args, kwargs)
        except (errors.OutOfRangeError, StopIteration):
            raise
        except BaseException as error:
            self.group.fail(error)
            raise

    def _exchange(self, arrays: list[Array]) -> None:
        if self.group.size == 1:
            return
        for array in arrays:
            if array.dtype.kind not in "iufc":
                raise errors.InvalidArgumentError(
                    None, None, f"Values of type {array.dtype} cannot be reduced: they are no numbers."
                )
        self.group.all_reduce(arrays, "all_reduce", self._deadline)

    def _before(self, lengths: Sequence[int]) -> Sequence[int]:
        if self.group.size == 1:
            return super()._before(lengths)
        rows = self._gathered(np.array(lengths), f"the lengths of {len(lengths)} gathered values")
        return [sum(int(each[index]) for each in rows[: self.group.rank]) for index in range(len(lengths))]

    def _totals(self, numbers: Array) -> Array:
        totals = np.array(numbers)
        self._exchange([totals])
        return totals

    def _gather_between(self, tensors: list[EagerTensor], axis: int) -> list[EagerTensor]:
        if self.group.size == 1:
            return tensors
        first = tensors[0]
        home = _member(first)
        what = f"gather of {_exchangeable(first)} along axis {axis}"
        rank = first._array.ndim
        shapes = np.array([each._array.shape for each in tensors], np.int64).reshape(-1)
        row = home.to_host(home.compute(_in_one_row, [each._array for each in tensors]))
        all_shapes = self._gathered(shapes, f"the shapes, of {rank} axes, for a {what}")
        # MPI reads and writes host memory: that of the device if its arrays are NumPy's.
        make = np.empty if home.home.library is not None else partial(home.compute, np.empty)
        rows = self.group.all_gather(row, lambda size: make(size, row.dtype), what, self._deadline)
        made = []
        for shapes, row in zip(all_shapes, rows, strict=True):
            start = 0
            for shape in shapes.reshape(len(tensors), rank):
                stop = start + int(np.prod(shape))
                made.append(home.tensor(home.from_host(row[start:stop].reshape(shape))))
                start = stop
        return made

    def _gathered(self, numbers: Array, what: str) -> list[Array]:
        return self.group.all_gather(
            numbers, lambda size: np.empty(size, numbers.dtype), what, self._deadline
        )

    def _first_value(self, value: Any) -> EagerTensor:
        tensor = to_tensor(value)
        if self.group.size == 1:
            return tensor
        _exchangeable(tensor)
        home = _member(tensor)
        array = home.to_host(tensor._array)
        if array is tensor._array:
            array = home.compute(_copy_in_order, array)
        self.group.broadcast(array, "the first worker's value", self._deadline)
        return home.tensor(home.from_host(array))

    def _by_replica(self, value: Any) -> Any:
        # With one replica, ``run`` returns a plain value, and each of the other processes has one, too.
        if len(self._devices) == 1 and self.group.size > 1 and not isinstance(value, DistributedValues):
            return PerReplica([to_tensor(value)])
        return value

    def _common_source(self) -> Source | None:
        if self.group.size == 1:
            return None
        # The first process's number counts, so that its seed decides. The others draw one, too, to stay in step.
        seed = np.array([shared_generator().integers(2**63)])
        self.group.broadcast(seed, "a seed for what all workers go through", self._deadline)
        return started("common", int(seed[0]))

    def _input_context(self) -> InputContext:
        return InputContext(self.group.size, self.group.rank, self._num_replicas)


def _member(tensor: EagerTensor) -> Member:
    return Member(tensor._device, tensor._home)


def _copy_in_order(array: Array) -> Array:
    return np.array(array, order="C")


def _in_one_row(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.ravel(each) for each in arrays])


def _exchangeable(tensor: EagerTensor) -> str:
    """Return the name of a tensor's type, which processes can exchange.

    Raises:
        NotImplementedError: The elements are strings.
    """
    if tensor._dtype is string:
        raise NotImplementedError("strings cannot be exchanged between processes: numbers and bools can")
    return tensor._dtype.name


def _check_tf_config(processes: int) -> None:
    """Check that ``TF_CONFIG`` names as many workers as MPI has started, and warn if not.

    Raises:
        ValueError: It names several workers, and MPI has started one.
    """
    workers = context().settings.tf_config_workers
    if workers is None or workers == processes:
        return
    text = (
        f"TF_CONFIG names {workers} workers, and MPI has started {processes}. Processes are started by MPI here, as in "
        f"`mpirun -n {workers} python train.py`"
    )
    if processes == 1:
        raise ValueError(f"{text}; unset TF_CONFIG to train in this one alone")
    _logger.warning("%s; TF_CONFIG has no effect", text)


__all__ = [
    "ExperimentalMultiWorkerMirroredStrategy",
    "MultiWorkerMirroredExtended",
    "MultiWorkerMirroredStrategy",
    "WorkerRole",
]
