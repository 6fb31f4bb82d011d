"""Operations on diagonals of matrices; ``bands`` says how several are packed."""

from typing import Any

from allotment.tf.ops.arguments.scalars import flag_argument
from allotment.tf.ops.arrays import Array, full, size_fault
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.deferred import is_known
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Inference, Output, number, unknown
from allotment.tf.ops.linalg.band_part import number_of_lines
from allotment.tf.ops.linalg.bands import Band, band_argument, length_of, put, strip
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.reduction.reduce import reduce_sum
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor


def _sizes(packed: Array, band: Band, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of matrices whose packed form is given; -1 is to be found out."""
    least_rows = packed.shape[-1] - min(band.highest, 0)
    least_columns = packed.shape[-1] + max(band.lowest, 0)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    return (least_rows if rows == -1 else rows), (least_columns if columns == -1 else columns)


def _diag(packed: Array, padding: Array, band: Band, rows: int, columns: int) -> Array:
    sizes = _sizes(packed, band, rows, columns)
    batch = packed.shape[: -1 if band.is_one() else -2]
    result = full((*batch, *sizes), padding, packed.dtype, like=packed)
    put(result, packed, band)
    return result


def _diag_fault(packed: Array, padding: Array, band: Band, rows: int, columns: int) -> str | None:
    if padding.ndim:
        return "padding_value must be a scalar"
    if packed.ndim < 1:
        return f"diagonal must be at least 1-dim, received shape: {dims(packed)}"
    if band.lowest > band.highest:
        return f"lower_diag_index must not be larger than upper_diag_index: {band.lowest} > {band.highest}"
    if not band.is_one() and (packed.ndim < 2 or packed.shape[-2] != len(band.diagonals())):
        return (
            "The number of diagonals provided in the input does not match the lower_diag_index and "
            "upper_diag_index range."
        )
    least_rows = packed.shape[-1] - min(band.highest, 0)
    least_columns = packed.shape[-1] + max(band.lowest, 0)
    sizes = _sizes(packed, band, rows, columns)
    if sizes[0] < least_rows:
        return "The number of rows is too small."
    if sizes[1] < least_columns:
        return "The number of columns is too small."
    if sizes[0] != least_rows and sizes[1] != least_columns:
        return "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
    return size_fault((*packed.shape[: -1 if band.is_one() else -2], *sizes), packed.dtype)


def _diag_part(matrices: Array, padding: Array, band: Band) -> Array:
    rows, columns = matrices.shape[-2:]
    room = max(length_of(diagonal, rows, columns) for diagonal in band.diagonals())
    result = full((*matrices.shape[:-2], len(band.diagonals()), room), padding, matrices.dtype, matrices)
    for index, diagonal in enumerate(band.diagonals()):
        length = length_of(diagonal, rows, columns)
        start = band.start(diagonal, length, room)
        result[..., index, start : start + length] = strip(matrices, diagonal)
    return result.reshape(*matrices.shape[:-2], room) if band.is_one() else result


def _part_fault(matrices: Array, padding: Array, band: Band) -> str | None:
    return "padding_value must be a scalar" if padding.ndim else _band_fault(matrices, band)


def _band_fault(matrices: Array, band: Band) -> str | None:
    if matrices.ndim < 2:
        return f"input must be at least 2-dim, received shape: {dims(matrices)}"
    if band.lowest > band.highest:
        return f"lower_diag_index must not be larger than upper_diag_index: {band.lowest} > {band.highest}"
    rows, columns = matrices.shape[-2:]
    for which, diagonal in (("lower", band.lowest), ("upper", band.highest)):
        if diagonal != 0 and not -rows < diagonal < columns:
            return f"{which}_diag_index is out of bound: {diagonal} It must be between {-rows} and {columns}"
    return None


def _set_diag(matrices: Array, packed: Array, band: Band) -> Array:
    result = matrices.copy()
    put(result, packed, band)
    return result


def _set_fault(matrices: Array, packed: Array, band: Band) -> str | None:
    fault = _band_fault(matrices, band)
    if fault is not None:
        return fault
    rows, columns = matrices.shape[-2:]
    room = max(length_of(diagonal, rows, columns) for diagonal in band.diagonals())
    expected = (*matrices.shape[:-2], *([] if band.is_one() else [len(band.diagonals())]), room)
    if packed.shape != expected:
        wanted = ",".join(map(str, expected))
        return (
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to "
            "the longests diagonal in range [lower_diag_index:upper_diag_index].\n"
            f"Input shape: {dims(matrices)}\nDiagonal shape: {dims(packed)}\nExpected diagonal shape: [{wanted}]"
        )
    return None


def _diag_shape(c: Inference, band: Band, rows: Any, columns: Any) -> list[Output]:
    dims = c.at_least(0, 1)
    c.ranked(1, 0)
    count = None if dims is None else _diagonals(c, band)
    if dims is None or count is None:
        # One diagonal is one object; of two a graph does not know whether they are one.
        return c.one(unknown(len(dims) + 1) if dims is not None and band.lowest is band.highest else None)
    if not band.is_one():
        dims = c.at_least(0, 2)
        assert dims is not None
        c.same(dims[-2], count)
    batch, room = dims[: -1 if band.is_one() else -2], dims[-1]
    least: tuple[int | None, int | None] = (None, None)
    if room is not None:
        least = room - min(band.highest, 0), room + max(band.lowest, 0)
    return c.one((*batch, *_matrix_lengths(c, least, number(rows), number(columns))))


def _matrix_lengths(
    c: Inference, least: tuple[int | None, int | None], rows: int | None, columns: int | None
) -> tuple[int | None, int | None]:
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


def _part_shape(c: Inference, band: Band) -> list[Output]:
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


def _set_shape(c: Inference, band: Band) -> list[Output]:
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


def _diagonals(c: Inference, band: Band) -> int | None:
    """Return the number of a band's diagonals, ``None`` if it is not known."""
    if not is_known((band.lowest, band.highest)):
        return None
    if band.lowest > band.highest:
        c.refuse(f"lower_diag_index must not be larger than upper_diag_index: {band.lowest} > {band.highest}")
    return band.highest - band.lowest + 1


def _check_bounds(c: Inference, band: Band, dims: tuple[int | None, ...]) -> None:
    """Refuse diagonals that matrices of the shape do not have."""
    rows, columns = dims[-2:]
    if rows is None or columns is None:
        return
    for diagonal in (band.lowest, band.highest):
        if diagonal and not -rows < diagonal < columns:
            c.refuse(f"diagonal {diagonal} is out of bound: it must be between {-rows} and {columns}")


_diag_row = operation("MatrixDiagV3", _diag, shape=_diag_shape, fault=_diag_fault)
_part_row = operation("MatrixDiagPartV3", _diag_part, shape=_part_shape, fault=_part_fault)
_set_row = operation("MatrixSetDiagV3", _set_diag, shape=_set_shape, fault=_set_fault)


def diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> EagerTensor:
    """Make matrices of diagonals. As ``tf.linalg.diag``.

    Args:
        diagonal: The last axis is one diagonal, or the last two are a packed form of several.
        name: Only looked at in error texts.
        k: Which diagonal, 0 being the main one; or the lowest and the highest.
        num_rows: Rows of the matrices, -1 for as few as possible.
        num_cols: Columns of the matrices, -1 for as few as possible.
        padding_value: What the other elements are.
        align: Where super- and subdiagonals that are shorter than the longest are in the packed form.

    Raises:
        InvalidArgumentError: The diagonals do not fit such matrices.
    """
    diagonal = to_tensor(diagonal)
    inputs = (diagonal, _padding(padding_value, diagonal))
    return run(  # type: ignore[no-any-return]
        _diag_row,
        inputs,
        band_argument(k, align),
        number_of_lines(num_rows),
        number_of_lines(num_cols),
        name=name,
    )


def _padding(value: Any, beside: EagerTensor) -> EagerTensor:
    return to_tensor(
        flag_argument(value, "padding_value") if beside._dtype is bool_ else value, like=beside._dtype
    )


def diag_part(
    input: Any,  # noqa: A002 - TensorFlow's name
    name: str | None = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> EagerTensor:
    """Take diagonals out of matrices; several come in the packed form. As ``tf.linalg.diag_part``; see ``diag``."""
    tensor = to_tensor(input)
    inputs = (tensor, _padding(padding_value, tensor))
    return run(_part_row, inputs, band_argument(k, align), name=name)  # type: ignore[no-any-return]


def set_diag(
    input: Any,  # noqa: A002 - TensorFlow's name
    diagonal: Any,
    name: str | None = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> EagerTensor:
    """Copy matrices with other diagonals. As ``tf.linalg.set_diag``; see ``diag``."""
    tensor = to_tensor(input)
    return run(  # type: ignore[no-any-return]
        _set_row, (tensor, to_tensor(diagonal, like=tensor._dtype)), band_argument(k, align), name=name
    )


@in_name_scope("Trace")
def trace(x: Any, name: str | None = None) -> EagerTensor:
    """The sum of the main diagonal of each matrix. As ``tf.linalg.trace``."""
    return reduce_sum(diag_part(x), -1, name=name)


__all__ = ["diag", "diag_part", "set_diag", "trace"]
