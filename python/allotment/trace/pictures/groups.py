"""Blocks as arrays for pictures: where they lie, the group that each belongs to, and its color."""

import hashlib
from colorsys import hls_to_rgb
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allotment.trace.pictures.drawing import BLOCK_COLUMNS, Drawing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks that a picture shows one by one, shape (blocks,) each."""

    #: The events of the allocation and of the free, -1 for none.
    start: "NDArray[np.int64]"
    end: "NDArray[np.int64]"
    #: Bytes: distance from the first region's start, size of the chunk, request.
    offset: "NDArray[np.int64]"
    size: "NDArray[np.int64]"
    requested: "NDArray[np.int64]"
    #: The parts of their lives that are shown.
    left: "NDArray[np.int64]"
    right: "NDArray[np.int64]"
    #: Each block's group, an index of ``texts``.
    group: "NDArray[np.int32]"
    #: Red, green, blue and opacity of each block in 32 bits.
    color: "NDArray[np.uint32]"
    #: The groups: owners, or sizes where owners are not known.
    texts: list[str]


def blocks_of(drawing: Drawing) -> Blocks:
    """Return the blocks of a drawing as arrays."""
    import numpy as np

    rows = np.frombuffer(drawing.picture.blocks, np.int64).reshape(-1, BLOCK_COLUMNS)
    start, end, offset, size, requested = rows.T
    first, last = drawing.picture.shown
    numbers: dict[str, int] = {}
    colors: dict[str, int] = {}
    group, color = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.uint32)
    for place, (event, nbytes) in enumerate(zip(start.tolist(), requested.tolist(), strict=True)):
        text = drawing.holder(event, nbytes)
        group[place] = numbers.setdefault(text, len(numbers))
        # Blocks without a known owner are told apart by their size.
        key = text if drawing.is_owned(event) else str(nbytes)
        if key not in colors:
            colors[key] = _color(key)
        color[place] = colors[key]
    right = np.where(end < 0, last, np.minimum(end, last))
    left = np.maximum(start, first)
    return Blocks(start, end, offset, size, requested, left, right, group, color, list(numbers))


def _color(text: str) -> int:
    """Return a color for a text, the same in every picture, as red, green, blue and opacity in 32 bits."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=3).digest()
    red, green, blue = hls_to_rgb(digest[0] / 255, 0.45 + digest[1] / 1020, 0.45 + digest[2] / 1020)
    return int(255 * red) << 24 | int(255 * green) << 16 | int(255 * blue) << 8 | 0xFF
