"""Bands of matrices: which diagonals, and their packed form.

A packed form has the diagonals of a matrix as rows, the highest first, each with room for the longest:

      matrix          diagonals 1 to -1, RIGHT_LEFT

    [ 1  2  . ]         [ -  2  4 ]      superdiagonals end at the right
    [ 6  3  4 ]         [ 1  3  5 ]
    [ .  7  5 ]         [ 6  7  - ]      subdiagonals start at the left
"""

from typing import Any, Final, NamedTuple

import numpy as np

from allotment.tf.ops.arguments.integers import deferred_vector
from allotment.tf.ops.arguments.shapes import shape_argument
from allotment.tf.ops.arrays import Array, is_host
from allotment.tf.ops.deferred import Deferred

_ALIGNMENTS: Final = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


class Band(NamedTuple):
    """Which diagonals, 0 being the main one, and how a packed form aligns them."""

    lowest: int
    highest: int
    align: str

    def diagonals(self) -> range:
        """The diagonals in the order of the packed form."""
        return range(self.highest, self.lowest - 1, -1)

    def is_one(self) -> bool:
        """Whether it is one diagonal: its packed form is a vector."""
        return self.lowest == self.highest

    def start(self, diagonal: int, length: int, room: int) -> int:
        """Return the position of a diagonal's first element in its row of the packed form."""
        above, below = self.align.split("_")
        left = (diagonal >= 0 and above == "LEFT") or (diagonal <= 0 and below == "LEFT")
        return 0 if left else room - length


def band_argument(k: Any, align: Any) -> Band:
    """The band named by one diagonal, or the lowest and the highest.

    Raises:
        ValueError: More numbers, or no such alignment.
    """
    if not isinstance(align, str) or align not in _ALIGNMENTS:
        raise ValueError(f"align must be one of {', '.join(_ALIGNMENTS)}, not {align!r}")
    found: Any = deferred_vector(shape_argument(k))
    if type(found) is Deferred and found.known is None:
        # One number or two, which only a session knows.
        return Band(Deferred(found.tensor[0], None), Deferred(found.tensor[-1], None), align)  # type: ignore[arg-type]
    if len(found) not in (1, 2):
        raise ValueError(f"k must be one diagonal, or the lowest and the highest, not {k!r}")
    return Band(found[0], found[-1], align)


def length_of(diagonal: int, rows: int, columns: int) -> int:
    """Return the number of elements of a matrix's diagonal."""
    return max(min(rows + min(diagonal, 0), columns - max(diagonal, 0)), 0)


def strip(matrices: Array, diagonal: int) -> Array:
    """A view of one diagonal of each matrix, which can be written to if the matrices can."""
    view = np.diagonal(matrices, diagonal, -2, -1)
    # NumPy says that it cannot be, and CuPy has no such flag.
    if is_host(matrices) and matrices.flags.writeable:
        view.flags.writeable = True
    return view


def put(matrices: Array, packed: Array, band: Band) -> None:
    """Write a packed form into matrices."""
    rows, columns = matrices.shape[-2:]
    room = packed.shape[-1]
    for index, diagonal in enumerate(band.diagonals()):
        length = length_of(diagonal, rows, columns)
        start = band.start(diagonal, length, room)
        source = packed if band.is_one() else packed[..., index, :]
        strip(matrices, diagonal)[...] = source[..., start : start + length]
