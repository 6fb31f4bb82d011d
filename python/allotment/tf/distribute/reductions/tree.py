"""Reduction along a tree: pairs of devices, then pairs of pairs."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from allotment.tf.distribute.reductions.cross_device_ops import CrossDeviceOps, Part, check_packs
from allotment.tf.distribute.reductions.members import Array, Member
from allotment.tf.distribute.reductions.parallel import run_parallel


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Adds up in pairs of devices, then in pairs of pairs, until one has the total. As the class of ``tf.distribute``.

        0 ←─ 1    2 ←─ 3        Half of the devices receive a copy at once; n devices take log2(n) rounds.
        0 ←────── 2             Each holds one copy at a time.

    Args:
        num_packs: Has no effect.
    """

    def __init__(self, num_packs: int = 1) -> None:
        check_packs("HierarchicalCopy", num_packs)

    def _sum(self, rows: Sequence[Array], sources: Sequence[Member], first: Member) -> list[Part]:
        sums = list(rows)

        def receive(index: int, other: int) -> Array:
            copy = sources[index].copied(sums[other], sources[other].home)
            added: Array = sources[index].compute(np.add, sums[index], copy, copy)
            return added

        distance = 1
        while distance < len(sums):
            pairs = range(0, len(sums) - distance, 2 * distance)
            made = run_parallel(
                [partial(receive, index, index + distance) for index in pairs], rows[0].nbytes
            )
            for index, total in zip(pairs, made, strict=True):
                # A row that was passed on is not needed any more.
                sums[index], sums[index + distance] = total, rows[index + distance]
            del made, total
            distance *= 2
        return [Part(0, sums[0].size, sums[0], sources[0])]


__all__ = ["HierarchicalCopyAllReduce"]
