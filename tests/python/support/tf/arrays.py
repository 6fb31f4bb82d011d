"""Random arrays with a fixed seed."""

from typing import Any

import numpy as np

_random = np.random.default_rng(3)


def reals(*shape: int) -> Any:
    """Return normally distributed numbers."""
    return np.asarray(_random.normal(size=shape))


def between(low: float, high: float, *shape: int) -> Any:
    """Return numbers between `low` and `high`."""
    return np.asarray(_random.uniform(low, high, shape))


def complexes(*shape: int) -> Any:
    """Return complex numbers."""
    return reals(*shape) + 1j * reals(*shape)


def apart(*shape: int) -> Any:
    """Return well separated numbers in random order, so that small changes do not change their order."""
    count = int(np.prod(shape))
    return _random.permutation(np.linspace(-2, 2, count) + 0.013).reshape(shape)
