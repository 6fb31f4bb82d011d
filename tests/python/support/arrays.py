"""Random arrays, the same in each run."""

from typing import Any

import numpy as np

_random = np.random.default_rng(3)


def reals(*shape: int) -> Any:
    """Numbers of both signs."""
    return np.asarray(_random.normal(size=shape))


def between(low: float, high: float, *shape: int) -> Any:
    """Numbers in an interval."""
    return np.asarray(_random.uniform(low, high, shape))


def complexes(*shape: int) -> Any:
    """Complex numbers."""
    return reals(*shape) + 1j * reals(*shape)


def apart(*shape: int) -> Any:
    """Numbers in a random order, no two of them near each other: what sorts or chooses keeps its choice."""
    count = int(np.prod(shape))
    return _random.permutation(np.linspace(-2, 2, count) + 0.013).reshape(shape)
