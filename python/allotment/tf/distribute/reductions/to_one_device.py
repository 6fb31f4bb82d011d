"""Reduction that copies all values to one device and adds them up there."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment.devices.device_scope import device
from allotment.tf.distribute.device_names import full_name
from allotment.tf.distribute.reductions.cross_device_ops import CrossDeviceOps, Part
from allotment.tf.distribute.reductions.members import Array, Member, member
from allotment.tf.tensors.tensor import EagerTensor


class ReductionToOneDevice(CrossDeviceOps):
    """Copies all values to one device, adds them up there, and copies the total to all others.

    As ``tf.distribute.ReductionToOneDevice``. The device holds the total and one copy at a time; with an
    ``accumulation_fn`` all copies at once.

    Args:
        reduce_to_device: The device that adds up, the first destination unless given.
        accumulation_fn: Makes one tensor of a list of tensors, ``tf.add_n`` unless given.
    """

    def __init__(
        self,
        reduce_to_device: str | None = None,
        accumulation_fn: Callable[[list[EagerTensor]], Any] | None = None,
    ) -> None:
        self._device = None if reduce_to_device is None else full_name(reduce_to_device)
        self._accumulate = accumulation_fn

    def _sum(self, rows: Sequence[Array], sources: Sequence[Member], first: Member) -> list[Part]:
        root = first
        if self._device is not None:
            root = member(self._device, sources[0].tensor(rows[0])._dtype)
        if self._accumulate is not None:
            copies = [
                root.tensor(root.copy_in(row, source.home)) for row, source in zip(rows, sources, strict=True)
            ]
            with device(root.device.name):
                made = self._accumulate(copies)
            return [Part(0, rows[0].size, made._array, Member(made._device, made._home))]
        total = root.copied(rows[0], sources[0].home)
        for row, source in zip(rows[1:], sources[1:], strict=True):
            root.compute(np.add, total, root.copy_in(row, source.home), total)
        return [Part(0, total.size, total, root)]


__all__ = ["ReductionToOneDevice"]
