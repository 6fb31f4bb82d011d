"""Traces that are written are read back with all that they have."""

import json
from pathlib import Path

import numpy as np
import pytest

from allotment.trace import TraceError, export_trace, read_columns, write_trace
from allotment.trace.pictures import draw

OP, ID, SIZE = [1, 1, 2, 1], [1, 2, 1, 1], [100, 300, 100, 7]
STACK = "model.py:7 forward\ntrain.py:30 step"


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write_trace(
        path,
        OP,
        ID,
        SIZE,
        t_ns=[0, 5, 5, 9],
        thread=[3, 3, 4, 4],
        tag=[0, 1, 0, -1],
        tags=[STACK, "ünknown"],
        name="n",
    )
    columns = read_columns(path, details=True)
    assert [list(one or []) for one in (columns.op, columns.id, columns.size)] == [OP, ID, SIZE]
    assert list(columns.t_ns or []) == [0, 5, 5, 9]
    assert list(columns.thread or []) == [3, 3, 4, 4]
    assert list(columns.owner or []) == [0, 1, 0, -1]
    assert columns.owners == (STACK, "ünknown")
    assert columns.name == "n"
    # Reports and exports name the owners.
    assert {one.name for one in draw(columns).holders_at_peak()} == {STACK, "ünknown"}
    export_trace(columns, "dhat", tmp_path / "o")
    assert any("forward (model.py:7)" in text for text in json.loads((tmp_path / "o").read_bytes())["ftbl"])


def test_details_are_read_only_if_asked_for_and_owners_always(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write_trace(path, OP, ID, SIZE, t_ns=[0, 5, 5, 9], thread=[3, 3, 4, 4], tag=[0, 0, 0, 0], tags=["a"])
    columns = read_columns(path)
    assert (columns.t_ns, columns.thread, columns.owners) == (None, None, ("a",))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"tag": [0, 2, 0, 0], "tags": ["a", "b"]},
            "tag 2 is neither -1 nor an index of tags, which has length 2",
        ),
        ({"tag": [0, -2, 0, 0], "tags": ["a", "b"]}, "tag -2 is neither -1 nor"),
        ({"tags": ["a"]}, "tags needs the column tag"),
        ({"tag": [0, 0], "tags": ["a"]}, "column tag has shape"),
        ({"thread": [0]}, "column thread has shape"),
        (
            {"tag": [0.0, 0.0, 0.0, 0.0], "tags": ["a"]},
            r"column tag must be whole numbers in one dimension, is float64 of shape \(4,\)",
        ),
        ({"tag": [False] * 4, "tags": ["a"]}, "column tag must be whole numbers in one dimension, is bool"),
        ({"t_ns": [0.5, 1.5, 2.5, 3.5]}, "column t_ns must be whole numbers"),
        ({"thread": [[0], [0], [0], [0]]}, r"column thread must be .*, is int64 of shape \(4, 1\)"),
        ({"thread": [1 << 63] * 4}, "column thread has the number 9223372036854775808; numbers are at"),
    ],
)
def test_what_makes_no_sense_is_not_written(tmp_path: Path, more: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        write_trace(tmp_path / "t.npz", OP, ID, SIZE, **more)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", range(3))
def test_numbers_of_events_are_not_cut(tmp_path: Path, place: int) -> None:
    columns: list[object] = [OP, ID, SIZE]
    columns[place] = [1.5, 2.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=f"column {['op', 'id', 'size'][place]} must be whole numbers"):
        write_trace(tmp_path / "t.npz", *columns)  # type: ignore[arg-type]


def test_a_trace_without_events_is_read_back(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.npz", [], [], [], t_ns=[], thread=[], tag=[], tags=["a"])
    columns = read_columns(tmp_path / "t.npz", details=True)
    assert (list(columns.op), list(columns.owner or []), columns.owners) == ([], [], ("a",))


@pytest.mark.parametrize("tags", [b"no JSON", b"[1]", b'["a"]'])
def test_tags_of_other_writers_are_other_columns(tmp_path: Path, tags: bytes) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, op=OP, id=ID, size=SIZE, tag=[5, 5], tags=np.array(tags))
    assert read_columns(path).owner is None


@pytest.mark.parametrize(
    ("tag", "tags", "said"),
    [
        (
            [0, 0, 5, 0],
            b'["a"]',
            "column tag: has a number that is neither -1 nor an index of tags, which has length 1",
        ),
        ([0], b'["a"]', "column tag: has 1 entries for 4 events"),
        ([0, 0, 0, 0], b"[1]", "column tags: must be a JSON list of texts"),
    ],
)
def test_damaged_owners_are_an_error(tmp_path: Path, tag: list[int], tags: bytes, said: str) -> None:
    path = tmp_path / "t.npz"
    header = np.array(json.dumps({"owners": 1}))
    np.savez(path, op=OP, id=ID, size=SIZE, tag=tag, tags=np.array(tags), header=header)
    with pytest.raises(TraceError, match=said):
        read_columns(path)
