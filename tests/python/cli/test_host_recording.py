"""``allotment record --host`` and ``run -o``: traces of large blocks of any program."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from allotment.trace import read_columns, read_trace
from allotment.trace.journal import MAGIC
from support import child
from support.command import allotment, complaint, replay_json
from support.host_programs import FUNCTIONS, PROGRAMS, Compile, own_events, record


def test_every_function_is_recorded_with_its_bytes(tmp_path: Path) -> None:
    program = """
a = c.malloc(10_000_001)
b = c.calloc(3, 5_000_000)
d = c.aligned_alloc(4096, 12_288_000)
a = c.realloc(a, 20_000_000)
b = c.realloc(b, 1000)
c.free(d)
c.free(a)
"""
    done = record(tmp_path / "t.npz", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert own_events(tmp_path / "t.npz") == [
        (1, 10_000_001),
        (1, 15_000_000),
        (1, 12_288_000),
        # A block that grows is freed and allocated.
        (2, 10_000_001),
        (1, 20_000_000),
        (2, 15_000_000),
        (2, 12_288_000),
        (2, 20_000_000),
    ]
    trace = read_trace(tmp_path / "t.npz")
    assert re.fullmatch(r"python\S* \(\d+\)", trace.name or "")
    assert not trace.origin.incomplete
    figures = replay_json(tmp_path / "t.npz")
    assert 47_288_000 <= figures["peak_live"] < 50_000_000


def test_events_have_times_and_threads(tmp_path: Path) -> None:
    program = """
import threading
def work():
    c.free(c.malloc(11_000_000))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
    thread.join()
time.sleep(0.2)
c.malloc(30_000_000)
"""
    assert record(tmp_path / "t.npz", program).returncode == 0
    with np.load(tmp_path / "t.npz") as columns:
        t_ns, thread, size = columns["t_ns"], columns["thread"], columns["size"]
    assert (np.diff(t_ns) >= 0).all()
    assert len(set(thread[size == 11_000_000])) == 3
    last, before = t_ns[size == 30_000_000][0], t_ns[size == 11_000_000][-1]
    assert 2e8 <= last - before < 5e9


def test_each_process_has_a_file_and_a_child_begins_with_what_it_inherited(tmp_path: Path) -> None:
    program = """
a, b = c.malloc(10_000_001), c.malloc(10_000_002)
child = os.fork()
if child == 0:
    c.free(a)
    c.malloc(10_000_003)
    os._exit(0)
os.waitpid(child, 0)
c.free(b)
print(child)
"""
    done = record(tmp_path / "t.npz", program)
    assert done.returncode == 0, done.stderr
    assert own_events(tmp_path / "t.npz") == [(1, 10_000_001), (1, 10_000_002), (2, 10_000_002)]
    events = own_events(tmp_path / f"t.npz.{done.stdout.strip()}")
    assert sorted(events[:2]) == [(1, 10_000_001), (1, 10_000_002)]
    assert events[2:] == [(2, 10_000_001), (1, 10_000_003)]


def test_a_killed_program_loses_no_event(tmp_path: Path) -> None:
    done = record(tmp_path / "t.npz", "c.malloc(10_000_001); os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 128 + signal.SIGKILL
    assert own_events(tmp_path / "t.npz") == [(1, 10_000_001)]


def test_the_file_is_readable_while_the_program_runs_and_when_the_command_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    program = (
        FUNCTIONS + "c.malloc(10_000_001); print('ready', flush=True); sys.stdin.read(); c.malloc(10_000_002)"
    )
    command = [
        sys.executable,
        "-m",
        "allotment",
        "record",
        "--host",
        "-o",
        str(path),
        "--",
        sys.executable,
        "-c",
        program,
    ]
    with subprocess.Popen(
        command, env=child.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        assert path.read_bytes().startswith(MAGIC)
        columns = read_columns(path)
        assert columns.size.tolist().count(10_000_001) == 1
        process.kill()
        process.wait()
        # The program itself goes on.
        process.stdin.close()
        until = time.monotonic() + 20
        while 10_000_002 not in list(read_columns(path).size):
            assert time.monotonic() < until
            time.sleep(0.02)
    assert "was killed, or still runs" in read_columns(path).origin.missing[0]


def test_a_process_that_goes_on_keeps_its_journal(tmp_path: Path) -> None:
    program = """
a = c.malloc(10_000_001)
if os.fork() == 0:
    c.malloc(10_000_002)
    print(os.getpid(), flush=True)
    os.close(1), os.close(2)
    time.sleep(60)
time.sleep(0.3)
"""
    done = record(tmp_path / "t.npz", program)
    pid = int(done.stdout)
    try:
        assert f"process {pid} still runs and goes on recording; the file is readable" in done.stderr
        assert (tmp_path / f"t.npz.{pid}").read_bytes().startswith(MAGIC)
        assert 10_000_002 in list(read_columns(tmp_path / f"t.npz.{pid}").size)
        assert (tmp_path / "t.npz").read_bytes().startswith(b"PK")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_long_recordings_grow(tmp_path: Path) -> None:
    # 80,000 events are more than the first megabyte of the file has room for.
    program = "for _ in range(40_000): c.free(c.malloc(10_000_001))"
    assert record(tmp_path / "t.npz", program).returncode == 0
    assert own_events(tmp_path / "t.npz") == [(1, 10_000_001), (2, 10_000_001)] * 40_000
    assert os.path.getsize(tmp_path / "t.npz") < 80_000 * 10


def test_refusals_are_in_the_trace_and_in_the_table(tmp_path: Path) -> None:
    program = "a = c.malloc(20_000_000)\nassert c.malloc(60_000_000) is None\nc.free(a)"
    table = tmp_path / "t.csv"
    options = ["--limit", "64MiB", "-o", str(tmp_path / "t.npz"), "--timeline", str(table)]
    done = allotment("run", *options, "--", sys.executable, "-c", FUNCTIONS + program)
    assert done.returncode == 0, done.stderr
    (refusal,) = read_trace(tmp_path / "t.npz").origin.refusals
    assert refusal.requested == 60_000_000
    assert 20_000_000 <= refusal.live < 24_000_000
    with table.open() as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert [row["refused"] for row in rows if row["refused"]] == [60_000_000]
    assert max(row["live"] for row in rows) == read_trace(tmp_path / "t.npz").program.peak_live
    assert all(row["live"] >= 0 for row in rows)
    assert len({row["pid"] for row in rows}) == 1


def test_a_refusal_of_a_size_above_all_others_is_recorded_as_the_largest_number(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    options = ["--limit", "64MiB", "-o", str(tmp_path / "t.npz"), "--timeline", str(table)]
    program = "assert c.malloc(2**64 - 5000) is None"
    done = allotment("run", *options, "--", sys.executable, "-c", FUNCTIONS + program)
    assert done.returncode == 0, done.stderr
    (refusal,) = read_trace(tmp_path / "t.npz").origin.refusals
    assert refusal.requested == 2**63 - 1
    assert f",{2**63 - 1}\n" in table.read_text()
    assert replay_json(tmp_path / "t.npz")["peak_live"] < 64 << 20


def test_a_table_alone_and_a_smaller_threshold(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    options = ["--limit", "1GiB", "--threshold", "8KiB", "--timeline", str(table), "--quiet"]
    done = allotment("run", *options, "--", sys.executable, "-c", FUNCTIONS + "c.malloc(9000)")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [table]
    lives = [int(line.split(",")[2]) for line in table.read_text().splitlines()[1:]]
    assert 9000 in np.diff(lives)


def test_a_program_without_large_blocks_is_told(tmp_path: Path) -> None:
    done = allotment("record", "--host", "-o", tmp_path / "t.npz", "--", "true")
    assert done.returncode == 0
    assert "was not written: no process had a block of 128 KiB or more" in done.stderr
    assert not (tmp_path / "t.npz").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--host", "--tags"], "'--host' excludes '--tags', '--stacks' and '--last'"),
        (["--host", "--last", "5"], "'--host' excludes '--tags', '--stacks' and '--last'"),
        (["--threshold", "8KiB"], "'--threshold' is of '--host'"),
    ],
)
def test_options_that_exclude_each_other(options: list[str], text: str) -> None:
    assert text in complaint(allotment("record", *options, "--", "true"))


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_replay_finds_the_smallest_limit_of_a_run_exactly(
    compiled: Compile, tmp_path: Path, seed: str
) -> None:
    program, page = compiled(PROGRAMS / "random_order.c"), 64 << 10
    allotment("record", "--host", "-o", tmp_path / "t.npz", "--", program, seed)
    options = ("--round-sizes", "4KiB", "--elastic", "--page-size", "64KiB")
    figures = replay_json(tmp_path / "t.npz", *options, "--granularity", "64KiB", "--min-limit")
    limit = figures["min_limit"]
    assert figures["complete"]
    for given, refuses in [(limit, False), (limit - page, True)]:
        done = allotment("run", "--quiet", "--limit", str(given), "--", program, seed)
        assert (int(done.stdout) > 0) == refuses, given
    # What a run served at a limit the replay serves at it.
    run = ("run", "--quiet", "--limit", "16MiB", "-o", tmp_path / "u.npz")
    assert int(allotment(*run, "--", program, seed).stdout) > 100
    assert replay_json(tmp_path / "u.npz", *options, "--limit", "16MiB")["refused"] == 0
