"""Files of recordings that cannot be written: refused at the start, or cut short by a full disk."""

import os
import sys
from pathlib import Path

import pytest

from allotment import Pool
from allotment.trace import read_trace, record
from support.command import allotment

#: The most bytes of a file of the programs below, which stands for a full disk, and the events that they record: each
#: has 40 bytes.
LIMIT, EVENTS = 1_000_000, 120_000

#: Ends its recording by itself, or leaves that to the interpreter's end.
FULL = f"""
import resource, time
import allotment
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
pool = allotment.Pool("8MiB", source="address-space")
"""
WORK = f"for _ in range({EVENTS // 2}): pool.free(pool.malloc(1000))\n"


def python(program: str) -> tuple[str, str, str, str]:
    return "--", sys.executable, "-c", program


def test_a_recording_that_fills_the_disk_says_so_and_names_its_file(tmp_path: Path) -> None:
    path, other = tmp_path / "t.npz", tmp_path / "other.npz"
    program = f"""{FULL}
recording = pool.record({str(path)!r})
{WORK}
try: recording.stop()
except OSError as error: print(error.errno, error.filename == {str(path)!r}, recording.lost)
# A recording that cannot be written at the interpreter's end is no reason to leave out others.
small, left = allotment.Pool("1MiB", source="address-space"), pool.record({str(path)!r})
recordings = [small.record({str(other)!r})]
small.malloc(100)
{WORK}
"""
    done = allotment("record", "-o", tmp_path / "unused.npz", *python(program))
    number, is_named, lost = done.stdout.split()
    assert (int(number), is_named) == (27, "True")  # EFBIG
    assert 0 < int(lost) < EVENTS
    assert f"allotment: {path}: was not written in full: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    trace = read_trace(path)
    assert trace.origin.missing[-1] == (
        "its file could not be written any further: File too large; the events from then on are missing"
    )
    assert 0 < trace.program.events <= LIMIT // 40
    assert read_trace(other).program.peak_live == 100


def test_the_events_of_a_full_disk_and_the_lost_ones_are_all(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    program = f"""{FULL}
recording = pool.record({str(path)!r})
{WORK}
try: recording.stop()
except OSError: print(recording.lost)
"""
    done = allotment("record", "-o", tmp_path / "unused.npz", *python(program))
    events = read_trace(path).program.events
    # Once the thread that writes has failed, the pool is not recorded any more.
    assert LIMIT // 40 - 100 < events < events + int(done.stdout) <= EVENTS


@pytest.mark.parametrize(("status", "result"), [(0, 2), (7, 7)])
def test_the_command_names_a_trace_that_was_cut_short(tmp_path: Path, status: int, result: int) -> None:
    program = f"{FULL}{WORK}raise SystemExit({status})"
    done = allotment("record", "-o", tmp_path / "t.npz", *python(program))
    assert done.returncode == result
    line = done.stderr.splitlines()[-1]
    assert line.startswith(
        f"allotment: {tmp_path}/t.npz: its file could not be written any further: File too"
    )
    assert read_trace(tmp_path / "t.npz").origin.incomplete


def test_two_recordings_at_a_time_write_two_files(tmp_path: Path) -> None:
    pools = [Pool("1MiB", source="address-space") for _ in range(2)]
    (tmp_path / "link").symlink_to("t")
    with pools[0].record(tmp_path / "t"):
        pools[0].malloc(100)
        for path in (tmp_path / "t", tmp_path / "link", os.path.relpath(tmp_path / "t")):
            with pytest.raises(ValueError, match="another recording of this process writes this file"):
                pools[1].record(path)
            with pytest.raises(ValueError, match="another recording of this process writes this file"):
                record(on_oom=path)
    assert read_trace(tmp_path / "t").program.peak_live == 100
    # After its end the file may be replaced.
    with pools[1].record(tmp_path / "t"):
        pools[1].malloc(200)
    assert read_trace(tmp_path / "t").program.peak_live == 200


@pytest.mark.parametrize("option", ["file", "on_oom"])
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("none/t", FileNotFoundError),
        ("file/t", NotADirectoryError),
        ("folder", IsADirectoryError),
        ("/dev/full", OSError),
    ],
)
def test_a_file_that_cannot_be_made_is_an_error_at_the_start(
    tmp_path: Path, option: str, path: str, error: type[OSError]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    pool, target = Pool("1MiB", source="address-space"), str(tmp_path / path)
    for begin in (pool.record, record):
        with pytest.raises(error) as caught:
            begin(target) if option == "file" else begin(on_oom=target)
        assert caught.value.filename == target
    # Nothing is recorded, and the right file is taken.
    with pool.record(tmp_path / "t"):
        pool.malloc(1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder", "t"]


@pytest.mark.parametrize("path", ["/dev/full", "folder"])
def test_the_variable_names_a_regular_file(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("ALLOTMENT_RECORD", str(tmp_path / path))
    program = """
import allotment
try: allotment.Pool("1MiB")
except OSError as error: print(error)
"""
    from support.child import run_program

    done = run_program(program)
    assert "not the path of a regular file, which ALLOTMENT_RECORD must be" in done.stdout
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("number", [-1, 0, (1 << 30) + 1, 1 << 70])
def test_a_number_of_events_that_is_out_of_range_is_named(number: int) -> None:
    pool = Pool("1MiB", source="address-space")
    for begin in (pool.record, record):
        with pytest.raises(ValueError, match=rf"events must be from 1 to 1073741824, not {number}$"):
            begin(events=number)
    with pytest.raises(ValueError, match=rf"events must be from 1 to 1073741824, not {number}$"):
        Pool("1MiB", source="address-space", record_events=number)
    with pytest.raises(ValueError, match="stacks must be from 0 to 64, not -1"):
        pool.record(stacks=-1)
    with pytest.raises(TypeError, match="'str'"):
        pool.record(events="many")  # type: ignore[arg-type]
