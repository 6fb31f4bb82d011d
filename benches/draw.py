"""Draws what the benchmarks wrote to ``target/bench``: ``draw.py FOLDER_OF_TABLES FOLDER_OF_PICTURES [NAME …]``."""

import csv
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt

SIZES = ("1 KiB", "256 B to 16 KiB")
WORKLOADS = ("pairs", "churn", "replay")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float:
    return math.nan if text == "\N{EN DASH}" else float(text.replace(",", ""))


def draw_pairs(rows: list[dict[str, str]], path: Path) -> None:
    """Nanoseconds a pair against the number of holes: a panel for 1 KiB, one for sizes of all kinds."""
    figure, panels = plt.subplots(1, len(SIZES), figsize=(11, 5), sharey=True, layout="constrained")
    names = [name for name in rows[0] if name != "ns a pair"]
    for panel, size in zip(panels, SIZES, strict=True):
        # Names are such as `1 KiB, 65,536 holes`.
        chosen = [
            row
            for row in rows
            if row["ns a pair"].startswith(f"{size}, ") and row["ns a pair"].endswith(" holes")
        ]
        holes = [number(row["ns a pair"].removeprefix(f"{size}, ").removesuffix(" holes")) for row in chosen]
        for name in names:
            color, width = ("black", 3.0) if name == "ours" else (None, 1.2)
            nanoseconds = [number(row[name]) for row in chosen]
            panel.plot(holes, nanoseconds, marker="o", label=name, color=color, linewidth=width)
        panel.set(xscale="log", yscale="log", xlabel="holes", title=f"pairs of {size}")
        panel.grid(which="major", alpha=0.3)
    panels[0].set_ylabel("ns a pair")
    panels[-1].legend(fontsize="small")
    figure.savefig(path)


def draw_replay(rows: list[dict[str, str]], path: Path) -> None:
    """Nanoseconds an event of each recorded program, ours beside TensorFlow's."""
    names = list(rows[0])
    traces = sorted((row for row in rows if row["events"]), key=lambda row: number(row["TensorFlow"]))
    places = range(len(traces))
    figure, panel = plt.subplots(figsize=(9, 1.5 + 0.3 * len(traces)), layout="constrained")
    for shift, name, color in ((-0.2, "ours", "black"), (0.2, "TensorFlow", "tab:orange")):
        lengths = [number(row[name]) for row in traces]
        panel.barh([place + shift for place in places], lengths, height=0.4, label=name, color=color)
    panel.set_yticks(list(places), [row[names[0]] for row in traces])
    least = min(number(row["ours"]) for row in traces)
    panel.set(xscale="log", xlabel=names[0], xlim=(10 ** math.floor(math.log10(least)), None))
    panel.grid(axis="x", which="major", alpha=0.3)
    panel.legend(loc="lower right")
    figure.savefig(path)


def draw_contention(rows: list[dict[str, str]], path: Path) -> None:
    """Nanoseconds a pair of all threads together against the number of threads: a panel for each workload."""
    figure, panels = plt.subplots(1, len(WORKLOADS), figsize=(13, 5), sharey=True, layout="constrained")
    title, *names = rows[0]
    for panel, workload in zip(panels, WORKLOADS, strict=True):
        # Names are such as `pairs, 16 threads`.
        chosen = [row for row in rows if row[title].startswith(f"{workload}, ")]
        threads = [int(row[title].split()[1]) for row in chosen]
        for name in names:
            color, width = ("black", 3.0) if name == "ours" else (None, 1.2)
            nanoseconds = [number(row[name]) for row in chosen]
            panel.plot(threads, nanoseconds, marker="o", label=name, color=color, linewidth=width)
        panel.set(xscale="log", yscale="log", xlabel="threads", title=workload)
        panel.set_xticks(threads, [str(count) for count in threads], minor=False)
        panel.minorticks_off()
        panel.grid(which="major", alpha=0.3)
    panels[0].set_ylabel(title)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.savefig(path)


DRAWN = {"pairs": draw_pairs, "replay": draw_replay, "contention": draw_contention}


def main() -> None:
    tables, pictures = (Path(argument) for argument in sys.argv[1:3])
    # The same figures give the same file.
    plt.rcParams["svg.hashsalt"] = "allotment"
    for name in sys.argv[3:] or DRAWN:
        DRAWN[name](read(tables / f"{name}.csv"), pictures / f"{name}.svg")


if __name__ == "__main__":
    main()
