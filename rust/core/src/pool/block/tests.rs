use std::sync::{Arc, Mutex};

use super::*;
use crate::source::{AddressSpace, Grant, RegionSource, ReserveError};
use crate::{GRANULE, Options};

fn pool() -> Arc<Pool> {
    Arc::new(Pool::new(AddressSpace::new(0), Options::new(1 << 20)).unwrap())
}

#[test]
fn a_block_is_freed_when_it_is_dropped_and_only_then() {
    let pool = pool();
    let borrowed = pool.block(1000).unwrap();
    let owned = pool.owned_block(1000).unwrap().with_data("text");
    assert_ne!(borrowed.address(), owned.address());
    assert_eq!(pool.stats().unwrap().num_live, 2);
    drop(borrowed);
    assert_eq!(pool.stats().unwrap().num_live, 1);
    assert_eq!(owned.free(), Ok("text"));
    assert_eq!(pool.stats().unwrap().num_live, 0);
}

#[test]
fn a_block_that_was_freed_by_its_address_does_not_free_the_next_owner() {
    let pool = pool();
    let block = pool.block(1000).unwrap();
    pool.free(block.address()).unwrap();
    let next = pool.block(1000).unwrap();
    assert_eq!(next.address(), block.address());
    drop(block);
    assert_eq!(pool.stats().unwrap().num_live, 1);
}

#[test]
fn an_allocation_outlives_a_block_that_gives_it_up() {
    let pool = pool();
    let (allocation, data) = pool.block(1000).unwrap().with_data(7).into_allocation();
    assert_eq!((pool.stats().unwrap().num_live, data), (1, 7));
    pool.free(allocation.address).unwrap();
}

#[test]
fn a_block_knows_its_size_after_a_resize() {
    let pool = pool();
    let mut block = pool.block(1000).unwrap();
    block.resize(5000).unwrap();
    assert_eq!((block.size(), block.allocation().requested), (5120, 5000));
    assert!(block.resize(2 << 20).is_err());
    assert_eq!(block.size(), 5120);
    assert_eq!(pool.stats().unwrap().in_use, 5120);
}

/// Grants regions at 0 and then at addresses far apart, and records what comes back.
struct Offsets {
    next: u64,
    released: Arc<Mutex<Vec<Grant>>>,
}

impl RegionSource for Offsets {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let grant = Grant { address: self.next, bytes };
        self.next += 1 << 40;
        Ok(grant)
    }

    fn release(&mut self, region: Grant) {
        self.released.lock().unwrap().push(region);
    }

    fn starts_at_zero(&self) -> bool {
        true
    }
}

#[test]
fn a_source_may_grant_address_0() {
    let released = Arc::default();
    let source = Offsets { next: 0, released: Arc::clone(&released) };
    let pool = Pool::new(source, Options::new(1 << 20).growth(false)).unwrap();
    let first = pool.block(GRANULE).unwrap();
    assert_eq!((first.address(), first.region(), first.offset()), (0, RegionId(0), 0));
    // Zero bytes have another address, so that a free of them frees nothing else.
    let nothing = pool.allocate(0).unwrap();
    assert_eq!((nothing.address, nothing.size), (u64::MAX, 0));
    assert_eq!(pool.free(nothing.address), Ok(()));
    assert_eq!(pool.block(0).unwrap().size(), 0);
    assert_eq!(pool.stats().unwrap().num_live, 1);
    assert_eq!(pool.free(0), Ok(()));
    assert_eq!(pool.free(0), Err(FreeError::NotAllocated { address: 0 }));
    drop(first);
    pool.trim().unwrap();
    assert_eq!(*released.lock().unwrap(), [Grant { address: 0, bytes: 1 << 20 }]);
}

#[test]
fn offsets_count_from_the_start_of_the_region() {
    let source = Offsets { next: 0, released: Arc::default() };
    let pool = Pool::new(source, Options::new(16 << 20)).unwrap();
    let first = pool.block(2 << 20).unwrap();
    let second = pool.block(1 << 20).unwrap();
    let third = pool.block(1 << 20).unwrap();
    assert_eq!((first.region(), first.offset()), (RegionId(0), 0));
    assert_eq!((second.region(), second.offset()), (RegionId(1 << 40), 0));
    assert_eq!((third.region().start(), third.offset()), (1 << 40, 1 << 20));
    assert_eq!(pool.region_of(third.address() + 5), Ok(Some((third.region(), (1 << 20) + 5))));
    assert_eq!(pool.region_of(1 << 50), Ok(None));
}

#[test]
fn a_block_knows_its_region_among_regions_that_come_and_go() {
    let pool = Pool::new(AddressSpace::new(256), Options::new(1 << 30)).expect("in range");
    let mut numbers = 0_u64;
    let mut live = Vec::new();
    for step in 0..2_000_usize {
        numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = pool.block(1 + (numbers >> 40) % (4 << 20)).expect("fits");
        let located = pool.region_of(block.address()).expect("this process");
        assert_eq!(located, Some((block.region(), block.offset())));
        live.push(block);
        if live.len() > 40 || step % 7 == 0 {
            drop(live.swap_remove(step % live.len()));
        }
        if step % 100 == 99 {
            live.clear();
            pool.trim().expect("this process");
        }
    }
    drop(live);
    assert!(pool.stats().expect("this process").num_grants > 20);
}
