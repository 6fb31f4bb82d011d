"""Pickles from strangers: plain data in, nothing executed, and the place of what is refused."""

import gzip
import math
import os
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allotment._core import read_plain_pickle
from support.command import allotment, complaint

PROTOCOLS = [2, 3, 4, 5]

#: Those of up to 16 bytes are read.
INTEGERS = st.integers(-(2**120), 2**120)

plain = st.recursive(
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(st.characters(categories=["Cs"]), max_size=3),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | INTEGERS, inner) | st.tuples(inner, inner, inner, inner)
    ),
)


@given(plain, st.sampled_from(PROTOCOLS), st.booleans())
def test_plain_data_come_back_as_pickle_reads_them(value: Any, protocol: int, optimized: bool) -> None:
    content = pickle.dumps(value, protocol)
    read = read_plain_pickle(pickletools.optimize(content) if optimized else content)
    assert read == value
    assert repr(read) == repr(value)  # also the types


def test_long_containers_and_shared_objects_come_back() -> None:
    shared = ["frame"]
    value = {"many": list(range(5000)), "a": shared, "b": shared, "nan": math.nan, "bytes": "x" * 300}
    read: Any = read_plain_pickle(pickle.dumps(value, 4))
    assert read["many"] == value["many"]
    assert read["a"] is read["b"]
    assert math.isnan(read["nan"])


def test_a_list_in_itself_is_read() -> None:
    loop: list[Any] = []
    loop.append(loop)
    read: Any = read_plain_pickle(pickle.dumps(loop, 2))
    assert read[0] is read


class Dangerous:
    """Would make a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("packed", [False, True])
def test_code_in_a_pickle_is_refused_by_name_and_not_run(tmp_path: Path, protocol: int, packed: bool) -> None:
    path = tmp_path / "snapshot.pickle"
    content = pickle.dumps({"segments": [Dangerous(tmp_path / "made")]}, protocol)
    path.write_bytes(gzip.compress(content) if packed else content)
    line = complaint(allotment("replay", path))
    assert "posix.mkdir" in line
    assert line.endswith("only plain data are read, and nothing was executed")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (OrderedDict(), "collections.OrderedDict"),
        ({1}, "EMPTY_SET"),
        (bytearray(b"x" * 9), "BYTEARRAY8"),
        (1j, "complex"),
    ],
)
def test_what_is_not_plain_is_refused_by_name(value: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_plain_pickle(pickle.dumps(value, 5))


@pytest.mark.parametrize("code", sorted({ord(one.code) for one in pickletools.opcodes}))
def test_every_instruction_is_read_or_refused_by_its_name(code: int) -> None:
    """The names are those of `pickletools`. No operand follows, so that reading one is an error, too."""
    name = next(one.name for one in pickletools.opcodes if ord(one.code) == code)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        read_plain_pickle(b"\x80\x04NN"[: 2 if name == "STOP" else 4] + bytes([code]))
    text = str(caught.value)
    if "only plain data" in text:
        assert f"instruction {name}:" in text or f"({name})" in text
        assert name in REFUSED
    else:
        assert name not in REFUSED
        assert text.startswith("byte ")


REFUSED = {
    *(
        "GLOBAL",
        "INST",
        "STACK_GLOBAL",
        "REDUCE",
        "OBJ",
        "BUILD",
        "NEWOBJ",
        "NEWOBJ_EX",
        "EXT1",
        "EXT2",
        "EXT4",
    ),
    *(
        "PERSID",
        "BINPERSID",
        "EMPTY_SET",
        "ADDITEMS",
        "FROZENSET",
        "BYTEARRAY8",
        "NEXT_BUFFER",
        "READONLY_BUFFER",
    ),
    *("INT", "LONG", "FLOAT", "STRING", "UNICODE", "PUT", "GET"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_truncated_pickle_is_refused_at_its_end_wherever_it_is_cut(protocol: int) -> None:
    content = pickle.dumps({"segments": [[1, 2**70, "text", 1.5, (1, 2, 3, 4)], {"a": None}]}, protocol)
    for length in range(len(content)):
        with pytest.raises(
            ValueError, match=rf"^byte {length}: the pickle ends here; \d+ bytes are missing$"
        ):
            read_plain_pickle(content[:length])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_their_place(tail: bytes) -> None:
    text = "byte "
    try:
        read_plain_pickle(b"\x80\x04" + tail)
    except ValueError as error:
        text = str(error)
    assert text.startswith("byte ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\x06.", "byte 0: is a pickle of protocol 6; 2 to 5 are read"),
        (b"\x80\x02(.", "byte 3: takes more values than there are"),
        (b"\x80\x02h\x05.", "byte 2: refers to object 5, which is not there"),
        (b"\x80\x02j\xff\xff\xff\xff.", "byte 2: refers to object 4294967295, which is not there"),
        (b"\x80\x02}(K\x01u.", "byte 6: has a key without a value"),
        (b"\x80\x02}]Ns.", "byte 5: has a key of type list: texts and integers are read"),
        (b"\x80\x02NNa.", "byte 4: appends to what is not a list"),
        (b"\x80\x02\xff", "byte 2: 0xff is not an instruction of a pickle"),
        (b"\x80\x02\x8a\x11" + bytes(17) + b".", "byte 2: holds an integer of 17 bytes; at most 16 are read"),
        (b"\x80\x02X\x01\0\0\0\xff.", "byte 2: holds a text that is not UTF-8"),
    ],
)
def test_damage_is_refused_with_its_place(content: bytes, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        read_plain_pickle(content)
    assert str(caught.value) == said


def test_an_index_of_an_object_may_be_anything_without_taking_memory() -> None:
    assert read_plain_pickle(b"\x80\x02Nr\xff\xff\xff\x7f.") is None
