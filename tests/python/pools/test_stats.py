"""Counters and snapshots."""

import json

import pytest

from allotment import OutOfMemoryError, Pool, PoolStats

MIB = 1 << 20
FIELDS = [
    "requested",
    "in_use",
    "internal_fragmentation",
    "reserved",
    "limit",
    "free",
    "thread_cached",
    "largest_free",
    "fragmentation",
    "peak_requested",
    "peak_in_use",
    "peak_reserved",
    "largest_requested",
    "num_allocs",
    "num_from_thread_caches",
    "num_live",
    "num_regions",
    "num_grants",
    "committed",
    "num_commits",
    "num_planned",
    "num_refused",
]


def figures(stats: PoolStats) -> dict[str, float]:
    return {field: getattr(stats, field) for field in FIELDS}


def test_before_the_first_allocation_everything_is_zero_but_the_limit() -> None:
    assert figures(Pool("1GiB").stats()) == dict.fromkeys(FIELDS, 0) | {"limit": 1 << 30}


def test_every_figure_after_a_short_program() -> None:
    # Allocator, section 22, T1: 1, 300, 512 and 1000 bytes, then the second and the first are freed.
    pool = Pool(MIB, growth=False)
    a, b, _, _ = (pool.malloc(size) for size in (1, 300, 512, 1000))
    assert figures(pool.stats()) == {
        "requested": 1813,
        "in_use": 2304,
        "internal_fragmentation": 491,
        "reserved": MIB,
        "limit": MIB,
        "free": MIB - 2304,
        "thread_cached": 0,
        "largest_free": MIB - 2304,
        "fragmentation": 0.0,
        "peak_requested": 1813,
        "peak_in_use": 2304,
        "peak_reserved": MIB,
        "largest_requested": 1000,
        "num_allocs": 4,
        "num_from_thread_caches": 0,
        "num_live": 4,
        "num_regions": 1,
        "num_grants": 1,
        "committed": MIB,
        "num_commits": 0,
        "num_planned": 0,
        "num_refused": 0,
    }
    pool.free(b)
    pool.free(a)
    stats = pool.stats()
    assert (stats.requested, stats.in_use, stats.free) == (1512, 1536, MIB - 1536)
    assert (stats.largest_free, stats.num_live, stats.num_allocs) == (MIB - 2304, 2, 4)
    assert stats.fragmentation == pytest.approx(768 / (MIB - 1536))
    assert (stats.peak_requested, stats.peak_in_use) == (1813, 2304)


def test_b010_a_reset_of_the_peaks_keeps_the_totals() -> None:
    # Field report B010 (Torch-FL#362).
    pool = Pool("1GiB", growth=False)
    pool.malloc(10 * MIB)
    pool.free(pool.malloc(20 * MIB))
    stats = pool.stats()
    assert (stats.in_use, stats.peak_in_use) == (10 * MIB, 30 * MIB)
    pool.reset_peaks()
    after = pool.stats()
    assert (after.in_use, after.peak_in_use, after.peak_requested) == (10 * MIB, 10 * MIB, 10 * MIB)
    assert (after.num_allocs, after.largest_requested, after.peak_reserved) == (2, 20 * MIB, 1 << 30)
    pool.malloc(5 * MIB)
    stats = pool.stats()
    assert (stats.in_use, stats.peak_in_use, stats.num_allocs) == (15 * MIB, 15 * MIB, 3)


def test_a_trim_lowers_reserved_and_a_reset_its_peak() -> None:
    pool = Pool("1GiB")
    pool.free(pool.malloc(32 * MIB))
    pool.trim()
    assert (pool.stats().reserved, pool.stats().peak_reserved) == (0, 32 * MIB)
    pool.reset_peaks()
    assert pool.stats().peak_reserved == 0
    assert pool.stats().num_grants == 1


def test_each_refused_request_counts_once() -> None:
    pool = Pool("1MiB")
    for _ in range(3):
        with pytest.raises(OutOfMemoryError):
            pool.malloc("2MiB")
    stats = pool.stats()
    assert (stats.num_refused, stats.num_allocs, stats.in_use) == (3, 0, 0)


def test_stats_are_a_copy_and_cannot_be_changed() -> None:
    pool = Pool("1MiB")
    before = pool.stats()
    pool.malloc(1)
    assert before.num_allocs == 0
    assert before != pool.stats()
    with pytest.raises(AttributeError):
        before.in_use = 3  # type: ignore[misc]
    assert "num_allocs=0" in repr(before)


def test_a_snapshot_shows_every_chunk() -> None:
    pool = Pool(MIB, growth=False, source="address-space", name="shown")
    a, b, c = (pool.malloc(size) for size in (1, 300, 512))
    pool.free(b)
    snapshot = pool.snapshot()
    (region,) = snapshot.regions
    assert (snapshot.name, region.address, region.size) == ("shown", a, MIB)
    chunks = [(k.address - a, k.size, k.requested, k.id, k.in_use) for k in region.chunks]
    assert chunks == [
        (0, 256, 1, 1, True),
        (256, 512, 0, 0, False),
        (c - a, 512, 512, 3, True),
        (1280, MIB - 1280, 0, 0, False),
    ]
    assert snapshot.stats == pool.stats()


def test_json_has_the_same_names_and_the_summary_fits_a_terminal() -> None:
    pool = Pool("64MiB")
    for size in range(1, 40):
        pool.malloc(size * 1000)
    picture = json.loads(pool.snapshot().to_json())
    assert set(picture["stats"]) == set(FIELDS)
    assert set(picture) == {"name", "stats", "regions"}
    chunk = picture["regions"][0]["chunks"][0]
    assert set(chunk) == {"address", "size", "requested", "id", "in_use", "owner"}
    assert sum(k["size"] for r in picture["regions"] for k in r["chunks"]) == pool.stats().reserved
    summary = pool.snapshot().summary().splitlines()
    assert len(summary) < 12
    assert max(map(len, summary)) <= 100
    assert "39 allocations" in summary[0]
