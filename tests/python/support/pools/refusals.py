"""Refusals of pools."""

import pytest

from allotment import OutOfMemoryError, Pool


def refusal(pool: Pool, size: int | str) -> OutOfMemoryError:
    """Request memory that the pool refuses, and return the error."""
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(size)
    return raised.value
