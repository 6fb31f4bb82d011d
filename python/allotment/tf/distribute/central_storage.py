"""``CentralStorageStrategy``: variables on one device, and a replica on each compute device."""

from typing import Any

from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.tf.distribute.device_names import full_name
from allotment.tf.distribute.mirrored import MirroredExtended, local_devices
from allotment.tf.distribute.reductions.reduce_op import aggregation_op
from allotment.tf.distribute.scopes import Scope, current_replica
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import regroup, select
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.slicing import Index
from allotment.tf.variables.aggregation import VariableAggregation
from allotment.tf.variables.variable import Variable


class CentralStorageStrategy(Strategy):
    """Replicas on several devices that share variables on one. As in ``tf.distribute.experimental``.

    Args:
        compute_devices: Names of the devices of the replicas; without them all logical GPUs, or the first CPU if there
            are none.
        parameter_device: The device of the variables; without it the only GPU, or the first CPU if there are several
            or none.

    Raises:
        ValueError: Not a device name.
        AssertionError: A device twice.
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        if compute_devices is None:
            gpus = [each.name for each in context().ready().devices if each.kind == "GPU"]
            compute_devices = gpus or ["/device:CPU:0"]
            if parameter_device is None:
                parameter_device = compute_devices[0] if len(gpus) == 1 else "/device:CPU:0"
        devices = local_devices(compute_devices)
        super().__init__(
            _CentralStorageExtended(self, devices, full_name(parameter_device or "/device:CPU:0"))
        )


class _CentralStorageExtended(MirroredExtended):
    """Runs replicas on the compute devices, and makes variables on the parameter device."""

    def __init__(self, strategy: Strategy, devices: tuple[str, ...], parameter_device: str) -> None:
        super().__init__(strategy, devices)
        self._parameter_device = parameter_device

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full name of the device that variables are on."""
        return (self._parameter_device,)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in this strategy's scope."""
        return isinstance(v, CentralVariable) and v._strategy is self._strategy

    def _new_variable(self, scope: Scope, *args: Any, **kwargs: Any) -> Variable:
        def made() -> CentralVariable:
            variable: CentralVariable = object.__new__(CentralVariable)
            variable._strategy = self._strategy
            variable._is_made = False
            with device(self._parameter_device):
                variable.__init__(*args, **kwargs)  # type: ignore[misc]
            return variable

        if scope.replica is None:
            return made()
        # Replicas make one together.
        description = f"making of variable {kwargs.get('name') or 'Variable'!r}"
        count = len(self._devices)

        def perform(_: list[None]) -> list[Variable]:
            return [made()] * count

        variable: Variable = scope.replica._channel.call_together(description, description, perform, None)
        return variable


class CentralVariable(Variable):
    """A variable with one copy. ``aggregation`` makes one value of those that replicas assign."""

    _strategy: Strategy
    _is_made = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # ``tf.Variable(...)`` calls this once more.
        if not self._is_made:
            self._is_made = True
            super().__init__(*args, **kwargs)

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Replace the value. Replicas, which all have to call this, assign the aggregate of their values.

        Raises:
            ValueError: Another shape or type than the variable's; replicas that assign to a variable without an
                aggregation; a sum of a Python number.
        """
        return self._change("assign", value, use_locking=use_locking, name=name, read_value=read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; see ``assign``."""
        return self._change("assign_add", delta, use_locking=use_locking, name=name, read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; see ``assign``."""
        return self._change("assign_sub", delta, use_locking=use_locking, name=name, read_value=read_value)

    def _assign_part(self, value: Any, index: Index, name: str | None) -> Any:
        return self._change("_assign_part", value, index=index, name=name)

    def _change(self, method: str, value: Any, **options: Any) -> Any:
        """Call a method of ``Variable`` once; replicas with the aggregate of their values."""
        change = getattr(super(), method)
        replica = current_replica()
        if replica is None:
            return change(value, **options)
        if self._aggregation is VariableAggregation.NONE:
            raise ValueError(
                f"replicas cannot {method} variable {self.name!r}: it has no aggregation for their values. Make it "
                "with one, as in tf.Variable(..., aggregation=tf.VariableAggregation.SUM)."
            )

        def perform(given: list[Any]) -> list[Any]:
            made = change(self._aggregated(regroup(given)), **options)
            return [made] * len(given)

        # A list is one value, not a structure of values.
        value = to_tensor(value, self.dtype) if isinstance(value, list | tuple) else value
        description = f"{method} of variable {self.name!r} with aggregation {self._aggregation.name}"
        return replica._channel.call_together(description, (method, id(self)), perform, value)

    def _aggregated(self, value: Any) -> Any:
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return select(0, value)
        return self._strategy.extended.reduce_to(aggregation_op(self._aggregation), value, self.device)


__all__ = ["CentralStorageStrategy", "CentralVariable"]
