"""Products of matrices and vectors."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from allotment.tf.ops import faults
from allotment.tf.ops.arguments.scalars import flag_argument
from allotment.tf.ops.array.array import cast, is_tensor, shape
from allotment.tf.ops.array.array import rank as number_of_axes
from allotment.tf.ops.array.creation import reshape
from allotment.tf.ops.array.layout import expand_dims, squeeze, transpose
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_pair, to_pair_by_first, to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.known_shapes import rank_of, shape_of
from allotment.tf.ops.public import binary
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import as_dtype, int32
from allotment.tf.tensors.tensor import EagerTensor

#: More axes than a matrix has.
_ANY_RANK: Final = 3
#: What is done to a matrix before it is multiplied: nothing, transposed, or conjugated as well.
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
    transpose_a, adjoint_a = flag_argument(transpose_a, "transpose_a"), flag_argument(adjoint_a, "adjoint_a")
    transpose_b, adjoint_b = flag_argument(transpose_b, "transpose_b"), flag_argument(adjoint_b, "adjoint_b")
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
    return run(row, (a, b), *forms, name=name)  # type: ignore[no-any-return]


def _rank(factor: Any) -> int:
    """How many axes a factor has; where only running tells, as many as there may be."""
    rank = rank_of(factor)
    return _ANY_RANK if rank is None else rank


def _form(transpose: bool, adjoint: bool) -> str:
    return TRANSPOSED if transpose else ADJOINT if adjoint else AS_IT_IS


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> EagerTensor:
    """Multiply matrices with vectors, which are the last axis of ``b``. As ``tf.linalg.matvec``."""
    a, b = to_tensor(a), to_tensor(b)
    product = matmul(a, expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a, name=name)
    return squeeze(product, axis=-1)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> EagerTensor:
    """Multiply and sum over pairs of axes. As ``tf.tensordot``.

    Args:
        a: Numbers.
        b: The same type.
        axes: A number n, for the last n axes of ``a`` and the first n of ``b``; or two axes, or two lists of
            axes, one for ``a`` and one for ``b``.
        name: Only looked at in error texts.

    Raises:
        IndexError: ``axes`` names an axis that a tensor has not.
        TypeError: ``axes`` are no whole numbers.
        ValueError: ``axes`` is of another form.
        InvalidArgumentError: The lengths of a pair differ.
    """
    a, b = to_tensor(a), to_tensor(b)
    if not isinstance(axes, int | np.integer | list | tuple):
        both = to_tensor(axes, int32)
        axes = [each.numpy().tolist() if type(each) is EagerTensor else each for each in (both[0], both[1])]
        if is_tensor(axes[0]):
            return _of_any_rank(a, b, axes, name)
    if rank_of(a) is None or rank_of(b) is None:
        return _of_any_rank(a, b, axes, name)
    axes_a, axes_b = _pairs(axes, a.ndim, b.ndim)
    left, kept_a = _flattened(a, axes_a, last=True)
    right, kept_b = _flattened(b, axes_b, last=False)
    return reshape(matmul(left, right), list(kept_a + kept_b), name)


def _of_any_rank(a: EagerTensor, b: EagerTensor, axes: Any, name: str | None) -> EagerTensor:
    """``tensordot`` in a graph that does not know how many axes a tensor has."""
    from allotment.tf.ops.array.joining import concat
    from allotment.tf.ops.array.sequences import range as range_of
    from allotment.tf.ops.indexing.gathering import boolean_mask, gather, where
    from allotment.tf.ops.math.arithmetic import add
    from allotment.tf.ops.math.comparison import less, not_equal
    from allotment.tf.ops.reduction.reduce import reduce_all, reduce_prod

    if isinstance(axes, int | np.integer):
        last = number_of_axes(a)
        pair: Any = (range_of(last - axes, last), range_of(axes))
    else:
        pair = axes if is_tensor(axes[0]) else [to_tensor(each, int32) for each in _two_lists(axes)]
    matrices: list[Any] = []
    kept: list[Any] = []
    for tensor, places in zip((a, b), pair, strict=True):
        every = range_of(number_of_axes(tensor))
        places = where(less(places, 0), add(places, number_of_axes(tensor)), places)
        free = boolean_mask(every, reduce_all(not_equal(every[:, None], places), 1))
        first = not matrices
        order = concat([free, places] if first else [places, free], 0)
        rows, columns = (
            gather(shape(tensor), each) for each in ((free, places) if first else (places, free))
        )
        matrices.append(reshape(transpose(tensor, order), [reduce_prod(rows), reduce_prod(columns)]))
        kept.append(rows if first else columns)
    return reshape(matmul(*matrices), concat(kept, 0), name)


def _pairs(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        if axes > min(rank_a, rank_b):
            raise ValueError(
                f"`axes` must not be larger than the number of dimensions of tensor. Received: {axes}."
            )
        return list(range(rank_a - axes, rank_a)), list(range(axes))
    found = _two_lists(axes)
    for each, rank in zip(found, (rank_a, rank_b), strict=True):
        for axis in each:
            if not isinstance(axis, int | np.integer):
                raise TypeError(f"`axes` {axes} has something else than whole numbers: {axis!r}")
            if not -rank <= axis < rank:
                raise IndexError(
                    f"`axes` {axes} names an axis that a tensor with {rank} axes has not: {axis}"
                )
    return [axis % rank_a for axis in found[0]], [axis % rank_b for axis in found[1]]


def _two_lists(axes: Any) -> list[list[Any]]:
    """The axes of each tensor, where they are no single number."""
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    if all(isinstance(each, int | np.integer) for each in axes):
        return [[axes[0]], [axes[1]]]
    if not all(hasattr(each, "__len__") for each in axes):
        raise TypeError(f"`axes` must be whole numbers, or a list of them for each tensor. Received {axes}.")
    if len(axes[0]) != len(axes[1]):
        raise ValueError(
            f"Different number of contraction axes `a` and `b`, {len(axes[0])} != {len(axes[1])}."
        )
    return [list(each) for each in axes]


def _flattened(tensor: EagerTensor, axes: list[int], *, last: bool) -> tuple[EagerTensor, tuple[int, ...]]:
    """A matrix whose columns (rows, if not ``last``) run over the axes, and the lengths of the others."""
    rank = len(tensor.shape)
    kept = [axis for axis in range(rank) if axis not in axes]
    order = kept + axes if last else axes + kept
    lengths = shape_of(tensor)
    dims = [known if known is not None else lengths[axis] for axis, known in enumerate(tensor.shape)]
    rows = _product(dims[axis] for axis in (kept if last else axes))
    columns = _product(dims[axis] for axis in (axes if last else kept))
    if order != list(range(rank)):
        tensor = transpose(tensor, order)
    return reshape(tensor, [rows, columns]), tuple(dims[axis] for axis in kept)


def _product(lengths: Iterable[Any]) -> Any:
    """The product of lengths: numbers, and tensors in a graph that does not know some."""
    total: Any = 1
    for length in lengths:
        total = total * length
    return total


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> EagerTensor:
    """Swap the last two axes. As ``tf.linalg.matrix_transpose``.

    Raises:
        ValueError: There are no two axes.
    """
    from allotment.tf.ops.array.joining import concat
    from allotment.tf.ops.array.sequences import range as range_of

    tensor, conjugated = to_tensor(a), flag_argument(conjugate, "conjugate")
    rank = rank_of(tensor)
    if rank is None:
        axes = number_of_axes(tensor)
        order = concat([range_of(axes - 2), [axes - 1, axes - 2]], 0)
        return transpose(tensor, order, conjugated, name)
    if rank < 2:
        raise ValueError(
            f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {tensor} with shape: "
            f"{tensor.shape}"
        )
    return transpose(tensor, [*range(rank - 2), rank - 1, rank - 2], conjugated, name)


def adjoint(matrix: Any, name: str | None = None) -> EagerTensor:
    """Swap the last two axes and conjugate. As ``tf.linalg.adjoint``."""
    return matrix_transpose(matrix, conjugate=True)


def _cross_fault(a: Array, b: Array) -> str | None:
    if a.shape != b.shape:
        return f"Both inputs must be of same shape: {dims(a)} vs. {dims(b)}"
    if a.ndim == 0:
        return f"Input must be at least 1D{dims(a)}"
    if a.shape[-1] != 3:
        return faults.Unprepared(f"Cross-products are only defined for 3-element vectors.{dims(a)}")
    return None


def _cross_shape(c: Inference) -> list[Output]:
    dims = c.merged(c.at_least(0, 1), c.at_least(1, 1))
    if dims is not None:
        c.same(dims[-1], 3)
    return c.one(dims)


_cross = operation("Cross", np.cross, shape=_cross_shape, fault=_cross_fault)


def cross(a: Any, b: Any, name: str | None = None) -> EagerTensor:
    """The cross product of vectors of three elements in the last axis. As ``tf.linalg.cross``."""
    return run(_cross, to_pair(a, b), name=name)  # type: ignore[no-any-return]


__all__ = ["adjoint", "cross", "matmul", "matrix_transpose", "matvec", "tensordot"]
