//! Pools of a process whose `membarrier` a filter of system calls forbids. What one thread notices holds for the
//! process, so this is one test in a program of its own.
#![cfg(target_os = "linux")]

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use allotment::source::{AddressSpace, Call, Log, Recording};
use allotment::{AllocError, LimitError, Options, Pool, TrimError, Unusable};
use membarrier::forbid_membarrier;

#[path = "../../rust/sync/tests/membarrier/mod.rs"]
mod membarrier;

const MIB: u64 = 1 << 20;
const FORBIDDEN: Unusable = Unusable::BarrierForbidden;

/// Returns a pool that the calling thread owns, and the calls of its source.
fn owned_pool() -> (Arc<Pool>, Log) {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    let pool = Pool::new(source, Options::new(64 * MIB)).expect("options in range");
    use_often(&pool);
    let _ = log.take();
    (Arc::new(pool), log)
}

fn use_often(pool: &Pool) {
    for _ in 0..2_000 {
        let held = pool.allocate(1_000).expect("fits");
        pool.free_allocation(&held).expect("live");
    }
}

#[test]
fn a_new_pool_works_and_an_old_one_stays_with_its_idle_owner() {
    let (pool, _) = owned_pool();
    let (trimmed, trimmed_calls) = owned_pool();
    let (dropped, dropped_calls) = owned_pool();
    let panics = Arc::new(AtomicUsize::new(0));
    panic::set_hook(Box::new({
        let panics = Arc::clone(&panics);
        move |_| _ = panics.fetch_add(1, Ordering::Relaxed)
    }));
    let without_barrier = || {
        forbid_membarrier();
        // Its lock has no owner: another thread needs no barrier.
        let (new, new_calls) = owned_pool();
        thread::scope(|scope| {
            scope.spawn(|| use_often(&new));
        });
        new.trim().expect("this thread can take the lock");
        assert!(matches!(new_calls.take()[..], [Call::Release(_)]));

        assert!(matches!(pool.allocate(1), Err(AllocError::Unusable(FORBIDDEN))));
        assert_eq!(pool.stats().err(), Some(FORBIDDEN));
        assert!(matches!(pool.trim(), Err(TrimError::Unusable(FORBIDDEN))));
        assert!(matches!(pool.set_limit(MIB, true, "test"), Err(LimitError::Unusable(FORBIDDEN))));
        assert_eq!(pool.set_growth(false).err(), Some(FORBIDDEN));
        assert_eq!(pool.close().err(), Some(FORBIDDEN));
        // The thread that trims is started here, and membarrier is forbidden to it, too.
        let (due, is_due) = channel();
        let soon = Duration::from_millis(1);
        trimmed.trim_when_idle(soon, move || _ = due.send(())).expect("a thread");
        is_due.recv_timeout(Duration::from_secs(20)).expect("the pool is idle");
        new.trim_when_idle(soon, || {}).expect("a thread");
        use_often(&new);
        while new.stats().expect("this thread can take the lock").reserved > 0 {
            thread::sleep(soon);
        }
        assert!(trimmed_calls.take().is_empty());

        // The last one that has a pool needs no lock.
        drop(dropped);
        assert!(matches!(dropped_calls.take()[..], [Call::Release(_)]));
    };
    let ended = thread::scope(|scope| scope.spawn(without_barrier).join());
    let _ = panic::take_hook();
    ended.expect("no assertion fails");
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    assert_eq!(pool.limit(), Ok(64 * MIB));
    use_often(&pool);
    pool.close().expect("the owner can take the lock");
    assert_eq!(pool.stats().expect("a pool of this process").reserved, 0);
}
