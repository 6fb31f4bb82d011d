//! Problems reported by users of other allocators, tried on this one.

use std::sync::Arc;

use allotment::source::{AddressSpace, Cap, Capped};
use allotment::{GRANULE, Options, Pool, Verdict};

use super::{GIB, KIB, MIB, recorded, refused};

fn both_ways_to_grow(limit: u64) -> [Options; 2] {
    [true, false].map(|growth| Options::new(limit).growth(growth))
}

/// B001: a request fails although enough memory is free in pieces, and the error does not say so.
#[test]
fn pieces_that_are_too_small_are_named_as_the_reason() {
    let (pool, _) = recorded(AddressSpace::new(0), Options::new(64 * MIB).growth(false));
    let [a, b, c] = [24, 16, 24].map(|mib| pool.allocate(mib * MIB).unwrap());
    pool.free(a.address).unwrap();
    pool.free(c.address).unwrap();

    let out_of_memory = refused(pool.allocate(32 * MIB));
    assert_eq!(out_of_memory.requested, 32 * MIB);
    assert_eq!((out_of_memory.free, out_of_memory.largest_free), (48 * MIB, 24 * MIB));
    assert_eq!(out_of_memory.verdict, Verdict::Fragmented);
    let text = out_of_memory.to_string();
    assert!(text.contains("fragmented, not full") && text.contains("24 MiB"), "{text}");
    // The snapshot shows the chunks between the pieces.
    let snapshot = pool.snapshot().unwrap();
    let chunks: Vec<_> = snapshot.regions[0].chunks.iter().map(|chunk| (chunk.size, chunk.id)).collect();
    assert_eq!(chunks, [(24 * MIB, 0), (16 * MIB, b.id), (24 * MIB, 0)]);

    pool.free(b.address).unwrap();
    let all = pool.allocate(64 * MIB).unwrap();
    pool.free(all.address).unwrap();
    let snapshot = pool.snapshot().unwrap();
    assert_eq!((snapshot.regions.len(), snapshot.regions[0].chunks.len()), (1, 1));
}

/// B002: the limit is checked before free regions are released.
#[test]
fn free_regions_make_room_for_a_larger_one() {
    let (pool, _) = recorded(AddressSpace::new(256), Options::new(64 * MIB));
    let first = pool.allocate(32 * MIB).unwrap();
    pool.free(first.address).unwrap();
    pool.allocate(48 * MIB).unwrap();
    let stats = pool.stats().unwrap();
    assert!(stats.peak_reserved <= 64 * MIB);
    assert_eq!(stats.num_refused, 0);
}

/// B003: growth requests more than the device has left, although the request itself would fit.
#[test]
fn growth_shrinks_to_what_the_device_has_left() {
    let cap = Cap::new(32 * MIB);
    let device = Capped::new(AddressSpace::new(256), Arc::clone(&cap));
    let (pool, _) = recorded(device, Options::new(1 << 40));
    let mut live: Vec<_> = (0..3).map(|_| pool.allocate(8 * MIB).unwrap()).collect();
    live.push(pool.allocate(7 * MIB + MIB / 2).unwrap());
    let out_of_memory = refused(pool.allocate(MIB));
    assert_eq!(out_of_memory.verdict, Verdict::Source);
    assert_eq!(out_of_memory.num_live, 4);
    assert!(cap.used() <= 32 * MIB);
    for allocation in live {
        pool.free_allocation(&allocation).unwrap();
    }
    pool.trim().unwrap();
    assert_eq!(cap.used(), 0);
}

/// B003, two pools on one device: memory of one is unavailable to the other until it is released.
#[test]
fn two_pools_share_what_the_device_has() {
    let cap = Cap::new(32 * MIB);
    let pool = || {
        let device = Capped::new(AddressSpace::new(256), Arc::clone(&cap));
        Pool::new(device, Options::new(64 * MIB)).unwrap()
    };
    let (one, other) = (pool(), pool());
    let held = one.allocate(20 * MIB).unwrap();
    let reserved = one.stats().unwrap().reserved;
    assert_eq!(refused(other.allocate(20 * MIB)).verdict, Verdict::Source);
    other.allocate(32 * MIB - reserved).unwrap();
    one.free(held.address).unwrap();
    assert_eq!(refused(other.allocate(20 * MIB)).verdict, Verdict::Source);
    one.trim().unwrap();
    other.allocate(20 * MIB).unwrap();
    assert!(cap.used() <= 32 * MIB);
}

/// B004: memory of the pool is never released.
#[test]
fn trim_gives_back_all_but_what_holds_something_live() {
    for options in both_ways_to_grow(GIB) {
        let (pool, _) = recorded(AddressSpace::new(256), options);
        let live: Vec<_> = (0..10).map(|_| pool.allocate(8 * MIB).unwrap()).collect();
        for allocation in live {
            pool.free_allocation(&allocation).unwrap();
        }
        let reserved = pool.stats().unwrap().reserved;
        assert!(reserved >= 80 * MIB);
        assert_eq!(pool.trim().unwrap(), reserved);
        assert_eq!(pool.stats().unwrap().reserved, 0);

        let kept = pool.allocate(4 * MIB).unwrap();
        let passing = pool.allocate(32 * MIB).unwrap();
        pool.free(passing.address).unwrap();
        pool.trim().unwrap();
        let snapshot = pool.snapshot().unwrap();
        assert_eq!(snapshot.regions.len(), 1);
        let held: Vec<_> = snapshot.regions[0].chunks.iter().filter(|chunk| chunk.in_use).collect();
        assert_eq!((held.len(), held[0].address, held[0].id), (1, kept.address, kept.id));
    }
}

/// B005: an allocation that exactly fills its limit fails.
#[test]
fn the_limit_is_exact_to_the_granule() {
    for total in [1_000_000_007_u64, 85_899_345_920, 3 * GIB] {
        for (numerator, denominator) in [(1, 10), (3, 10), (1, 3), (7, 10), (1, 1)] {
            let limit = total * numerator / denominator;
            let whole = limit / GRANULE * GRANULE;
            for options in both_ways_to_grow(limit) {
                let (pool, _) = recorded(AddressSpace::new(0), options);
                assert_eq!(pool.stats().unwrap().limit, limit);
                let out_of_memory = refused(pool.allocate(whole + GRANULE));
                assert_eq!(out_of_memory.verdict, Verdict::Limit);
                let all = pool.allocate(whole).unwrap();
                assert_eq!((all.size, pool.stats().unwrap().reserved), (whole, whole));
                assert_eq!(refused(pool.allocate(1)).verdict, Verdict::Full);
            }
        }
    }
}

/// B006: a process uses more than its limit, or is refused below it.
#[test]
fn as_many_allocations_fit_as_the_limit_says() {
    for (bytes, expected) in [(MIB, 256), (64 * KIB, 4096), (100 * MIB, 2)] {
        for options in both_ways_to_grow(256 * MIB) {
            let device = Capped::new(AddressSpace::new(256), Cap::new(GIB));
            let (pool, _) = recorded(device, options);
            let mut count = 0;
            let out_of_memory = loop {
                match pool.allocate(bytes) {
                    Ok(_) => count += 1,
                    result => break refused(result),
                }
            };
            assert_eq!(count, expected, "of {bytes} bytes");
            assert_eq!((out_of_memory.limit, out_of_memory.verdict), (256 * MIB, Verdict::Full));
            assert!(out_of_memory.to_string().contains("above the limit"));
            assert!(pool.stats().unwrap().peak_reserved <= 256 * MIB);
        }
    }
}
