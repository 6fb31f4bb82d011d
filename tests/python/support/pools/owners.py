"""What the owners of allocations hold in a pool."""

import gc
from collections import Counter

from allotment import Pool


def requested_by_owner(pool: Pool) -> dict[str | None, int]:
    """Return the bytes that the live allocations of each owner have requested."""
    requested: Counter[str | None] = Counter()
    for region in pool.snapshot().regions:
        for chunk in region.chunks:
            if chunk.in_use:
                requested[chunk.owner] += chunk.requested
    return dict(requested)


def in_use(pool: Pool) -> int:
    """Return the bytes in use after the death of all that only a cycle keeps alive."""
    gc.collect()
    return pool.stats().in_use
