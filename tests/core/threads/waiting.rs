//! Waiting for memory.
//!
//! Longer than 300 lines: every reason that ends a wait, and the order of those that wait.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use allotment::bindings::PoolForBindings as _;
use allotment::source::AddressSpace;
use allotment::{AllocError, Allocation, Options, Pool, Request, Unusable, Verdict};

use super::{FOREVER, KIB, MIB, ends, observe};

const LIMIT: u64 = 4 * MIB;
const LATER: Duration = Duration::from_millis(100);

/// Creates a full pool without growth, and its four allocations of equal size.
fn full_pool(wait: Duration) -> (Arc<Pool>, [Allocation; 4]) {
    let options = Options::new(LIMIT).growth(false).wait(wait);
    let pool = Arc::new(Pool::new(AddressSpace::new(0), options).expect("options in range"));
    let quarters = [(); 4].map(|()| pool.allocate(LIMIT / 4).expect("fits"));
    (pool, quarters)
}

/// Runs a callback on the pool later, and requests memory meanwhile; returns the elapsed time and the result.
fn ask_while(
    pool: &Arc<Pool>,
    request: impl Into<Request<'static>>,
    act: impl FnOnce(&Pool) + Send + 'static,
) -> (Duration, Result<Allocation, AllocError>) {
    let (pool, request) = (Arc::clone(pool), request.into());
    ends(move || {
        let start = Instant::now();
        let result = thread::scope(|scope| {
            let waiter = scope.spawn(|| pool.allocate(request));
            thread::sleep(LATER);
            act(&pool);
            waiter.join().expect("no panic")
        });
        (start.elapsed(), result)
    })
}

#[test]
fn a_free_ends_the_wait_long_before_the_deadline() {
    let (pool, [first, ..]) = full_pool(FOREVER);
    let free = move |pool: &Pool| pool.free_allocation(&first).expect("live");
    let (time, result) = ask_while(&pool, MIB, free);
    assert_eq!(result.expect("served").address, first.address);
    assert!(time >= LATER && time < FOREVER / 4, "{time:?}");
    assert_eq!(observe(&pool).num_refused, 0);
}

#[test]
fn a_request_waits_for_a_chunk_that_holds_it_without_the_padding_for_its_alignment() {
    let (pool, quarters) = full_pool(FOREVER);
    let free = move |pool: &Pool| {
        for quarter in &quarters {
            pool.free_allocation(quarter).expect("live");
        }
    };
    // With its padding the request is above the limit, but the region starts at a multiple of 4096.
    let (time, result) = ask_while(&pool, Request::new(LIMIT).align(4096), free);
    assert_eq!(result.expect("served").size, LIMIT);
    assert!(time < FOREVER / 4, "{time:?}");
}

#[test]
fn a_higher_limit_ends_the_wait() {
    let (pool, _) = full_pool(FOREVER);
    let raise = |pool: &Pool| {
        pool.set_limit(2 * LIMIT, false, "a test").expect("in range");
    };
    let (time, result) = ask_while(&pool, MIB, raise);
    assert!(result.is_ok() && time < FOREVER / 4, "{time:?}");
}

#[test]
fn every_kind_of_free_ends_the_wait() {
    let by_address = |pool: &Pool, a: &Allocation| pool.free(a.address).expect("live");
    let by_trying = |pool: &Pool, a: &Allocation| while pool.try_free(a.address).expect("live").is_none() {};
    let deferred = |pool: &Pool, a: &Allocation| pool.free_deferred(a);
    for free in [by_address as fn(&Pool, &Allocation), by_trying, deferred] {
        let (pool, [first, ..]) = full_pool(FOREVER);
        let (time, result) = ask_while(&pool, MIB, move |pool| free(pool, &first));
        assert!(result.is_ok() && time < FOREVER / 4, "{time:?}");
    }
}

#[test]
fn a_free_wakes_a_waiting_thread_at_once() {
    const ROUNDS: usize = 25;
    let mut delays = Vec::new();
    for round in 0..ROUNDS {
        let (pool, [first, ..]) = full_pool(FOREVER);
        delays.push(ends(move || {
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    pool.allocate(MIB).expect("served");
                    Instant::now()
                });
                // Spread over the 20 ms after which a waiting thread checks again by itself.
                thread::sleep(Duration::from_micros(30_000 + 800 * round as u64));
                let freed = Instant::now();
                pool.free_allocation(&first).expect("live");
                waiter.join().expect("no panic").saturating_duration_since(freed)
            })
        }));
    }
    delays.sort_unstable();
    // Without a wakeup half of them would sleep for 10 ms or longer.
    assert!(delays[ROUNDS / 2] < Duration::from_millis(5), "{delays:?}");
}

#[test]
fn a_free_that_is_too_small_does_not_end_the_wait() {
    let (pool, [first, second, ..]) = full_pool(FOREVER);
    let free = move |pool: &Pool| {
        pool.free_allocation(&first).expect("live");
        thread::sleep(LATER);
        assert_eq!(observe(pool).num_live, 3);
        pool.free_allocation(&second).expect("live");
    };
    let (time, result) = ask_while(&pool, 2 * MIB, free);
    assert_eq!(result.expect("served").address, first.address);
    assert!(time >= 2 * LATER, "{time:?}");
}

#[test]
fn without_a_free_the_wait_ends_at_the_deadline() {
    let wait = Duration::from_millis(300);
    let (pool, _) = full_pool(wait);
    let (time, result) = ask_while(&pool, MIB, |_| {});
    let Err(AllocError::OutOfMemory(refused)) = result else { panic!("not refused: {result:?}") };
    assert_eq!(refused.verdict, Verdict::Full);
    assert!(time >= wait && time < wait + Duration::from_secs(5), "{time:?}");
    assert_eq!(observe(&pool).num_refused, 1);
}

#[test]
fn without_a_wait_the_answer_comes_at_once() {
    let (pool, _) = full_pool(Duration::ZERO);
    let start = Instant::now();
    pool.allocate(1).expect_err("full");
    assert!(start.elapsed() < FOREVER / 4);
}

#[test]
fn a_request_that_no_free_can_help_is_refused_at_its_deadline_all_the_same() {
    let (pool, _) = full_pool(Duration::from_millis(50));
    let (_, result) = ask_while(&pool, LIMIT + 1, |_| {});
    assert!(matches!(result, Err(AllocError::OutOfMemory(refused)) if refused.verdict == Verdict::Limit));
}

#[test]
fn closing_ends_the_wait() {
    let (pool, _) = full_pool(FOREVER);
    let (time, result) = ask_while(&pool, MIB, |pool| pool.close().expect("not inside a source"));
    assert!(matches!(result, Err(AllocError::Unusable(Unusable::Closed))), "{result:?}");
    assert!(time < FOREVER / 4, "{time:?}");
}

#[test]
fn every_waiting_thread_is_served() {
    let (pool, quarters) = full_pool(FOREVER);
    for quarter in quarters {
        pool.free_allocation(&quarter).expect("live");
    }
    // Room for four of sixteen at a time.
    ends({
        let pool = Arc::clone(&pool);
        move || {
            thread::scope(|scope| {
                for _ in 0..16 {
                    scope.spawn(|| {
                        let allocation = pool.allocate(MIB - 100 * KIB).expect("served in the end");
                        thread::sleep(Duration::from_millis(5));
                        pool.free_deferred(&allocation);
                    });
                }
            });
        }
    });
    let stats = observe(&pool);
    assert_eq!((stats.num_live, stats.num_refused, stats.num_allocs), (0, 0, 20));
}

#[test]
fn the_retry_callback_runs_without_a_lock() {
    let (pool, [first, ..]) = full_pool(Duration::ZERO);
    let served = ends(move || {
        pool.allocate_with_retry(MIB, |refused| {
            assert!(!pool.freed_since(refused).expect("this process"));
            pool.check().expect("every invariant holds");
            assert_eq!(pool.trim(), Ok(0));
            pool.allocate(1).expect_err("full");
            pool.free_allocation(&first).expect("live");
            pool.freed_since(refused).expect("this process")
        })
    });
    assert_eq!(served.expect("served").address, first.address);
}

/// The thread that frees would take the memory again before another one wakes.
#[test]
fn threads_that_wait_for_the_same_memory_take_turns() {
    for caches in [false, true] {
        let options = Options::new(LIMIT).growth(false).thread_caches(caches).wait(FOREVER);
        let pool = Arc::new(Pool::new(AddressSpace::new(0), options).expect("options in range"));
        let served = ends(move || {
            let (left, start) = (AtomicI64::new(400), Barrier::new(8));
            thread::scope(|scope| {
                let work = || {
                    start.wait();
                    let mut served = 0;
                    while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                        let held = pool.allocate(LIMIT / 4 * 3).expect("served in its turn");
                        thread::sleep(Duration::from_micros(20));
                        pool.free_allocation(&held).expect("live");
                        served += 1;
                    }
                    served
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<u64>>()
            })
        });
        let mean = served.iter().sum::<u64>() / 8;
        assert!(served.iter().all(|&number| number >= mean / 2), "{served:?} with caches: {caches}");
    }
}

/// Memory that is offered to a request of a thread that does something else is for all soon.
#[test]
fn a_request_passes_an_older_one_that_does_not_come() {
    let (pool, [first, ..]) = full_pool(FOREVER);
    ends(move || {
        let (offered, is_offered) = channel();
        let (ends, may_end) = channel();
        thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || {
                let mut wait = pool.memory_wait();
                let served = pool.allocate_with_retry(MIB, |refused| {
                    let retries = wait.should_retry(refused, || false);
                    offered.send(()).expect("the test waits for it");
                    may_end.recv().expect("the test ends it");
                    retries
                });
                assert_eq!(served.expect("freed again").address, first.address);
            });
            while pool.is_fast_path_open() {
                thread::yield_now();
            }
            pool.free_allocation(&first).expect("live");
            is_offered.recv().expect("the free wakes it");
            assert_eq!(pool.try_allocate(MIB).expect("usable"), None, "an older request could have it");
            let start = Instant::now();
            let passing = pool.allocate(MIB).expect("no other thread takes it");
            assert!(start.elapsed() < FOREVER / 4);
            pool.free_allocation(&passing).expect("live");
            // Nothing is offered to it until it is refused again.
            let passing = pool.try_allocate(MIB).expect("usable").expect("for all now");
            pool.free_allocation(&passing).expect("live");
            ends.send(()).expect("it waits for this");
        });
    });
}

/// Free memory is not what it lacks.
#[test]
fn a_request_that_waits_for_a_scope_s_limit_holds_no_other_up() {
    let (pool, [first, mut second, ..]) = full_pool(FOREVER);
    pool.free_allocation(&first).expect("live");
    ends(move || {
        let (asleep, is_asleep) = channel();
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let scope = pool.open_scope("small", Some(KIB), false).expect("usable");
                pool.allocate(KIB).expect("within the limit");
                let mut wait = pool.memory_wait();
                let refused = pool.allocate_with_retry(KIB, |refused| {
                    // Before each sleep.
                    let interrupted = || asleep.send(()).is_err() || stops.load(Ordering::Relaxed);
                    wait.should_retry(refused, interrupted)
                });
                assert!(matches!(refused, Err(AllocError::OutOfMemory(refused)) if refused.verdict == Verdict::Scope));
                pool.close_scope(scope).expect("usable");
            });
            for _ in 0..2 {
                is_asleep.recv().expect("it waits");
            }
            for _ in 0..100 {
                pool.free_allocation(&second).expect("live");
                second = pool.try_allocate(MIB).expect("usable").expect("no other request can have it");
            }
            stops.store(true, Ordering::Relaxed);
        });
    });
}
