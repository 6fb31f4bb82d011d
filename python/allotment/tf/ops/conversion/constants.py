"""Makes tensors of Python values and arrays, on the device of the scope."""

from typing import Any, Final

import numpy as np

from allotment.devices import placement_log
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.dispatch import current_placement
from allotment.devices.placement import Placement
from allotment.tf.dispatch import thread
from allotment.tf.ops.execute import bring, compute
from allotment.tf.ops.executor import value_memory
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.table import CPU_ONLY, EVERYWHERE, Host, operation
from allotment.tf.ops.values import to_array
from allotment.tf.tensors.dtype import BY_NUMPY, DType, string
from allotment.tf.tensors.tensor import EagerTensor, tensor_of

EAGER_CONST: Final = operation("_EagerConst", np.copy, shape=unchanged, host=Host.NEVER)


def eager_const(value: Any, dtype: DType | None = None) -> EagerTensor:
    """Make a tensor of a Python value or an array, on the device of the scope.

    Texts and int32 stay in host memory, whatever the device.
    """
    placement = current_placement()
    # No graph has a home, so that most calls need no second look at the thread's state.
    if placement.home is None:
        graph = thread.state.graph
        if graph is not None:
            return graph._recording.constant(value, dtype)  # type: ignore[no-any-return]
    # Made on the host first: the element type decides which devices can have it.
    made = _on_host(placement, value, dtype)
    device = _place(placement, made)
    home = value_memory(made._dtype, device, placement.host)
    if device is not placement.host:
        array = bring(placement, EAGER_CONST, device, home, 0, made, None)
        made = tensor_of(array, made._dtype, device, home)
    _log(placement, device)
    return made


def host_const(value: Any, dtype: DType | None = None) -> EagerTensor:
    """Make a tensor of a Python value that stays in host memory; its device is checked and logged as usual."""
    placement = current_placement()
    made = _on_host(placement, value, dtype)
    _log(placement, _place(placement, made))
    return made


def _on_host(placement: Placement, value: Any, dtype: DType | None) -> EagerTensor:
    host = placement.host
    array = compute(placement, host, host, EAGER_CONST.name, None, to_array, value, dtype)
    return tensor_of(array, BY_NUMPY[array.dtype], host, host)


def _place(placement: Placement, made: EagerTensor) -> Device:
    return placement.place(CPU_ONLY if made._dtype is string else EVERYWHERE, EAGER_CONST.name, None)


def _log(placement: Placement, device: Device) -> None:
    if placement.logging:
        placement_log.log_execution(EAGER_CONST.name, device.name)


__all__ = ["eager_const", "host_const"]
