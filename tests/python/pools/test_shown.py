"""Values in messages are escaped and cut, sizes are read as they are written, and a ``repr`` says what it is of."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import allotment
from allotment import HostMemory, Pool
from allotment._core import format_size, parse_size, show_text, show_value
from support.devices import fresh


class Refuses:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Multiline:
    def __repr__(self) -> str:
        return "a\nb"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "'plain'"),
        (7, "7"),
        (None, "None"),
        ("\x1b[31m\n\xa0", r"'\x1b[31m\n\xa0'"),
        ("\udcff", r"'\udcff'"),
        (Multiline(), r"a\nb"),
        (Refuses(), "<Refuses object that cannot be printed>"),
        ("x" * 10_000, "'" + "x" * 199 + "... (10002 characters)"),
        (b"x" * 300, "b'" + "x" * 198 + "... (303 characters)"),
        (2**1000, str(2**1000)[:200] + "... (302 characters)"),
    ],
)
def test_a_value_is_escaped_and_cut(value: object, shown: str) -> None:
    assert show_value(value) == shown


def test_a_number_that_python_does_not_write_is_shown() -> None:
    assert show_value(10**5000).startswith("0x")
    assert len(show_value(10**5000)) < 230


@given(st.text())
def test_a_text_is_shown_in_characters_that_print(text: str) -> None:
    shown = show_text(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable() or len(text) > 200


# The largest size of a pool is 2**63 - 256.
@given(st.integers(0, 2**63 - 256) | st.integers(0, 62).map(lambda power: 1 << power) | st.integers(0, 5000))
def test_what_is_written_is_read(nbytes: int) -> None:
    read = parse_size(format_size(nbytes))
    # Two decimals of a unit.
    assert abs(read - nbytes) <= nbytes / 100
    assert parse_size(format_size(read)) == read
    assert parse_size(format_size(nbytes).upper()) == parse_size(format_size(nbytes).lower()) == read


@pytest.mark.parametrize(
    ("text", "nbytes"), [("1gb", 10**9), ("1.5 gib", 3 << 29), ("2tb", 2 * 10**12), ("7b", 7)]
)
def test_a_unit_is_read_in_any_case(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["1\x1b[31m", "\udcff", "x" * 10_000, "9" * 5000])
def test_what_is_no_size_is_named_in_a_short_line(text: str) -> None:
    with pytest.raises(ValueError, match="size '") as raised:
        parse_size(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400


def test_a_repr_says_what_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool("1MiB", name="mine", owner_tags=True)
    assert repr(pool) == '<allotment.Pool "mine": limit 1 MiB, 0 B in use, 0 B reserved, growth on>'
    scope = pool.scope("step", limit="64KiB")
    assert repr(scope) == '<allotment.Scope "step": new, limit 64 KiB>'
    with scope:
        first, _ = pool.malloc(1000), pool.malloc(3000)
        assert repr(scope) == '<allotment.Scope "step": entered, limit 64 KiB, 4 KiB live, peak 4 KiB>'
    pool.free(first)
    assert repr(scope) == '<allotment.Scope "step": left, limit 64 KiB, 4 KiB live, peak 4 KiB>'
    assert repr(pool) == '<allotment.Pool "mine": limit 1 MiB, 3 KiB in use, 1 MiB reserved, growth on>'
    assert repr(pool.snapshot()) == (
        '<allotment.Snapshot of "mine": 3 KiB in use, 1 MiB reserved in 1 region, limit 1 MiB>'
    )
    (kept,) = pool.kept_regions()
    for part in ("in_use=3072", "num_live=1", "largest=2", "owner="):
        assert part in repr(kept)
    assert 'owner="step/test_shown.py:' in repr(pool.snapshot().regions[0].chunks[1])
    explanation = repr(pool.explain("2MiB"))
    assert explanation.startswith("<allotment.Explanation: limit: ")
    assert repr(pool.explain(1)) == "<allotment.Explanation: fits>"
    assert repr(HostMemory(1024)) == "HostMemory(capacity=1024, used=0, within_machine=False)"
    fresh(monkeypatch, "1:16MiB")
    assert repr(allotment.experimental.memory_scope("all")) == (
        "<allotment.MemoryScope 'all': /device:GPU:0: <allotment.Scope \"all\": new>>"
    )


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"quarantine": "4KiB", "guard": False}, "quarantine= has no effect without guard mode"),
        ({"policy": "tight", "fragmentation_fraction": 0.5}, "fragmentation_fraction= has no effect"),
        (
            {"elastic": True, "fragmentation_fraction": 0.5},
            "fragmentation_fraction= has no effect in an elastic pool",
        ),
        ({"elastic": True, "joins_regions": True}, "joins_regions= has no effect in an elastic pool"),
        ({"elastic": True, "joins_regions": False}, "joins_regions= has no effect in an elastic pool"),
    ],
)
def test_options_of_a_pool_without_effect_warn(options: dict[str, Any], warning: str) -> None:
    with pytest.warns(UserWarning, match=warning) as warned:
        Pool("64MiB", **options)
    assert len(warned) == 1
    assert warned[0].filename == __file__
