"""Copies of tensors: to a device by method, and of Python's kind."""

from collections.abc import Callable
from typing import Any

import numpy as np

from allotment.devices.context import context
from allotment.devices.dispatch import current_placement
from allotment.tf.dispatch import thread
from allotment.tf.names.deprecation import deprecated
from allotment.tf.ops.array.array import IDENTITY
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.execute import compute
from allotment.tf.ops.executor import copying
from allotment.tf.tensors.dtype import DType, int32, string
from allotment.tf.tensors.tensor import EagerTensor, tensor_of


def cpu(self: EagerTensor) -> EagerTensor:
    """Copy to ``CPU:0``: always a new tensor, even if it is there already. Deprecated."""
    deprecated("EagerTensor.cpu", "Use tf.identity with explicit device placement instead.")
    return _copy_to(self, "CPU", 0)


def gpu(self: EagerTensor, gpu_index: Any = 0) -> EagerTensor:
    """Copy to a GPU: always a new tensor, even if it is there already. Deprecated.

    Raises:
        RuntimeError: There is no such GPU, whatever the soft placement.
    """
    deprecated("EagerTensor.gpu", "Use tf.identity with explicit device placement instead.")
    return _copy_to(self, "GPU", gpu_index)


def _copy_to(tensor: EagerTensor, kind: str, index: Any) -> EagerTensor:
    for device in context().ready().devices:
        if device.kind == kind and str(device.index) == str(index):
            placement = current_placement()
            # Types that kernels of a GPU keep in host memory stay there.
            keeps = kind == "GPU" and tensor._dtype in (int32, string)
            home = placement.host if keeps else device
            array = compute(
                placement, device, home, IDENTITY.name, None, copying(tensor._home, home), tensor._array
            )
            made = tensor_of(array, tensor._dtype, device, home)
            recorder = thread.state.recorder
            if recorder is not None:
                recorder.record(IDENTITY, (tensor,), (), {}, made)
            return made
    raise RuntimeError(f"{kind}:{index} unknown device.")


def deepcopy(self: EagerTensor, memo: dict[int, Any]) -> EagerTensor:
    """Return the tensor itself: its value never changes, so one object is as good as two."""
    return self


def restored(array: Any, dtype: DType) -> EagerTensor:
    """Make a tensor of what a pickle holds, on the device of the scope."""
    return eager_const(array, dtype)


def reduced(self: EagerTensor) -> tuple[Callable[..., EagerTensor], tuple[Any, ...]]:
    """Pickle the value and its type; the device is for the reader to choose."""
    return restored, (np.array(self._on_host()), self._dtype)


__all__ = ["cpu", "deepcopy", "gpu", "reduced", "restored"]
