"""Pictures of replays: pages, images and texts against the offsets and figures of plain replays."""

import base64
import builtins
import gzip
import json
import pickle
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment.trace import ReplayOptions, TraceError, read_columns, read_trace, replay_trace, timeline
from allotment.trace.pictures.drawing import POINT_COLUMNS, draw, rows
from allotment.trace.pictures.image import write_image
from allotment.trace.pictures.page import write_page
from support.command import allotment, complaint
from support.traces.snapshots import snapshot
from support.traces.trace_files import GNN, Events, read_events, write_trace

MIB = 1 << 20
EVENTS: Events = [
    (1, 1, 3 * MIB),
    (1, 2, 300),
    (2, 1, 3 * MIB),
    (1, 3, 9 * MIB),
    (1, 4, MIB),
    (2, 3, 9 * MIB),
]


class Page(HTMLParser):
    """The scripts of a page, and whatever it takes from elsewhere."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elsewhere: list[str] = []
        self.documents: Any = None
        self._is_json = False
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elsewhere += [value for name in ("src", "href") if (value := given.get(name)) is not None]
        self._is_json = tag == "script" and given.get("type") == "application/json"

    def handle_data(self, data: str) -> None:
        if self._is_json and data.strip():
            self.documents = json.loads(data)
            self._is_json = False

    def sources(self) -> list[dict[str, Any]]:
        """Return all sources of data, their arrays decoded."""
        found: list[dict[str, Any]] = []

        def walk(value: Any) -> None:
            if isinstance(value, dict):
                if value.get("name") == "ColumnDataSource":
                    entries = value["attributes"]["data"]["entries"]
                    found.append({name: decode(column) for name, column in entries})
                for part in value.values():
                    walk(part)
            elif isinstance(value, list):
                for part in value:
                    walk(part)

        walk(self.documents)
        return found


def write_snapshot(path: Path, *traces: list[dict[str, Any]]) -> Path:
    path.write_bytes(pickle.dumps(snapshot([], *traces)))
    return path


def decode(column: Any) -> Any:
    if isinstance(column, dict) and column.get("type") == "ndarray":
        content = gzip.decompress(base64.b64decode(column["array"]["data"]))
        return np.frombuffer(content, column["dtype"]).reshape(column["shape"])
    return column


def blocks_of(path: Path, options: ReplayOptions) -> list[tuple[int, int, int, int]]:
    """Return start, end (-1 for none), offset and bytes of each block, from a replay with offsets."""
    offsets = replay_trace(read_trace(path), options, with_offsets=True).offsets
    assert offsets is not None
    open_blocks: dict[int, int] = {}
    found: list[list[int]] = []
    for event, (op, name, size) in enumerate(read_events(path)):
        if op == 1 and offsets[event] >= 0:
            open_blocks[name] = len(found)
            found.append([event, -1, int(offsets[event]), size])
        elif op == 2 and name in open_blocks:
            found[open_blocks.pop(name)][1] = event
    return [(start, end, offset, size) for start, end, offset, size in found]


@pytest.mark.parametrize("options", [ReplayOptions(), ReplayOptions(24 * MIB), ReplayOptions(gap=4096)])
def test_a_page_needs_nothing_else_and_has_every_block_where_the_replay_puts_it(
    tmp_path: Path, options: ReplayOptions
) -> None:
    write_page(tmp_path / "p.html", [read_columns(GNN)], options)
    page = Page(tmp_path / "p.html")
    assert page.elsewhere == []
    (blocks,) = [source for source in page.sources() if "requested" in source]
    columns = (blocks["start"], blocks["end"], blocks["bottom"], blocks["requested"])
    shown = sorted(zip(*(column.astype(int).tolist() for column in columns), strict=True))
    assert shown == blocks_of(GNN, options)
    (curves,) = [source for source in page.sources() if "least_live" in source]
    assert curves["live"].max() == replay_trace(read_trace(GNN), options).result.stats.peak_requested
    refused = [source for source in page.sources() if "bytes" in source]
    done = replay_trace(read_trace(GNN), options).result
    assert (len(refused[0]["event"]) if refused else 0) == done.refused
    assert (refused[0]["event"][0] if refused else None) == done.first_refused


def test_curves_are_the_extremes_of_the_timeline(tmp_path: Path) -> None:
    columns = read_columns(GNN)
    whole = timeline(columns)
    drawing = draw(columns, points=100, events=(2000, 20_000))
    start = 2000
    for event, least, live, in_use, reserved, _, _ in rows(drawing.picture.points, POINT_COLUMNS):
        part = slice(start, event + 1)
        assert (least, live) == (whole.live[part].min(), whole.live[part].max())
        assert (in_use, reserved) == (whole.in_use[part].max(), whole.reserved[part].max())
        start = event + 1
    assert start == 20_000
    shown = whole.live[2000:20_000]
    assert drawing.picture.peak == 2000 + int(shown.argmax())
    assert sum(one.nbytes for one in drawing.holders_at_peak()) == shown.max()


def test_holders_and_sizes_are_those_of_the_events(tmp_path: Path) -> None:
    drawing = draw(read_columns(write_trace(tmp_path / "t", EVENTS)))
    assert [(one.name, one.blocks, one.nbytes) for one in drawing.holders_at_peak()] == [
        ("blocks of 9 MiB", 1, 9 * MIB),
        ("blocks of 1 MiB", 1, MIB),
        ("blocks of 300 B", 1, 300),
    ]
    assert {most: (count, nbytes) for most, count, nbytes in drawing.size_classes() if count} == {
        512: (1, 300),
        MIB: (1, MIB),
        4 * MIB: (1, 3 * MIB),
        16 * MIB: (1, 9 * MIB),
    }


def test_owners_of_a_snapshot_are_its_stacks(tmp_path: Path) -> None:
    frames = [
        {"filename": "model.py", "line": 7, "name": "forward"},
        {"filename": "", "line": 0, "name": "main"},
    ]
    entries = [
        {"action": "alloc", "addr": 512, "size": 5 * MIB, "stream": 0, "time_us": 1000, "frames": frames},
        {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "time_us": 1002},
        {"action": "oom", "size": 1 << 40, "stream": 0, "device_free": 0, "frames": frames[:1]},
    ]
    columns = read_columns(write_snapshot(tmp_path / "s", entries))
    assert tuple(columns.owners) == ("model.py:7 forward\nmain",)
    assert columns.owner is not None
    assert columns.t_ns is not None
    assert (columns.owner.tolist(), columns.t_ns.tolist()) == ([0, -1], [0, 2000])
    assert columns.origin.refusals[0].stack == "model.py:7 forward"
    holders = [one.name for one in draw(columns).holders_at_peak()]
    assert holders == ["model.py:7 forward\nmain", "owner not known"]
    write_page(tmp_path / "p.html", [columns])
    # Texts of a trace are never markup.
    evil = [{"filename": "<script>alert(1)</script>", "line": 1, "name": "</script><b>"}]
    columns = read_columns(write_snapshot(tmp_path / "s", [entries[0] | {"frames": evil}]))
    write_page(tmp_path / "p.html", [columns])
    text = (tmp_path / "p.html").read_text()
    assert "<script>alert" not in text
    assert Page(tmp_path / "p.html").documents is not None


def test_a_page_of_many_long_stacks_stays_below_twenty_megabytes(tmp_path: Path) -> None:
    entries = [
        {"action": "alloc", "addr": 512 * number, "size": 512, "stream": 0, "frames": []}
        for number in range(1, 9000)
    ]
    for number, entry in enumerate(entries):
        entry["frames"] = [
            {"filename": f"/\N{SNOWMAN}/{number % 3000}/{depth}" * 9, "line": depth, "name": "f"}
            for depth in range(30)
        ]
    columns = read_columns(write_snapshot(tmp_path / "s", entries))
    assert sum(map(len, columns.owners)) > 6 << 20
    write_page(tmp_path / "p.html", [columns])
    assert (tmp_path / "p.html").stat().st_size < 20_000_000
    (texts,) = [source["text"] for source in Page(tmp_path / "p.html").sources() if "text" in source]
    assert len(texts) == 3000
    left_out = [text for text in texts if "no room" in text]
    assert 0 < len(left_out) < 3000


def test_the_report_is_the_same_as_text_and_json(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    done = allotment("report", path, "--limit", "8MiB")
    assert (done.returncode, done.stderr) == (3, "")
    for line in (
        "peak live 10.00 MiB (10486060 bytes), of which 3.00 MiB (3146028 bytes) were served",
        "refused at event 3: 9 MiB (9437184 bytes)",
        "  up to   16 MiB         1         9 MiB  ########################################",
    ):
        assert line in done.stdout.splitlines(), done.stdout
    figures = json.loads(allotment("report", path, "--json").stdout)
    assert (figures["peak_live"], figures["peak_event"], figures["refused"]) == (10 * MIB + 300, 4, 0)
    assert [point["live"] for point in figures["curve"]][-1] == MIB + 300
    both = json.loads(allotment("report", path, path, "--json", "--range", "2:4").stdout)["traces"]
    assert both[0] == both[1]
    assert [point["event"] for point in both[0]["curve"]] == [2, 3]


def test_the_command_writes_pictures_and_keeps_its_exit_status(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    files: list[str | Path] = ["--html", tmp_path / "p.html", "--png", tmp_path / "p.png"]
    done = allotment("replay", path, *files, "--limit", "8MiB", "--range", "1:")
    assert (done.returncode, done.stderr) == (3, "")
    assert Page(tmp_path / "p.html").documents is not None
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        (["--html", tmp_path / "none" / "p"], "cannot be written: No such file or directory"),
        (["--html", path], "is the TRACE itself"),
        (["--html", tmp_path / "x", "--png", tmp_path / "x"], "'--png' and '--html' are the same file"),
        (["--html", tmp_path / "x", "--range", "9:"], "has 6 events, so none from event 9 on"),
        (["--html", tmp_path / "x", "--range", "5:4"], "write FIRST:LAST"),
        (["--range", "1:2"], "'--range' is of '--html' and '--png'"),
        (["--png", tmp_path / "x", "--min-limit"], "'--png' and '--min-limit' exclude each other"),
        (["--html", tmp_path / "x", "--sweep"], "exclude each other"),
    )
    for arguments, said in wrong:
        assert said in complaint(allotment("replay", path, *arguments))
    assert not (tmp_path / "x").exists()


def test_a_report_comes_with_an_image(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t", EVENTS)
    done = allotment("report", path, "--png", tmp_path / "p.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == allotment("report", path).stdout
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "is the TRACE itself" in complaint(allotment("report", path, "--png", path))
    assert "is of one TRACE, not of 2" in complaint(allotment("report", path, path, "--png", tmp_path / "x"))
    line = complaint(allotment("report", path, "--png", tmp_path / "none" / "p"))
    assert line.endswith("cannot be written: No such file or directory")


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] in ("bokeh", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments)

    import importlib

    monkeypatch.setattr(importlib, "import_module", absent)
    columns = read_columns(write_trace(tmp_path / "t", EVENTS))
    for write, name in (
        (lambda: write_page(tmp_path / "p", [columns]), "bokeh"),
        (lambda: write_image(tmp_path / "p", columns), "matplotlib"),
    ):
        with pytest.raises(
            ModuleNotFoundError, match=f"{name}, which is not installed: pip install 'allotment.viz.'"
        ):
            write()
    assert not (tmp_path / "p").exists()


def test_an_empty_program_has_pictures(tmp_path: Path) -> None:
    columns = read_columns(write_trace(tmp_path / "t", []))
    write_page(tmp_path / "p.html", [columns])
    write_image(tmp_path / "p.png", columns)
    assert allotment("report", tmp_path / "t").returncode == 0
    with pytest.raises(TraceError, match="has 0 events"):
        draw(columns, events=(1, None))


def test_devices_of_one_file_share_a_page(tmp_path: Path) -> None:
    entry = {"action": "alloc", "addr": 512, "size": MIB, "stream": 0}
    path = write_snapshot(tmp_path / "s", [entry], [entry, entry | {"addr": MIB}])
    assert allotment("replay", path, "--html", tmp_path / "p.html").returncode == 0
    sources = [source for source in Page(tmp_path / "p.html").sources() if "requested" in source]
    assert Counter(len(source["start"]) for source in sources) == {1: 1, 2: 1}
    line = complaint(allotment("replay", path, "--png", tmp_path / "p.png"))
    assert line.endswith("has 2: allotment replay --html shows them all")
