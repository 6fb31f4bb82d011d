"""Products of matrices."""

from typing import Any, Final

import numpy as np

from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.scalars import attribute_flag, flag_argument
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_pair_by_first
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of
from allotment.tf.ops.public import binary
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor

#: More axes than a matrix has.
_ANY_RANK: Final = 3
#: The form in which a matrix is multiplied: unchanged, transposed, or transposed and conjugated.
AS_IT_IS, TRANSPOSED, ADJOINT = "as it is", "transposed", "adjoint"


def _turned(array: Array, form: str) -> Array:
    """The matrices as they enter the product: a view where NumPy can multiply one."""
    turned = np.swapaxes(array, -1, -2)
    return np.conjugate(turned) if form == ADJOINT and array.dtype.kind == "c" else turned


def _multiply(a: Array, b: Array, form_a: str = AS_IT_IS, form_b: str = AS_IT_IS) -> Any:
    if a.dtype == np.float16:
        # By hand and not by `in_single`: a small product takes no longer than the frame in between.
        return _multiply(a.astype(np.float32), b.astype(np.float32), form_a, form_b).astype(np.float16)
    if form_a != AS_IT_IS:
        a = _turned(a, form_a)
    if form_b != AS_IT_IS:
        b = _turned(b, form_b)
    return np.matmul(a, b)


def _rank_2_fault(a: Array, b: Array, form_a: str = AS_IT_IS, form_b: str = AS_IT_IS) -> str | None:
    if a.ndim != b.ndim:
        return f"In[0] and In[1] has different ndims: {dims(a)} vs. {dims(b)}"
    if a.ndim != 2:
        return f"In[0] and In[1] ndims must be == 2: {a.ndim}"
    return _size_fault(a, b, form_a, form_b)


def _batch_fault(a: Array, b: Array, form_a: str, form_b: str) -> str | None:
    for index, array in enumerate((a, b)):
        if array.ndim < 2:
            return f"In[{index}] ndims must be >= 2: {array.ndim}"
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return f"In[0] and In[1] must have compatible batch dimensions: {dims(a)} vs. {dims(b)}"
    return _size_fault(a, b, form_a, form_b)


def _size_fault(a: Array, b: Array, form_a: str, form_b: str) -> str | None:
    columns = a.shape[-1 if form_a == AS_IT_IS else -2]
    rows = b.shape[-2 if form_b == AS_IT_IS else -1]
    if columns != rows:
        return f"Matrix size-incompatible: In[0]: {dims(a)}, In[1]: {dims(b)}"
    return None


def _matmul_shape(c: Inference, form_a: str = AS_IT_IS, form_b: str = AS_IT_IS) -> list[Output]:
    rows, inner = _matrix_lengths(c.ranked(0, 2), form_a)
    other, columns = _matrix_lengths(c.ranked(1, 2), form_b)
    c.same(inner, other)
    return c.one((rows, columns))


def _batch_matmul_shape(c: Inference, form_a: str, form_b: str) -> list[Output]:
    a, b = c.at_least(0, 2), c.at_least(1, 2)
    if a is None or b is None:
        return c.one(None)
    (rows, inner), (other, columns) = _matrix_lengths(a, form_a), _matrix_lengths(b, form_b)
    c.same(inner, other)
    batch = c.broadcast(a[:-2], b[:-2])
    assert batch is not None
    return c.one((*batch, rows, columns))


def _matrix_lengths(dims: tuple[int | None, ...], form: str) -> tuple[int | None, int | None]:
    """Rows and columns of matrices as they enter the product."""
    rows, columns = dims[-2:]
    return (rows, columns) if form == AS_IT_IS else (columns, rows)


_matmul = operation("MatMul", _multiply, shape=_matmul_shape, fault=_rank_2_fault)
_batch_matmul = operation("BatchMatMulV2", _multiply, shape=_batch_matmul_shape, fault=_batch_fault)
#: The commonest kind of product, by the short way.
_plain: Final = binary(_matmul)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> EagerTensor:
    """Multiply matrices; of higher ranks the matrices in the last two axes. As ``tf.matmul``.

    Args:
        a: Numbers of rank 2 or more.
        b: The same type; the axes before the last two are broadcast.
        transpose_a: Transpose ``a`` first.
        transpose_b: Transpose ``b`` first.
        adjoint_a: Transpose and conjugate ``a`` first.
        adjoint_b: Transpose and conjugate ``b`` first.
        a_is_sparse: Has no effect.
        b_is_sparse: Has no effect.
        output_type: Element type of the result, if not that of ``a``; the product is computed in it.
        grad_a: Has no effect.
        grad_b: Has no effect.
        name: Only looked at in error texts.

    Raises:
        InvalidArgumentError: The sizes do not fit.
        ValueError: Both a transpose and an adjoint of one matrix.
    """
    if type(a) is not EagerTensor or type(b) is not EagerTensor:
        a, b = to_pair_by_first(a, b)
    plain = transpose_a is transpose_b is adjoint_a is adjoint_b is False and output_type is None
    # The short way does without a check of ranks: NumPy multiplies vectors, too.
    if plain and _rank(a) == 2 == _rank(b):
        return _plain(a, b, name)
    # Attributes of the product of two matrices; for batches of them TensorFlow's function looks at the switches.
    switch = attribute_flag if _rank(a) == 2 == _rank(b) else flag_argument
    transpose_a, adjoint_a = switch(transpose_a, "transpose_a"), flag_argument(adjoint_a, "adjoint_a")
    transpose_b, adjoint_b = switch(transpose_b, "transpose_b"), flag_argument(adjoint_b, "adjoint_b")
    for transposed, adjoined, which in ((transpose_a, adjoint_a, "a"), (transpose_b, adjoint_b, "b")):
        if transposed and adjoined:
            raise ValueError(
                f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. Received "
                f"`transpose_{which}`={transposed}, `adjoint_{which}`={adjoined}."
            )
    if output_type is not None:
        dtype = as_dtype(output_type)
        a, b = cast(a, dtype), cast(b, dtype)
    forms = _form(transpose_a, adjoint_a), _form(transpose_b, adjoint_b)
    row = _matmul if _rank(a) <= 2 and _rank(b) <= 2 else _batch_matmul
    # The operation of batches can take adjoints alone, that of two matrices can transpose alone: TensorFlow conjugates.
    conjugated = TRANSPOSED if row is _batch_matmul else ADJOINT
    for factor, form in zip((a, b), forms, strict=True):
        if form == conjugated and not factor._dtype.is_numeric:
            raise TypeError(f"Expected numeric or variant tensor, got dtype {factor._dtype!r}.")
    called = name if thread.state.graph is None else name or _matmul.name
    return run(row, (a, b), *forms, name=called)  # type: ignore[no-any-return]


def _rank(factor: Any) -> int:
    """Return the number of a factor's axes; the largest number allowed if it is unknown before a run."""
    rank = rank_of(factor)
    return _ANY_RANK if rank is None else rank


def _form(transpose: bool, adjoint: bool) -> str:
    return TRANSPOSED if transpose else ADJOINT if adjoint else AS_IT_IS


__all__ = ["matmul"]
