use super::*;
use crate::source::AddressSpace;
use crate::{Allocation, FreeError, GRANULE};

fn full_pool() -> (Pool, Allocation) {
    let options = Options::new(GRANULE).growth(false);
    let pool = Pool::new(AddressSpace::new(0), options).unwrap();
    let only = pool.allocate(1).unwrap();
    (pool, only)
}

#[test]
fn the_next_caller_runs_a_free_that_could_not_take_the_lock() {
    let (pool, only) = full_pool();
    let inside = pool.lock_state().unwrap();
    pool.free_deferred(&only);
    assert_eq!(inside.allocator.live.len(), 1, "no other call takes the lock");
    drop(inside);
    assert_eq!(pool.allocate(1).unwrap().address, only.address);
}

#[test]
fn a_deferred_free_does_not_free_the_next_owner_of_its_address() {
    let (pool, first) = full_pool();
    pool.free_allocation(&first).unwrap();
    let next = pool.allocate(1).unwrap();
    assert_eq!(next.address, first.address);
    let inside = pool.lock_state().unwrap();
    pool.free_deferred(&first);
    drop(inside);
    assert_eq!(pool.stats().unwrap().num_live, 1);
    pool.free_allocation(&next).unwrap();
}

#[test]
fn the_fast_path_is_closed_while_a_slow_path_reason_exists() {
    let (pool, only) = full_pool();
    assert!(pool.on_fast_path(|_| Some(())).is_some(), "who comes first has the pool to itself");
    let scope = pool.open_scope("one", None, false).unwrap();
    assert!(pool.on_fast_path(|_| Some(())).is_none());
    pool.close_scope(scope).unwrap();
    pool.pin(&only).unwrap();
    assert!(
        pool.on_fast_path(|_| Some(())).is_some(),
        "a pin is a mark in its chunk, and nothing to think of elsewhere"
    );
    pool.close().unwrap();
    assert!(pool.on_fast_path(|_| Some(())).is_none());
}

#[test]
fn a_pool_may_be_used_where_panics_are_caught() {
    let (pool, only) = full_pool();
    let freed = std::panic::catch_unwind(|| pool.free_allocation(&only));
    assert_eq!(freed.unwrap(), Ok(()));
}

#[test]
fn an_allocation_without_number_is_none_but_that_of_zero_bytes() {
    let pool = Pool::new(AddressSpace::new(0), Options::new(1 << 20)).unwrap();
    let nothing = pool.allocate(0).unwrap();
    let held = pool.allocate(1).unwrap();
    let made_up = Allocation { id: 0, ..held };
    let refused = FreeError::NotAllocated { address: held.address };
    assert_eq!(pool.free_allocation(&made_up), Err(refused));
    assert_eq!(pool.try_free_allocation(&made_up), Err(refused));
    assert_eq!(pool.free_allocation(&nothing), Ok(()));
    assert_eq!(pool.try_free_allocation(&nothing), Ok(Some(())));
    assert_eq!(pool.free_allocation(&held), Ok(()));
}
