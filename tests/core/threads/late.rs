//! Frees that do not wait for the lock: none is lost, the next caller does them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use allotment::source::AddressSpace;
use allotment::{Allocation, Options, Pool};

use super::{KIB, MIB, ends, observe};

const LIMIT: u64 = MIB;

/// A full pool of one region, and the many allocations that fill it.
fn full_pool() -> (Arc<Pool>, Vec<Allocation>) {
    let options = Options { growth: false, ..Options::new(LIMIT) };
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
fn late_frees_are_done_before_anything_else() {
    ends(|| {
        for _ in 0..20 {
            let (pool, live) = full_pool();
            under_a_busy_lock(&pool, || live.iter().for_each(|allocation| pool.free_late(allocation)));
            // The first call after them already needs every single one.
            assert_eq!(pool.allocate(LIMIT).expect("all of it is free").size, LIMIT);
        }
    });
}

#[test]
fn a_late_free_of_what_was_freed_already_does_nothing() {
    ends(|| {
        let (pool, live) = full_pool();
        under_a_busy_lock(&pool, || {
            for allocation in &live {
                pool.free_late(allocation);
                pool.free_late(allocation);
                let _ = pool.free_allocation(allocation);
            }
        });
        let stats = observe(&pool);
        assert_eq!((stats.num_live, stats.in_use), (0, 0));
        pool.check().expect("every invariant holds");
    });
}

#[test]
fn a_late_free_never_frees_the_next_owner_of_its_address() {
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
            under_a_busy_lock(&pool, || live.iter().for_each(|former| pool.free_late(former)));
            assert_eq!(observe(&pool).num_live, live.len() as u64);
            for owner in owners {
                pool.free_allocation(&owner).expect("still live");
            }
        }
    });
}

#[test]
fn a_late_free_of_what_is_pinned_does_nothing_whether_the_lock_is_free_or_taken() {
    ends(|| {
        let (pool, live) = full_pool();
        for allocation in &live {
            pool.pin(allocation).expect("live");
            pool.free_late(allocation);
        }
        under_a_busy_lock(&pool, || live.iter().for_each(|allocation| pool.free_late(allocation)));
        assert_eq!(observe(&pool).num_live, live.len() as u64);
        for allocation in &live {
            pool.unpin(allocation);
            pool.free_allocation(allocation).expect("still live");
        }
    });
}

#[test]
fn doors_that_do_not_wait_say_so_and_lose_nothing() {
    ends(|| {
        let mut found_busy = 0;
        // Two threads keep the lock busy: sooner or later it is found taken.
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
