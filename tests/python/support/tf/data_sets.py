"""Elements of data sets as plain Python values."""

from typing import Any

import allotment.tf as tf


def listed(dataset: Any) -> list[Any]:
    """Return all elements, with numbers and lists in place of arrays."""
    return [_plain(element) for element in dataset.as_numpy_iterator()]


def _plain(element: Any) -> Any:
    if isinstance(element, tuple):
        return tuple(map(_plain, element))
    if isinstance(element, dict):
        return {key: _plain(value) for key, value in element.items()}
    return element.tolist() if hasattr(element, "tolist") else element


def spec(*shape: int | None, dtype: Any = tf.int64) -> Any:
    """Return the specification of a tensor."""
    return tf.TensorSpec(shape, dtype)
