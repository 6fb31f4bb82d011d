"""The devices that take part in a reduction, with the memory that holds their values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.device_scope import device
from allotment.devices.dispatch import current_placement
from allotment.tf.ops.execute import compute
from allotment.tf.ops.executor import copying
from allotment.tf.ops.table import EVERYWHERE
from allotment.tf.tensors.dtype import BY_NUMPY, DType, int32, string
from allotment.tf.tensors.tensor import EagerTensor, tensor_of

Array = np.ndarray[Any, Any]

#: The operation that out-of-memory errors of a reduction name.
_OP: Final = "CollectiveReduceV2"


@dataclass(frozen=True, slots=True)
class Member:
    """A device that takes part in a reduction, and functions that compute in its memory."""

    device: Device
    #: The device whose memory holds the values: the host for types that GPUs do not keep.
    home: Device

    def compute(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of arrays; the arrays that it makes are in the member's memory.

        Raises:
            ResourceExhaustedError: The memory is full.
        """
        return compute(current_placement(), self.device, self.home, _OP, None, function, *args)

    def copy_in(self, array: Array, home: Device) -> Array:
        """Return the array in this member's memory: a copy if it is in that of another device, ``home``."""
        return array if home is self.home else self.copied(array, home)

    def copied(self, array: Array, home: Device) -> Array:
        """Return a copy, in this member's memory, of an array in that of a device, ``home``."""
        made: Array = self.compute(copying(home, self.home), array)
        return made

    def to_host(self, array: Array) -> Array:
        """Return an array of the member's memory in host memory: the array if it is there, or a copy in C's order."""
        library = self.home.library
        return array if library is None else library.to_host(array)

    def from_host(self, array: Array) -> Array:
        """Return an array of host memory in the member's memory: the array if that is host memory, too, or a copy."""
        library = self.home.library
        if library is None:
            return array
        made: Array = self.compute(library.from_host, array)
        return made

    def empty(self, size: int, dtype: npt.DTypeLike) -> Array:
        """Make an array with one axis in the member's memory; its elements are not set."""
        library = self.home.library
        made: Array = self.compute(np.empty if library is None else library.empty, (size,), dtype)
        return made

    def tensor(self, array: Array) -> EagerTensor:
        """Make a tensor of an array that is in the member's memory."""
        return tensor_of(array, BY_NUMPY[array.dtype], self.device, self.home)


def member(name: str, dtype: DType) -> Member:
    """Return the member of a device for values of a type; soft placement may choose another device.

    Raises:
        InvalidArgumentError: There is no such device.
    """
    with device(None), device(name):
        placement = current_placement()
        found = placement.place(EVERYWHERE, _OP, None)
    in_host = dtype is string or (found.kind == "GPU" and dtype is int32)
    return Member(found, placement.host if in_host else found)


def members(names: Sequence[str], dtype: DType) -> list[Member]:
    """Return the members of devices for values of a type.

    Raises:
        InvalidArgumentError: There is no such device.
    """
    return [member(name, dtype) for name in names]


__all__ = ["Array", "Member", "member", "members"]
