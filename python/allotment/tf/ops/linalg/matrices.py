"""Identity matrices, and what decompositions of matrices give: pseudo-inverses, ranks and normalised tensors."""

from typing import Any

import numpy as np

from allotment.tf.ops.arguments.integers import number_argument
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.array.array import cast, widened
from allotment.tf.ops.array.creation import fill
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.array.layout import expand_dims
from allotment.tf.ops.array.shapes import shape
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import Deferred, is_known, operand
from allotment.tf.ops.indexing.masking import where
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.linalg.diagonals import diag
from allotment.tf.ops.linalg.factor import svd
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.math.arithmetic import minimum, multiply
from allotment.tf.ops.math.comparison import greater
from allotment.tf.ops.math.division import realdiv, truediv
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_max, reduce_sum
from allotment.tf.ops.reduction.statistics import norm
from allotment.tf.tensors.dtype import as_dtype, float32, int32, string
from allotment.tf.tensors.tensor import EagerTensor


@in_name_scope("eye", "diag")
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> EagerTensor:
    """A matrix with ones on its diagonal, or a batch of them. As ``tf.eye``.

    Raises:
        TypeError: A number of rows or columns that is not whole.
    """
    for given in (num_rows, num_columns):
        if isinstance(given, list | tuple | str | np.ndarray) or num_rows is None:
            raise TypeError(
                "Arguments `num_rows` and `num_columns` must be positive integer values. Received: "
                f"num_rows={num_rows}, num_columns={num_columns}"
            )
    rows = number_argument(widened(num_rows), "num_rows")
    columns = rows if num_columns is None else number_argument(widened(num_columns), "num_columns")
    wanted = as_dtype(dtype)
    batch: Any = () if batch_shape is None else shape_argument(batch_shape)
    side = rows if columns is rows else _smaller(rows, columns)
    one = eager_const(np.ones((), wanted.numpy)) if wanted is not string else to_tensor(1, wanted)
    shape: Any = [*batch, side] if type(batch) is not Deferred else concat([batch.tensor, [operand(side)]], 0)
    ones = fill(shape, one)
    return diag(ones, num_rows=rows, num_cols=columns, name=name or "diag")


def _smaller(one: Any, other: Any) -> Any:
    """The smaller of two numbers among the arguments; of what is not known, a tensor."""
    if is_known(one) and is_known(other):
        return min(one, other)
    return minimum(operand(one), operand(other))


def _matrix(a: Any) -> EagerTensor:
    matrix = to_tensor(a)
    if not matrix._dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {matrix._dtype.name}).")
    rank = rank_of(matrix)
    if rank is not None and rank < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {rank}).")
    return matrix


def _longer_side(matrix: EagerTensor) -> Any:
    """The larger of the numbers of rows and columns, a tensor in a graph that does not know them."""
    sides = matrix.shape[-2:]
    if sides.is_fully_defined():
        return max(sides)  # type: ignore[type-var]
    return cast(reduce_max(shape(matrix)[-2:]), matrix._dtype)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> EagerTensor:
    """The Moore-Penrose pseudo-inverse. As ``tf.linalg.pinv``.

    Singular values up to ``rcond`` times the largest count as zero; without it ten times the longer side times the
    distance from one to the next float.

    Raises:
        TypeError: The elements are no floats.
        ValueError: It is no matrix.
    """
    matrix = _matrix(a)
    kind = matrix._dtype.numpy
    if rcond is None:
        rcond = _longer_side(matrix) * (10.0 * float(np.finfo(kind).eps))
    share = to_tensor(rcond, like=matrix._dtype)
    values, u, v = svd(matrix, full_matrices=False, compute_uv=True)
    cutoff = multiply(share, reduce_max(values, -1))
    values = where(greater(values, expand_dims(cutoff, -1)), values, np.array(np.inf, kind))
    return matmul(realdiv(v, expand_dims(values, -2)), u, adjoint_b=True, name=name)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> EagerTensor:
    """Return the number of singular values above ``tol``. As ``tf.linalg.matrix_rank``.

    Without ``tol`` it is the largest one times the longer side times the distance from one to the next float.

    Raises:
        TypeError: The elements are no floats.
        ValueError: It is no matrix.
    """
    matrix = _matrix(a)
    values = svd(matrix, compute_uv=False)
    if tol is None:
        smallest = _longer_side(matrix) * float(np.finfo(matrix._dtype.numpy).eps)
        tol = multiply(reduce_max(values, -1, keepdims=True), smallest)
    return reduce_sum(cast(greater(values, tol), int32), -1, name=name)


def normalize(
    tensor: Any,
    ord: Any = "euclidean",  # noqa: A002 - TensorFlow's name
    axis: Any = None,
    name: str | None = None,
) -> tuple[EagerTensor, EagerTensor]:
    """Divide by the norm along axes; returns the result and the norms. As ``tf.linalg.normalize``; see ``norm``."""
    tensor = to_tensor(tensor)
    size = cast(norm(tensor, ord, axis, keepdims=True), tensor._dtype)
    return truediv(tensor, size, name), size


__all__ = ["eye", "matrix_rank", "normalize", "pinv"]
