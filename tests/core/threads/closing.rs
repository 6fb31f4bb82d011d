//! The end of a pool: it refuses requests and releases every region after the last free, on any thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use allotment::source::{AddressSpace, Call, Log, Recording};
use allotment::{AllocError, Allocation, Options, Pool, Unusable};

use super::{MIB, ends, gated, observe};

fn recorded() -> (Pool, Log) {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(256), log.clone());
    (Pool::new(source, Options::new(64 * MIB)).expect("options in range"), log)
}

/// Returns the granted bytes according to the record.
fn still_out(log: &Log) -> u64 {
    log.take().iter().fold(0, |out, call| match call {
        Call::Reserve { answer, .. } => out + answer.map_or(0, |grant| grant.bytes),
        Call::Release(region) => out - region.bytes,
        other => panic!("{other:?} of a pool of regions"),
    })
}

fn is_closed<T>(result: &Result<T, AllocError>) -> bool {
    matches!(result, Err(AllocError::Unusable(Unusable::Closed)))
}

fn free_all(pool: &Pool, live: &mut Vec<Allocation>) {
    for allocation in live.drain(..) {
        pool.free_deferred(&allocation);
    }
}

#[test]
fn a_closed_pool_takes_frees_and_no_requests() {
    let (pool, log) = recorded();
    let held = pool.allocate(MIB).unwrap();
    pool.close().unwrap();
    assert!(is_closed(&pool.allocate(1)));
    assert!(is_closed(&pool.allocate_with_retry(1, |_| true)));
    assert!(is_closed(&pool.try_allocate(1)));
    assert_eq!(pool.can_allocate(1), Ok(false));
    assert_eq!(observe(&pool).num_live, 1);
    pool.free_allocation(&held).unwrap();
    assert_eq!((observe(&pool).reserved, still_out(&log)), (0, 0));
    assert!(is_closed(&pool.allocate(1)));
}

#[test]
fn closing_a_pool_without_allocations_releases_its_regions() {
    let (pool, log) = recorded();
    let held = pool.allocate(MIB).unwrap();
    pool.free_allocation(&held).unwrap();
    pool.close().unwrap();
    pool.close().unwrap();
    assert_eq!((observe(&pool).reserved, still_out(&log)), (0, 0));
}

#[test]
fn every_kind_of_last_free_releases_the_regions_of_a_closed_pool() {
    let by_address = |pool: &Pool, a: &Allocation| pool.free(a.address).unwrap();
    let by_trying = |pool: &Pool, a: &Allocation| assert_eq!(pool.try_free(a.address), Ok(Some(())));
    let deferred = |pool: &Pool, a: &Allocation| pool.free_deferred(a);
    for free in [by_address as fn(&Pool, &Allocation), by_trying, deferred] {
        let (pool, log) = recorded();
        let [first, last] = [MIB, 4 * MIB].map(|bytes| pool.allocate(bytes).unwrap());
        pool.close().unwrap();
        pool.free_allocation(&first).unwrap();
        assert_eq!(observe(&pool).num_regions, 2);
        free(&pool, &last);
        assert_eq!((observe(&pool).reserved, still_out(&log)), (0, 0));
    }
}

#[test]
fn a_dropped_pool_releases_free_regions_and_keeps_live_ones() {
    let (pool, log) = recorded();
    let [_, free] = [MIB, 4 * MIB].map(|bytes| pool.allocate(bytes).unwrap());
    pool.free_allocation(&free).unwrap();
    drop(pool);
    assert_eq!(still_out(&log), 2 * MIB);
}

#[test]
fn closing_while_other_threads_allocate_releases_every_region() {
    ends(|| {
        for round in 0..40 {
            let (pool, log) = recorded();
            let start = Barrier::new(5);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        let mut live = Vec::new();
                        for step in 1_u64.. {
                            match pool.allocate(step % 7 * 100_000 + 1) {
                                Ok(allocation) => live.push(allocation),
                                Err(AllocError::OutOfMemory(_)) => free_all(&pool, &mut live),
                                closed => {
                                    assert!(is_closed(&closed));
                                    break;
                                }
                            }
                        }
                        free_all(&pool, &mut live);
                    });
                }
                start.wait();
                for _ in 0..round {
                    thread::yield_now();
                }
                pool.close().expect("not inside a source");
            });
            let stats = observe(&pool);
            assert_eq!((stats.num_live, stats.reserved, still_out(&log)), (0, 0, 0), "round {round}");
        }
    });
}

#[test]
fn the_last_free_of_a_closed_pool_during_a_trim_releases_its_regions() {
    let (source, gate) = gated();
    let pool = Arc::new(Pool::new(source, Options::new(64 * MIB)).unwrap());
    gate.grant();
    gate.grant();
    let [free, last] = [MIB, 4 * MIB].map(|bytes| pool.allocate(bytes).unwrap());
    gate.wait();
    gate.wait();
    pool.free_allocation(&free).unwrap();
    pool.close().unwrap();
    let trim = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.trim()
    });
    // The trim holds the source lock and is inside the source; a free now cannot call the source.
    gate.wait();
    pool.free_allocation(&last).unwrap();
    drop(gate.answer);
    trim.join().unwrap().unwrap();
    assert_eq!(observe(&pool).reserved, 0);
}

#[test]
fn a_deferred_last_free_releases_the_regions_of_a_closed_pool() {
    ends(|| {
        for round in 0..300 {
            let (pool, log) = recorded();
            let held = pool.allocate(MIB).expect("granted");
            pool.close().expect("not inside a source");
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        pool.check().expect("every invariant holds");
                    }
                });
                thread::yield_now();
                pool.free_deferred(&held);
                over.store(true, Ordering::Relaxed);
            });
            assert_eq!((observe(&pool).reserved, still_out(&log)), (0, 0), "round {round}");
        }
    });
}

#[test]
fn closing_waits_for_a_running_source_call() {
    let (source, gate) = gated();
    let pool = Arc::new(Pool::new(source, Options::new(64 * MIB)).unwrap());
    let allocating = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.allocate(MIB)
    });
    gate.wait();
    let closing = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.close()
    });
    gate.grant();
    let served = allocating.join().unwrap();
    // In either order, no region stays.
    drop(gate.answer);
    closing.join().unwrap().unwrap();
    if let Ok(allocation) = served {
        pool.free_allocation(&allocation).unwrap();
    }
    assert_eq!(observe(&pool).reserved, 0);
}
