//! A whole pool under every interleaving of two threads: `RUSTFLAGS="--cfg loom" cargo test --package allotment
//! --release --test loom`.
//!
//! All synchronization is in `allotment-sync`, which runs on loom's primitives; its own tests cover each part.
//!
//! Longer than 300 lines: every interleaving of one pool after the other, with the same few helpers.
#![cfg(loom)]

#[path = "loom/elastic.rs"]
mod elastic;

use std::time::Duration;

use allotment::source::{AddressSpace, Call, Log, Recording};
use allotment::{AllocError, Allocation, GRANULE, Options, Pool, Unusable};
use loom::sync::Arc;
use loom::thread;

/// Runs `test` under all interleavings with at most `changes` preemptions.
fn model(changes: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(changes);
    builder.max_branches = 100_000;
    builder.check(test);
}

fn pool(options: Options) -> (Arc<Pool>, Log) {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    (Arc::new(Pool::new(source, options).expect("options in range")), log)
}

fn spawn<T: 'static>(pool: &Arc<Pool>, work: impl FnOnce(&Pool) -> T + 'static) -> thread::JoinHandle<T> {
    let pool = Arc::clone(pool);
    thread::spawn(move || work(&pool))
}

/// Checks that nothing is live and all invariants hold.
fn is_empty_and_sound(pool: &Pool) {
    pool.check().expect("every invariant holds");
    assert_eq!(pool.stats().expect("this process").num_live, 0);
}

#[test]
fn two_threads_that_grow_at_once_stay_under_the_limit() {
    // A refusal takes the lock so often that two changes would be too many.
    model(1, || {
        let (pool, log) = pool(Options::new(GRANULE));
        let attempt = |pool: &Pool| pool.allocate(1);
        let other = spawn(&pool, attempt);
        let mine = attempt(&pool);
        let results = [mine, other.join().expect("no panic")];
        let served = results.iter().flatten().count();
        assert_eq!(served, 1, "the limit is one granule, and nothing was freed");
        assert!(matches!(results.iter().find_map(|r| r.as_ref().err()), Some(AllocError::OutOfMemory(_))));
        let granted =
            log.take().into_iter().filter(|call| matches!(call, Call::Reserve { answer: Some(_), .. }));
        assert_eq!(granted.count(), 1);
        assert_eq!(pool.stats().expect("this process").reserved, GRANULE);
        pool.check().expect("every invariant holds");
    });
}

#[test]
fn allocations_of_two_threads_do_not_overlap() {
    model(2, || {
        let (pool, _) = pool(Options::new(4 * GRANULE).growth(false));
        let work = |pool: &Pool| {
            let allocation = pool.allocate(GRANULE).expect("room for two");
            pool.free_allocation(&allocation).expect("it is ours");
        };
        work(&pool);
        let other = spawn(&pool, work);
        work(&pool);
        other.join().expect("no panic");
        is_empty_and_sound(&pool);
    });
}

#[test]
fn a_deferred_free_runs_exactly_once() {
    model(2, || {
        let (pool, _) = pool(Options::new(2 * GRANULE).growth(false));
        let deferred = pool.allocate(1).expect("room");
        let other = spawn(&pool, move |pool| {
            pool.free_deferred(&deferred);
            pool.free_deferred(&deferred);
        });
        let mine = pool.allocate(1).expect("room beside the other");
        pool.free(mine.address).expect("it is ours");
        other.join().expect("no panic");
        assert_eq!(pool.allocate(2 * GRANULE).expect("all of it is free").size, 2 * GRANULE);
        pool.check().expect("every invariant holds");
    });
}

/// Loom's clock does not advance: it reports a thread that is never woken.
#[test]
fn a_free_wakes_a_waiting_thread() {
    model(2, || {
        let (pool, _) = pool(Options::new(GRANULE).growth(false).wait(Duration::from_secs(3600)));
        let held = pool.allocate(1).expect("room");
        let other = spawn(&pool, |pool| pool.allocate(1).expect("it waits").address);
        pool.free(held.address).expect("it is ours");
        let address = other.join().expect("no panic");
        pool.free(address).expect("a live allocation");
        is_empty_and_sound(&pool);
    });
}

/// The thread that frees asks again at once: it lets the waiting one go first, and both are served.
#[test]
fn a_thread_that_frees_and_asks_again_waits_for_its_turn() {
    model(2, || {
        let (pool, _) = pool(Options::new(GRANULE).growth(false).wait(Duration::from_secs(3600)));
        let held = pool.allocate(1).expect("room");
        let other = spawn(&pool, |pool| {
            let held = pool.allocate(1).expect("it waits");
            pool.free(held.address).expect("a live allocation");
        });
        pool.free(held.address).expect("it is ours");
        let held = pool.allocate(1).expect("it waits for its turn");
        pool.free(held.address).expect("it is ours");
        other.join().expect("no panic");
        is_empty_and_sound(&pool);
    });
}

#[test]
fn a_closed_pool_gives_every_region_back_once() {
    model(2, || {
        let (pool, log) = pool(Options::new(GRANULE).growth(false));
        let held = pool.allocate(1).expect("room");
        let other = spawn(&pool, move |pool| pool.free_deferred(&held));
        pool.close().expect("no thread is inside the source");
        other.join().expect("no panic");
        // Without another call: the last thread to leave has released them.
        let released = log.take().into_iter().filter(|call| matches!(call, Call::Release(_)));
        assert_eq!(released.count(), 1);
        assert!(matches!(pool.allocate(1), Err(AllocError::Unusable(Unusable::Closed))));
        is_empty_and_sound(&pool);
    });
}

#[test]
fn a_refused_request_leaves_no_deferred_free_behind() {
    for work in [
        (|pool| assert!(pool.allocate(1).is_err())) as fn(&Pool),
        |pool| assert!(!matches!(pool.try_allocate(1), Ok(Some(_)))),
        |pool| assert!(pool.trim().is_ok()),
        |pool| assert!(pool.check().is_ok()),
    ] {
        model(2, move || {
            let (pool, log) = pool(Options::new(GRANULE).growth(false));
            let held = pool.allocate(1).expect("room");
            pool.close().expect("no thread is inside the source");
            let other = spawn(&pool, move |pool| pool.free_deferred(&held));
            work(&pool);
            other.join().expect("no panic");
            let released = log.take().into_iter().filter(|call| matches!(call, Call::Release(_)));
            assert_eq!(released.count(), 1);
        });
    }
}

/// A thread that runs a deferred free holds the lock, and another free may be deferred meanwhile.
#[test]
fn two_deferred_frees_are_both_run() {
    model(2, || {
        let (pool, log) = pool(Options::new(2 * GRANULE).growth(false));
        let [one, another] = [(); 2].map(|()| pool.allocate(1).expect("room"));
        let other = spawn(&pool, move |pool| {
            pool.free_deferred(&one);
            pool.free_deferred(&another);
        });
        pool.close().expect("no thread is inside the source");
        other.join().expect("no panic");
        let released = log.take().into_iter().filter(|call| matches!(call, Call::Release(_)));
        assert_eq!(released.count(), 1);
        is_empty_and_sound(&pool);
    });
}

/// A pool whose small requests are served from thread caches, with all of its limit reserved and free.
fn cached(granules: u64, wait: Duration) -> (Arc<Pool>, Log) {
    let options = Options::new(granules * GRANULE).growth(false).thread_caches(true).wait(wait);
    let (pool, log) = pool(options);
    let first = pool.allocate(granules * GRANULE).expect("an empty pool");
    pool.free(first.address).expect("it is ours");
    (pool, log)
}

/// Checks the figures of a pool with live allocations of these bytes, a granule each.
fn holds(pool: &Pool, requested: &[u64]) {
    let stats = pool.stats().expect("this process");
    let count = requested.len() as u64;
    assert_eq!((stats.num_live, stats.in_use), (count, count * GRANULE));
    assert_eq!(stats.requested, requested.iter().sum());
    pool.check().expect("every invariant holds");
    assert_eq!(pool.stats().expect("this process").thread_cached, 0);
}

#[test]
fn allocations_from_two_caches_do_not_overlap() {
    model(1, || {
        let (pool, _) = cached(4, Duration::ZERO);
        let work = |pool: &Pool| {
            let [one, another] = [7, 9].map(|bytes| pool.allocate(bytes).expect("room for four"));
            pool.free(another.address).expect("it is ours");
            one
        };
        let other = spawn(&pool, work);
        let mine = work(&pool);
        let theirs = other.join().expect("no panic");
        assert_ne!((mine.address, mine.id), (theirs.address, theirs.id));
        holds(&pool, &[7, 7]);
    });
}

#[test]
fn a_chunk_is_freed_into_the_cache_of_another_thread_once() {
    for free in [
        (|pool, one| pool.free(one.address).is_ok()) as fn(&Pool, &Allocation) -> bool,
        |pool, one| pool.free_allocation(one).is_ok(),
        |pool, one| pool.try_free(one.address) == Ok(Some(())),
    ] {
        model(2, move || {
            let (pool, _) = cached(2, Duration::ZERO);
            let one = pool.allocate(5).expect("room");
            let other = spawn(&pool, move |pool| free(pool, &one));
            let freed = pool.free_allocation(&one).is_ok();
            let freed_there = other.join().expect("no panic");
            // A call that does not wait may leave it to the other.
            assert!(freed != freed_there);
            holds(&pool, &[]);
        });
    }
}

#[test]
fn what_looks_at_all_chunks_sees_each_once_whatever_a_cache_does_meanwhile() {
    for look in [
        (|pool| {
            let stats = pool.stats().expect("this process");
            assert!(stats.requested == stats.num_live * 5 && stats.in_use == stats.num_live * GRANULE);
        }) as fn(&Pool),
        |pool| pool.check().expect("every invariant holds"),
        |pool| {
            let snapshot = pool.snapshot().expect("this process");
            let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
            assert_eq!(chunks.filter(|chunk| chunk.in_use).count() as u64, snapshot.stats.num_live);
        },
    ] {
        model(2, move || {
            let (pool, _) = cached(2, Duration::ZERO);
            let before = pool.allocate(5).expect("room");
            let other = spawn(&pool, move |pool| {
                let one = pool.allocate(5);
                pool.free(before.address).expect("it is ours");
                one.expect("room for both")
            });
            look(&pool);
            other.join().expect("no panic");
            holds(&pool, &[5]);
        });
    }
}

#[test]
fn what_another_thread_keeps_is_given_back_before_a_refusal() {
    model(1, || {
        let (pool, _) = cached(2, Duration::ZERO);
        let one = pool.allocate(1).expect("room");
        let other = spawn(&pool, move |pool| pool.free(one.address).expect("it is ours"));
        let early = pool.allocate(2 * GRANULE).ok();
        other.join().expect("no panic");
        let whole = early.unwrap_or_else(|| pool.allocate(2 * GRANULE).expect("nothing is live"));
        pool.free_allocation(&whole).expect("it is ours");
        holds(&pool, &[]);
    });
}

/// Loom's clock does not advance: it reports a thread that is never woken.
#[test]
fn a_free_of_a_cached_allocation_wakes_a_waiting_thread() {
    model(1, || {
        let (pool, _) = cached(1, Duration::from_secs(3600));
        let one = pool.allocate(1).expect("room");
        let other = spawn(&pool, |pool| pool.allocate(1).expect("it waits"));
        pool.free(one.address).expect("it is ours");
        let theirs = other.join().expect("no panic");
        pool.free_allocation(&theirs).expect("it is theirs");
        holds(&pool, &[]);
    });
}

#[test]
fn a_scope_or_the_end_of_a_pool_leaves_nothing_in_a_cache() {
    model(2, || {
        let (pool, _) = cached(2, Duration::ZERO);
        let one = pool.allocate(5).expect("room");
        let other = spawn(&pool, move |pool| {
            pool.free(one.address).expect("it is ours");
            pool.allocate(6).expect("room")
        });
        let scope = pool.open_scope("all", None, true).expect("this process");
        let theirs = other.join().expect("no panic");
        assert_eq!(pool.stats().expect("this process").thread_cached, 0);
        pool.free_allocation(&theirs).expect("it is theirs");
        assert_eq!(pool.stats().expect("this process").thread_cached, 0);
        pool.close_scope(scope).expect("this process");
        holds(&pool, &[]);
    });
    model(2, || {
        let (pool, log) = cached(2, Duration::ZERO);
        let one = pool.allocate(5).expect("room");
        let other = spawn(&pool, move |pool| pool.free_deferred(&one));
        pool.close().expect("no thread is inside the source");
        other.join().expect("no panic");
        let released = log.take().into_iter().filter(|call| matches!(call, Call::Release(_)));
        assert_eq!(released.count(), 1);
    });
}

/// Loom has room for two caches; of three threads one uses the lock, or has the cache of one that has ended.
#[test]
fn a_thread_without_a_cache_uses_the_lock() {
    model(1, || {
        let (pool, _) = cached(3, Duration::ZERO);
        let one = pool.allocate(5).expect("room");
        let first = spawn(&pool, |pool| pool.allocate(5).is_ok());
        let second = spawn(&pool, move |pool| pool.free_allocation(&one).is_ok());
        assert!(first.join().expect("no panic") && second.join().expect("no panic"));
        holds(&pool, &[5]);
    });
}
