"""Guard mode from Python: which damage it finds, who gets the report, and what the environment sets.

Longer than 300 lines: one rule after the other of guard mode, with the same few helpers.
"""

import ctypes
import gc
from collections.abc import Iterator

import numpy as np
import pytest

from allotment import HostMemory, InvalidFreeError, MemoryDamageError, OutOfMemoryError, Pool
from allotment.devices.environment.settings import read_settings
from support.devices import fresh, pools
from support.pools.sources import MappedSource, NumberSource

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool("1MiB", guard=True, name="watched")
    yield made
    # A test that leaves nothing behind says nothing at its end.
    made.close()


def poke(address: int, byte: int = 0) -> None:
    """Write a byte where a program should not."""
    ctypes.memset(address, byte, 1)


def reports(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage()) for record in log.records if record.name == "allotment.guard"
    ]


def test_it_is_off_unless_asked_for() -> None:
    assert not Pool("1MiB").guard
    assert Pool("1MiB", guard=True).guard
    assert not Pool("1MiB", guard=False).guard
    pool = Pool("1MiB")
    poke(pool.malloc(100) + 100)
    assert pool.stats().in_use == 256


@pytest.mark.parametrize("size", [1, 100, 255, 256, 257, 5000, 300_000])
def test_a_byte_past_the_end_is_found_at_the_free(pool: Pool, size: int) -> None:
    address = pool.malloc(size)
    ctypes.memset(address, 0, size + 1)
    with pytest.raises(
        MemoryDamageError, match=f"{size} bytes at address {address:#x}.*past its end"
    ) as raised:
        pool.free(address)
    error = raised.value
    assert (error.place, error.offset, error.address, error.requested, error.id) == (
        "behind",
        size,
        address,
        size,
        1,
    )
    assert isinstance(error, RuntimeError)
    stats = pool.stats()
    assert (stats.num_live, stats.in_use, stats.requested) == (0, 0, 0)
    with pytest.raises(InvalidFreeError):
        pool.free(address)


def test_a_byte_before_the_start_is_found_at_the_free(pool: Pool) -> None:
    address = pool.malloc(100)
    poke(address - 1)
    with pytest.raises(MemoryDamageError, match="in front of its start, first at offset -1") as raised:
        pool.free(address)
    assert raised.value.place == "before"


def test_what_was_asked_for_may_be_written(pool: Pool) -> None:
    for size in range(1, 1200, 7):
        a = pool.allocate(size)
        view = np.frombuffer(a, np.uint8)
        assert (a.size, len(view)) == (size, size)
        view[:] = 0
        del view
        a.free()
    assert pool.trim() > 0


def test_an_array_over_a_buffer_that_is_lengthened_is_caught(pool: Pool) -> None:
    a = pool.allocate(400)
    array = np.frombuffer(a, np.float32)
    longer = np.lib.stride_tricks.as_strided(array, (101,))
    longer[:] = 1
    del array, longer
    with pytest.raises(MemoryDamageError) as raised:
        a.free()
    assert (raised.value.place, raised.value.offset, raised.value.id) == ("behind", 400, a.id)
    with pytest.raises(InvalidFreeError):
        a.free()


def test_a_memoryview_reaches_as_far_as_was_asked_for(pool: Pool) -> None:
    with pool.allocate(10) as a, memoryview(a) as view:
        assert view.nbytes == 10
        view[9] = 1


def test_leaving_with_raises_damage_unless_something_else_is_on_its_way(pool: Pool) -> None:
    with pytest.raises(MemoryDamageError), pool.allocate(10) as a:
        poke(a.address + 10)

    def fail() -> None:
        with pool.allocate(10) as a:
            poke(a.address + 10)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert pool.stats().num_live == 0
    with pytest.raises(MemoryDamageError) as raised:
        pool.malloc(1)
    assert raised.value.id == 2
    assert pool.stats().num_live == 0


@pytest.mark.parametrize("call", ["malloc", "allocate", "free", "trim", "close"])
def test_damage_to_what_was_collected_is_raised_by_the_next_call(call: str) -> None:
    pool = Pool("1MiB", guard=True)
    other = pool.malloc(1)
    a = pool.allocate(10)
    poke(a.address + 10)
    del a
    calls = {
        "malloc": lambda: pool.malloc(1),
        "allocate": lambda: pool.allocate(1),
        "free": lambda: pool.free(other),
        "trim": pool.trim,
        "close": pool.close,
    }
    with pytest.raises(MemoryDamageError) as raised:
        calls[call]()
    assert raised.value.id == 2
    if call != "free":
        pool.free(other)


def test_damage_in_a_cycle_is_found_when_the_collector_comes(pool: Pool) -> None:
    cycle: list[object] = [pool.allocate(10)]
    poke(cycle[0].address + 12)  # type: ignore[attr-defined]
    cycle.append(cycle)
    del cycle
    gc.collect()
    with pytest.raises(MemoryDamageError):
        pool.malloc(1)


def test_a_write_after_the_free_is_found_at_the_trim(pool: Pool) -> None:
    address = pool.malloc(100)
    pool.free(address)
    poke(address + 99)
    with pytest.raises(MemoryDamageError, match="after it was freed, first at offset 99") as raised:
        pool.trim()
    assert (raised.value.place, raised.value.id) == ("freed", 1)
    assert pool.stats().reserved == 0


def test_a_write_after_the_free_is_found_when_the_quarantine_is_full() -> None:
    pool = Pool("1MiB", guard=True, quarantine="4KiB")
    address = pool.malloc(100)
    pool.free(address)
    poke(address)
    # Each takes a chunk of 768 bytes: the sixth pushes the first out.
    for _ in range(4):
        pool.free(pool.malloc(100))
    with pytest.raises(MemoryDamageError) as raised:
        pool.free(pool.malloc(100))
    assert (raised.value.id, raised.value.place) == (1, "freed")
    assert pool.stats().num_allocs == 6
    assert pool.stats().num_live == 0


def test_a_read_after_the_free_sees_poison(pool: Pool) -> None:
    address = pool.malloc(100)
    ctypes.memset(address, 7, 100)
    pool.free(address)
    assert ctypes.string_at(address, 100) == b"\xfd" * 100
    with pytest.raises(InvalidFreeError):
        pool.free(address)


def test_the_quarantine_is_never_in_the_way() -> None:
    pool = Pool("64KiB", growth=False, guard=True, quarantine="64KiB")
    for _ in range(100):
        pool.free(pool.malloc(20 * KIB))
    assert pool.can_allocate(64 * KIB - 512)
    assert not pool.can_allocate(64 * KIB - 511)
    pool.free(pool.malloc(64 * KIB - 512))
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(64 * KIB)
    assert (raised.value.in_use, raised.value.largest_free) == (0, 64 * KIB)
    assert pool.stats().peak_reserved == 64 * KIB


@pytest.mark.parametrize("alignment", [1, 256, 512, 4096])
def test_alignment_is_kept_and_watched(pool: Pool, alignment: int) -> None:
    for place in (-1, 1000):
        a = pool.allocate(1000, alignment=alignment)
        assert a.address % alignment == 0
        assert a.size == 1000
        np.frombuffer(a, np.uint8)[:] = 0
        poke(a.address + place)
        with pytest.raises(MemoryDamageError) as raised:
            a.free()
        assert (raised.value.offset, raised.value.address) == (place, a.address)


def test_only_host_memory_can_be_guarded() -> None:
    for source in ("address-space", NumberSource(), MappedSource(MIB)):
        with pytest.raises(ValueError, match="not known to be memory of this process"):
            Pool("1MiB", source=source, guard=True)
    with pytest.raises(ValueError, match=r"quarantine .12 parsecs."):
        Pool("1MiB", guard=True, quarantine="12 parsecs")
    with pytest.raises(TypeError, match="guard"):
        Pool("1MiB", guard="yes")  # type: ignore[arg-type]
    memory = HostMemory("1MiB")
    pool = Pool("1GiB", source=memory, guard=True)
    address = pool.malloc(100)
    poke(address + 100)
    with pytest.raises(MemoryDamageError):
        pool.free(address)
    pool.trim()
    assert memory.used == 0


@pytest.mark.parametrize(("text", "guard"), [("1", True), ("0", False), ("", False), (None, False)])
def test_the_environment_decides_for_pools_that_are_not_told(
    text: str | None, guard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is None:
        monkeypatch.delenv("ALLOTMENT_GUARD", raising=False)
    else:
        monkeypatch.setenv("ALLOTMENT_GUARD", text)
    assert Pool("1MiB").guard is guard
    assert Pool("1MiB", guard=True).guard
    assert not Pool("1MiB", guard=False).guard
    # It is for memory that can be guarded, and no obstacle to others.
    assert not Pool("1MiB", source="address-space").guard
    assert not Pool("1MiB", source=NumberSource()).guard
    environ = {} if text is None else {"ALLOTMENT_GUARD": text}
    assert read_settings(environ).guard is guard
    assert [pool.guard for pool in pools(fresh(monkeypatch, "2:1MiB", **environ))] == [guard, guard]


@pytest.mark.parametrize("text", ["yes", "true", "2", " 1", "on"])
def test_any_other_value_is_an_error_that_names_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOTMENT_GUARD", text)
    for ask in (lambda: Pool("1MiB"), lambda: read_settings({"ALLOTMENT_GUARD": text})):
        with pytest.raises(ValueError, match=rf"ALLOTMENT_GUARD='?{text}'? .*0 n?or 1"):
            ask()
    assert not Pool("1MiB", guard=False).guard
    with pytest.raises(ValueError, match="ALLOTMENT_GUARD"):
        fresh(monkeypatch, "1:1MiB", ALLOTMENT_GUARD=text).ready()


def test_a_closed_pool_reports_what_is_still_allocated_once(caplog: pytest.LogCaptureFixture) -> None:
    with Pool("1MiB", guard=True, name="closed") as pool:
        a = pool.allocate(1000)
        address = pool.malloc(5)
    ((level, text),) = reports(caplog)
    assert level == "WARNING"
    assert text.splitlines() == [
        "closed: 2 allocations were never freed, 1005 bytes",
        f"  allocation 1: 1000 bytes at address {a.address:#x}",
        f"  allocation 2: 5 bytes at address {address:#x}",
    ]
    pool.close()
    assert len(reports(caplog)) == 1
    a.free()
    pool.free(address)


def test_a_pool_that_is_gone_reports_what_nobody_can_free_any_more(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool("1MiB", guard=True, name="gone")
    a = pool.allocate(1000)
    leaked = pool.malloc(5)
    del pool
    assert reports(caplog) == [], "somebody holds an allocation of it"
    poke(leaked + 5)
    del a
    (damage, leak) = reports(caplog)
    assert damage[0] == "ERROR"
    assert damage[1].startswith("gone: memory damaged: allocation 2, 5 bytes")
    assert leak == (
        "WARNING",
        f"gone: 1 allocation was never freed, 5 bytes\n  allocation 2: 5 bytes at address {leaked:#x}",
    )


def test_nothing_is_said_when_nothing_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    with Pool("1MiB", guard=True) as pool:
        pool.free(pool.malloc(10))
        pool.allocate(10).free()
    del pool
    assert reports(caplog) == []


def test_an_exception_on_its_way_survives_the_report(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        pool = Pool("1MiB", guard=True)
        pool.malloc(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        work()
    gc.collect()
    assert [level for level, _ in reports(caplog)] == ["WARNING"]
