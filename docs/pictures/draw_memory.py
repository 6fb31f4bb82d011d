"""Draws the memory of a recorded program over time: ``draw_memory.py TRACE.npz PICTURE.svg``."""

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import allotment

#: Points of each curve. The highest value of each span of events is kept, so that no peak is lost.
POINTS = 360
GIB = 1 << 30


@dataclass(frozen=True)
class Curves:
    """Bytes after each event of a program."""

    live: np.ndarray
    in_use: np.ndarray
    reserved: np.ndarray


def replay(path: Path) -> Curves:
    """Play a trace into a pool of made-up addresses that grows, and note its figures after each event."""
    trace = np.load(path)
    pool = allotment.Pool("64GiB", source="address-space", joins_regions=False)
    addresses: dict[int, int] = {}
    figures = np.empty((3, len(trace["op"])), np.int64)
    columns = zip(trace["op"].tolist(), trace["id"].tolist(), trace["size"].tolist(), strict=True)
    for event, (op, block, size) in enumerate(columns):
        if op == 1:
            addresses[block] = pool.malloc(size)
        else:
            pool.free(addresses.pop(block))
        stats = pool.stats()
        figures[:, event] = stats.requested, stats.in_use, stats.reserved
    return Curves(*figures)


def thin(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the last event of each span, and the highest value in it."""
    starts = np.unique(np.linspace(0, len(curve), min(POINTS, len(curve)), endpoint=False).astype(int))
    ends = np.append(starts[1:], len(curve)) - 1
    return ends, np.maximum.reduceat(curve, starts)


def draw(curves: Curves, title: str, path: Path) -> None:
    """Draw the three curves one above the other."""
    figure = Figure(figsize=(9, 3.6))
    # Fixed, because what fits around the axes depends on the fonts of the machine.
    axes = figure.add_axes((0.075, 0.15, 0.905, 0.68))
    for name, curve, color in (
        ("reserved from the source", curves.reserved, "#c9d6e8"),
        ("in use, in chunks", curves.in_use, "#e8a33d"),
        ("live, as requested", curves.live, "#2b5c8a"),
    ):
        events, values = thin(curve)
        axes.fill_between(events, values / GIB, step="post", color=color, label=name, linewidth=0)
    axes.set(xlim=(0, len(curves.live)), ylim=(0, None), xlabel="event", ylabel="GiB")
    axes.set_title(title, pad=26)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small", frameon=False)
    # The same trace gives the same file, and texts stay texts.
    with matplotlib.rc_context({"svg.hashsalt": "allotment", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    draw(replay(source), f"Memory of {source.stem} after each allocation and free", target)
