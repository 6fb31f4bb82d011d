//! Requests and limits at the edges: zero, one granule more, everything.

use allotment::source::AddressSpace;
use allotment::{FreeError, GRANULE, MAX_BYTES, Options, OptionsError, Pool, Request};

use super::{GIB, MIB, recorded, refused};

#[test]
fn zero_bytes_are_served_without_anything_and_freed_without_anything() {
    let (pool, log) = recorded(AddressSpace::new(0), Options::new(MIB));
    let before = pool.stats().unwrap();
    for nothing in
        [pool.allocate(0), pool.allocate_with_retry(Request::new(0).align(4096), |_| panic!("not refused"))]
    {
        let nothing = nothing.unwrap();
        assert_eq!((nothing.address, nothing.size, nothing.requested, nothing.id), (0, 0, 0, 0));
        pool.free(nothing.address).unwrap();
        pool.free_allocation(&nothing).unwrap();
        pool.free_deferred(&nothing);
        assert_eq!(pool.try_free(nothing.address), Ok(Some(())));
    }
    assert_eq!(pool.try_allocate(0).unwrap().map(|nothing| nothing.size), Some(0));
    assert_eq!(pool.stats().unwrap(), before);
    assert_eq!(log.take(), []);
}

#[test]
fn a_fresh_pool_gives_its_whole_limit_at_once() {
    for limit in
        [256, 257, 511, 1000, 1_000_001, 2 * MIB - 1, 3 * MIB, 100_000_007, GIB, 64 * GIB, MAX_BYTES / 2]
    {
        for growth in [true, false] {
            let (pool, _) = recorded(AddressSpace::new(0), Options::new(limit).growth(growth));
            let all = pool.allocate(limit / GRANULE * GRANULE).unwrap();
            assert_eq!(all.size, limit / GRANULE * GRANULE, "of {limit} bytes");
            assert_eq!(pool.stats().unwrap().num_grants, 1);
            pool.free(all.address).unwrap();
            pool.trim().unwrap();
            assert_eq!(pool.stats().unwrap().reserved, 0);
        }
    }
}

#[test]
fn a_limit_below_a_granule_serves_nothing() {
    for limit in [1, 255] {
        let (pool, log) = recorded(AddressSpace::new(0), Options::new(limit));
        refused(pool.allocate(1));
        assert_eq!(log.take(), []);
        assert_eq!(pool.allocate(0).unwrap().size, 0);
    }
}

#[test]
fn limits_and_fractions_out_of_range_make_no_pool() {
    let made = |options| Pool::new(AddressSpace::new(0), options).map(drop);
    assert_eq!(made(Options::new(0)), Err(OptionsError::Limit { limit: 0 }));
    assert_eq!(made(Options::new(MAX_BYTES + 1)), Err(OptionsError::Limit { limit: MAX_BYTES + 1 }));
    assert_eq!(made(Options::new(MAX_BYTES)), Ok(()));
    for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let options = Options::new(1).fragmentation_fraction(fraction);
        assert!(matches!(made(options), Err(OptionsError::Fraction { .. })));
    }
}

#[test]
fn a_stale_allocation_does_not_free_the_new_owner_of_its_address() {
    let (pool, _) = recorded(AddressSpace::new(0), Options::new(MIB));
    let stale = pool.allocate(1000).unwrap();
    pool.free_allocation(&stale).unwrap();
    let owner = pool.allocate(1000).unwrap();
    assert_eq!(owner.address, stale.address);
    let not_allocated = Err(FreeError::NotAllocated { address: stale.address });
    assert_eq!(pool.free_allocation(&stale), not_allocated);
    pool.free_deferred(&stale);
    assert_eq!(pool.stats().unwrap().num_live, 1);
    assert_eq!(pool.free(owner.address), Ok(()));
    assert_eq!(pool.free(owner.address), not_allocated);
    assert_eq!(pool.try_free(owner.address), not_allocated.map(Some));
}
