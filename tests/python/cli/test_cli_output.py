"""Where the command line writes: tables, terminals, pipes, and the offsets file."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.command import allotment, complaint
from support.terminal import on_a_terminal
from support.traces.trace_files import GNN, RECORDED, write_trace

TRACES = sorted(RECORDED.glob("torch_*.npz"))
ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


# --- tables


def test_one_file_as_plain_text() -> None:
    done = allotment("replay", GNN)
    assert (done.returncode, done.stderr) == (0, "")
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in done.stdout.splitlines())
    assert lines["trace"] == str(GNN)
    assert lines["name"] == "torch_gnn_train"
    assert lines["events"] == "26878"
    assert re.fullmatch(r"64 GiB\s+68719476736 bytes", lines["limit"])
    # As its recorder counted: 23.47 MiB.
    assert re.fullmatch(r"23\.47 MiB\s+24614352 bytes", lines["peak live"])
    assert (lines["refused"], lines["first refused"]) == ("0", "never")
    assert re.fullmatch(r"\d+\.\d ns an event", lines["time"])


def test_one_file_that_does_not_fit() -> None:
    done = allotment("replay", GNN, "--limit", "1MiB")
    assert done.returncode == 3
    assert re.search(r"^refused +[1-9]\d*$", done.stdout, flags=re.M)
    assert re.search(r"^first refused +event \d+$", done.stdout, flags=re.M)


def test_several_files_as_plain_text() -> None:
    done = allotment("replay", *TRACES)
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = (re.split(r"\s{2,}", line) for line in done.stdout.splitlines())
    assert head[:4] == ["trace", "events", "limit", "peak live"]
    assert [line[0] for line in lines] == [str(path) for path in TRACES]
    assert {len(line) for line in lines} == {len(head)}
    assert "smallest limit" in allotment("replay", *TRACES, "--min-limit").stdout.splitlines()[0]


def test_plain_text_is_never_cut_wrapped_or_coloured(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a folder with quite a long name"] * 6)
    folder.mkdir(parents=True)
    trace = write_trace(folder / "[red]t[ :smile:.npz", header=np.array('{"name": "[bold]n"}'))
    environment = {"COLUMNS": "20", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "CLICOLOR_FORCE": "1"}
    for traces in ([trace], [trace, trace]):
        done = allotment("replay", *traces, environment=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert str(trace) in done.stdout
        assert "\x1b" not in done.stdout
        assert "…" not in done.stdout
        assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    assert "[bold]n" in allotment("replay", trace).stdout


def test_names_that_do_not_print_and_encodings_that_cannot(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "ä\n\x1b[31m\udcff.npz", header=np.array('{"name": "x\\ny\\u001b"}'))
    done = allotment("replay", trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ä\\n\\x1b[31m\\udcff.npz\n" in done.stdout
    assert "x\\ny\\x1b\n" in done.stdout
    done = allotment("replay", trace, environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xe4\\n\\x1b[31m\\udcff.npz\n" in done.stdout


@pytest.mark.parametrize("columns", [60, 80, 120, 300])
def test_several_files_on_a_terminal(columns: int) -> None:
    status, shown, stderr = on_a_terminal("replay", *TRACES, stream="stdout", columns=columns)
    assert (status, stderr) == (0, "")
    assert "\x1b[" in shown
    plain = ANSI.sub("", shown).splitlines()
    assert max(map(len, plain)) <= columns
    assert "…" not in shown
    # One line each where they fit, else one after the other in full.
    assert (len(plain) == 1 + len(TRACES)) == (columns == 300)
    for mebibytes in ("294.76 MiB", "23.47 MiB", "136.77 MiB"):
        assert mebibytes in shown


@pytest.fixture(name="long_trace")
def fixture_long_trace(tmp_path: Path) -> Path:
    """Write a trace whose replay takes long enough for a progress bar."""
    blocks = np.arange(250_000)
    ops = np.tile([1, 2], len(blocks))
    path = tmp_path / "long.npz"
    np.savez(path, op=ops, id=blocks.repeat(2), size=np.full(len(ops), 256))
    return path


@pytest.mark.parametrize("columns", [50, 70])
def test_a_long_name_is_continued_on_a_terminal(tmp_path: Path, columns: int) -> None:
    trace = write_trace(tmp_path / ("x" * 50 + "深い学習" * 5))
    status, shown, _ = on_a_terminal("replay", trace, stream="stdout", columns=columns)
    lines = ANSI.sub("", shown).splitlines()
    assert status == 0
    assert "".join(line[20:] for line in lines).startswith(f"{trace}6")  # the number of events follows
    # A character of East Asia takes two columns.
    assert max(len(line) + sum(c > "⺀" for c in line) for line in lines) <= columns


def test_files_are_in_columns_whatever_their_names_are(tmp_path: Path) -> None:
    traces = [write_trace(tmp_path / name) for name in ("short", "学習", "longer than others")]
    lines = allotment("replay", *traces).stdout.splitlines()
    ends = {len(line) + sum(c > "⺀" for c in line) for line in lines}
    assert len(ends) == 1


def test_progress_is_shown_on_a_terminal_and_leaves_stdout_alone(long_trace: Path) -> None:
    status, shown, stdout = on_a_terminal("replay", GNN, long_trace, "--json", stream="stderr")
    assert status == 0
    assert "replaying" in shown
    assert len(json.loads(stdout)["traces"]) == 2


def test_a_short_replay_shows_no_progress() -> None:
    status, shown, stdout = on_a_terminal("replay", GNN, "--json", stream="stderr")
    assert (status, shown) == (0, "")
    assert json.loads(stdout)["events"] == 26878


def test_an_error_on_a_terminal_is_one_line_after_the_progress(long_trace: Path, tmp_path: Path) -> None:
    none = tmp_path / "none"
    status, shown, stdout = on_a_terminal("replay", long_trace, none, stream="stderr")
    assert (status, stdout) == (2, "")
    assert "reading" in shown
    plain = ANSI.sub("", shown)
    assert plain.rstrip().endswith(f"allotment: {none}: cannot be read: No such file or directory")
    assert "Traceback" not in plain


# --- pipes and full disks


@pytest.mark.parametrize(
    "arguments",
    [["replay", *TRACES], ["replay", GNN, "--json"], ["demo"], ["--help"], ["--version"]],
    ids=lambda arguments: " ".join(map(str, arguments[::2])),
)
def test_a_reader_that_went_away_is_no_news(arguments: list[str | Path]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "allotment", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    # As of a program that the signal of a broken pipe ended.
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [["replay", GNN], ["--help"], ["--version"], ["plan", "--help"]])
def test_a_full_disk_is_one_line_and_exit_2(arguments: list[str | Path]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "allotment", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "allotment: standard output: No space left on device\n")


@pytest.mark.parametrize("options", ["", "--json", "--limit 1MiB"])
def test_a_closed_stdout_leaves_the_exit_status(options: str) -> None:
    command = f"exec {sys.executable} -m allotment replay {GNN} {options} >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3 if "--limit" in options else 0, b"")


# --- the offsets file


@pytest.mark.parametrize("name", ["o.npy", "o", "o.txt", "ö [x].npy", "o" * 255])
def test_offsets_are_written_to_exactly_that_path(tmp_path: Path, name: str) -> None:
    done = allotment("replay", GNN, "--offsets", name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    offsets = np.load(tmp_path / name, allow_pickle=False)
    assert (offsets.dtype, offsets.shape) == (np.dtype("<i8"), (26878,))


def test_offsets_are_written_when_something_is_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.npz", [(1, 1, 5), (1, 2, 1 << 30), (2, 2, 1 << 30), (2, 1, 5)])
    done = allotment("replay", trace, "--limit", "2MiB", "--offsets", tmp_path / "o", "--json")
    assert (done.returncode, done.stderr) == (3, "")
    assert json.loads(done.stdout)["first_refused"] == 1
    assert np.load(tmp_path / "o").tolist() == [0, -1, -1, 0]


def test_offsets_replace_an_older_file_and_follow_links(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    assert allotment("replay", GNN, "--offsets", tmp_path / "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert len(np.load(tmp_path / "old")) == 26878


def test_offsets_have_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    allotment("replay", GNN, "--offsets", tmp_path / "o")
    assert (tmp_path / "o").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("none/o.npy", "No such file or directory"),
        ("file/o.npy", "Not a directory"),
        ("folder", "not the path of a regular file"),
        ("new/", "not the path of a regular file"),
        ("", "not the path of a regular file"),
        ("/dev/null", "not the path of a regular file"),
        ("pipe", "not the path of a regular file"),
        ("x" * 256, "File name too long"),
    ],
)
def test_offsets_that_cannot_be_written(tmp_path: Path, target: str, reason: str) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(path.name for path in tmp_path.iterdir())
    line = complaint(allotment("replay", GNN, "--offsets", target, cwd=tmp_path))
    assert line == f"allotment: --offsets {target}: cannot be written: {reason}"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "kept"
    assert Path("/dev/null").is_char_device()


def test_a_disk_that_fills_up_leaves_no_partial_file(tmp_path: Path) -> None:
    (tmp_path / "o.npy").write_text("kept")
    # Files of this child may have 8 blocks of 512 or 1024 bytes; the offsets need 210 KiB.
    command = f"ulimit -f 8; exec {sys.executable} -m allotment replay {GNN} --offsets o.npy"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert complaint(done).startswith("allotment: --offsets o.npy: cannot be written: ")
    assert [path.name for path in tmp_path.iterdir()] == ["o.npy"]
    assert (tmp_path / "o.npy").read_text() == "kept"
