"""What the manual says is run, and what it lists is all that there is."""

import ast
import importlib.util
import pickle
import re
import types
from pathlib import Path

import click
import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment.cli import commands
from allotment.devices.environment import variables
from allotment.trace import (
    ReplayOptions,
    Search,
    compare,
    plan,
    read_columns,
    read_trace,
    replay_at_min_limit,
    replay_trace,
    sweep,
)
from allotment.trace.pictures import draw, report_figures
from allotment.trace.plan import plan_figures
from support.documents import ROOT, Document, Example, matches, parameters, run
from support.mpi import run_processes
from support.traces.snapshots import event, snapshot

DOCS = ROOT / "docs"
PAGES = {path.stem: path for path in DOCS.glob("*.md")}
DOCUMENTS = [Document.read(path) for path in PAGES.values()]
PROGRAMS = [example for document in DOCUMENTS for example in document.programs]
COMMANDS = [example for document in DOCUMENTS for example in document.commands]


@pytest.mark.parametrize("example", parameters(PROGRAMS))
def test_the_programs_run(example: Example) -> None:
    run(example)


def test_the_programs_for_a_gpu_use_names_that_exist() -> None:
    programs = [example for example in PROGRAMS if example.needed_on_gpu is not None]
    assert len(programs) >= 3
    for example in programs:
        imports = [
            node
            for node in ast.walk(ast.parse(example.text))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        ours = [node for node in imports if ast.unparse(node).split()[1].startswith("allotment")]
        assert ours, example
        exec(ast.unparse(ast.Module(list(ours), [])), {})


@pytest.mark.parametrize("example", COMMANDS, ids=str)
def test_the_commands_answer_as_shown(example: Example) -> None:
    run(example)


def test_the_program_for_mpi_runs_on_two_ranks() -> None:
    (example,) = (each for each in PROGRAMS if "MultiWorkerMirroredStrategy()" in each.text)
    ran = run_processes(example.text, 2)
    assert (ran.status, ran.stderr) == (0, "")


def test_every_guide_has_an_example() -> None:
    guides = {
        "plan-memory",
        "out-of-memory",
        "limits-scopes-tenants",
        "numpy-dask-mpi",
        "tensorflow",
        "guard-mode",
    }
    assert guides <= {Path(example.page).stem for example in PROGRAMS}
    assert len(COMMANDS) >= 4


def test_output_that_differs_is_noticed() -> None:
    assert matches("a\n...\nc\n", "a\nb\nc\n")
    assert not matches("a\n...\nc\n", "a\nb\nd\n")
    assert not matches("a\n", "a\nb\n")


def test_rust_examples_are_compiled_and_run_with_the_core() -> None:
    # `cargo test` does both for each block of the page that the crate includes.
    root = (ROOT / "rust/core/src/lib.rs").read_text(encoding="utf-8")
    assert '#[cfg(doctest)]\n#[doc = include_str!("../../../docs/embed-in-rust.md")]\nmod ' in root
    assert PAGES["embed-in-rust"].read_text(encoding="utf-8").count("\n```rust\n") >= 5
    others = [page for stem, page in PAGES.items() if stem != "embed-in-rust"]
    assert not [page for page in others if "```rust" in page.read_text(encoding="utf-8")]


def test_the_pages_are_in_the_tables_of_contents() -> None:
    index = PAGES["index"].read_text(encoding="utf-8")
    for stem in PAGES.keys() - {"index"}:
        assert re.search(rf"^{stem}$", index, flags=re.MULTILINE), stem


def test_the_reference_has_every_public_name_and_namespace() -> None:
    reference = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")}
    for name in set(allotment.__all__) - {"__version__"}:
        assert f":: allotment.{name}\n" in reference["allotment"], name
    namespaces = {
        value.__name__ for name in tf.__all__ if isinstance(value := getattr(tf, name), types.ModuleType)
    }
    # Other versions of the same names, and namespaces of types and of constants.
    elsewhere = {f"allotment.tf.{name}" for name in ("compat", "dtypes", "sysconfig", "version")}
    pages = "".join(text for stem, text in reference.items() if stem.startswith("tf"))
    for name in namespaces - elsewhere:
        assert f":: {name}\n" in pages, name


def test_the_page_of_the_environment_has_every_variable_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["environment"].read_text(encoding="utf-8"), flags=re.MULTILINE)
    known = {value.name for value in vars(variables).values() if isinstance(value, variables.Variable)}
    assert set(rows) == known


def test_the_page_of_the_environment_has_every_logger() -> None:
    rows = re.findall(
        r"^\| `(allotment\.[\w.]+)` \|", PAGES["environment"].read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    sources = [*(ROOT / "python/allotment").rglob("*.py"), *(ROOT / "rust/bindings/src").rglob("*.rs")]
    used = {
        name
        for path in sources
        for name in re.findall(r'getLogger"?,? ?\(+"(allotment\.[\w.]+)"', path.read_text(encoding="utf-8"))
    }
    assert "allotment.guard" in used
    assert set(rows) == used


def test_the_command_line_has_a_help_text_for_everything() -> None:
    for name, command in commands.commands.items():
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)


def test_the_picture_is_that_of_the_trace(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("draw_memory", DOCS / "pictures/draw_memory.py")
    assert spec is not None
    assert spec.loader is not None
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    trace = ROOT / "tests/traces/scaled_resnet50_train_b128.npz"
    curves = drawing.replay(trace)

    # The pool that is drawn makes the decisions of a replay.
    figures = replay_trace(read_trace(str(trace)), ReplayOptions(64 << 30, joined=False)).as_dict()
    assert curves.live.max() == figures["peak_live"]
    assert curves.in_use.max() == figures["peak_in_use"]
    assert curves.reserved.max() == figures["peak_reserved"]
    assert np.all(curves.live <= curves.in_use)
    assert np.all(curves.in_use <= curves.reserved)

    picture = tmp_path / "memory.svg"
    drawing.draw(curves, "the same curves", picture)
    assert _areas(picture) == _areas(DOCS / "pictures/memory.svg")


def _areas(picture: Path) -> list[str]:
    """Return the outlines of the filled areas: texts, and with them fonts, are left out."""
    areas = re.findall(r'<path id="m\w+" d="([^"]+)"', picture.read_text(encoding="utf-8"))
    outlines = [area for area in areas if len(area) > 1000]
    assert len(outlines) == 3
    return outlines


def test_the_json_fields_that_the_page_names_are_printed(tmp_path: Path) -> None:
    page = PAGES["command-line"].read_text(encoding="utf-8")
    paragraph = page[page.index("## JSON") :]
    named = set(re.findall(r"`([a-z_]+)`", paragraph)) - {"null"}
    trace = read_trace(str(ROOT / "tests/traces/torch_gnn_train.npz"))
    report = replay_at_min_limit(trace, ReplayOptions(64 << 30), Search(1 << 20, 60.0))
    path = tmp_path / "snapshot"
    path.write_bytes(pickle.dumps(snapshot([], [event("alloc", 512, 100)])))
    recorded = replay_trace(read_trace(path), ReplayOptions()).as_dict()
    compared, swept = compare(read_trace(path)).as_dict(), sweep(read_trace(path)).as_dict()
    shown = report_figures(draw(read_columns(path)))
    parts = [shown[name][0] for name in ("holders_at_peak", "sizes", "curve")]
    planned = plan_figures(plan(read_trace(path), steps=0))
    printed = [
        report.as_dict(),
        recorded,
        compared,
        compared["compare"][0],
        swept,
        shown,
        planned,
        *parts,
    ]
    assert named - {"trace", "traces", "plan"} <= {key for one in printed for key in one}
