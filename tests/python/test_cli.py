"""The command line: options, JSON, exit status, errors in one line."""

import importlib.metadata
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.child import run_program
from support.command import allotment, complaint, replay_json
from support.trace_files import GNN, RECORDED, Events, write_trace

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
    for option in [
        "--limit",
        "--growth",
        "--no-growth",
        "--trim-on-oom",
        "--no-trim-on-oom",
        "--gap",
        "--min-limit",
    ] + ["--offsets", "--json", "TRACE", "64GiB"]:
        assert option in done.stdout, option
    assert allotment("demo", flag).returncode == 0


def test_version() -> None:
    done = allotment("--version")
    expected = f"allotment {importlib.metadata.version('allotment')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_the_installed_command_is_the_module() -> None:
    command = Path(sys.executable).parent / "allotment"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, allotment("--version").stdout)


def test_version_and_help_load_no_numpy_and_no_rich() -> None:
    done = run_program(
        """
        import sys
        from allotment.cli import main
        assert main(["--version"]) == main(["--help"]) == main(["replay", "-h"]) == 0
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
    assert type(figures["min_limit"]) is int
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


# --- exit status


def test_a_refusal_in_any_file_is_exit_3(tmp_path: Path) -> None:
    fits = write_trace(tmp_path / "fits.npz", [(1, 1, 1000)])
    fails = write_trace(tmp_path / "fails.npz", [(1, 1, 3 * MIB)])
    for traces, status in (([fits, fits], 0), ([fits, fails], 3), ([fails, fits], 3), ([fails], 3)):
        done = allotment("replay", *traces, "--limit", "2MiB")
        assert (done.returncode, done.stderr) == (status, "")
        assert allotment("replay", *traces, "--min-limit").returncode == 0


def test_all_files_are_read_before_any_is_replayed(tmp_path: Path) -> None:
    bad = write_trace(tmp_path / "bad.npz", [(2, 1, 5)])
    for traces in ([GNN, bad], [bad, GNN], [GNN, GNN, bad]):
        for options in ([], ["--json"], ["--min-limit"]):
            line = complaint(allotment("replay", *traces, *options))
            assert line == f"allotment: {bad}: event 0: id 1 is freed but was never allocated"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("none.npz", "cannot be read: No such file or directory"),
        (".", "is a folder"),
        ("empty", "is empty"),
        ("text", "is no trace: "),
        ("cut", "is a damaged or cut zip file: "),
        ("column", "column id: is missing"),
        ("a\nb", "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_file_is_exit_2_and_one_line(tmp_path: Path, file: str, expected: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("a 1 100\n")
    (tmp_path / "cut").write_bytes(GNN.read_bytes()[:5000])
    write_trace(tmp_path / "column", id=None)
    for options in ([], ["--json"], ["--min-limit", "--json"]):
        line = complaint(allotment("replay", file, *options, cwd=tmp_path))
        shown = file.replace("\n", "\\n")
        assert line.startswith(f"allotment: {shown}: {expected}")


BAD_USAGE = {
    "": "Missing command",
    "frobnicate": "'frobnicate'",
    "--frobnicate": "'--frobnicate'",
    "replay": "'TRACE...'",
    "replay --json": "'TRACE...'",
    "replay TRACE --frobnicate": "'--frobnicate'",
    "replay TRACE --limit": "'--limit'",
    "replay TRACE --json=yes": "'--json'",
    "replay TRACE --growth=yes": "'--growth'",
    "replay TRACE --offsets": "'--offsets'",
    "replay TRACE TRACE --offsets x.npy": "'--offsets'",
    "replay TRACE --offsets x.npy --min-limit": "'--min-limit'",
    "replay TRACE --offsets TRACE": "is the TRACE itself",
    "demo extra": "extra",
    "demo --json": "'--json'",
}


@pytest.mark.parametrize("command", BAD_USAGE)
def test_bad_usage_is_exit_2_and_one_line(tmp_path: Path, command: str) -> None:
    trace = write_trace(tmp_path / "t.npz")
    before = trace.read_bytes()
    words = [str(trace) if word == "TRACE" else word for word in shlex.split(command)]
    line = complaint(allotment(*words, cwd=tmp_path))
    assert BAD_USAGE[command] in line
    assert "--help'" in line
    assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]
    assert trace.read_bytes() == before


@pytest.mark.parametrize("option", ["--limit", "--gap"])
@pytest.mark.parametrize(
    "size",
    [
        "-1",
        "-256",
        "12 parsecs",
        "1e30",
        "1e3",
        "",
        " ",
        "GiB",
        "0x100",
        "1,5GiB",
        "1.5.2GiB",
        "nan",
        "9" * 30,
        "1\n2",
    ],
)
def test_a_bad_size_is_exit_2_and_says_what_is_allowed(option: str, size: str) -> None:
    line = complaint(allotment("replay", GNN, option, size))
    assert f"'{option}'" in line
    assert size.replace("\n", "\\n") in line
    assert "such as 4096, 512KiB" in line or "the largest size is 9223372036854775552 bytes" in line


def test_a_limit_of_nothing_and_a_gap_in_odd_bytes() -> None:
    for size in ("0", "0GiB", "0.5"):
        line = complaint(allotment("replay", GNN, "--limit", size))
        assert "'--limit'" in line
        assert f"'{size}': must be at least 1 byte" in line
    for size in ("1", "255", "257", "1KB"):
        line = complaint(allotment("replay", GNN, "--gap", size))
        assert "'--gap'" in line
        assert f"'{size}': must be a multiple of 256 bytes" in line


def test_an_internal_error_is_exit_1_and_one_line() -> None:
    done = run_program(
        f"""
        import sys
        import allotment.trace
        from allotment.cli import main

        def broken(path):
            raise RuntimeError("a\\nb")

        allotment.trace.read_trace = broken
        sys.exit(main(["replay", {str(GNN)!r}]))
        """
    )
    assert complaint(done, status=1) == "allotment: internal error: RuntimeError: a\\nb"


def test_an_interrupt_is_exit_130_without_a_traceback() -> None:
    done = run_program(
        f"""
        import os, signal, sys
        import allotment.trace
        from allotment.cli import main

        allotment.trace.read_trace = lambda path: os.kill(os.getpid(), signal.SIGINT)
        sys.exit(main(["replay", {str(GNN)!r}]))
        """
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
