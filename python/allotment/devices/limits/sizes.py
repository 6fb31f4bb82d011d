"""Memory limits of logical devices, as arithmetic: from numbers to numbers (GPU memory, sections 5 and 7).

All amounts are bytes. A result is not rounded to the granule: the pool rounds what it takes.
"""

import struct
from typing import Final

MIB: Final = 1 << 20

#: Every chunk of a pool is a multiple of so many bytes.
GRANULE: Final = 256

#: MiB of 2**63 bytes, which no device has, and no pool's limit reaches.
MOST_MIB: Final = 1 << 43


def limit_of_split(mib: float) -> int:
    """Bytes of a logical device that is configured with ``memory_limit=mib``; fractions of a MiB are dropped.

    TensorFlow keeps the number in single precision, and casts it to a whole number before it multiplies: 0.9
    is 0 bytes, and 16777217 is 16777216 MiB. ``mib`` lies between -1 and ``MOST_MIB``.
    """
    (single,) = struct.unpack("<f", struct.pack("<f", mib))
    return int(single) * MIB


def limit_of_whole_gpu(free: int, total: int, *, fraction: float, reserve: int, override: int | None) -> int:
    """Bytes of the only logical device of a GPU.

    Args:
        free: Bytes that nobody uses.
        total: Bytes in all.
        fraction: Share of ``total``, whatever is free; 0 means ``free`` less ``reserve``.
        reserve: Bytes to leave to others. If less is free, all of it counts.
        override: Bytes to leave to others, in place of the fraction, too. If less is free, it has no effect.
    """
    if override is not None and override <= free:
        return free - override
    if fraction == 0:
        return free - reserve if reserve < free else free
    return int(total * fraction)
