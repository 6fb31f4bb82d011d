//! Forked children: inherited pools return errors, or do nothing where no error can be returned. The tests affect the
//! whole process, so they have a test program of their own and run one after another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use allotment::source::{AddressSpace, Log, Recording};
use allotment::{AllocError, Allocation, FreeError, Options, Pool, Unusable, fork};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A pool of the parent with an allocation, as seen by the child.
struct Inherited {
    pool: Pool,
    log: Log,
    held: Allocation,
    _alone: MutexGuard<'static, ()>,
}

fn pool_with_an_allocation() -> (Pool, Log, Allocation) {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    let pool = Pool::new(source, Options::new(64 << 20)).expect("options in range");
    let held = pool.allocate(1 << 20).expect("granted");
    let _ = log.take();
    (pool, log, held)
}

fn inherited() -> Inherited {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (pool, log, held) = pool_with_an_allocation();
    fork::entered_child();
    Inherited { pool, log, held, _alone: alone }
}

#[test]
fn an_inherited_pool_refuses_requests() {
    let Inherited { pool, log, .. } = &inherited();
    let forked = |error| matches!(error, AllocError::Unusable(Unusable::Forked));
    assert!(forked(pool.allocate(1).unwrap_err()));
    assert!(forked(pool.allocate(32 << 20).unwrap_err()));
    assert!(forked(pool.allocate_with_retry(1, |_| true).unwrap_err()));
    assert!(forked(pool.try_allocate(1).unwrap_err()));
    assert_eq!(pool.can_allocate(1), Err(Unusable::Forked));
    assert_eq!(log.take(), []);
}

#[test]
fn an_inherited_pool_refuses_frees() {
    let Inherited { pool, held, .. } = &inherited();
    let forked = FreeError::Unusable(Unusable::Forked);
    assert_eq!(pool.free(held.address), Err(forked));
    assert_eq!(pool.free_allocation(held), Err(forked));
    assert_eq!(pool.try_free(held.address), Err(forked));
}

#[test]
fn an_inherited_pool_refuses_queries() {
    let Inherited { pool, .. } = &inherited();
    assert_eq!(pool.stats(), Err(Unusable::Forked));
    assert_eq!(pool.snapshot(), Err(Unusable::Forked));
    assert_eq!(pool.reset_peaks(), Err(Unusable::Forked));
}

#[test]
fn an_inherited_pool_releases_nothing() {
    let Inherited { pool, log, held, _alone } = inherited();
    assert_eq!(pool.trim(), Err(Unusable::Forked.into()));
    assert_eq!(pool.close(), Err(Unusable::Forked));
    pool.free_deferred(&held);
    drop(pool);
    assert_eq!(log.take(), [], "regions belong to the parent");
}

#[test]
fn a_forked_child_has_no_thread_caches() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options::new(64 << 20).thread_caches(true);
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let live: Vec<_> = (0..40).map(|_| pool.allocate(1000).expect("granted")).collect();
    live[1..].iter().for_each(|allocation| pool.free(allocation.address).expect("it is live"));
    assert!(pool.stats().expect("the parent").thread_cached > 0);
    fork::entered_child();
    assert!(matches!(pool.allocate(1000), Err(AllocError::Unusable(Unusable::Forked))));
    assert!(matches!(pool.try_allocate(1000), Err(AllocError::Unusable(Unusable::Forked))));
    assert_eq!(pool.free(live[0].address), Err(FreeError::Unusable(Unusable::Forked)));
    assert_eq!((pool.stats(), pool.trim()), (Err(Unusable::Forked), Err(Unusable::Forked.into())));
    pool.free_deferred(&live[0]);
}

#[test]
fn the_error_says_what_to_do() {
    let Inherited { pool, .. } = &inherited();
    let text = pool.allocate(1).unwrap_err().to_string();
    assert!(text.contains("forked") && text.contains("make a new pool in the child"), "{text}");
}

#[test]
fn a_pool_of_the_child_works() {
    let inherited = inherited();
    let (pool, _, held) = pool_with_an_allocation();
    pool.free_allocation(&held).unwrap();
    pool.trim().unwrap();
    assert_eq!(pool.stats().unwrap().reserved, 0);
    assert!(inherited.pool.stats().is_err());
}

#[test]
fn a_child_of_the_child_starts_over() {
    let parents = inherited();
    let (childs, _, _) = pool_with_an_allocation();
    fork::entered_child();
    assert_eq!(childs.stats(), Err(Unusable::Forked));
    assert_eq!(parents.pool.stats(), Err(Unusable::Forked));
}

#[test]
fn a_pool_of_the_child_is_trimmed_when_idle_by_a_thread_of_the_child() {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let watched = |after| {
        let (pool, _, held) = pool_with_an_allocation();
        let pool = Arc::new(pool);
        pool.trim_when_idle(after, || {}).unwrap();
        (pool, held)
    };
    // The thread of its registration does not exist in the child.
    let (parents, _) = watched(Duration::from_secs(86400));
    fork::entered_child();
    let (childs, held) = watched(Duration::from_millis(5));
    childs.free_allocation(&held).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while childs.stats().unwrap().reserved > 0 {
        assert!(Instant::now() < end, "it is never trimmed");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(parents);
    drop(alone);
}

#[test]
fn no_request_waits_in_an_inherited_pool() {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options::new(1 << 20).growth(false).wait(Duration::from_secs(3600));
    let pool = Pool::new(AddressSpace::new(0), options).unwrap();
    pool.allocate(1 << 20).unwrap();
    let mut wait = pool.memory_wait();
    let result = pool.allocate_with_retry(1, |refused| {
        fork::entered_child();
        wait.should_retry(refused, || false)
    });
    assert!(matches!(result, Err(AllocError::Unusable(Unusable::Forked))), "{result:?}");
    drop(alone);
}

#[test]
fn an_inherited_pool_in_guard_mode_inspects_and_reports_nothing() {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options::new(1 << 20).guard(true);
    let pool = Pool::new(allotment_host::HostMemory::new(), options).unwrap();
    let (freed, held) = (pool.allocate(1000).unwrap(), pool.allocate(1000).unwrap());
    pool.free(freed.address).unwrap();
    fork::entered_child();
    assert_eq!(pool.free(held.address), Err(FreeError::Unusable(Unusable::Forked)));
    pool.free_deferred(&held);
    assert_eq!(pool.inspect(), Err(Unusable::Forked));
    assert_eq!(pool.take_damage(), Err(Unusable::Forked));
    assert_eq!(pool.take_leaks(), Err(Unusable::Forked));
    drop(pool);
    drop(alone);
}
