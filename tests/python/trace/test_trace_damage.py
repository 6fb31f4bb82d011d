"""Trace files that are damaged, cut, or lie about their content: one line each, no hang, no memory filled."""

import gzip
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_trace import rejected

from allotment.trace import TraceError, read_columns, read_trace
from support.traces.trace_files import GNN, SMALL, columns, write_trace
from support.traces.zip_files import (
    head,
    member_span,
    npy,
    npy_with_head,
    write_members,
)

COLUMNS = ["op", "id", "size"]


# --- not a zip file, or not a whole one


@pytest.mark.parametrize(
    "content",
    [
        b"P",
        b"PK",
        b"PK\x03",
        b"a 1 100\nf 1\n",
        npy(np.arange(6)),
        gzip.compress(GNN.read_bytes()[:1000]),
        b"\x7fELF" + bytes(100),
        bytes(1000),
        b"#!/bin/sh\n" + GNN.read_bytes(),
    ],
)
def test_another_kind_of_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.npz").write_bytes(content)
    assert rejected(tmp_path / "t.npz").startswith("is not a trace. A trace is an .npz file")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "t.npz").touch()
    assert rejected(tmp_path / "t.npz") == "is empty"


@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_cut_file(tmp_path: Path, share: float) -> None:
    content = GNN.read_bytes()
    (tmp_path / "t.npz").write_bytes(content[: max(4, int(len(content) * share))])
    assert rejected(tmp_path / "t.npz").startswith("is a damaged or truncated zip file: ")


def test_a_file_whose_middle_is_missing(tmp_path: Path) -> None:
    content = GNN.read_bytes()
    (tmp_path / "t.npz").write_bytes(content[:20_000] + content[60_000:])
    rejected(tmp_path / "t.npz")


def test_a_cut_directory(tmp_path: Path) -> None:
    content = write_trace(tmp_path / "t.npz").read_bytes()
    first, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    for kept in range(first, end, 7):
        (tmp_path / "t.npz").write_bytes(content[:kept] + content[end:])
        rejected(tmp_path / "t.npz")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_bit_in_a_column(tmp_path: Path, column: str) -> None:
    path = write_members(tmp_path / "t.npz", SMALL, zipfile.ZIP_STORED)
    content = path.read_bytes()
    for at in range(*member_span(path, column)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        assert rejected(path).startswith(f"column {column}: ")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_bit_in_a_packed_column(tmp_path: Path, column: str) -> None:
    path = write_members(tmp_path / "t.npz")
    content = path.read_bytes()
    start, end = member_span(path, column)
    harmless = 0
    faults = []
    for at in range(start, end):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        try:
            read = read_columns(path)
        except TraceError as error:
            faults.append(str(error))
        else:
            # A few bits do not matter: padding, or one of two ways to say the same.
            assert getattr(read, column).tolist() == columns(SMALL)[column].tolist()
            harmless += 1
    assert all(text.startswith(f"{path}: column {column}: ") for text in faults)
    assert harmless < len(faults) / 5


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_was_cut_before_it_was_packed(tmp_path: Path, column: str) -> None:
    whole = npy(columns(SMALL)[column])
    for kept in (0, 1, 8, 10, 100, len(whole) - 1):
        text = rejected(write_members(tmp_path / "t.npz", **{column: whole[:kept]}))
        assert text.startswith(f"column {column}: ")


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_is_a_fault_or_harmless(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    header = np.array('{"name": "x"}')
    path = write_trace(tmp_path / "t.npz", header=header)
    content = path.read_bytes()
    faults = []
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(4, len(damaged))
            match chance.randrange(3):
                case 0:
                    damaged[at] ^= 1 << chance.randrange(8)
                case 1:
                    damaged[at : at + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
                case _ if chance.random() < 0.2:
                    del damaged[at + 1 :]
        path.write_bytes(damaged)
        try:
            trace = read_trace(path)
        except TraceError as error:
            faults.append(str(error))
        else:
            # The damage hit what does not matter, such as a time stamp.
            assert (trace.program.events, trace.program.peak_live) == (6, 5100)
    assert len(faults) > 200
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in faults)


# --- columns that are no columns


def test_an_empty_zip_file(tmp_path: Path) -> None:
    zipfile.ZipFile(tmp_path / "t.npz", "w").close()
    assert rejected(tmp_path / "t.npz") == "column op: is missing; a trace has op, id, size"


def test_another_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
        archive.writestr("op", npy(columns(SMALL)["op"]))
    assert rejected(tmp_path / "t.npz") == "column op: is missing; a trace has op, id, size"


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column(tmp_path: Path, column: str) -> None:
    text = rejected(write_trace(tmp_path / "t.npz", **{column: None}))
    assert text == f"column {column}: is missing; a trace has op, id, size"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda numbers: numbers.astype(bool), id="bool"),
        pytest.param(lambda numbers: numbers.astype(np.float64), id="float64"),
        pytest.param(lambda numbers: numbers.astype(np.float16), id="float16"),
        pytest.param(lambda numbers: numbers.astype(complex), id="complex"),
        pytest.param(lambda numbers: numbers.astype(str), id="text"),
        pytest.param(lambda numbers: numbers.astype("S8"), id="bytes"),
        pytest.param(lambda numbers: numbers.astype("m8[ns]"), id="timedelta"),
        pytest.param(lambda numbers: numbers.astype("M8[ns]"), id="datetime"),
        pytest.param(lambda numbers: numbers.astype([("a", "<i8")]), id="record"),
        pytest.param(lambda numbers: numbers.reshape(2, 3), id="2-D"),
        pytest.param(lambda numbers: numbers.reshape(6, 1), id="2-D of width 1"),
        pytest.param(lambda numbers: numbers[0], id="0-D"),
    ],
)
def test_a_column_that_is_not_whole_numbers_in_a_row(
    tmp_path: Path, column: str, convert: Callable[[Any], Any]
) -> None:
    array = np.asarray(convert(columns(SMALL)[column]))
    text = rejected(write_trace(tmp_path / "t.npz", **{column: array}))
    assert text == (
        f"column {column}: must be whole numbers in one dimension, is {array.dtype} of shape {array.shape}"
    )


@pytest.mark.parametrize("column", [*COLUMNS, "header"])
def test_python_objects_are_not_unpickled(tmp_path: Path, column: str) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    path = write_trace(tmp_path / "t.npz", **{column: np.array([Trap()] * 6, dtype=object)})
    assert rejected(path) == f"column {column}: holds Python objects, which are not read"
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_different_length(tmp_path: Path, column: str) -> None:
    text = rejected(write_trace(tmp_path / "t.npz", **{column: columns(SMALL)[column][:5]}))
    assert text.startswith("the columns differ in length: ")
    assert f"{column} has 5" in text
    assert text.count(" has 6") == 2


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    path = write_members(tmp_path / "t.npz")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("id.npy", npy(columns(SMALL)["id"]))
    assert rejected(path) == "column id: occurs 2 times"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (np.array("{"), "is not JSON: "),
        (np.array(""), ""),
        (np.array("[" * 100_000), "is not JSON: "),
        (np.array('{"name": 3}'), "must be a JSON object whose name is a text"),
        (np.array('["name"]'), "must be a JSON object whose name is a text"),
        (np.array('"name"'), "must be a JSON object whose name is a text"),
        (np.array(b"\xff\xfe{"), "is not JSON: "),
        (np.array(["{}"]), "must be one text, is <U2 of shape (1,)"),
        (np.array(3), "must be one text, is int64 of shape ()"),
    ],
)
def test_a_header_that_is_none(tmp_path: Path, header: Any, expected: str) -> None:
    assert rejected(write_trace(tmp_path / "t.npz", header=header)).startswith(f"column header: {expected}")


def test_a_header_of_characters_that_do_not_exist(tmp_path: Path) -> None:
    path = write_members(tmp_path / "t.npz", header=npy_with_head(head("()", "<U2"), b"\xff" * 8))
    assert rejected(path).startswith("column header: ")


def test_the_error_of_a_header_that_cannot_be_read_is_short(tmp_path: Path) -> None:
    head = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"\xfe{" * 4500
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as file:
        for name in ("op", "id", "size"):
            file.writestr(f"{name}.npy", head)
    said = rejected(tmp_path / "t.npz")
    assert said.startswith("column op: is damaged or truncated: ")
    assert len(said) < 260
