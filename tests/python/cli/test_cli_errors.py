"""The command line when something is wrong: exit status, one line on stderr, nothing on stdout."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from support.child import run_program
from support.command import allotment, complaint
from support.traces.trace_files import GNN, write_trace

MIB = 1 << 20


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
        ("folder", "is a folder without traces"),
        ("empty", "is empty"),
        ("text", "is not a trace. "),
        ("cut", "is a damaged or truncated zip file: "),
        ("memory", "cannot be read: Input/output error"),
        ("column", "column id: is missing"),
        ("a\nb", "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_file_is_exit_2_and_one_line(tmp_path: Path, file: str, expected: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "memory").symlink_to("/proc/self/mem")
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
    "plan TRACE -o TRACE": "is the FILE itself",
    "plan TRACE -o ./t.npz": "is the FILE itself",
    "replay TRACE --timeline x.csv --export dhat=./x.csv": "'--export' and '--timeline' are the same file",
    "run -o x --timeline ./x --limit 1MiB -- true": "'--timeline' and '-o' are the same file",
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

        def broken(path, *, details):
            raise RuntimeError("a\\nb")

        allotment.trace.read_all_columns = broken
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

        allotment.trace.read_all_columns = lambda path, *, details: os.kill(os.getpid(), signal.SIGINT)
        sys.exit(main(["replay", {str(GNN)!r}]))
        """
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_a_program_that_no_limit_serves_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "huge.npz"
    count = 63
    np.savez(
        path,
        op=np.ones(count, np.int8),
        id=np.arange(count),
        size=np.full(count, 1 << 57, np.int64),
    )
    done = allotment("replay", str(path), "--min-limit", "--gap", str(1 << 62))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "huge.npz" in line
    assert "no limit" in line


def test_offsets_are_not_written_over_a_file_that_may_not_be_written(tmp_path: Path) -> None:
    target = tmp_path / "kept.npy"
    target.write_bytes(b"kept")
    target.chmod(0o444)
    trace = str(GNN)
    done = allotment("replay", trace, "--offsets", str(target))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Permission denied" in done.stderr
    assert target.read_bytes() == b"kept"
    target.chmod(0o640)
    assert allotment("replay", trace, "--offsets", str(target)).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o640
