"""Inputs and weights of layers, random with a fixed seed."""

from typing import Any

import numpy as np

_random = np.random.default_rng(0)
IMAGES = _random.standard_normal((2, 5, 6, 3)).astype(np.float32)
ROWS = _random.standard_normal((4, 6)).astype(np.float32)


def random_weights(layer: Any) -> list[Any]:
    """Give a layer other weights than its first, and return them."""
    weights = [_random.uniform(0.2, 1, value.shape).astype(np.float32) for value in layer.get_weights()]
    layer.set_weights(weights)
    return weights
