"""Strategies with one replica: ``OneDeviceStrategy``, and the default strategy outside of all others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from allotment.devices.device_scope import device
from allotment.devices.dispatch import current_placement
from allotment.tf.distribute.device_names import full_name
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.reductions.reduce_op import ReduceOp
from allotment.tf.distribute.replica_context import ReplicaContext
from allotment.tf.distribute.scopes import Scope, current_scope
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.threads.replica_threads import DirectChannel, run_single
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.aggregation import VariableSynchronization
from allotment.tf.variables.variable import Variable


class OneDeviceStrategy(Strategy):
    """A strategy with one replica on one device. As ``tf.distribute.OneDeviceStrategy``.

    Args:
        device: Name of the device, or a ``LogicalDevice``.

    Raises:
        ValueError: Not a device name.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(OneDeviceExtended(self, full_name(device)))


class _OneReplicaExtended(StrategyExtended):
    """The common part of strategies with one replica."""

    def _reduce_to(self, reduce_op: ReduceOp, value: Any, destinations: Any) -> Any:
        return value

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Return the tensor: there is one device."""
        return tensor

    def _all_reduce(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Sequence[EagerTensor]],
    ) -> Sequence[Sequence[EagerTensor]]:
        return values

    def _gather(
        self, tensors: Sequence[EagerTensor], axis: int, destinations: Sequence[str]
    ) -> list[EagerTensor]:
        made = []
        for name in destinations:
            with device(name):
                made.append(concat(list(tensors), axis))
        return made


class OneDeviceExtended(_OneReplicaExtended):
    """Runs the replica of a ``OneDeviceStrategy``.

    Args:
        strategy: The strategy.
        name: Full name of the device.
    """

    _strategy: Strategy

    def __init__(self, strategy: Strategy, name: str) -> None:
        super().__init__(strategy)
        self._name = name

    @property
    def _devices(self) -> tuple[str, ...]:
        return (self._name,)

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function on the device."""
        self._check_eager()
        return run_single(self._strategy, self._name, fn, tuple(args), dict(kwargs or {}))

    def _new_variable(self, scope: Scope, *args: Any, **kwargs: Any) -> Variable:
        made: Variable = object.__new__(_OneDeviceVariable)
        made._device_name = self._name  # type: ignore[attr-defined]
        return made


class _OneDeviceVariable(Variable):
    """A variable on the device of its strategy, whatever device scope is in force."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("synchronization") is VariableSynchronization.ON_READ and not kwargs.get("trainable"):
            kwargs["trainable"] = False
        with device(self.__dict__.pop("_device_name")):
            super().__init__(*args, **kwargs)


class _DefaultStrategy(Strategy):
    """The strategy outside of all others: one replica, on the device of the device scope."""

    def __init__(self) -> None:
        super().__init__(_DefaultExtended(self))
        #: The context of its replica, for ``get_replica_context``.
        self.replica: Final = _DefaultReplica(self, 0, DirectChannel(self))

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Return the data set: there is one replica."""
        return dataset


class _DefaultReplica(ReplicaContext):
    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of the only replica."""
        return 0

    @property
    def devices(self) -> tuple[str, ...]:
        """An empty name, in a tuple of one."""
        return ("",)


class _DefaultExtended(_OneReplicaExtended):
    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Refuse: the default strategy has no devices of its own.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("worker_devices() method unsupported by default tf.distribute.Strategy.")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Refuse: the default strategy has no devices of its own.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("parameter_devices() method unsupported by default tf.distribute.Strategy.")

    @property
    def _devices(self) -> tuple[str, ...]:
        home = current_placement().home
        return (current_placement().host.name if home is None else home.name,)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        if current_scope() is not None:
            raise RuntimeError("Must not nest tf.distribute.Strategy scopes.")
        yield

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        return fn(*args, **(kwargs or {}))

    def _gather(
        self, tensors: Sequence[EagerTensor], axis: int, destinations: Sequence[str]
    ) -> list[EagerTensor]:
        return [concat([to_tensor(each) for each in tensors], axis) for _ in destinations]


default_strategy: Final = _DefaultStrategy()

__all__ = ["OneDeviceExtended", "OneDeviceStrategy", "default_strategy"]
