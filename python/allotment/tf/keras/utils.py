"""Helpers that prepare data. As ``keras.utils``."""

from typing import Any

import numpy as np

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.tensor import EagerTensor


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Classes, given by number, as rows with a one at the class. As ``keras.utils.to_categorical``.

    Args:
        x: Whole numbers from 0 on; an axis of length 1 at the end is dropped.
        num_classes: How many classes there are, as many as the largest number needs unless given.

    Returns:
        An array of float64; for a tensor a tensor of float32.

    Raises:
        ValueError: A number is no class.
    """
    if isinstance(x, EagerTensor):
        return to_tensor(to_categorical(x.numpy(), num_classes).astype(np.float32))
    numbers = np.asarray(x).astype(np.int64)
    if numbers.ndim > 1 and numbers.shape[-1] == 1:
        numbers = numbers[..., 0]
    if num_classes is None:
        num_classes = int(numbers.max()) + 1 if numbers.size else 0
    wrong = numbers[(numbers < 0) | (numbers >= num_classes)]
    if wrong.size:
        raise ValueError(
            f"to_categorical: classes are numbers from 0 up to num_classes - 1 = {num_classes - 1}. "
            f"Received: {wrong[0]}"
        )
    rows = np.zeros((*numbers.shape, num_classes))
    np.put_along_axis(rows, numbers[..., None], 1.0, -1)
    return rows


__all__ = ["to_categorical"]

refuse_other_names(__name__)
