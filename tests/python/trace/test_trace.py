"""Reading traces: what is accepted, and what each fault says."""

import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment._core import Plan, Program, plan, replay, replay_caching
from allotment.trace import Trace, TraceError, read_columns, read_trace
from support.child import run_program
from support.traces.trace_files import GNN, RECORDED, SMALL, columns, read_events, write_trace
from support.traces.zip_files import head, npy_with_head, write_members

INTEGERS = ["i1", "i2", "<i4", ">i4", "<i8", ">i8", "u1", "u2", "<u4", ">u4", "<u8", ">u8"]


def rejected(path: Path | str) -> str:
    """Read what must not be readable; return what is said about it, less the file."""
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    text = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in text
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


def facts(trace: Trace) -> tuple[int, int]:
    return trace.program.events, trace.program.peak_live


# --- what is read


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.npz")), ids=lambda path: path.stem)
def test_recorded_traces_are_read_as_their_recorder_counted_them(path: Path) -> None:
    with np.load(path, allow_pickle=False) as arrays:
        header = json.loads(str(arrays["header"]))
    trace = read_trace(path)
    assert trace.path == str(path)
    assert trace.name == header["name"] == path.stem
    assert facts(trace) == (header["events"], header["peak_live_bytes"])


def test_columns_are_those_of_the_file() -> None:
    read = read_columns(GNN)
    assert read.op.format == read.id.format == read.size.format == "q"
    assert list(zip(read.op.tolist(), read.id.tolist(), read.size.tolist(), strict=True)) == read_events(GNN)


def test_a_program_may_be_stopped_early(tmp_path: Path) -> None:
    read = read_columns(write_trace(tmp_path / "t"))
    assert [read.program(events).peak_live for events in range(7)] == [0, 100, 5100, 5100, 5100, 5100, 5100]
    assert read.program(2).events == 2


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("column", ["op", "id", "size"])
def test_any_integers_do(tmp_path: Path, column: str, dtype: str) -> None:
    events = [(1, 1, 100), (1, 2, 27), (2, 1, 100)]
    path = write_trace(tmp_path / "t.npz", events, **{column: columns(events)[column].astype(dtype)})
    assert facts(read_trace(path)) == (3, 127)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_of_any_type_are_read_exactly(tmp_path: Path, dtype: str) -> None:
    limits = np.iinfo(dtype)
    most = min(int(limits.max), 2**63 - 1)
    ids = [int(limits.min), most, 1, 100, most // 3, int(limits.min) // 3]
    path = write_trace(tmp_path / "t.npz", id=np.array(ids, dtype))
    assert read_columns(path).id.tolist() == ids


@pytest.mark.parametrize("name", ["trace.npz", "trace.txt", "trace", "trace.npy", "träce [x].csv", "a\nb"])
def test_the_kind_is_told_from_the_content(tmp_path: Path, name: str) -> None:
    assert facts(read_trace(write_trace(tmp_path / name))) == (6, 5100)


def test_a_path_may_be_text_or_path_and_stays_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path / "t.npz")
    monkeypatch.chdir(tmp_path)
    assert read_trace("./t.npz").path == "./t.npz"
    assert read_trace(Path("t.npz")).path == "t.npz"


def test_columns_may_be_stored_unpacked(tmp_path: Path) -> None:
    with (tmp_path / "t").open("wb") as file:
        np.savez(file, **columns(SMALL))
    assert facts(read_trace(tmp_path / "t")) == (6, 5100)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (None, None),
        (np.array("{}"), None),
        (np.array('{"name": null, "seed": 3}'), None),
        (np.array('{"name": "näme"}'), "näme"),
        (np.array('{"name": ""}'), ""),
        (np.array(b'{"name": "bytes"}'), "bytes"),
        (np.array('{"name": "other order, ä"}').astype(">U30"), "other order, ä"),
        (np.array('{"name": "\\ud800"}'), "\ud800"),
    ],
)
def test_the_header_is_optional_and_so_is_its_name(tmp_path: Path, header: Any, name: str | None) -> None:
    assert read_trace(write_trace(tmp_path / "t", header=header)).name == name


def test_other_columns_are_ignored_whatever_they_are(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path / "t",
        t_ns=np.arange(3),
        thread=np.array([[1.5]]),
        stack=np.array([{"a": 1}, None], dtype=object),
    )
    assert facts(read_trace(path)) == (6, 5100)
    assert facts(read_trace(write_members(tmp_path / "u", junk=b"no array at all"))) == (6, 5100)


def test_a_program_without_events_is_a_program(tmp_path: Path) -> None:
    assert facts(read_trace(write_trace(tmp_path / "t", []))) == (0, 0)


@pytest.mark.parametrize("start", range(8))
def test_columns_without_numbers_may_be_at_any_address(start: int) -> None:
    # Python's empty array, bytes and bytearray are wherever its compiler has put them.
    empty = np.frombuffer(bytearray(16), np.int64, count=0, offset=start)
    program = Program(empty, empty, empty)
    assert (program.events, program.peak_live) == (0, 0)
    assert replay(program, limit=1 << 20, offsets=empty).refused == 0
    assert replay_caching(program, limit=1 << 20, stream=empty).refused == 0
    assert Plan(empty, empty, empty, empty).packed() == plan(program).packed()


@pytest.mark.parametrize("empty", [b"", np.zeros(0), np.zeros(0, np.int32), [], None])
def test_columns_of_something_else_are_an_error_without_numbers_too(empty: Any) -> None:
    with pytest.raises((BufferError, TypeError)):
        Program(empty, empty, empty)


def test_a_name_of_a_block_may_be_used_again(tmp_path: Path) -> None:
    events = [(1, -5, 10), (2, -5, 10), (1, -5, 30), (2, -5, 30)]
    assert facts(read_trace(write_trace(tmp_path / "t", events))) == (4, 30)


def test_what_python_2_wrote_is_read_without_a_warning(tmp_path: Path) -> None:
    body = columns(SMALL)["size"].tobytes()
    path = write_members(tmp_path / "t", size=npy_with_head(head("(6L,)"), body))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert facts(read_trace(path)) == (6, 5100)


def test_an_array_of_version_2_is_read(tmp_path: Path) -> None:
    body = columns(SMALL)["size"].tobytes()
    path = write_members(tmp_path / "t", size=npy_with_head(head("(6,)"), body, (2, 0)))
    assert facts(read_trace(path)) == (6, 5100)


# --- files that cannot be read


def test_what_is_not_there(tmp_path: Path) -> None:
    assert rejected(tmp_path / "none.npz") == "cannot be read: No such file or directory"
    assert rejected("") == "cannot be read: No such file or directory"
    (tmp_path / "dangling").symlink_to(tmp_path / "none.npz")
    assert rejected(tmp_path / "dangling") == "cannot be read: No such file or directory"
    write_trace(tmp_path / "t.npz")
    assert rejected(tmp_path / "t.npz" / "below") == "cannot be read: Not a directory"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert rejected(tmp_path / "loop") == "cannot be read: Too many levels of symbolic links"
    assert rejected(tmp_path / ("x" * 300)) == "cannot be read: File name too long"
    with pytest.raises(TraceError, match=r"^a\\x00b: cannot be read: (open: )?embedded null"):
        read_trace("a\0b")


def test_folders_pipes_and_devices(tmp_path: Path) -> None:
    assert rejected(tmp_path) == "is a folder"
    os.mkfifo(tmp_path / "pipe")
    assert rejected(tmp_path / "pipe") == "is not a regular file"
    assert rejected("/dev/null") == "is not a regular file"
    assert rejected("/dev/zero") == "is not a regular file"


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o100])
def test_what_may_not_be_read(mode: int) -> None:
    # Not in pytest's folder: only its owner may look into that.
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        path = write_trace(folder / "t.npz")
        path.chmod(mode)
        done = run_program(
            f"""
            import os
            from allotment.trace import TraceError, read_trace
            if os.geteuid() == 0:
                os.seteuid(65534)  # root may read everything
            else:
                assert {mode:#o} & 0o400 == 0
            try:
                read_trace({str(path)!r})
            except TraceError as error:
                print(error)
            """
        )
        assert (done.stdout, done.stderr) == (f"{path}: cannot be read: Permission denied\n", "")
    finally:
        shutil.rmtree(folder)


def test_a_name_that_does_not_print_stays_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(tmp_path / "a\nb\x1b[31m\udcff")
    assert str(caught.value).startswith(f"{tmp_path}/a\\nb\\x1b[31m\\udcff: ")


# --- programs that make no sense

BIG = 1 << 57

SENSELESS: dict[str, tuple[list[tuple[int, int, int]], str]] = {
    "negative size": ([(1, 1, -1)], "event 0: size -1 "),
    "most negative size": ([(1, 1, 5), (1, 2, -(2**63))], "event 1: size -9223372036854775808 "),
    "negative size of a free": ([(1, 1, 5), (2, 1, -5)], "event 1: size -5 "),
    "size beyond all machines": ([(1, 1, BIG + 1)], f"event 0: size {BIG + 1} "),
    "largest number as size": ([(1, 1, 2**63 - 1)], "event 0: size 9223372036854775807 "),
    "sizes that add up to too much": ([(1, i, BIG) for i in range(64)], "event 63: more than "),
    "op 0": ([(0, 1, 5)], "event 0: op 0 is neither 1 "),
    "op 3": ([(1, 1, 5), (2, 1, 5), (3, 1, 5)], "event 2: op 3 is neither 1 "),
    "op -1": ([(1, 1, 5), (-1, 1, 5)], "event 1: op -1 is neither 1 "),
    "free without allocation": ([(2, 7, 5)], "event 0: id 7 is freed but was never allocated"),
    "free before allocation": ([(1, 1, 5), (2, 2, 5), (1, 2, 5)], "event 1: id 2 is freed but was never"),
    "double free": ([(1, 1, 5), (2, 1, 5), (2, 1, 5)], "event 2: id 1 is freed twice"),
    "double free, later": ([(1, -9, 5), (2, -9, 5), (1, 2, 5), (2, -9, 5)], "event 3: id -9 is freed twice"),
    "double allocation": ([(1, 1, 5), (1, 1, 5)], "event 1: id 1 is allocated again before it is freed"),
    "free of another size": (
        [(1, 1, 5), (2, 1, 6)],
        "event 1: id 1 is freed with size 6, but was allocated with 5",
    ),
}


@pytest.mark.parametrize("case", SENSELESS)
def test_a_program_that_makes_no_sense(tmp_path: Path, case: str) -> None:
    events, expected = SENSELESS[case]
    assert rejected(
        write_trace(tmp_path / "t.npz", events, op=np.array([op for op, _, _ in events]))
    ).startswith(expected)


def test_a_live_total_that_just_fits_is_a_program(tmp_path: Path) -> None:
    events = [(1, i, BIG) for i in range(63)]
    assert facts(read_trace(write_trace(tmp_path / "t.npz", events))) == (63, 63 * BIG)


@pytest.mark.parametrize("column", ["op", "id", "size"])
def test_a_number_that_does_not_fit_64_bits_with_sign(tmp_path: Path, column: str) -> None:
    numbers = columns(SMALL)[column].astype(np.uint64)
    numbers[4] = 2**63
    numbers[5] = 2**64 - 1
    text = rejected(write_trace(tmp_path / "t.npz", **{column: numbers}))
    assert text.startswith(f"column {column}: event 4: 9223372036854775808 ")
