"""Tables of comma-separated values: lifetimes of blocks, and RMM's log."""

import gzip
import json
from pathlib import Path

import pytest

from allotment.trace import Columns, TraceError, plan, read_columns, read_trace
from support.command import allotment, replay_json


def read(path: Path, text: str) -> Columns:
    (path / "t").write_bytes(text.encode())
    columns = read_columns(path / "t")
    columns.program()
    return columns


def events(columns: Columns) -> list[tuple[int, int]]:
    return list(zip(columns.op, columns.size, strict=True))


def rejected(path: Path, text: str) -> str:
    with pytest.raises(TraceError) as caught:
        read(path, text)
    return str(caught.value).removeprefix(f"{path}/t: ")


LIFETIMES = "id,lower,upper,size\nb1,0,3,100\nb2,3,9,200\nb3,3,5,300\nb4,2,3,400\n"


@pytest.mark.parametrize(
    "text",
    [
        LIFETIMES,
        LIFETIMES.replace("\n", "\r\n"),
        "\ufeff" + LIFETIMES,
        LIFETIMES + "\n\n",
        LIFETIMES.replace("id,lower", "buffer,begin"),
        # A column `end` names the last step of a block, as MiniMalloc's converter has it.
        "size, start, end, buffer_id, offset\n100,0,2,b1,7\n200,3,8,b2,7\n300,3,4,b3,7\n400,2,2,b4,7\n",
    ],
)
def test_lifetimes_become_events_and_frees_come_first(tmp_path: Path, text: str) -> None:
    columns = read(tmp_path, text)
    assert events(columns) == [(1, 100), (1, 400), (2, 100), (2, 400), (1, 200), (1, 300), (2, 300), (2, 200)]
    assert columns.origin.kind == "lifetimes"
    assert columns.program().peak_live == 500


def test_any_kind_may_be_packed_by_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(
        gzip.compress(LIFETIMES[:30].encode()) + gzip.compress(LIFETIMES[30:].encode()) + bytes(512)
    )
    assert read_columns(path).program().peak_live == 500
    packed = path.read_bytes()
    for content, said in [
        (packed[:60], "is a truncated gzip file"),
        (packed[:10] + b"\xff" * 20, "is a damaged gzip file"),
        (gzip.compress(b"nothing"), "is not a trace. A trace is"),
    ]:
        path.write_bytes(content)
        with pytest.raises(TraceError, match=said):
            read_columns(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,lower,upper,size\nb,1,2\n", "line 2: has 3 fields, the first line has 4"),
        ("id,lower,upper,size\nb,1,x,5\n", "line 2: upper 'x' is not an integer"),
        ("id,lower,upper,size\nb,1,2,5\n\nb,3,4,5\n", "line 4: id 'b' occurs in line 2, too"),
        (
            "id,lower,upper,size\nb,2,2,5\n",
            "line 2: the block ends at step 2, which is not after its start 2",
        ),
        ("id,lower,upper,size\nb,1,2,-5\n", "line 2: size -5 is not between 0 and 144115188075855872"),
        (
            "id,lower,upper,size\nb,1,9999999999999999999,5\n",
            "line 2: upper 9999999999999999999 is more than 64 bits with sign can hold",
        ),
        (
            "id,lower,upper,size,size\nb,1,2,5,5\n",
            "line 1: a column occurs twice: id, lower, upper, size, size",
        ),
        ('id,lower,upper,size\n"b,1,2,5\n', "line 2: unexpected end of data"),
        ("id,lower,upper,size\nb,1,2,\xe9\n", "line 2: size 'é' is not an integer"),
    ],
)
def test_a_bad_line_of_lifetimes_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert rejected(tmp_path, text) == said


def test_text_that_is_not_utf_8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"id,lower,upper,size\n\xff,1,2,5\n")
    with pytest.raises(TraceError, match="byte 20: is not UTF-8"):
        read_columns(tmp_path / "t")


#: As RMM's logging resource adaptor writes it: a header, and rows with the pattern "%t,%H:%M:%S.%f".
RMM = """Thread,Time,Action,Pointer,Size,Stream
140202,11:23:45.123456,allocate,0x7f0a00000000,1000,0x0
140202,11:23:45.123457,free,0x7f0a00900000,700,0x0
140203,11:23:45.123458,allocate,0x7f0a00900000,500,0x55d0
140203,11:23:45.123459,allocate,(nil),0,0x55d0
140203,11:23:45.123460,free,(nil),0,0x55d0
140203,11:23:45.123461,allocate failure,(nil),8589934592,0x55d0
140202,11:23:45.123462,free,0x7f0a00000000,1000,0x0
"""


def test_a_log_of_rmm_has_streams_failures_and_blocks_from_before(tmp_path: Path) -> None:
    columns = read(tmp_path, RMM)
    assert events(columns) == [(1, 700), (1, 1000), (2, 700), (1, 500), (2, 1000)]
    assert columns.stream is not None
    assert columns.stream.tolist() == [0, 0, 0, 1, 0]
    assert columns.t_ns is not None
    assert columns.t_ns.tolist() == [0, 0, 1000, 2000, 6000]
    assert columns.thread is not None
    assert columns.thread.tolist() == [0, 0, 0, 1, 0]
    figures = replay_json(tmp_path / "t")
    assert figures["kind"] == "rmm"
    assert (figures["live_at_start"], figures["peak_live"], figures["live_at_end"]) == (700, 1700, 500)
    assert (figures["streams"], figures["incomplete"]) == (2, True)
    (refused,) = figures["out_of_memory"]
    assert refused["event"] == 4
    assert refused["text"] == "line 7: 8 GiB (8589934592 bytes) asked for with 1.46 KiB (1500 bytes) live."
    assert "\nout of memory " in allotment("replay", tmp_path / "t").stdout


@pytest.mark.parametrize("kept", range(1, len("140202,11:23:45.123462,free,0x7f0a00000000,1000,")))
def test_a_log_of_rmm_that_was_cut_off_is_read_up_to_its_last_whole_line(tmp_path: Path, kept: int) -> None:
    whole = RMM.splitlines(keepends=True)
    columns = read(tmp_path, "".join(whole[:-1]) + whole[-1][:kept])
    assert events(columns) == [(1, 700), (1, 1000), (2, 700), (1, 500)]
    assert columns.origin.missing[-1] == (
        "the last line is cut off and was left out: the program was killed, or the log is in use"
    )
    # Without a newline alone, nothing is missing.
    assert read(tmp_path, RMM.rstrip("\n")).origin.missing == read(tmp_path, RMM).origin.missing
    # Another line is not cut off, but wrong.
    assert rejected(tmp_path, RMM + "1,2\n" + whole[1]) == "line 9: has 2 fields, the first line has 6"


def test_times_of_a_log_go_on_after_midnight_and_are_none_if_one_is_not_readable(tmp_path: Path) -> None:
    rows = [
        f"1,{time},allocate,{address:#x},8,0x0"
        for address, time in enumerate(["23:59:59.9", "0:00:01", "00:00:00"], 1)
    ]
    columns = read(tmp_path, "\n".join(["Thread,Time,Action,Pointer,Size,Stream", *rows, ""]))
    assert columns.t_ns is not None
    assert columns.t_ns.tolist() == [0, 1_100_000_000, 100_000_000]
    assert read(tmp_path, RMM.replace("11:23:45.123458", "noon")).t_ns is None


def test_kinds_of_rows_that_are_not_known_are_counted_and_named(tmp_path: Path) -> None:
    origin = read(tmp_path, RMM + "1,2,resize,0x5,6,0x0\n1,2,resize,0x5,6,0x0\n").origin
    assert origin.entries == {"resize": 2}
    assert origin.missing[-1] == "kinds of entries that are not known were left out: resize"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,2,free,0xZZ,6,0", "line 9: Pointer '0xZZ' is not a hexadecimal number"),
        ("1,2,free,0x5,six,0", "line 9: Size 'six' is not an integer"),
        ("1,2,free,0x5,-6,0", "line 9: Size -6 is not between 0 and 144115188075855872"),
    ],
)
def test_a_bad_line_of_a_log_is_named(tmp_path: Path, row: str, said: str) -> None:
    assert rejected(tmp_path, RMM + row + "\n") == said


def test_every_figure_of_an_incomplete_trace_says_so(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Thread,Time,Action,Pointer,Size,Stream\n1,0:00:00,free,0x1000,500,0\n")
    (tmp_path / "whole").write_text(LIFETIMES)
    missing = "1 block of 500 bytes was there before the first event: the peak before it is not known"
    for options in (["--compare", "--seconds", "1"], ["--sweep"]):
        figures = json.loads(allotment("replay", tmp_path / "t", *options, "--json").stdout)
        assert (figures["incomplete"], figures["missing"]) == (True, [missing])
        text = allotment("replay", tmp_path / "t", *options).stdout
        assert "peak live at least 500 B" in text
        assert f"missing: {missing}" in text
        whole = allotment("replay", tmp_path / "whole", *options)
        assert "at least" not in whole.stdout
        assert not json.loads(allotment("replay", tmp_path / "whole", *options, "--json").stdout)[
            "incomplete"
        ]
    comparison = allotment("replay", tmp_path / "t", "--compare", "--seconds", "1").stdout
    assert "times the peak of live bytes of this trace, which is incomplete" in comparison
    planned = json.loads(allotment("plan", tmp_path / "t", "--json").stdout)
    assert (planned["incomplete"], planned["missing"]) == (True, [missing])
    table = allotment("replay", tmp_path / "t", tmp_path / "whole").stdout.splitlines()
    assert [">= 500 B" in line for line in table[1:3]] == [True, False]
    assert table[3].startswith(">=: the trace is incomplete")


def test_an_address_that_is_freed_twice_lacks_an_allocation_and_is_no_block_from_before(
    tmp_path: Path,
) -> None:
    rows = ["allocate,0x100,256", "free,0x100,256", "free,0x100,300", "allocate,0x100,200", "free,0x900,40"]
    columns = read(tmp_path, RMM.splitlines()[0] + "\n" + "".join(f"1,0:00:00,{row},0\n" for row in rows))
    # The block of 40 bytes was there before; that of 300 bytes was not there together with that of 256.
    assert events(columns) == [(1, 40), (1, 256), (2, 256), (1, 300), (2, 300), (1, 200), (2, 40)]
    assert columns.program().peak_live == 340
    assert (columns.origin.live_at_start, columns.origin.live_at_end) == (40, 200)
    assert columns.origin.missing[-1] == "1 allocation is missing between two frees of one address"


def test_gaps_of_blocks_are_refused_and_alignments_that_pools_have_are_taken(tmp_path: Path) -> None:
    head = "id,lower,upper,size,alignment,gaps\n"
    assert rejected(tmp_path, head + "0,0,10,4,,3-5\n1,3,5,4,,\n").startswith(
        "line 2: gaps '3-5': blocks with memory"
    )
    for number in (0, -4, 3, 512):
        said = rejected(tmp_path, head + f"0,0,10,4,1,\n1,3,5,4,{number},\n")
        assert said.startswith(f"line 3: alignment {number}: ")
        assert "powers of two from 1 to 256" in said
    assert rejected(tmp_path, head + "0,0,1,4,x,\n") == "line 2: alignment 'x' is not an integer"
    assert read(tmp_path, head + "0,0,10,4,64,\n1,3,5,4,,\n").program().peak_live == 8
    trace = read_trace(tmp_path / "t")
    with pytest.raises(
        ValueError, match="alignment 32 is below that of a block of the trace: give 64 or more"
    ):
        plan(trace, alignment=32)
    assert plan(trace, alignment=64).arena == 128
    done = allotment("plan", tmp_path / "t", "--alignment", "1")
    assert done.returncode == 2
    assert "give 64 or more" in done.stderr
