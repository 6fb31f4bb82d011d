"""Trace files for tests: the recorded ones, and small ones made up on the spot."""

from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).resolve().parents[2] / "traces"
GNN = RECORDED / "torch_gnn_train.npz"

#: Events of (1 allocates or 2 frees, name of the block, bytes).
Events = list[tuple[int, int, int]]

SMALL: Events = [(1, 1, 100), (1, 2, 5000), (2, 1, 100), (1, 3, 7), (2, 2, 5000), (2, 3, 7)]


def columns(events: Events) -> dict[str, Any]:
    """The three columns of a trace."""
    op, ids, size = zip(*events, strict=True) if events else ((), (), ())
    return {
        "op": np.array(op, np.int8),
        "id": np.array(ids, np.int64),
        "size": np.array(size, np.int64),
    }


def write_trace(path: Path, events: Events = SMALL, /, **members: Any) -> Path:
    """Write a trace; `members` are put beside or instead of the columns, None leaves one out."""
    arrays = {**columns(events), **members}
    with path.open("wb") as file:
        # Through an open file: given a name, NumPy would add the suffix.
        np.savez_compressed(file, **{name: array for name, array in arrays.items() if array is not None})
    return path


def read_events(path: Path) -> Events:
    """The events of a trace, read with NumPy alone."""
    with np.load(path, allow_pickle=False) as arrays:
        return list(zip(*(arrays[name].tolist() for name in ("op", "id", "size")), strict=True))
