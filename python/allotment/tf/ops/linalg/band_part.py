"""The part of matrices that is near the main diagonal."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import check_scalar, number_argument
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.tensor import EagerTensor


def _band_part(matrices: Array, lower: int, upper: int) -> Array:
    result = np.zeros_like(matrices)
    rows, columns = matrices.shape[-2:]
    for row in range(rows):
        start = max(row - lower, 0) if lower >= 0 else 0
        end = row + upper + 1 if upper >= 0 else columns
        result[..., row, start:end] = matrices[..., row, start:end]
    return result


def _band_part_fault(matrices: Array, lower: int, upper: int) -> str | None:
    if matrices.ndim < 2:
        return f"input must be at least 2-dim, received shape: {dims(matrices)}"
    rows, columns = matrices.shape[-2:]
    if lower > rows:
        return f"num_lower must be negative or less or equal to number of rows ({rows}) got: {lower}"
    if upper > columns:
        return f"num_upper must be negative or less or equal to number of columns ({columns}) got: {upper}"
    return None


_band_part_row = operation("MatrixBandPart", _band_part, shape=unchanged, fault=_band_part_fault)


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> EagerTensor:  # noqa: A002
    """Set all but some diagonals to zero; a negative number keeps that side whole. As ``tf.linalg.band_part``."""
    lower, upper = number_of_lines(num_lower), number_of_lines(num_upper)
    for given in (num_lower, num_upper):
        check_scalar(given, "a number of diagonals", in_kernel=True)
    return run(_band_part_row, (to_tensor(input),), lower, upper, name=name)  # type: ignore[no-any-return]


def number_of_lines(value: Any) -> int:
    """A number of diagonals, rows or columns among the arguments."""
    return number_argument(value, "a number of diagonals, rows or columns")


__all__ = ["band_part"]
