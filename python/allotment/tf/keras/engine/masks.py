"""Masks of tensors: for each step of a sample, whether it counts.

Tensors have no place for them: they are kept by the tensors' keys.
"""

import weakref
from typing import Any, Final

from allotment.tf.tensors.tensor import EagerTensor, key_of

_masks: Final[dict[Any, Any]] = {}


def set_mask(tensor: EagerTensor, mask: Any) -> None:
    """Give a tensor a mask for as long as it lives."""
    key = key_of(tensor)
    if key not in _masks:
        weakref.finalize(tensor, _masks.pop, key, None).atexit = False
    _masks[key] = mask


def mask_of(tensor: Any) -> Any:
    """Return the mask of a tensor, ``None`` if it has none."""
    return _masks.get(getattr(tensor, "_key", None)) if _masks else None


__all__ = ["mask_of", "set_mask"]
