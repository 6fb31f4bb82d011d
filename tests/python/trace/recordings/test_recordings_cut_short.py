"""Recordings of programs that end at once, fork, or record nothing: what was written, and what the files say."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import allotment
from allotment import Pool
from allotment.trace import read_trace
from support.command import allotment as run_allotment

#: A program that is refused something and ends at once, without the interpreter's handlers.
REFUSED = """
import allotment, os, signal
pool = allotment.Pool("8MiB", source="address-space")
pool.malloc(1000)
try:
    {request}
except MemoryError:
    pass
{end}
"""

#: How a program ends, and its status as the command returns it.
ENDS = {
    "os._exit(5)": 5,
    "os.kill(os.getpid(), signal.SIGKILL)": 128 + signal.SIGKILL,
    "os.abort()": 128 + signal.SIGABRT,
}

REQUESTS = {
    "pool.malloc": "pool.malloc(20 << 20)",
    "pool.allocate": "pool.allocate(20 << 20)",
    # NumPy calls without an exception on the way.
    "numpy": (
        "import allotment.integrations.numpy as memory, numpy\n"
        "    with memory.use(allotment.Pool('8MiB')): numpy.ones(20 << 17)"
    ),
}


def record(*arguments: str | Path, cwd: Path) -> tuple[int, str]:
    done = run_allotment("record", *arguments, cwd=cwd)
    return done.returncode, done.stderr


def python(program: str) -> tuple[str, str, str, str]:
    return "--", sys.executable, "-c", program


@pytest.mark.parametrize("last", [(), ("--last", "100")], ids=["all", "last"])
@pytest.mark.parametrize("end", ENDS)
def test_a_refusal_is_written_before_the_program_learns_of_it(
    tmp_path: Path, last: tuple[str, ...], end: str
) -> None:
    program = REFUSED.format(request="pool.malloc(20 << 20)", end=end)
    status, _ = record(*last, *python(program), cwd=tmp_path)
    assert status == ENDS[end]
    trace = read_trace(tmp_path / "allotment.npz")
    assert trace.program.peak_live == 1000
    assert [(one.event, one.requested, one.live) for one in trace.origin.refusals] == [(1, 20 << 20, 1000)]
    # A ring has all that it shall have; after other events more may have come.
    assert ("events of its last 0.05 s may be missing" in "".join(trace.origin.missing)) == (not last)


@pytest.mark.parametrize("request_of", REQUESTS)
def test_refusals_of_every_caller_are_written(tmp_path: Path, request_of: str) -> None:
    program = REFUSED.format(request=REQUESTS[request_of], end="os._exit(0)")
    record("--last", "100", *python(program), cwd=tmp_path)
    from allotment.trace import read_traces

    refusals = [one for trace in read_traces(tmp_path / "allotment.npz") for one in trace.origin.refusals]
    assert len(refusals) == 1
    assert refusals[0].requested >= 20 << 20


def test_the_last_refusal_is_written_soon_where_there_are_many(tmp_path: Path) -> None:
    pool = Pool("1MiB", growth=False, source="address-space")
    with pool.record(events=1000, on_oom=tmp_path / "oom") as recording:
        for size in range(200):
            with pytest.raises(allotment.OutOfMemoryError):
                pool.malloc((2 << 20) + size)
        written = read_trace(tmp_path / "oom").origin.refusals
        assert written[0].requested == 2 << 20
        recording._log.flush()
        assert len(read_trace(tmp_path / "oom").origin.refusals) == 200
    # The end makes it an archive.
    with np.load(tmp_path / "oom") as columns:
        assert columns["refused_size"].tolist() == [(2 << 20) + size for size in range(200)]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_refusal_that_cannot_be_written_is_an_error_at_the_end(tmp_path: Path) -> None:
    pool = Pool("1MiB", growth=False, source="address-space")
    (tmp_path / "folder").mkdir()
    recording = pool.record(on_oom=tmp_path / "folder" / "oom")
    (tmp_path / "folder").chmod(0o500)
    with pytest.raises(allotment.OutOfMemoryError):
        pool.malloc(2 << 20)
    with pytest.raises(PermissionError, match="Permission denied"):
        recording.stop()


def test_a_refusal_into_a_folder_that_is_gone_is_an_error_at_the_end(tmp_path: Path) -> None:
    pool = Pool("1MiB", growth=False, source="address-space")
    (tmp_path / "none").mkdir()
    recording = pool.record(on_oom=tmp_path / "none" / "oom")
    (tmp_path / "none").rmdir()
    with pytest.raises(allotment.OutOfMemoryError):
        pool.malloc(2 << 20)
    with pytest.raises(FileNotFoundError, match="No such file or directory") as caught:
        recording.stop()
    assert caught.value.filename == str(tmp_path / "none" / "oom")


FORKS = {
    "fork": "if os.fork() == 0: child()\nelse: os.wait()",
    "multiprocessing": (
        "import multiprocessing\n"
        "process = multiprocessing.get_context('fork').Process(target=child)\n"
        "process.start()\nprocess.join()"
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("last", [(), ("--last", "100")], ids=["all", "last"])
@pytest.mark.parametrize("kind", FORKS)
def test_a_forked_child_has_a_file_of_its_own(tmp_path: Path, last: tuple[str, ...], kind: str) -> None:
    program = (
        "import os, warnings\nfrom allotment import Pool\n"
        # A fork beside the thread of the recording.
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "pool = Pool('1MiB', source='address-space', name='parent')\npool.malloc(5)\n"
        "def child():\n"
        "    own = Pool('1MiB', source='address-space', name='child')\n"
        "    own.malloc(7)\n"
        f"{FORKS[kind]}\n"
    )
    assert record("-o", "t.npz", *last, *python(program), cwd=tmp_path) == (0, "")
    first, other = sorted(tmp_path.iterdir())
    assert first.name == "t.npz"
    assert other.name.removeprefix("t.npz.").isdecimal()
    for path, name, size in [(first, "parent", 5), (other, "child", 7)]:
        trace = read_trace(path)
        assert (trace.name, trace.program.peak_live, trace.origin.missing) == (name, size, ())


EARLIER = "the file that was there is kept"


@pytest.mark.parametrize("last", [(), ("--last", "100")], ids=["all", "last"])
def test_an_earlier_recording_stays_until_there_is_a_new_one(tmp_path: Path, last: tuple[str, ...]) -> None:
    path = tmp_path / "t.npz"
    record("-o", "t.npz", *python(REFUSED.format(request="pass", end="")), cwd=tmp_path)
    before = path.read_bytes()
    nothing = f"allotment: {path} was not written: the program made no pool; {EARLIER}\n"
    for command, status, said in [
        (("--", "./nope"), 2, "allotment: ./nope: cannot be run: No such file or directory\n"),
        (("--", "false"), 1, nothing),
        (python("pass"), 0, nothing),
    ]:
        assert record("-o", "t.npz", *last, *command, cwd=tmp_path) == (status, said)
        assert [one.name for one in tmp_path.iterdir()] == ["t.npz"]
        assert path.read_bytes() == before
    program = REFUSED.format(request="assert open('t.npz', 'rb').read(2) == b'PK'", end="pool.malloc(50)")
    assert record("-o", "t.npz", *last, *python(program), cwd=tmp_path) == (0, "")
    assert [one.name for one in tmp_path.iterdir()] == ["t.npz"]
    assert read_trace(path).program.peak_live == 1050


def test_a_recording_that_goes_on_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(b"earlier")
    program = (
        "import os, time\nfrom allotment import Pool\nreading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n    pool = Pool('1MiB', source='address-space')\n    pool.malloc(7)\n"
        "    os.write(writing, b'x')\n    [os.close(one) for one in (0, 1, 2)]\n"
        "    while not os.path.exists('go'): time.sleep(0.01)\n"
        "else: os.read(reading, 1); os._exit(0)"
    )
    status, said = record("-o", "t.npz", *python(program), cwd=tmp_path)
    assert status == 0
    assert said.startswith(f"allotment: {path}.new: process ")
    assert said.endswith(" still runs and goes on recording; the file is readable\n")
    assert path.read_bytes() == b"earlier"
    (tmp_path / "go").touch()
    pid = int(said.split("process ")[1].split()[0])
    while os.path.exists(f"/proc/{pid}/exe"):
        pass
    assert read_trace(f"{path}.new").origin.missing == ()
