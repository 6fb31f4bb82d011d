"""``MirroredStrategy``: a replica and a copy of each variable on each device of one process."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.tf.distribute.device_names import full_name
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.reductions.cross_device_ops import CrossDeviceOps, devices_of
from allotment.tf.distribute.reductions.reduce_op import ReduceOp
from allotment.tf.distribute.reductions.ring import NcclAllReduce
from allotment.tf.distribute.reductions.to_one_device import ReductionToOneDevice
from allotment.tf.distribute.scopes import Scope
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.threads.replica_threads import run_replicas, run_single
from allotment.tf.distribute.values import DistributedValues, Mirrored, regroup
from allotment.tf.distribute.variables.creation import new_variable
from allotment.tf.distribute.variables.distributed import MirroredVariable, tensors
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.tensor import EagerTensor

_logger: Final = logging.getLogger("tensorflow")


class MirroredStrategy(Strategy):
    """A replica on each device, and variables that are equal on all. As ``tf.distribute.MirroredStrategy``.

    Args:
        devices: Names of devices, or ``LogicalDevice`` objects; without them all logical GPUs, or all logical CPUs if
            there are none. They need not exist before they are used.
        cross_device_ops: The reduction algorithm: unless given, a ring for several GPUs and one device otherwise.

    Raises:
        ValueError: Not a device name.
        AssertionError: A device twice.
    """

    def __init__(self, devices: Any = None, cross_device_ops: CrossDeviceOps | None = None) -> None:
        super().__init__(MirroredExtended(self, local_devices(devices), cross_device_ops))


class MirroredExtended(StrategyExtended):
    """Runs replicas, reduces values and makes variables for a strategy with a replica on each device.

    Args:
        strategy: The strategy.
        devices: Full names of the devices.
        cross_device_ops: The reduction algorithm.

    Raises:
        TypeError: ``cross_device_ops`` is no ``CrossDeviceOps``.
    """

    _strategy: Strategy
    #: The classes of strategies whose warning about the cost of eager calls was logged.
    _warned: Final[set[str]] = set()

    def __init__(
        self, strategy: Strategy, devices: tuple[str, ...], cross_device_ops: CrossDeviceOps | None = None
    ) -> None:
        super().__init__(strategy)
        if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
            raise TypeError(
                "cross_device_ops must be a tf.distribute.CrossDeviceOps, such as tf.distribute.NcclAllReduce(), not "
                f"{cross_device_ops!r}"
            )
        self._names = devices
        gpus = len(devices) > 1 and all("/device:GPU:" in each for each in devices)
        self._ops = cross_device_ops or (NcclAllReduce() if gpus else ReductionToOneDevice())
        _logger.info("Using %s with devices %s", type(strategy).__name__, devices)

    @property
    def _devices(self) -> tuple[str, ...]:
        return self._names

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function once for each replica. See ``Strategy.run``."""
        title = type(self._strategy).__name__
        if title not in self._warned:
            self._warned.add(title)
            _logger.warning(
                "Using %s eagerly has significant overhead currently. Each call of run hands work to a thread for "
                "each replica and waits for all: much work in one call is cheaper than little in many.",
                title,
            )
        return self._call(fn, tuple(args), dict(kwargs or {}))

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_eager()
        if len(self._names) == 1:
            return run_single(self._strategy, self._names[0], fn, args, kwargs)
        return regroup(run_replicas(self._strategy, fn, args, kwargs))

    def _reduce_to(self, reduce_op: ReduceOp, value: Any, destinations: Any) -> Any:
        value = self._by_replica(value)
        if isinstance(value, Mirrored | MirroredVariable) and reduce_op is ReduceOp.MEAN:
            # The mean of equal values is the value, without rounding errors.
            return self.broadcast_to(to_tensor(value.values[0]), destinations)
        if not isinstance(value, DistributedValues):
            if self._num_replicas == 1:
                return value
            if reduce_op is ReduceOp.SUM:
                raise ValueError(
                    f"A non-DistributedValues value {value!s} cannot be reduced with the given reduce op {reduce_op}."
                )
            return value
        return regroup(self._combine(reduce_op, [tensors(value)], devices_of(destinations))[0], Mirrored)

    def _combine(
        self, reduce_op: ReduceOp, values: Sequence[Sequence[EagerTensor]], destinations: Sequence[str]
    ) -> list[list[EagerTensor]]:
        return self._ops.combine(reduce_op, values, destinations, self._num_replicas, self._exchange)

    #: Adds arrays up with those of other processes; see ``CrossDeviceOps.combine``.
    _exchange: Any = None

    def _all_reduce(
        self, reduce_op: ReduceOp, values: Sequence[Sequence[EagerTensor]]
    ) -> Sequence[Sequence[EagerTensor]]:
        return self._combine(reduce_op, values, self._devices)

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to the devices of ``destinations``. A Python value stays as it is."""
        if not isinstance(tensor, EagerTensor):
            return tensor
        return self._ops.broadcast(tensor, destinations)

    def _gather(
        self, tensors: Sequence[EagerTensor], axis: int, destinations: Sequence[str]
    ) -> list[EagerTensor]:
        several = self._num_replicas > len(self._devices) or len(tensors) > 1
        if several and any(each._array.ndim == 0 for each in tensors):
            raise ValueError(
                f"Values without axes, such as {tensors[0]!r}, cannot be joined along axis {axis}: give each one "
                "first, as with tf.reshape(value, [1])"
            )
        made, joined = [], self._gather_between(list(tensors), axis)
        for name in destinations:
            with device(name):
                made.append(concat(joined, axis))
        return made

    def _gather_between(self, tensors: list[EagerTensor], axis: int) -> list[EagerTensor]:
        """Return the tensors of all processes, in the order of their replicas."""
        return tensors

    def _new_variable(self, scope: Scope, *args: Any, **kwargs: Any) -> Any:
        return new_variable(self._strategy, scope.replica, args, kwargs)


def local_devices(devices: Any = None) -> tuple[str, ...]:
    """Return the full names of devices; without any, of all GPUs of this process, or of all CPUs."""
    ready = context().ready()
    if devices is None or len(devices := list(devices)) == 0:
        gpus = [each.name for each in ready.devices if each.kind == "GPU"]
        return tuple(gpus or [each.name for each in ready.devices])
    names = tuple(full_name(each) for each in devices)
    assert len(set(names)) == len(names), f"No duplicates allowed in `devices` argument: {names}"
    return names


__all__ = ["MirroredExtended", "MirroredStrategy", "local_devices"]
