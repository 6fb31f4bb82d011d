"""The command line: options, JSON, exit status, errors in one line."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.child import run_program
from support.command import allotment, replay_json
from support.traces.trace_files import GNN, RECORDED, Events, write_trace

RESNET = RECORDED / "scaled_resnet50_train_b128.npz"

MIB = 1 << 20

#: The names that the contract promises for every replay.
PROMISED = {
    "trace": str,
    "events": int,
    "peak_live": int,
    "peak_in_use": int,
    "peak_reserved": int,
    "regions": int,
    "grants": int,
    "refused": int,
    "ns_per_event": float,
    "limit": int,
    "growth": bool,
    "trim_on_oom": bool,
    "gap": int,
    "joined": bool,
    "policy": str,
    "lost_inside_chunks": int,
}

#: A block that comes and goes, then one that fits only where the first region was given back.
SWAP: Events = [(1, 1, 2 * MIB), (2, 1, 2 * MIB), (1, 2, 3 * MIB)]


# --- help, version, ways to call


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag: str) -> None:
    done = allotment(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert "replay" in done.stdout
    assert "demo" in done.stdout
    done = allotment("replay", flag)
    assert (done.returncode, done.stderr) == (0, "")
    options = "--limit --growth --no-growth --trim-on-oom --no-trim-on-oom --gap --joined --apart --policy"
    search = "--min-limit --granularity --seconds --offsets --json"
    for word in [*options.split(), *search.split(), "TRACE", "64GiB"]:
        assert word in done.stdout, word
    assert allotment("demo", flag).returncode == 0


def test_version() -> None:
    done = allotment("--version")
    expected = f"allotment {importlib.metadata.version('allotment')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_the_installed_command_is_the_module() -> None:
    command = Path(sys.executable).parent / "allotment"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, allotment("--version").stdout)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["replay", "-h"], ["replay", str(GNN)]])
def test_a_short_command_loads_neither_numpy_nor_rich(arguments: list[str]) -> None:
    done = run_program(
        f"""
        import sys
        from allotment.cli import main
        assert main({arguments!r}) == 0
        print([name for name in ("numpy", "rich") if name in sys.modules])
        """
    )
    assert done.stdout.endswith("\n[]\n"), done


# --- what an option does


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        ("1", 1),
        ("4096", 4096),
        ("300B", 300),
        ("512KiB", 512 << 10),
        ("1.5GiB", 3 << 29),
        ("2GB", 2_000_000_000),
        ("64 MiB", 64 << 20),
        ("1TiB", 1 << 40),
        ("9223372036854775552", 2**63 - 256),
    ],
)
def test_limit(tmp_path: Path, size: str, nbytes: int) -> None:
    trace = write_trace(tmp_path / "t.npz", [])
    assert replay_json(trace, "--limit", size)["limit"] == nbytes
    assert replay_json(trace, f"--limit={size}")["limit"] == nbytes


def test_the_limit_binds(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, MIB), (1, 2, MIB), (1, 3, MIB)])
    figures = replay_json(trace, "--limit", "2MiB", status=3)
    assert (figures["refused"], figures["first_refused"], figures["peak_reserved"]) == (1, 2, 2 * MIB)
    figures = replay_json(trace, "--limit", "3MiB")
    assert (figures["refused"], figures["first_refused"], figures["peak_reserved"]) == (0, None, 3 * MIB)
    assert replay_json(trace, "--limit", "1", status=3)["refused"] == 3


def test_defaults(tmp_path: Path) -> None:
    figures = replay_json(write_trace(tmp_path / "t.npz"))
    options = {name: figures[name] for name in ("limit", "growth", "trim_on_oom", "gap")}
    assert options == {"limit": 64 << 30, "growth": True, "trim_on_oom": False, "gap": 0}


def test_growth(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, 1000)])
    for options, reserved in (([], 2 * MIB), (["--growth"], 2 * MIB), (["--no-growth"], 64 * MIB)):
        figures = replay_json(trace, "--limit", "64MiB", *options)
        assert (figures["growth"], figures["reserved"]) == ("--no-growth" not in options, reserved)


def test_trim_on_oom(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", SWAP)
    options = ["--limit", "4MiB", "--gap", "256"]
    figures = replay_json(trace, *options, "--trim-on-oom")
    assert (figures["trim_on_oom"], figures["refused"], figures["grants"], figures["regions"]) == (
        True,
        0,
        2,
        1,
    )
    for off in ([], ["--no-trim-on-oom"]):
        figures = replay_json(trace, *options, *off, status=3)
        assert (figures["trim_on_oom"], figures["first_refused"], figures["grants"]) == (False, 2, 1)


def test_gap(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", SWAP)
    joined = replay_json(trace, "--limit", "8MiB")
    assert (joined["gap"], joined["grants"], joined["regions"]) == (0, 2, 1)
    apart = replay_json(trace, "--limit", "8MiB", "--gap", "1KiB")
    assert (apart["gap"], apart["grants"], apart["regions"]) == (1024, 2, 2)


# --- JSON


def test_json_has_what_is_promised() -> None:
    figures = replay_json(GNN)
    for name, kind in PROMISED.items():
        assert type(figures[name]) is kind, name
    assert figures["first_refused"] is None
    assert (figures["trace"], figures["name"]) == (str(GNN), "torch_gnn_train")
    assert "min_limit" not in figures
    figures = replay_json(GNN, "--min-limit")
    assert {type(figures[name]) for name in ("min_limit", "safe_limit")} == {int}
    assert type(figures["complete"]) is bool
    assert PROMISED.keys() < figures.keys()


def test_json_has_no_name_where_the_header_has_none(tmp_path: Path) -> None:
    assert "name" not in replay_json(write_trace(tmp_path / "t.npz"))


def test_json_names_the_path_as_it_was_given(tmp_path: Path) -> None:
    for name in ("t.npz", "ä [red] :smile: \n.npz", "\udcff.npz"):
        write_trace(tmp_path / name)
        done = allotment("replay", f"./{name}", "--json", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["trace"] == f"./{name}"


def test_json_of_several_files_keeps_their_order(tmp_path: Path) -> None:
    small = write_trace(tmp_path / "t.npz")
    figures = replay_json(GNN, small, GNN)
    assert list(figures) == ["traces"]
    assert [one["trace"] for one in figures["traces"]] == [str(GNN), str(small), str(GNN)]
    timeless = [{name: one[name] for name in one.keys() - {"ns_per_event"}} for one in figures["traces"]]
    assert timeless[0] == timeless[2]
    alone = replay_json(small)
    assert {name: alone[name] for name in alone.keys() - {"ns_per_event"}} == timeless[1]
    limits = [one["min_limit"] for one in replay_json(GNN, small, "--min-limit")["traces"]]
    assert limits == [replay_json(GNN, "--min-limit")["min_limit"], 65536]
