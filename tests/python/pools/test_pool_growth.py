"""How a pool grows up to its limit, and gives regions back."""

import ctypes

import numpy as np
import pytest

from allotment import OutOfMemoryError, Pool
from support.pools.sources import MappedSource

MIB = 1 << 20


def test_the_tight_policy_splits_off_every_remainder() -> None:
    sizes = {}
    for policy in ("tensorflow", "tight"):
        pool = Pool("1MiB", growth=False, source="address-space", policy=policy)
        assert pool.policy == policy
        for request in (400_000, 400_000):
            pool.malloc(request)
        chunks = pool.snapshot().regions[0].chunks
        sizes[policy] = [chunk.size for chunk in chunks]
    # TensorFlow's rule keeps a remainder of less than the request inside the chunk.
    assert sizes == {"tensorflow": [400_128, 648_448], "tight": [400_128, 400_128, 248_320]}


def test_growth_starts_at_two_mebibytes_and_doubles() -> None:
    pool = Pool("64MiB", source="address-space", joins_regions=False)
    pool.malloc(100)
    pool.malloc(2 * MIB)
    pool.malloc(3_000_000)
    assert [region.size // MIB for region in pool.snapshot().regions] == [2, 4, 8]
    # The fourth would be 16; the request doubles it to 32 and takes it whole. Then 18 MiB are left.
    pool.malloc(20_000_000)
    assert [region.size // MIB for region in pool.snapshot().regions] == [2, 4, 8, 32]
    with pytest.raises(OutOfMemoryError):
        pool.malloc(40_000_000)


def test_without_growth_the_limit_is_reserved_at_first_use() -> None:
    pool = Pool("64GiB", growth=False)
    assert pool.stats().reserved == 0
    pool.malloc(1)
    assert pool.stats().reserved == 64 << 30


def test_address_space_joins_regions_unless_told_otherwise() -> None:
    joined, apart = (Pool("64MiB", source="address-space", joins_regions=joins) for joins in (None, False))
    for pool in (joined, apart):
        for size in (2 * MIB, 4 * MIB):
            pool.malloc(size)
    assert (joined.stats().num_regions, apart.stats().num_regions) == (1, 2)


@pytest.mark.parametrize("growth", [True, False])
def test_b004_trim_gives_back_what_is_wholly_free(growth: bool) -> None:
    # Field report B004 (tensorflow#15880): memory taken was never given back.
    pool = Pool("256MiB", growth=growth)
    blocks = [pool.malloc(8 * MIB) for _ in range(10)]
    for block in blocks:
        pool.free(block)
    reserved = pool.stats().reserved
    assert reserved >= 80 * MIB
    assert pool.trim() == reserved
    assert pool.stats().reserved == 0

    kept = pool.allocate(4 * MIB)
    data = np.frombuffer(kept, np.uint8)
    data[:] = 7
    pool.free(pool.malloc(32 * MIB))
    pool.trim()
    (region,) = pool.snapshot().regions
    assert region.address <= kept.address < region.address + region.size
    assert pool.stats().reserved == region.size
    assert (data == 7).all()
    assert pool.trim() == 0


def test_b002_freed_regions_go_back_before_a_larger_request_is_refused() -> None:
    # Field report B002 (cupy#7678).
    pool = Pool("64MiB")
    pool.free(pool.malloc(32 * MIB))
    assert pool.malloc(48 * MIB)
    assert pool.stats().peak_reserved <= 64 * MIB
    other = Pool("64MiB", trim_on_oom=False)
    other.free(other.malloc(32 * MIB))
    with pytest.raises(OutOfMemoryError):
        other.malloc(48 * MIB)


def test_b003_the_growth_step_shrinks_to_what_is_left() -> None:
    # Field report B003 (rmm#496), with a capped source in place of a simulated device.
    source = MappedSource(32 * MIB)
    pool = Pool("1TiB", source=source)
    sizes = [8 * MIB, 8 * MIB, 8 * MIB, 15 * MIB // 2]
    blocks = [pool.malloc(size) for size in sizes]
    for number, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        ctypes.memset(block, number + 1, size)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(MIB)
    assert raised.value.verdict == "source"
    for number, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        assert ctypes.string_at(block, size) == bytes([number + 1]) * size
        pool.free(block)
    assert pool.trim() == 32 * MIB
    assert source.used == 0


@pytest.mark.parametrize("growth", [True, False])
@pytest.mark.parametrize(("size", "count"), [("1MiB", 256), ("64KiB", 4096), ("100MiB", 2)])
def test_b006_the_limit_is_exact_and_said(size: str, count: int, growth: bool) -> None:
    # Field report B006 (tensorflow#53822), with a capped source in place of a simulated device.
    pool = Pool("256MiB", source=MappedSource(1024 * MIB), growth=growth)
    for _ in range(count):
        pool.malloc(size)
        assert pool.stats().reserved <= 256 * MIB
    with pytest.raises(OutOfMemoryError) as raised:
        pool.malloc(size)
    assert raised.value.limit == 256 * MIB
    assert raised.value.verdict == "full"
    assert "256 MiB" in str(raised.value)


@pytest.mark.parametrize("total", [1_000_000_007, 85_899_345_920, 3 << 30])
@pytest.mark.parametrize("share", [0.1, 0.3, 1 / 3, 0.7, 1.0])
def test_b005_the_whole_limit_can_be_had_and_not_a_granule_more(total: int, share: float) -> None:
    # Field report B005 (pytorch#179444), for a pool whose limit is a share of a total.
    limit = int(share * total)
    whole = limit // 256 * 256
    for growth in (True, False):
        pool = Pool(limit, growth=growth)
        assert pool.limit == limit
        with pytest.raises(OutOfMemoryError):
            pool.malloc(whole + 1)
        pool.free(pool.malloc(whole))
