"""``allotment record --host`` and ``run -o``: which files there are, before, during and after a run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from allotment.trace import read_columns
from allotment.trace.journal import MAGIC
from support.command import allotment
from support.host_programs import FUNCTIONS, own_events, record


def test_each_program_that_a_process_runs_one_after_the_other_has_a_file(tmp_path: Path) -> None:
    program = """
number = int(os.environ.get("NUMBER", "1"))
c.malloc(10_000_000 + number)
if number < 4:
    os.execve(sys.executable, sys.orig_argv, os.environ | {"NUMBER": str(number + 1)})
print(os.getpid())
"""
    done = record(tmp_path / "t.npz", program)
    assert done.returncode == 0, done.stderr
    other = f"t.npz.{done.stdout.strip()}"
    names = ["t.npz", other, f"{other}.2", f"{other}.3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    events = [own_events(tmp_path / name) for name in names]
    assert events == [[(1, 10_000_000 + number)] for number in range(1, 5)]


def test_a_file_of_an_earlier_run_is_replaced_at_the_end(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.npz", tmp_path / "t.npz"
    kept.write_bytes(b"earlier")
    link.symlink_to(kept)
    program = f"""
c.malloc(10_000_001)
with open({str(kept)!r}, "rb") as file: print(file.read())
"""
    done = record(link, program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "b'earlier'\n", "")
    assert sorted(tmp_path.iterdir()) == [kept, link]
    assert link.is_symlink()
    assert own_events(kept) == [(1, 10_000_001)]


@pytest.mark.parametrize("program", ["true", "no-such-program"])
def test_a_file_of_an_earlier_run_stays_if_nothing_is_recorded(tmp_path: Path, program: str) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(b"earlier")
    done = allotment("record", "--host", "-o", path, "--", program)
    assert done.returncode == (0 if program == "true" else 2)
    assert ("the file that was there is kept" in done.stderr) == (program == "true")
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_earlier_runs_are_no_part_of_a_new_one(tmp_path: Path) -> None:
    assert record(tmp_path / "t.npz", "c.malloc(10_000_001)").returncode == 0
    earlier = {"t.npz.123": MAGIC, "t.npz.124": MAGIC[:5], "t.npz.7.2": MAGIC + b"\0" * 100}
    for name, content in earlier.items():
        (tmp_path / name).write_bytes(content)
    done = record(tmp_path / "t.npz", "c.malloc(10_000_002)")
    assert (done.returncode, done.stderr) == (0, "")
    assert own_events(tmp_path / "t.npz") == [(1, 10_000_002)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "t.npz"} == earlier


@pytest.mark.parametrize(("status", "result"), [(0, 2), (7, 7)])
def test_files_that_cannot_be_written_are_named_and_the_status_is_the_programs(
    tmp_path: Path, status: int, result: int
) -> None:
    table, trace = tmp_path / "t.csv", tmp_path / "t.npz"
    # Both are folders when the command writes them.
    trace.write_bytes(b"")
    program = f"""
c.malloc(10_000_001)
os.unlink({str(trace)!r})
for path in ({str(table)!r}, {str(trace)!r}): os.mkdir(path)
sys.exit({status})
"""
    options = ["--limit", "1GiB", "--quiet", "-o", str(trace), "--timeline", str(table)]
    done = allotment("run", *options, "--", sys.executable, "-c", FUNCTIONS + program)
    assert done.returncode == result
    first, second, third = done.stderr.splitlines()
    assert first.startswith(f"allotment: --timeline {table}: was not written")
    assert second.startswith(f"allotment: -o {trace}: was not written")
    assert third.endswith("has the events, and is readable")
    assert 10_000_001 in list(read_columns(third.split()[1]).size)


@pytest.mark.parametrize(("option", "command"), [("-o", "run"), ("-o", "record"), ("--timeline", "run")])
def test_a_second_run_with_the_same_file_is_refused_while_the_first_one_runs(
    tmp_path: Path, option: str, command: str
) -> None:
    path = tmp_path / "t.out"
    first = ("run", "--quiet", "--limit", "1GiB", option, path)
    second = ("record", "--host", option, path) if command == "record" else first
    program = FUNCTIONS + "print('started', flush=True); c.malloc(10_000_001); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-m", "allotment", *first, "--", sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"started\n"
        refused = allotment(*second, "--", "true")
        assert refused.returncode == 2
        assert f"{option} {path}: another command writes it now" in refused.stderr
        running.communicate()
    assert running.returncode == 0
    assert list(tmp_path.iterdir()) == [path]
    if option == "-o":
        assert own_events(path) == [(1, 10_000_001)]


def test_a_lock_that_a_killed_run_has_left_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "t.npz.lock").touch()
    done = record(tmp_path / "t.npz", "c.malloc(10_000_001)")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "t.npz"]


#: Runs a program that can write files of at most 128 blocks of 512 bytes, which stands for a full disk.
FULL = ("sh", "-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh")

#: Pairs of events, of which a file with room for 30,000 events lacks the most.
PAIRS = 60_000


def test_a_record_that_fills_the_disk_tells_how_many_events_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for _ in range({PAIRS}): c.free(c.malloc(10_000_001))
"""
    done = record(path, program)
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert "t.npz: the record ends here: File too large" in first
    lacks = re.search(r"t.npz: lacks the last (\d+) events of python", second)
    assert lacks is not None
    columns = read_columns(path)
    own = len(own_events(path))
    assert 0 < own < 2 * PAIRS <= own + int(lacks[1])
    assert columns.origin.missing == (
        f"its file could not be written any further: File too large; {lacks[1]} events are missing from then on",
    )
    # The file of a process that is killed says so, too.
    other = tmp_path / "killed.npz"
    done = record(other, f"{program}os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 128 + 9
    assert "from then on" in read_columns(other).origin.missing[0]


@pytest.mark.parametrize("option", ["-o", "--timeline"])
def test_a_record_that_cannot_begin_is_status_2_and_leaves_no_file(tmp_path: Path, option: str) -> None:
    path = tmp_path / "t.out"
    program = f"{FUNCTIONS}\nfor _ in range(100): c.free(c.malloc(10_000_001))"
    options = ("--limit", "1GiB", "--quiet", option, path)
    done = allotment("run", *options, "--", *FULL, sys.executable, "-c", program)
    assert done.returncode == 2
    assert "the record ends here: File too large" in done.stderr
    assert re.search(r"lacks the last \d{3} events of python", done.stderr)
    if option == "-o":
        assert f"{path} was not written: no process could begin its record" in done.stderr
        assert list(tmp_path.iterdir()) == []
