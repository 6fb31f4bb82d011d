"""Refusals: their class, their figures, their words."""

import pickle

import pytest

import allotment
from allotment import OutOfMemoryError, Pool
from support.pools.refusals import refusal

MIB = 1 << 20


def test_it_is_a_memory_error_of_this_package() -> None:
    assert issubclass(OutOfMemoryError, MemoryError)
    assert issubclass(allotment.InvalidFreeError, ValueError)
    assert OutOfMemoryError.__module__ == "allotment"
    with pytest.raises(MemoryError):
        Pool("1MiB").allocate("2MiB")


def test_b001_fragmented_is_told_from_full() -> None:
    # Field report B001 (jax#7913).
    pool = Pool("64MiB", growth=False)
    a, b, c = (pool.malloc(size * MIB) for size in (24, 16, 24))
    pool.free(a)
    pool.free(c)
    error = refusal(pool, "32MiB")
    assert (error.requested, error.limit, error.in_use) == (32 * MIB, 64 * MIB, 16 * MIB)
    assert (error.reserved, error.free, error.largest_free) == (64 * MIB, 48 * MIB, 24 * MIB)
    assert error.verdict == "fragmented"
    text = str(error)
    for part in ("32 MiB", "64 MiB", "48 MiB", "24 MiB", "fragmented, not full"):
        assert part in text
    pool.free(b)
    whole = pool.malloc("64MiB")
    pool.free(whole)
    ((chunk,),) = (region.chunks for region in pool.snapshot().regions)
    assert (chunk.size, chunk.in_use) == (64 * MIB, False)


def test_b009_the_text_is_short_and_says_what_matters() -> None:
    # Field report B009 (tensorflow#5195): 4,000 blocks of 8 KiB, every second one freed, then 40 MiB.
    pool = Pool("64MiB", growth=False)
    blocks = [pool.malloc("8KiB") for _ in range(4000)]
    for block in blocks[::2]:
        pool.free(block)
    error = refusal(pool, "40MiB")
    text = str(error).splitlines()
    assert len(text) < 25
    assert error.in_use == 2000 * 8192
    assert error.free == 64 * MIB - 2000 * 8192
    assert error.largest_free == 64 * MIB - 4000 * 8192
    assert "2000 allocations" in str(error)
    assert str(error.free) in str(error)


def test_full_limit_and_source_are_told_apart() -> None:
    pool = Pool("1MiB", growth=False)
    pool.malloc(MIB)
    assert refusal(pool, 1).verdict == "full"
    assert refusal(pool, "2MiB").verdict == "limit"

    class Empty:
        def reserve(self, nbytes: int, alignment: int) -> None:
            return None

        def release(self, address: int, nbytes: int) -> None:
            raise AssertionError("nothing was granted")

    assert refusal(Pool("1MiB", source=Empty()), 1).verdict == "source"


def test_b032_after_a_refusal_a_smaller_request_works() -> None:
    # Field report B032, the direct door.
    pool = Pool("1MiB")
    refusal(pool, "2MiB")
    before = pool.stats()
    assert (before.in_use, before.num_live) == (0, 0)
    pool.free(pool.malloc("1MiB"))


def test_its_figures_survive_pickling() -> None:
    error = refusal(Pool("1MiB"), "2MiB")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert set(vars(error)) == {
        *("requested", "limit", "in_use", "reserved", "free", "largest_free", "num_live", "verdict"),
        *("limit_set_by", "scope", "suggestion", "by_size", "by_owner", "splitter"),
        *("live_requested", "internal_fragmentation", "advice"),
    }
