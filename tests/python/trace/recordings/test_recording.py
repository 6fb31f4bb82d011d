"""Recordings: what a pool did is what the trace says, in a ring, in a file, and in the file of a killed process."""

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from allotment import Pool
from allotment.trace import (
    ReplayOptions,
    TraceError,
    read_trace,
    read_traces,
    record,
    replay_trace,
    write_trace,
)
from support.child import DEADLINE_SECONDS
from support.command import allotment as run_allotment


def work(pool: Pool, steps: int, seed: int = 1) -> list[tuple[int, int]]:
    """Use a pool at random; return what it was asked for: (1, bytes) or (2, bytes)."""
    chosen, live, done = random.Random(seed), list[tuple[int, int]](), list[tuple[int, int]]()
    for _ in range(steps):
        if live and chosen.random() < 0.45:
            address, size = live.pop(chosen.randrange(len(live)))
            pool.free(address)
            done.append((2, size))
        else:
            size = chosen.choice([1, 100, 5000, 70_000, chosen.randrange(1, 1 << 20)])
            live.append((pool.malloc(size), size))
            done.append((1, size))
    return done


def events(path: Path) -> list[tuple[int, int]]:
    with np.load(path) as columns:
        return list(zip(columns["op"].tolist(), columns["size"].tolist(), strict=True))


def test_a_file_has_every_event_and_replays_to_the_same_counters(tmp_path: Path) -> None:
    pool = Pool("1GiB", source="address-space", name="training")
    with pool.record(tmp_path / "t.npz") as recording:
        done = work(pool, 3000)
    assert events(tmp_path / "t.npz") == done
    assert recording.lost == 0
    trace = read_trace(tmp_path / "t.npz")
    assert (trace.name, trace.origin.kind, trace.origin.incomplete) == ("training", "recording", False)
    stats, replayed = pool.stats(), replay_trace(trace, ReplayOptions(1 << 30)).result.stats
    for figure in (
        "requested",
        "in_use",
        "reserved",
        "peak_requested",
        "peak_in_use",
        "peak_reserved",
        "num_allocs",
    ):
        assert getattr(replayed, figure) == getattr(stats, figure), figure
    with np.load(tmp_path / "t.npz") as columns:
        assert (np.diff(columns["t_ns"]) >= 0).all()
        assert set(columns["thread"].tolist()) == {0}


def test_what_was_live_before_comes_first_and_calls_after_the_end_are_not_recorded(tmp_path: Path) -> None:
    pool = Pool("16MiB", source="address-space")
    first = pool.malloc(300)
    with pool.record(tmp_path / "t"):
        pool.free(first)
    pool.malloc(700)
    assert events(tmp_path / "t") == [(1, 300), (2, 300)]


def test_tags_are_those_of_the_lines_of_a_pool_with_owner_tags(tmp_path: Path) -> None:
    pool = Pool("16MiB", source="address-space", owner_tags=True)
    with pool.record(tmp_path / "t"):
        pool.malloc(10)
        pool.malloc(20)
    with np.load(tmp_path / "t") as columns:
        texts = json.loads(bytes(columns["tags"]))
        tags = [texts[tag] for tag in columns["tag"]]
    assert len(set(tags)) == 2
    assert all("test_recording.py:" in tag for tag in tags)


def test_a_ring_has_the_last_events_and_tells_how_many_it_dropped(tmp_path: Path) -> None:
    pool = Pool("1GiB", source="address-space")
    recording = pool.record(events=100)
    done = work(pool, 1000)
    (columns,) = recording.columns()
    kept = list(zip(columns.op, columns.size, strict=True))[columns.origin.blocks_at_start :]
    assert kept == done[-100:]
    assert recording.lost == 900
    assert columns.origin.missing[-1] == "900 events were dropped, as the buffer of the recording was full"
    recording.dump(tmp_path / "t")
    assert read_trace(tmp_path / "t").origin == columns.origin
    recording.stop()
    pool.malloc(1)
    assert recording.lost == 900


def test_all_pools_of_the_process_are_recorded_and_those_made_later(tmp_path: Path) -> None:
    with Pool("1GiB", source="address-space", name="early") as early, record(tmp_path / "t.npz"):
        with Pool("1GiB", source="address-space", name="late") as late:
            done = work(early, 200, 1), work(late, 300, 2)
        del late
    # Earlier tests may have left pools to the collector.
    everything = read_traces(tmp_path / "t.npz")
    traces = {trace.origin.device: trace for trace in everything}
    assert [traces[name].program.events for name in ("early", "late")] == list(map(len, done))
    assert traces["late"].title == f"{tmp_path}/t.npz (late)"
    # Readers of the plain columns get one program.
    with np.load(tmp_path / "t.npz") as columns:
        assert len(columns["op"]) == sum(trace.program.events for trace in everything)


def test_threads_are_told_apart(tmp_path: Path) -> None:
    pool = Pool("1GiB", source="address-space")
    with pool.record(tmp_path / "t"):
        threads = [threading.Thread(target=work, args=(pool, 500, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert read_trace(tmp_path / "t").program.events == 2000
    with np.load(tmp_path / "t") as columns:
        assert np.unique(columns["thread"], return_counts=True)[1].tolist() == [500] * 4


KILLED = """
import os, signal, time
from allotment import Pool
pool = Pool("1GiB", source="address-space")
recording = pool.record({path!r})
for step in range(1000):
    pool.malloc(step + 1)
while os.path.getsize({path!r}) < 40_000:
    time.sleep(0.01)
print("written", flush=True)
time.sleep(60)
"""


def test_the_file_of_a_killed_process_is_readable_wherever_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    program = KILLED.format(path=str(path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()
    trace = read_trace(path)
    assert trace.program.peak_live == sum(range(1, 1001))
    assert trace.origin.missing == (
        "the recording was not ended: the process was killed, or still runs; events of its last 0.05 s may be missing",
    )
    content = path.read_bytes()
    for length in range(19, len(content), 997):
        path.write_bytes(content[:length])
        assert read_trace(path).program.events <= 1000
    path.write_bytes(content[:19] + b"\x05\0\0\0nojs!" + content[30:])
    with pytest.raises(TraceError, match="byte 19: a block of events is damaged"):
        read_trace(path)


@pytest.mark.parametrize("end", ["", "raise RuntimeError", "import sys; sys.exit(3)"])
def test_a_recording_that_nobody_ends_is_whole_when_the_interpreter_exits(tmp_path: Path, end: str) -> None:
    path = tmp_path / "t.npz"
    program = f'from allotment import Pool\nkept = Pool("1MiB").record({str(path)!r})\n'
    program += f'pool = Pool("1MiB")\nother = pool.record({str(path) + "2"!r})\npool.malloc(5)\n{end}'
    subprocess.run(
        [sys.executable, "-c", program], timeout=DEADLINE_SECONDS, check=False, capture_output=True
    )
    assert events(path) == []
    assert events(Path(f"{path}2")) == [(1, 5)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_the_file_to_its_parent(tmp_path: Path) -> None:
    program = f"""
import os
import warnings
from allotment import Pool
warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside the thread of the recording
pool = Pool("1MiB", source="address-space")
recording = pool.record({str(tmp_path / "t")!r})
pool.malloc(5)
if child := os.fork():
    os.waitpid(child, 0)
    pool.malloc(6)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=DEADLINE_SECONDS, check=False, capture_output=True
    )
    assert done.stderr == b""
    assert events(tmp_path / "t") == [(1, 5), (1, 6)]


def test_a_file_that_cannot_be_written_is_an_error_and_nothing_is_recorded(tmp_path: Path) -> None:
    pool = Pool("1MiB")
    with pytest.raises(FileNotFoundError):
        pool.record(tmp_path / "none" / "t")
    with pytest.raises(ValueError, match="events must be from 1 to"):
        pool.record(events=0)
    with pytest.raises(ValueError, match="on_oom is of a ring"):
        pool.record(tmp_path / "t", on_oom=tmp_path / "o")
    with pool.record(tmp_path / "t") as recording, pytest.raises(ValueError, match="stop the recording"):
        recording.columns()


# --- writing traces


def test_a_written_trace_is_read_as_it_was_given(tmp_path: Path) -> None:
    write_trace(
        tmp_path / "t", [1, 1, 2], [7, 8, 7], [10, 20, 10], t_ns=[0, 1, 2], name="mine", header={"seed": 3}
    )
    trace = read_trace(tmp_path / "t")
    assert (trace.name, trace.program.events, trace.program.peak_live) == ("mine", 3, 30)
    write_trace(tmp_path / "t", [], [], [])
    assert read_trace(tmp_path / "t").program.events == 0
    for columns, said in [
        (([2], [1], [5]), "event 0: id 1 is freed but was never allocated"),
        (([1], [1, 2], [5]), "the columns differ in length"),
    ]:
        with pytest.raises(ValueError, match=said):
            write_trace(tmp_path / "t", *columns)
    with pytest.raises(ValueError, match="column t_ns has shape"):
        write_trace(tmp_path / "t", [1], [1], [5], t_ns=[1, 2])
    assert read_trace(tmp_path / "t").program.events == 0


# --- the command


def test_the_command_records_a_program_and_ends_as_it_does(tmp_path: Path) -> None:
    program = 'from allotment import Pool\npool = Pool("1MiB", source="address-space")\n'
    program += "pool.malloc(5)\nraise SystemExit({})"
    for status in (0, 7):
        done = run_allotment(
            "record",
            "-o",
            tmp_path / "t.npz",
            "--",
            sys.executable,
            "-c",
            program.format(status),
            cwd=tmp_path,
        )
        assert done.returncode == status
        assert events(tmp_path / "t.npz") == [(1, 5)]
    done = run_allotment("record", "-o", tmp_path / "u.npz", "--", sys.executable, "-c", "pass")
    assert (done.returncode, (tmp_path / "u.npz").exists()) == (0, False)
    assert done.stderr == f"allotment: {tmp_path}/u.npz was not written: the program made no pool\n"
    done = run_allotment("record", "-o", tmp_path / "t.npz", "--", tmp_path / "none")
    assert done.returncode == 2
    assert done.stderr == f"allotment: {tmp_path}/none: cannot be run: No such file or directory\n"
