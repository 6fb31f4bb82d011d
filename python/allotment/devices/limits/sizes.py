"""Computes memory limits of logical devices: from numbers to numbers (GPU memory, sections 5 and 7).

All amounts are bytes. The functions do not round to the granule: the pool does.
"""

import struct
from typing import Final

MIB: Final = 1 << 20

#: Bytes of which every chunk of a pool is a multiple.
GRANULE: Final = 256

#: MiB of 2**63 bytes: more than a pool's limit can be.
MOST_MIB: Final = 1 << 43


def limit_of_split(mib: float) -> int:
    """Return the bytes of a logical device configured with ``memory_limit=mib``, without fractions of a MiB.

    TensorFlow keeps the number in single precision, and casts it to a whole number before it multiplies: 0.9
    is 0 bytes, and 16777217 is 16777216 MiB. ``mib`` lies between -1 and ``MOST_MIB``.
    """
    (single,) = struct.unpack("<f", struct.pack("<f", mib))
    return int(single) * MIB


def limit_of_whole_gpu(free: int, total: int, *, fraction: float, reserve: int, override: int | None) -> int:
    """Return the bytes of the only logical device of a GPU.

    Args:
        free: Bytes not in use by any process.
        total: Bytes in all.
        fraction: Share of ``total``, even if less is free; 0 means ``free`` less ``reserve``.
        reserve: Bytes to leave to other processes. If less is free, all of it counts.
        override: Bytes to leave to other processes, instead of ``reserve`` and ``fraction``. If less is free, it has no
            effect.
    """
    if override is not None and override <= free:
        return free - override
    if fraction == 0:
        return free - reserve if reserve < free else free
    return int(total * fraction)


def system_reserve(free: int, major: int) -> int:
    """Return the bytes that TensorFlow leaves to others on a real GPU (GPU memory, section 5).

    Args:
        free: Bytes not in use by any process.
        major: Major number of the compute capability.
    """
    if free < 2 << 30:
        return 225 * MIB
    return {7: 1050, 8: 1536}.get(major, 500 if major < 7 else 1800) * MIB
