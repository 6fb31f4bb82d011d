"""Reduction around a ring."""

from collections.abc import Sequence

import numpy as np

from allotment.distribute.cross_device_ops import CrossDeviceOps, Part, check_packs
from allotment.distribute.members import Array, Member


class NcclAllReduce(CrossDeviceOps):
    """Passes shares of the values around a ring of devices, which add theirs. As ``tf.distribute.NcclAllReduce``.

    The name is TensorFlow's; the copies go through the devices' own pools here. Values are cut into as many shares
    as there are devices. Each share starts at a device of its own, which passes it on to the next one:

        share 0    GPU:0 ──→ GPU:1 ──→ GPU:2        GPU:2 has the total of it
        share 1    GPU:1 ──→ GPU:2 ──→ GPU:0        GPU:0 has
        share 2    GPU:2 ──→ GPU:0 ──→ GPU:1        GPU:1 has

    So every device receives and adds as much as every other, and needs room for a share or two beside the result.

    Args:
        num_packs: Has no effect.
    """

    def __init__(self, num_packs: int = 1) -> None:
        check_packs("NCCL all-reduce", num_packs)

    def _sum(self, rows: Sequence[Array], sources: Sequence[Member], first: Member) -> list[Part]:
        count, size = len(rows), rows[0].size
        bounds = [size * index // count for index in range(count + 1)]
        parts = []
        for share in range(count):
            start, stop = bounds[share], bounds[share + 1]
            if start == stop and size:
                continue
            passed = rows[share][start:stop]
            for step in range(1, count):
                index = (share + step) % count
                received = sources[index].compute(np.copy, passed)
                passed = sources[index].compute(np.add, rows[index][start:stop], received, received)
            parts.append(Part(start, stop, passed, sources[(share - 1) % count]))
        return parts


__all__ = ["NcclAllReduce"]
