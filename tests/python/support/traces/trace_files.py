"""Trace files for tests: paths of recorded ones, and functions that write small ones."""

from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).resolve().parents[3] / "traces"
GNN = RECORDED / "torch_gnn_train.npz"

#: Events of (1 allocates or 2 frees, name of the block, bytes).
Events = list[tuple[int, int, int]]

SMALL: Events = [(1, 1, 100), (1, 2, 5000), (2, 1, 100), (1, 3, 7), (2, 2, 5000), (2, 3, 7)]


def columns(events: Events) -> dict[str, Any]:
    """Return the three columns of a trace as arrays."""
    op, ids, size = zip(*events, strict=True) if events else ((), (), ())
    return {
        "op": np.array(op, np.int8),
        "id": np.array(ids, np.int64),
        "size": np.array(size, np.int64),
    }


def write_trace(path: Path, events: Events = SMALL, /, **members: Any) -> Path:
    """Write a trace file; `members` adds or replaces columns, and `None` leaves one out."""
    arrays = {**columns(events), **members}
    with path.open("wb") as file:
        # An open file, because NumPy would add a suffix to a name.
        np.savez_compressed(file, **{name: array for name, array in arrays.items() if array is not None})
    return path


def read_events(path: Path) -> Events:
    """Read the events of a trace with NumPy only."""
    with np.load(path, allow_pickle=False) as arrays:
        return list(zip(*(arrays[name].tolist() for name in ("op", "id", "size")), strict=True))
