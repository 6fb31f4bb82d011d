"""Reduction around a ring of devices, each of which adds its share."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from allotment.tf.distribute.reductions.cross_device_ops import CrossDeviceOps, Part, check_packs
from allotment.tf.distribute.reductions.members import Array, Member
from allotment.tf.distribute.reductions.parallel import run_parallel


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
        shares = [slice(start, stop) for start, stop in pairwise(bounds)]
        passed = [rows[index][share] for index, share in enumerate(shares)]

        def receive(share: int, index: int) -> Array:
            copy = sources[index].copied(passed[share], sources[index - 1].home)
            added: Array = sources[index].compute(np.add, rows[index][shares[share]], copy, copy)
            return added

        for step in range(1, count):
            # In a step every device receives a share, and passes one on.
            hops = [partial(receive, share, (share + step) % count) for share in range(count)]
            passed = run_parallel(hops, rows[0].nbytes)
        return [
            Part(share.start, share.stop, passed[index], sources[(index - 1) % count])
            for index, share in enumerate(shares)
        ]


__all__ = ["NcclAllReduce"]
