"""Shapes of decompositions, inverses, systems of equations, and diagonals."""

from typing import Any

from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.inference.shape_functions import (
    Dims,
    Inference,
    Output,
    number,
    shape_function,
    unknown,
)
from allotment.tf.ops.linalg.bands import Band, length_of
from allotment.tf.tensors.dtype import complex64, complex128, float64

Matrix = tuple[int | None, int | None]


def _square(c: Inference, dims: Dims) -> Dims:
    """The shape of square matrices, with both lengths known if one is."""
    if dims is None:
        return None
    side = c.same(*dims[-2:])
    return (*dims[:-2], side, side)


@shape_function("Cholesky", "MatrixExponential")
def _of_square(c: Inference) -> list[Output]:
    return c.one(_square(c, c.at_least(0, 2)))


@shape_function("MatrixInverse")
def _inverse(c: Inference, adjoint: bool) -> list[Output]:
    return c.one(_square(c, c.at_least(0, 2)))


@shape_function("MatrixDeterminant")
def _determinant(c: Inference) -> list[Output]:
    dims = _square(c, c.at_least(0, 2))
    return c.one(None if dims is None else dims[:-2])


@shape_function("LogMatrixDeterminant")
def _log_determinant(c: Inference) -> list[Output]:
    return _determinant(c) * 2  # type: ignore[return-value, operator]


def _smaller(one: int | None, other: int | None) -> int | None:
    if 0 in (one, other):
        return 0
    return None if one is None or other is None else min(one, other)


@shape_function("Qr")
def _qr(c: Inference, full: bool) -> list[Output]:
    dims = c.at_least(0, 2)
    if dims is None:
        return [(c.dtype(), None)] * 2
    *batch, rows, columns = dims
    inner = rows if full else _smaller(rows, columns)
    return [(c.dtype(), (*batch, rows, inner)), (c.dtype(), (*batch, inner, columns))]


@shape_function("Svd")
def _svd(c: Inference, full: bool, vectors: bool) -> list[Output]:
    dims, dtype = c.at_least(0, 2), c.dtype()
    real = dtype.real_dtype
    if dims is None:
        return [(real, None), (dtype, None), (dtype, None)] if vectors else [(real, None)]
    *batch, rows, columns = dims
    inner = _smaller(rows, columns)
    values: Output = (real, (*batch, inner))
    if not vectors:
        return [values]
    return [
        values,
        (dtype, (*batch, rows, rows if full else inner)),
        (dtype, (*batch, columns, columns if full else inner)),
    ]


@shape_function("SelfAdjointEigV2")
def _eigh(c: Inference, vectors: bool) -> list[Output]:
    return _eigen(c, vectors, c.dtype())


@shape_function("Eig")
def _eig(c: Inference, vectors: bool) -> list[Output]:
    return _eigen(c, vectors, complex128 if c.dtype() in (float64, complex128) else complex64)


def _eigen(c: Inference, vectors: bool, dtype: Any) -> list[Output]:
    dims = _square(c, c.at_least(0, 2))
    values: Output = (dtype, None if dims is None else dims[:-1])
    return [values, (dtype, dims)] if vectors else [values]


@shape_function("MatrixTriangularSolve")
def _triangular_solve(c: Inference, *flags: bool) -> list[Output]:
    matrix, rhs = _square(c, c.at_least(0, 2)), c.at_least(1, 2)
    if matrix is None or rhs is None:
        return c.one(None)
    batch = c.broadcast(matrix[:-2], rhs[:-2])
    assert batch is not None
    return c.one((*batch, c.same(matrix[-1], rhs[-2]), rhs[-1]))


@shape_function("MatrixSolve")
def _solve(c: Inference, *flags: bool) -> list[Output]:
    return _system(c, square=True)


@shape_function("MatrixSolveLs")
def _least_squares(c: Inference, regularizer: float) -> list[Output]:
    return _system(c, square=False)


def _system(c: Inference, *, square: bool) -> list[Output]:
    matrix, rhs = c.at_least(0, 2), c.at_least(1, 2)
    if square:
        matrix = _square(c, matrix)
    batch = c.merged(None if matrix is None else matrix[:-2], None if rhs is None else rhs[:-2])
    if batch is None:
        return c.one(None)
    (rows, unknowns), (rest, sides) = (
        each[-2:] if each is not None else (None, None) for each in (matrix, rhs)
    )
    rows = c.same(rows, rest)
    return c.one((*batch, rows if square else unknowns, sides))


def _diagonals(c: Inference, band: Band) -> int | None:
    """How many diagonals a band has, ``None`` if it is not known."""
    if not is_known((band.lowest, band.highest)):
        return None
    if band.lowest > band.highest:
        c.refuse(f"lower_diag_index must not be larger than upper_diag_index: {band.lowest} > {band.highest}")
    return band.highest - band.lowest + 1


@shape_function("MatrixDiagV3")
def _diag(c: Inference, band: Band, rows: Any, columns: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    c.ranked(1, 0)
    count = None if dims is None else _diagonals(c, band)
    if dims is None or count is None:
        return c.one(None if dims is None else unknown(len(dims) + 1) if band.is_one() else unknown(None))
    if not band.is_one():
        dims = c.at_least(0, 2)
        assert dims is not None
        c.same(dims[-2], count)
    batch, room = dims[: -1 if band.is_one() else -2], dims[-1]
    least: Matrix = (None, None)
    if room is not None:
        least = room - min(band.highest, 0), room + max(band.lowest, 0)
    return c.one((*batch, *_sizes(c, least, number(rows), number(columns))))


def _sizes(c: Inference, least: Matrix, rows: int | None, columns: int | None) -> Matrix:
    """Rows and columns of matrices with a diagonal; -1 is as few as possible."""
    if rows == columns == -1:
        side = None if least[0] is None or least[1] is None else max(least[0], least[1])
        return side, side
    for what, given, needed in (("rows", rows, least[0]), ("columns", columns, least[1])):
        if given not in (None, -1) and needed is not None and given < needed:
            c.refuse(
                f"number of {what} {given} is not compatible with the diagonal: at least {needed} are needed"
            )
    return least[0] if rows == -1 else rows, least[1] if columns == -1 else columns


@shape_function("MatrixDiagPartV3")
def _diag_part(c: Inference, band: Band) -> list[Output]:
    dims = c.at_least(0, 2)
    c.ranked(1, 0)
    count = None if dims is None else _diagonals(c, band)
    if dims is None or count is None:
        return c.one(None)
    _check_bounds(c, band, dims)
    rows, columns = dims[-2:]
    room = None
    if rows is not None and columns is not None:
        room = max(length_of(diagonal, rows, columns) for diagonal in band.diagonals())
    return c.one((*dims[:-2], room) if band.is_one() else (*dims[:-2], count, room))


@shape_function("MatrixSetDiagV3")
def _set_diag(c: Inference, band: Band) -> list[Output]:
    dims, packed = c.at_least(0, 2), c.at_least(1, 1)
    if _diagonals(c, band) is None:
        return c.one(dims)
    if dims is None and packed is not None:
        dims = unknown(len(packed) + (1 if band.is_one() else 0))
    if dims is not None:
        _check_bounds(c, band, dims)
    if dims is not None and packed is not None and band.is_one():
        if len(packed) != len(dims) - 1:
            c.refuse(f"Shape must be rank {len(dims) - 1} but is rank {len(packed)}")
        if None in dims:
            # As TensorFlow's: the diagonals are only looked at where they may tell something.
            batch = c.merged(dims[:-2], packed[:-1])
            assert batch is not None
            dims = (*batch, *dims[-2:])
    return c.one(dims)


def _check_bounds(c: Inference, band: Band, dims: tuple[int | None, ...]) -> None:
    rows, columns = dims[-2:]
    if rows is None or columns is None:
        return
    for diagonal in (band.lowest, band.highest):
        if diagonal and not -rows < diagonal < columns:
            c.refuse(f"diagonal {diagonal} is out of bound: it must be between {-rows} and {columns}")


__all__: list[str] = []
