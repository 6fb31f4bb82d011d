"""Pools from Python: the doors, the options, giving back."""

import ctypes
import threading
import time
import weakref

import numpy as np
import pytest

from allotment import HostMemory, InvalidFreeError, OutOfMemoryError, Pool
from support.pools.sources import MappedSource

MIB = 1 << 20


def test_a_request_is_served_in_whole_granules_from_the_first_region() -> None:
    pool = Pool(limit="1GiB", growth=True, source="host")
    first, second = pool.malloc(1), pool.malloc(300)
    assert second - first == 256
    stats = pool.stats()
    assert (stats.requested, stats.in_use, stats.reserved, stats.num_regions) == (301, 768, 2 * MIB, 1)
    pool.free(first)
    pool.free(second)
    assert pool.stats().in_use == 0


def test_memory_of_a_host_pool_is_real() -> None:
    pool = Pool("64MiB")
    address = pool.malloc(1000)
    ctypes.memset(address, 0xA5, 1000)
    assert ctypes.string_at(address, 1000) == b"\xa5" * 1000
    pool.free(address)


def test_zero_bytes_are_nothing_at_every_door() -> None:
    pool = Pool("1MiB")
    assert pool.malloc(0) == 0
    pool.free(0)
    pool.free(0)
    with pool.allocate(0) as a, pool.allocate("0B") as b:
        assert (a.address, a.size, a.requested, a.id) == (0, 0, 0, 0)
        assert (b.address, b.size) == (0, 0)
        assert len(memoryview(a)) == 0
    assert pool.stats() == Pool("1MiB").stats()


@pytest.mark.parametrize("size", [3 * MIB, "3MiB", "3 MiB", np.int32(3 * MIB), np.uint64(3 * MIB)])
def test_sizes_are_numbers_or_texts(size: int | str) -> None:
    pool = Pool("64MiB")
    assert pool.allocate(size).requested == 3 * MIB
    pool.free(pool.malloc(size))
    assert pool.can_allocate(size)


@pytest.mark.parametrize(
    ("size", "error", "said"),
    [
        (-1, ValueError, "-1"),
        (1 << 64, ValueError, str(1 << 64)),
        ((1 << 63) - 255, ValueError, str((1 << 63) - 255)),
        ("12 parsecs", ValueError, "12 parsecs"),
        ("-3MiB", ValueError, "-3MiB"),
        ("1e30", ValueError, "1e30"),
        (1.5, TypeError, "float"),
        (True, TypeError, "bool"),
        (None, TypeError, "NoneType"),
        (b"3MiB", TypeError, "bytes"),
    ],
)
def test_a_bad_size_is_named_and_changes_nothing(size: object, error: type[Exception], said: str) -> None:
    pool = Pool("64MiB")
    before = pool.stats()
    for call in (pool.malloc, pool.allocate):
        with pytest.raises(error) as raised:
            call(size)  # type: ignore[arg-type]
        assert said in str(raised.value)
    assert pool.stats() == before


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"limit": 0}, ValueError, "limit 0"),
        ({"limit": -1}, ValueError, "-1"),
        ({"limit": "0"}, ValueError, "limit 0"),
        ({"limit": "12 parsecs"}, ValueError, "12 parsecs"),
        ({"limit": "9000000TiB"}, ValueError, "too large"),
        ({"limit": 10**30}, ValueError, str(10**30)),
        ({"limit": f"{(1 << 128) // 1000}.999KB"}, ValueError, "too large"),
        ({"limit": 1e30}, TypeError, "float"),
        ({"limit": "1GiB", "source": "cpu"}, ValueError, "'host', 'address-space'"),
        ({"limit": "1GiB", "source": 7}, TypeError, "int has no reserve"),
        ({"limit": "1GiB", "source": MappedSource}, TypeError, "not the class MappedSource"),
        ({"limit": "1GiB", "wait_seconds": -1}, ValueError, "wait_seconds"),
        ({"limit": "1GiB", "wait_seconds": float("nan")}, ValueError, "wait_seconds"),
        ({"limit": "1GiB", "wait_seconds": 1e12}, ValueError, "wait"),
        ({"limit": "1GiB", "fragmentation_fraction": 1.5}, ValueError, "1.5"),
        ({"limit": "1GiB", "fragmentation_fraction": float("nan")}, ValueError, "NaN"),
        ({"limit": "1GiB", "joins_regions": "yes"}, TypeError, "joins_regions"),
        ({"limit": "1GiB", "policy": "loose"}, ValueError, "'loose' is neither 'tensorflow' nor 'tight'"),
        ({"limit": "1GiB", "policy": 7}, TypeError, "policy must be 'tensorflow' or 'tight', not int"),
        ({}, TypeError, "limit"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        Pool(**options)  # type: ignore[arg-type]
    assert said in "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])


def test_options_can_be_read_and_a_name_is_made() -> None:
    pool = Pool("1.5GiB", growth=False, name="mine")
    assert (pool.limit, pool.growth, pool.name) == (3 << 29, False, "mine")
    assert Pool(1).name != Pool(1).name
    assert "mine" in repr(pool)


def test_can_allocate_agrees_with_allocating() -> None:
    pool = Pool("64MiB", growth=False)
    blocks = [pool.malloc(size * MIB) for size in (24, 16, 24)]
    assert not pool.can_allocate(1)
    pool.free(blocks[0])
    pool.free(blocks[2])
    assert pool.can_allocate("24MiB")
    assert not pool.can_allocate(24 * MIB + 1)
    assert pool.can_allocate(0)
    assert not pool.can_allocate((1 << 63) - 1)
    assert not pool.can_allocate(1 << 70)
    with pytest.raises(ValueError, match="-1"):
        pool.can_allocate(-1)
    # Numbers that are no whole ones stay a mistake, however large.
    with pytest.raises(TypeError, match="float"):
        pool.can_allocate(float("inf"))  # type: ignore[arg-type]
    assert not Pool("1MiB").can_allocate("2MiB")


@pytest.mark.parametrize("alignment", [1, 2, 64, 256, 512, 4096, 1 << 16, 1 << 21])
def test_alignment_is_kept(alignment: int) -> None:
    pool = Pool("64MiB")
    held = []
    for size in (1, 255, 256, 1000, 5000):
        a = pool.allocate(size, alignment=alignment)
        assert a.address % max(alignment, 256) == 0
        assert a.requested == size
        held.append((a.address, size))
        a_view = np.frombuffer(a, np.uint8)
        a_view[:] = 1
        held[-1] = (a.address, size)
        del a_view
        pool.malloc(100)  # shifts what comes next off the larger multiples
    with pytest.raises(ValueError, match="alignment"):
        pool.allocate(1, alignment=alignment * 3)
    for bad in (0, 3, 1 << 63):
        with pytest.raises(ValueError, match=str(bad)):
            pool.allocate(1, alignment=bad)
    with pytest.raises(TypeError, match="alignment"):
        pool.allocate(1, alignment="256")  # type: ignore[arg-type]


def test_a_closed_pool_serves_nobody_and_gives_back_with_the_last_free() -> None:
    source = MappedSource(64 * MIB)
    with Pool("64MiB", source=source) as pool:
        a, b = pool.allocate(MIB), pool.malloc(MIB)
        pool.free(pool.malloc(16 * MIB))
    for call in (lambda: pool.malloc(1), lambda: pool.allocate(1), lambda: pool.malloc(0), pool.__enter__):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert not pool.can_allocate(1)
    a.free()
    assert source.used > 0
    pool.free(b)
    assert source.used == 0
    assert pool.stats().reserved == 0
    pool.close()


def test_a_closed_pool_gives_back_when_the_last_allocation_is_collected() -> None:
    source = MappedSource(64 * MIB)
    pool = Pool("64MiB", source=source)
    a = pool.allocate(MIB)
    pool.close()
    assert source.used > 0
    del a
    assert source.used == 0


def test_a_dropped_pool_gives_back_unless_somebody_still_holds_an_address() -> None:
    source = MappedSource(64 * MIB)
    pool = Pool("64MiB", source=source)
    pool.free(pool.malloc(MIB))
    del pool
    assert source.used == 0

    pool = Pool("64MiB", source=source)
    address = pool.malloc(MIB)
    pool.free(pool.malloc(16 * MIB))
    ctypes.memset(address, 3, MIB)
    del pool
    # The region of the live block stays; the other is gone.
    assert len(source.out) == 1
    assert ctypes.string_at(address, MIB) == b"\3" * MIB


def test_an_allocation_keeps_its_pool_alive() -> None:
    pool = Pool("64MiB")
    gone = weakref.ref(pool)
    a = pool.allocate(MIB)
    del pool
    assert gone() is None
    np.frombuffer(a, np.uint8)[:] = 1
    a.free()


@pytest.mark.parametrize("source", ["host", "address-space"])
def test_a_foreign_or_double_free_is_an_error_and_harms_nothing(source: str) -> None:
    pool = Pool("64MiB", source=source)
    a, b, c = (pool.malloc(1000) for _ in range(3))
    pool.free(b)
    before = pool.snapshot().to_json()
    for bad in (b, a + 256, a + 1, c + 1024, 256, (1 << 63) - 256, (1 << 64) - 1):
        with pytest.raises(InvalidFreeError, match=f"{bad:#x}"):
            pool.free(bad)
    wrong: list[tuple[object, type[Exception]]] = [
        (-1, InvalidFreeError),
        (1 << 64, InvalidFreeError),
        ("x", TypeError),
        (None, TypeError),
        (True, TypeError),
    ]
    for value, error in wrong:
        with pytest.raises(error, match=r"\Aaddress must be"):
            pool.free(value)  # type: ignore[arg-type]
    assert pool.snapshot().to_json() == before
    pool.free(a)
    with pytest.raises(InvalidFreeError):
        pool.free(a)
    pool.free(c)


def test_an_address_of_another_pool_is_foreign() -> None:
    one, other = Pool("4MiB"), Pool("4MiB")
    address = one.malloc(100)
    other.malloc(100)
    with pytest.raises(InvalidFreeError):
        other.free(address)
    one.free(address)


def test_pools_may_share_host_memory_of_a_fixed_size() -> None:
    memory = HostMemory("32MiB")
    one, other = (Pool("1GiB", source=memory) for _ in range(2))
    address = one.malloc("20MiB")
    assert (memory.capacity, memory.used) == (32 * MIB, 32 * MIB)
    with pytest.raises(OutOfMemoryError) as raised:
        other.malloc("20MiB")
    assert raised.value.verdict == "source"
    one.free(address)
    one.trim()
    assert memory.used == 0
    np.frombuffer(other.allocate("20MiB"), np.uint8)[:] = 1
    for size in (0, -1, 1 << 63):
        with pytest.raises(ValueError, match="capacity"):
            HostMemory(size)


def test_names_of_arguments_can_be_used() -> None:
    pool = Pool("1MiB")
    pool.free(address=pool.malloc(nbytes=10))


def test_a_waiting_request_tries_once_more_at_its_deadline() -> None:
    memory = HostMemory("2MiB")
    one, other = Pool("1GiB", source=memory), Pool("1GiB", source=memory, wait_seconds=0.5)
    held = one.malloc("2MiB")

    def give_back() -> None:
        one.free(held)
        one.trim()

    threading.Timer(0.1, give_back).start()
    other.free(other.malloc("1MiB"))
    assert other.stats().num_refused == 0


def test_a_hopeless_request_does_not_wait() -> None:
    start = time.monotonic()
    with pytest.raises(OutOfMemoryError):
        Pool("1MiB", wait_seconds=30).malloc("2MiB")
    assert time.monotonic() - start < 10
