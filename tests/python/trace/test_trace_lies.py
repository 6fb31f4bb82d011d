"""Trace files that lie about the sizes in them: no hang, and no memory filled."""

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from test_trace import rejected

from allotment.trace import read_trace
from allotment.trace.formats import npz
from support.traces.trace_files import SMALL, columns, write_trace
from support.traces.zip_files import (
    FLAGS,
    METHOD,
    SIZE,
    head,
    npy,
    npy_with_head,
    patch_directory,
    write_members,
)

COLUMNS = ["op", "id", "size"]


@pytest.mark.parametrize(
    "shape",
    ["(7,)", "(5,)", "(1000000000000,)", f"({2**62},)", f"({2**80},)", "(-6,)", "(0,)", "(6, 10**9)"],
)
def test_a_head_that_claims_another_shape(tmp_path: Path, shape: str) -> None:
    body = columns(SMALL)["size"].tobytes()
    path = write_members(tmp_path / "t.npz", size=npy_with_head(head(shape), body))
    assert rejected(path).startswith("column size: ")


@pytest.mark.parametrize(
    "content",
    [
        npy_with_head("(" * 9000),
        npy_with_head("-" * 9000 + "1"),
        npy_with_head("no dict"),
        npy_with_head("{}"),
        npy_with_head(head("(6,)", "no such type"), bytes(48)),
        npy_with_head(head("(6.5,)"), bytes(52)),
        npy_with_head(head("'six'"), bytes(48)),
        npy_with_head(head("(6,)"), bytes(48), (3, 0)),
        npy_with_head(head("(6,)"), bytes(48), (9, 9)),
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b" " * 100_000,
        b"not an array at all, and longer than its head",
        b"\x80\x04N.",
    ],
)
def test_a_head_that_is_none(tmp_path: Path, content: bytes) -> None:
    text = rejected(write_members(tmp_path / "t.npz", id=content))
    assert text.startswith("column id: is damaged or truncated: ")
    assert len(text) < 300


@pytest.mark.parametrize("claimed", [0, 1, 175, 177, 1 << 20, 1 << 31, 0xFFFFFFFE])
def test_a_directory_that_claims_another_size(tmp_path: Path, claimed: int) -> None:
    path = write_members(tmp_path / "t.npz")
    patch_directory(path, "size", SIZE, struct.pack("<I", claimed))
    assert rejected(path).startswith("column size: ")


def test_all_columns_that_claim_more_events_than_there_are(tmp_path: Path) -> None:
    events = 50_000_000
    lies = {name: npy_with_head(head(f"({events},)"), bytes(48)) for name in COLUMNS}
    path = write_members(tmp_path / "t.npz", **lies)
    for name in COLUMNS:
        patch_directory(path, name, SIZE, struct.pack("<I", len(lies[name]) - 48 + 8 * events))
    assert peak_bytes(lambda: rejected(path)) < 8 << 20
    assert rejected(path).startswith("column op: is damaged or truncated: ")


def test_a_member_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    """256 MiB of zeros in 256 KiB."""
    whole = npy(columns(SMALL)["size"])
    bomb = whole + bytes(256 << 20)
    path = write_members(tmp_path / "t.npz", size=bomb)
    del bomb
    assert peak_bytes(lambda: rejected(path)) < 8 << 20
    patch_directory(path, "size", SIZE, struct.pack("<I", len(whole)))
    assert peak_bytes(lambda: rejected(path)) < 8 << 20
    assert rejected(path).startswith("column size: is damaged or truncated: ")


def test_a_head_that_goes_on_and_on(tmp_path: Path) -> None:
    """256 MiB of blanks in 256 KiB, in a head that says it has 4 GiB."""
    bomb = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b" " * (256 << 20)
    path = write_members(tmp_path / "t.npz", size=bomb)
    del bomb
    assert peak_bytes(lambda: rejected(path)) < 8 << 20


def test_more_events_than_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_trace(tmp_path / "t.npz")
    monkeypatch.setattr(npz, "MAX_EVENTS", 6)
    read_trace(path)
    monkeypatch.setattr(npz, "MAX_EVENTS", 5)
    assert rejected(path) == "has 6 events; at most 5 are read"


def test_columns_that_agree_on_being_too_long_cost_nothing(tmp_path: Path) -> None:
    events = npz.MAX_EVENTS + 1
    lies = {name: npy_with_head(head(f"({events},)", "|i1")) for name in COLUMNS}
    path = write_members(tmp_path / "t.npz", **lies)
    for name in COLUMNS:
        patch_directory(path, name, SIZE, struct.pack("<I", len(lies[name]) + events))
    assert peak_bytes(lambda: rejected(path)) < 8 << 20
    assert rejected(path) == f"has {events} events; at most {npz.MAX_EVENTS} are read"


def test_a_locked_member_and_an_unknown_packing(tmp_path: Path) -> None:
    path = write_members(tmp_path / "t.npz")
    content = path.read_bytes()
    patch_directory(path, "id", FLAGS, b"\x01\x00")
    assert rejected(path).startswith("column id: is damaged or truncated: ")
    path.write_bytes(content)
    patch_directory(path, "id", METHOD, b"\x63\x00")
    assert rejected(path).startswith("column id: is damaged or truncated: ")


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
