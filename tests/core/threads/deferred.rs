//! Frees that do not wait for the lock: none is lost, and the next caller runs them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use allotment::bindings::PoolForBindings as _;
use allotment::source::AddressSpace;
use allotment::{Allocation, Options, Pool};

use super::{KIB, MIB, ends, observe};

const LIMIT: u64 = MIB;

/// Creates a full pool of one region, with many allocations.
fn full_pool() -> (Arc<Pool>, Vec<Allocation>) {
    let options = Options::new(LIMIT).growth(false);
    let pool = Arc::new(Pool::new(AddressSpace::new(0), options).expect("options in range"));
    let live = (0..LIMIT / KIB).map(|_| pool.allocate(KIB).expect("fits")).collect();
    (pool, live)
}

/// Keeps the lock busy while `work` runs; `check` holds it long in a pool of many chunks.
fn under_a_busy_lock(pool: &Pool, work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    let (start, started) = (Barrier::new(3), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                while !over.load(Ordering::Relaxed) {
                    pool.check().expect("every invariant holds");
                    started.store(true, Ordering::Relaxed);
                }
            });
        }
        start.wait();
        while !started.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        work();
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn deferred_frees_run_before_the_next_call() {
    ends(|| {
        for _ in 0..20 {
            let (pool, live) = full_pool();
            under_a_busy_lock(&pool, || live.iter().for_each(|allocation| pool.free_deferred(allocation)));
            // The first later call needs every one of them.
            assert_eq!(pool.allocate(LIMIT).expect("all of it is free").size, LIMIT);
        }
    });
}

#[test]
fn a_deferred_free_of_a_freed_allocation_does_nothing() {
    ends(|| {
        let (pool, live) = full_pool();
        under_a_busy_lock(&pool, || {
            for allocation in &live {
                pool.free_deferred(allocation);
                pool.free_deferred(allocation);
                let _ = pool.free_allocation(allocation);
            }
        });
        let stats = observe(&pool);
        assert_eq!((stats.num_live, stats.in_use), (0, 0));
        pool.check().expect("every invariant holds");
    });
}

#[test]
fn a_deferred_free_never_frees_the_next_owner_of_its_address() {
    ends(|| {
        for _ in 0..5 {
            let (pool, live) = full_pool();
            for allocation in &live {
                pool.free_allocation(allocation).expect("live");
            }
            let owners: Vec<_> =
                live.iter().map(|_| pool.allocate(KIB).expect("all of it is free")).collect();
            assert!(owners.iter().zip(&live).all(|(owner, former)| owner.address == former.address));
            // None of them waits for the lock, so many find it taken.
            under_a_busy_lock(&pool, || live.iter().for_each(|former| pool.free_deferred(former)));
            assert_eq!(observe(&pool).num_live, live.len() as u64);
            for owner in owners {
                pool.free_allocation(&owner).expect("still live");
            }
        }
    });
}

#[test]
fn a_deferred_free_of_a_pinned_allocation_does_nothing() {
    ends(|| {
        let (pool, live) = full_pool();
        for allocation in &live {
            pool.pin(allocation).expect("live");
            pool.free_deferred(allocation);
        }
        under_a_busy_lock(&pool, || live.iter().for_each(|allocation| pool.free_deferred(allocation)));
        assert_eq!(observe(&pool).num_live, live.len() as u64);
        for allocation in &live {
            pool.unpin(allocation);
            pool.free_allocation(allocation).expect("still live");
        }
    });
}

#[test]
fn calls_that_do_not_wait_report_contention_and_lose_nothing() {
    ends(|| {
        let mut found_busy = 0;
        // Two threads keep the lock busy: eventually it is found taken.
        while found_busy == 0 {
            let (pool, live) = full_pool();
            under_a_busy_lock(&pool, || {
                for allocation in &live {
                    while pool.try_free(allocation.address).expect("live").is_none() {
                        found_busy += 1;
                    }
                }
            });
            assert_eq!(observe(&pool).num_live, 0);
        }
    });
}
