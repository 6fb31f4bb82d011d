//! Thread caches: chunks that pass from cache to cache, threads that come and go, and requests that need all of them.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Barrier, Mutex};
use std::thread;

use allotment::source::{AddressSpace, Call, Log, Recording};
use allotment::{AllocError, Allocation, FreeError, Options, Pool, Unusable};

use super::contention::Ranges;
use super::numbers::Numbers;
use super::{KIB, MIB, ends, observe};

fn cached(limit: u64, growth: bool) -> (Pool, Log) {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    let options = Options::new(limit).growth(growth).thread_caches(true);
    (Pool::new(source, options).expect("options in range"), log)
}

fn is_empty(pool: &Pool) {
    let stats = observe(pool);
    assert_eq!((stats.num_live, stats.in_use, stats.requested), (0, 0, 0));
    pool.check().expect("every invariant holds");
    pool.trim().expect("not inside a source");
    let stats = observe(pool);
    assert_eq!((stats.reserved, stats.thread_cached), (0, 0));
}

#[test]
fn chunks_that_one_thread_allocates_and_another_frees_are_each_used_by_one() {
    ends(|| {
        let (pool, _) = cached(64 * MIB, false);
        let ranges = Ranges::default();
        let (pool, ranges) = (&pool, &ranges);
        thread::scope(|scope| {
            let (sends, receives): (Vec<_>, Vec<_>) = (0..4).map(|_| sync_channel::<Allocation>(100)).unzip();
            for (index, receive) in receives.into_iter().enumerate() {
                scope.spawn(move || {
                    for allocation in receive {
                        ranges.give_back(&allocation, index as u64);
                        let freed = pool.free_allocation(&allocation);
                        assert_eq!(freed, Ok(()));
                        assert_eq!(
                            pool.free_allocation(&allocation),
                            Err(FreeError::NotAllocated { address: allocation.address })
                        );
                    }
                });
            }
            for seed in 1..=4 {
                let sends = sends.clone();
                scope.spawn(move || {
                    let mut random = Numbers::new(seed);
                    for _ in 0..20_000 {
                        let allocation = pool.allocate(1 + random.below(40 * KIB)).expect("most are freed");
                        let to = random.place(sends.len());
                        ranges.take(&allocation, to as u64);
                        sends[to].send(allocation).expect("it receives");
                    }
                });
            }
            drop(sends);
        });
        assert!(observe(pool).num_from_thread_caches > 40_000);
        is_empty(pool);
    });
}

#[test]
fn threads_that_come_and_go_leave_what_they_kept_to_the_others() {
    ends(|| {
        let (pool, _) = cached(4 * MIB, false);
        let handed_over = Mutex::new(Vec::new());
        for round in 0..60 {
            thread::scope(|scope| {
                for seed in 0..8 {
                    let (pool, handed_over) = (&pool, &handed_over);
                    scope.spawn(move || {
                        let mut random = Numbers::new(round * 8 + seed);
                        let mut live = handed_over.lock().expect("no thread failed").split_off(0);
                        for _ in 0..300 {
                            if let Ok(allocation) = pool.allocate(1 + random.below(8 * KIB)) {
                                live.push(allocation);
                            }
                            if live.len() > 40 {
                                let freed = live.swap_remove(random.place(live.len()));
                                pool.free(freed.address).expect("it is live");
                            }
                        }
                        handed_over.lock().expect("no thread failed").append(&mut live);
                    });
                }
            });
            // Whatever ended threads keep, all but the live allocations can be had.
            let live = handed_over.lock().expect("no thread failed");
            let in_use: u64 = live.iter().map(|allocation| allocation.size).sum();
            assert_eq!((observe(&pool).in_use, observe(&pool).num_live), (in_use, live.len() as u64));
        }
        let live = handed_over.into_inner().expect("no thread failed");
        for allocation in &live {
            pool.free_allocation(allocation).expect("it is live");
        }
        is_empty(&pool);
    });
}

#[test]
fn a_request_for_everything_gets_what_all_caches_keep() {
    ends(|| {
        let (pool, _) = cached(8 * MIB, false);
        let (filled, over) = (Barrier::new(5), Barrier::new(5));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        filled.wait();
                        let live: Vec<_> = (0..50).map_while(|n| pool.allocate(1 + n * 600).ok()).collect();
                        for allocation in &live {
                            pool.free(allocation.address).expect("it is live");
                        }
                        filled.wait();
                        over.wait();
                    }
                });
            }
            for round in 0..20 {
                filled.wait();
                filled.wait();
                assert!(observe(&pool).thread_cached > 0);
                let whole = match round % 3 {
                    0 => pool.allocate(8 * MIB).ok(),
                    1 => pool.try_allocate(8 * MIB).expect("the pool is open"),
                    _ => pool
                        .can_allocate(8 * MIB)
                        .expect("this process")
                        .then(|| pool.allocate(8 * MIB).ok())
                        .flatten(),
                };
                let whole = whole.expect("nothing is live");
                assert!(matches!(pool.allocate(1), Err(AllocError::OutOfMemory(_))));
                pool.free(whole.address).expect("it is ours");
                over.wait();
            }
        });
        is_empty(&pool);
    });
}

#[test]
fn of_threads_that_free_one_allocation_one_succeeds() {
    ends(|| {
        let (pool, _) = cached(MIB, false);
        let (start, freed) = (Barrier::new(4), AtomicUsize::new(0));
        let allocation = Mutex::new(None);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (pool, start, freed, allocation) = (&pool, &start, &freed, &allocation);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        if round % 4 == thread {
                            *allocation.lock().expect("no thread failed") =
                                Some(pool.allocate(100).expect("room"));
                        }
                        start.wait();
                        let one = allocation.lock().expect("no thread failed").expect("allocated");
                        let is_freed = match (round + thread) % 3 {
                            0 => pool.free_allocation(&one).is_ok(),
                            1 => pool.free(one.address).is_ok(),
                            _ => pool.try_free_allocation(&one) == Ok(Some(())),
                        };
                        freed.fetch_add(usize::from(is_freed), Ordering::Relaxed);
                        if start.wait().is_leader() {
                            assert_eq!(freed.swap(0, Ordering::Relaxed), 1);
                        }
                        start.wait();
                    }
                });
            }
        });
        is_empty(&pool);
    });
}

/// Waits for a number without giving up the core, so that two threads go on within a fraction of a microsecond.
fn spin_until(number: &AtomicU64, wanted: u64) {
    for turn in 1_u64.. {
        if number.load(Ordering::Acquire) == wanted {
            return;
        }
        if turn.is_multiple_of(10_000) {
            thread::yield_now();
        }
        spin_loop();
    }
}

#[test]
fn two_threads_that_free_one_allocation_at_the_same_moment_free_it_once() {
    const ROUNDS: u64 = 30_000;
    const DELAYS: u64 = 60;
    ends(|| {
        let (pool, _) = cached(MIB, false);
        let [made, seen, done, freed] = [const { AtomicU64::new(0) }; 4];
        let address = AtomicU64::new(0);
        let free = |delay| {
            (0..delay).for_each(|_| spin_loop());
            let is_freed = pool.free(address.load(Ordering::Acquire)).is_ok();
            freed.fetch_add(u64::from(is_freed), Ordering::AcqRel);
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    address.store(pool.allocate(100).expect("room").address, Ordering::Release);
                    made.store(round, Ordering::Release);
                    spin_until(&seen, round);
                    free(round % DELAYS);
                    spin_until(&done, round);
                }
            });
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    spin_until(&made, round);
                    seen.store(round, Ordering::Release);
                    free(round / DELAYS % DELAYS);
                    done.store(round, Ordering::Release);
                }
            });
        });
        assert_eq!(freed.load(Ordering::Acquire), ROUNDS);
        is_empty(&pool);
    });
}

#[test]
fn closing_and_scopes_empty_caches_in_use() {
    ends(|| {
        for round in 0..12 {
            let (pool, log) = cached(16 * MIB, true);
            let start = Barrier::new(5);
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                for seed in 0..4 {
                    let (pool, start, over) = (&pool, &start, &over);
                    scope.spawn(move || {
                        let mut random = Numbers::new(seed);
                        let mut live = Vec::new();
                        start.wait();
                        loop {
                            match pool.allocate(1 + random.below(4 * KIB)) {
                                Ok(allocation) => live.push(allocation),
                                Err(AllocError::OutOfMemory(_)) => {
                                    live.drain(..)
                                        .for_each(|each| pool.free(each.address).expect("it is live"));
                                }
                                Err(error) => {
                                    assert!(
                                        matches!(error, AllocError::Unusable(Unusable::Closed)),
                                        "{error}"
                                    );
                                    break;
                                }
                            }
                            if live.len() > 30 {
                                pool.free_deferred(&live.swap_remove(random.place(live.len())));
                            }
                        }
                        assert!(over.load(Ordering::Acquire));
                        for each in &live {
                            pool.free(each.address).expect("it is live");
                        }
                    });
                }
                start.wait();
                for _ in 0..round {
                    let scope = pool.open_scope("step", Some(MIB), true).expect("this process");
                    assert_eq!(observe(&pool).thread_cached, 0);
                    let held = pool.scope_stats(scope).expect("this process").expect("it is open").live;
                    assert!(held <= MIB);
                    pool.close_scope(scope).expect("this process");
                    thread::yield_now();
                }
                over.store(true, Ordering::Release);
                pool.close().expect("not inside a source");
                assert_eq!(observe(&pool).thread_cached, 0);
            });
            let out = log.take().iter().fold(0, |out, call| match call {
                Call::Reserve { answer, .. } => out + answer.map_or(0, |grant| grant.bytes),
                Call::Release(region) => out - region.bytes,
                other => panic!("{other:?} of a pool of regions"),
            });
            assert_eq!((observe(&pool).num_live, observe(&pool).reserved, out), (0, 0, 0), "round {round}");
        }
    });
}
