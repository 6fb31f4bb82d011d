//! Scopes and tags: the owner of an allocation, and scope limits.
//!
//! Longer than 300 lines: one rule after the other of scopes and tags, with the same few helpers.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use allotment::bindings::PoolForBindings as _;
use allotment::source::{AddressSpace, Log, Recording};
use allotment::{
    AllocError, Options, OutOfMemory, Pool, ResizeError, ScopeStats, Unusable, Verdict, set_tag,
};

const MIB: u64 = 1 << 20;

fn pool() -> Pool {
    Pool::new(AddressSpace::new(0), Options::new(64 * MIB)).expect("options in range")
}

fn refusal(pool: &Pool, bytes: u64) -> OutOfMemory {
    match pool.allocate(bytes) {
        Err(AllocError::OutOfMemory(refused)) => *refused,
        other => panic!("not a refusal: {other:?}"),
    }
}

fn figures(stats: &ScopeStats) -> (u64, u64, u64, u64) {
    (stats.peak, stats.allocated, stats.freed, stats.live)
}

#[test]
fn a_scope_counts_what_its_thread_allocates_in_it() {
    let pool = pool();
    let before = pool.allocate(MIB).expect("fits");
    let scope = pool.open_scope("step", None, false).expect("this process");
    let kept = pool.allocate(2 * MIB).expect("fits");
    let gone = pool.allocate(300).expect("fits");
    thread::scope(|scope| drop(scope.spawn(|| pool.allocate(5 * MIB).expect("fits"))));
    pool.free_allocation(&gone).expect("live");
    pool.free_allocation(&before).expect("live");
    pool.check().expect("every invariant holds");
    let stats = pool.close_scope(scope).expect("this process").expect("open");
    assert_eq!(figures(&stats), (2 * MIB + 512, 2 * MIB + 512, 512, 2 * MIB));
    assert_eq!((stats.name.as_str(), stats.num_live, stats.limit), ("step", 1, None));
    assert_eq!(pool.close_scope(scope), Ok(None), "closed before");
    assert_eq!(pool.scope_stats(scope), Ok(None));
    pool.free_allocation(&kept).expect("live");
    pool.check().expect("every invariant holds");
}

#[test]
fn a_shared_scope_counts_every_thread_that_is_in_none_of_its_own() {
    let pool = pool();
    let shared = pool.open_scope("all", None, true).expect("this process");
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.allocate(MIB).expect("fits");
            let own = pool.open_scope("own", None, false).expect("this process");
            pool.allocate(2 * MIB).expect("fits");
            let stats = pool.close_scope(own).expect("this process").expect("open");
            assert_eq!((stats.name.as_str(), stats.live), ("all/own", 2 * MIB));
        });
    });
    assert_eq!(pool.close_scope(shared).expect("this process").expect("open").live, 3 * MIB);
}

#[test]
fn a_scope_that_another_thread_closes_ends_for_its_own() {
    let pool = pool();
    let outer = pool.open_scope("outer", Some(4 * MIB), false).expect("this process");
    let inner = pool.open_scope("inner", Some(MIB), false).expect("this process");
    pool.allocate(MIB).expect("within both caps");
    assert_eq!(refusal(&pool, 256).scope_limit.expect("a cap").name, "outer/inner");
    // As when another thread closes or collects a generator.
    let closed = thread::scope(|threads| threads.spawn(|| pool.close_scope(inner)).join().expect("no panic"));
    assert_eq!(closed.expect("this process").expect("open").live, MIB);
    assert_eq!(pool.close_scope(inner), Ok(None), "closed before");
    pool.allocate(3 * MIB).expect("within the outer cap");
    assert_eq!(refusal(&pool, 256).scope_limit.expect("a cap").name, "outer");
    thread::scope(|threads| threads.spawn(|| pool.close_scope_deferred(outer)).join().expect("no panic"));
    pool.allocate(8 * MIB).expect("no cap is left");
    pool.check().expect("every invariant holds");
}

#[test]
fn an_outer_scope_that_ends_first_leaves_the_inner_one_open() {
    let pool = pool();
    let outer = pool.open_scope("outer", Some(MIB), false).expect("this process");
    let inner = pool.open_scope("inner", None, false).expect("this process");
    thread::scope(|threads| threads.spawn(|| pool.close_scope_deferred(outer)).join().expect("no panic"));
    pool.allocate(8 * MIB).expect("the cap ended with its scope");
    assert_eq!(pool.close_scope(inner).expect("this process").expect("open").live, 8 * MIB);
}

#[test]
fn scopes_that_other_threads_close_do_not_add_up() {
    let pool = pool();
    let sum = |stats: Option<ScopeStats>| stats.map_or(0, |stats| stats.live);
    for _ in 0..1000 {
        let scope = pool.open_scope("abandoned", Some(256), false).expect("this process");
        thread::scope(|threads| threads.spawn(|| pool.close_scope_deferred(scope)).join().expect("no panic"));
    }
    let last = pool.open_scope("last", None, false).expect("this process");
    pool.allocate(MIB).expect("no cap is left");
    let stats = pool.close_scope(last).expect("this process");
    assert_eq!((sum(stats.clone()), stats.expect("open").name.as_str()), (MIB, "last"), "inside no other");
}

#[test]
fn the_next_caller_closes_a_scope_whose_close_was_deferred() {
    let pool = pool();
    for round in 0..2000_u64 {
        let scope = pool.open_scope("capped", Some(256), false).expect("this process");
        let busy = AtomicU64::new(0);
        thread::scope(|threads| {
            threads.spawn(|| {
                // The lock is taken while the other thread closes.
                while busy.load(Ordering::Relaxed) == 0 {
                    let _ = pool.stats();
                }
            });
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            pool.close_scope_deferred(scope);
            pool.free_allocation(&pool.allocate(MIB).expect("no cap is left")).expect("live");
            busy.store(1, Ordering::Relaxed);
        });
        assert_eq!(pool.scope_stats(scope), Ok(None));
    }
    pool.check().expect("every invariant holds");
}

#[test]
fn the_end_of_a_scope_limit_wakes_a_waiting_request() {
    let options = Options::new(64 * MIB).wait(Duration::from_secs(60));
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let scope = pool.open_scope("all", Some(MIB), true).expect("this process");
    pool.allocate(MIB).expect("within the cap");
    thread::scope(|threads| {
        let waits = threads.spawn(|| {
            let start = Instant::now();
            pool.allocate(MIB).expect("the cap ends");
            start.elapsed()
        });
        thread::sleep(Duration::from_millis(100));
        pool.close_scope(scope).expect("this process").expect("open");
        assert!(waits.join().expect("no panic") < Duration::from_secs(10));
    });
}

#[test]
fn scopes_of_two_pools_are_independent() {
    let (first, second) = (pool(), pool());
    let one = first.open_scope("one", None, false).expect("this process");
    let two = second.open_scope("two", None, false).expect("this process");
    first.allocate(MIB).expect("fits");
    second.allocate(2 * MIB).expect("fits");
    // In the order of opening: neither scope encloses the other.
    assert_eq!(first.close_scope(one).expect("this process").expect("open").live, MIB);
    assert_eq!(second.close_scope(two).expect("this process").expect("open").live, 2 * MIB);
}

#[test]
fn a_scope_limit_is_exact_and_named() {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    let pool = Pool::new(source, Options::new(64 * MIB)).expect("options in range");
    let outer = pool.open_scope("tenant", Some(4 * MIB), false).expect("this process");
    let inner = pool.open_scope("step", Some(8 * MIB), false).expect("this process");
    let three = pool.allocate(3 * MIB).expect("fits");
    let _ = log.take();
    let refused = refusal(&pool, MIB + 1);
    assert_eq!(log.take(), [], "a cap that is broken is no reason to grow");
    assert_eq!(refused.verdict, Verdict::Scope);
    let capped = refused.scope_limit.clone().expect("a scope stood in the way");
    assert_eq!((capped.name.as_str(), capped.limit, capped.live), ("tenant", 4 * MIB, 3 * MIB));
    assert!(refused.to_string().contains("scope \"tenant\" holds 3 MiB of the 4 MiB"), "{refused}");
    assert_eq!((pool.can_allocate(MIB + 1), pool.can_allocate(MIB)), (Ok(false), Ok(true)));
    let one = pool.allocate(MIB).expect("exactly the rest");
    assert_eq!(refusal(&pool, 1).verdict, Verdict::Scope);
    pool.free_allocation(&three).expect("live");
    pool.allocate(3 * MIB).expect("room again");
    pool.close_scope(inner).expect("this process").expect("open");
    assert_eq!(refusal(&pool, 1).verdict, Verdict::Scope, "what the inner one left counts on");
    pool.close_scope(outer).expect("this process").expect("open");
    pool.allocate(8 * MIB).expect("no cap any more");
    pool.free_allocation(&one).expect("live");
    pool.check().expect("every invariant holds");
}

#[test]
fn a_resize_in_place_stays_under_the_scope_limit() {
    let pool = Pool::new(AddressSpace::new(0), Options::new(MIB).growth(false)).expect("in range");
    let all = pool.allocate(MIB).expect("fits");
    pool.free_allocation(&all).expect("live");
    let scope = pool.open_scope("small", Some(MIB / 2 + 256), false).expect("this process");
    // More than half of the region is left, which is less than the request: the chunk is not split.
    let chunk = pool.allocate(MIB / 2 + 256).expect("fits");
    assert_eq!(chunk.size, MIB);
    let refused = pool.resize(chunk.address, MIB).expect_err("the cap does not allow it");
    assert!(matches!(refused, ResizeError::ScopeLimit { size: MIB, .. }), "{refused}");
    assert_eq!(pool.resize(chunk.address, 256).expect("smaller").size, 256);
    assert_eq!(pool.scope_stats(scope).expect("this process").expect("open").live, 256);
    pool.free_allocation(&chunk).expect("live");
    pool.check().expect("every invariant holds");
}

#[test]
fn scope_limits_hold_under_threads() {
    let pool = pool();
    let scope = pool.open_scope("all", Some(4 * MIB), true).expect("this process");
    let most = AtomicU64::new(0);
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for round in 0..2_000_u64 {
                    let held: Vec<_> =
                        (0..4).filter_map(|_| pool.allocate(MIB / 2 + round % 7).ok()).collect();
                    most.fetch_max(held.len() as u64, Ordering::Relaxed);
                    for allocation in &held {
                        pool.free_allocation(allocation).expect("live");
                    }
                }
            });
        }
    });
    let stats = pool.close_scope(scope).expect("this process").expect("open");
    assert!(stats.peak <= 4 * MIB && stats.live == 0 && most.load(Ordering::Relaxed) > 0, "{stats:?}");
    pool.check().expect("every invariant holds");
}

#[test]
fn tags_name_the_owner_of_an_allocation() {
    let tagged = Options::new(64 * MIB).owner_tags(true);
    let pool = Pool::new(AddressSpace::new(0), tagged).expect("options in range");
    assert_eq!(set_tag(Some("MatMul".into())), None);
    pool.allocate(MIB).expect("fits");
    let scope = pool.open_scope("step", None, false).expect("this process");
    pool.allocate(2 * MIB).expect("fits");
    assert_eq!(set_tag(None).as_deref(), Some("MatMul"));
    pool.allocate(4 * MIB).expect("fits");
    let refused = refusal(&pool, 128 * MIB);
    assert_eq!(refused.details, None, "only looked at when asked for");
    let refused = pool.explain(128 * MIB).expect("in range").expect("too much");
    let owners: Vec<_> =
        refused.details.expect("asked for").by_owner.into_iter().map(|o| (o.owner, o.bytes)).collect();
    let expected = [("step", 4 * MIB), ("step/MatMul", 2 * MIB), ("MatMul", MIB)];
    assert_eq!(owners, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    pool.close_scope(scope).expect("this process").expect("open");
    pool.check().expect("every invariant holds");
}

#[test]
fn the_total_ever_allocated_saturates() {
    let pool = Pool::new(AddressSpace::new(0), Options::new(allotment::MAX_BYTES)).expect("options in range");
    let scope = pool.open_scope("long", None, false).expect("this process");
    for _ in 0..6 {
        let half = pool.allocate(1 << 62).expect("fits");
        pool.free_allocation(&half).expect("live");
    }
    let stats = pool.close_scope(scope).expect("this process").expect("open");
    assert_eq!(figures(&stats), (1 << 62, u64::MAX, u64::MAX, 0));
}

#[test]
fn requests_above_every_limit_break_nothing_while_they_are_pending() {
    let pool = pool();
    let scope = pool.open_scope("all", None, true).expect("this process");
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| (0..200).for_each(|_| assert!(pool.allocate(allotment::MAX_BYTES).is_err())));
        }
    });
    assert_eq!(pool.close_scope(scope).expect("this process").expect("open").peak, 0);
    pool.allocate(MIB).expect("fits");
    pool.check().expect("every invariant holds");
}

#[test]
fn a_scope_limit_is_named_even_where_a_trim_would_make_room() {
    let options = Options::new(8 * MIB).trim_on_oom(false);
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let large = pool.allocate(7 * MIB).expect("fits");
    pool.free_allocation(&large).expect("live");
    let _scope = pool.open_scope("small", Some(1024), false).expect("this process");
    let refused = refusal(&pool, 4096);
    assert!(!refused.trim_helps() && refused.to_string().contains("scope \"small\""), "{refused}");
    assert_eq!(pool.explain(4096).expect("in range").expect("capped").trim_helps(), refused.trim_helps());
}

#[test]
fn no_request_waits_for_memory_that_its_scope_limit_never_allows() {
    let wait = std::time::Duration::from_secs(20);
    let pool = Pool::new(AddressSpace::new(0), Options::new(MIB).wait(wait)).expect("options in range");
    let _scope = pool.open_scope("small", Some(1024), false).expect("this process");
    let start = std::time::Instant::now();
    assert_eq!(refusal(&pool, 4096).verdict, Verdict::Scope);
    assert!(start.elapsed() < wait / 2);
}

#[test]
fn a_scope_limit_ends_with_its_scope_while_inner_scopes_stay_open() {
    let pool = pool();
    let outer = pool.open_scope("outer", Some(256), false).expect("this process");
    let inner = pool.open_scope("inner", None, false).expect("this process");
    pool.close_scope(outer).expect("this process").expect("open");
    pool.allocate(1024).expect("no cap any more");
    assert_eq!(pool.close_scope(inner).expect("this process").expect("open").live, 1024);
}

#[test]
fn a_thread_may_allocate_while_it_ends() {
    struct AtTheEnd(std::cell::RefCell<Option<std::sync::Arc<Pool>>>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            if let Some(pool) = self.0.take() {
                pool.allocate(256).expect("fits");
            }
        }
    }
    thread_local! {
        static END: AtTheEnd = const { AtTheEnd(std::cell::RefCell::new(None)) };
    }
    let pool = std::sync::Arc::new(pool());
    let shared = pool.open_scope("all", None, true).expect("this process");
    let theirs = std::sync::Arc::clone(&pool);
    let thread = thread::spawn(move || {
        END.with(|end| end.0.replace(Some(std::sync::Arc::clone(&theirs))));
        let own = theirs.open_scope("own", None, false).expect("this process");
        theirs.close_scope(own).expect("this process").expect("open");
    });
    thread.join().expect("no panic");
    assert!(pool.close_scope(shared).expect("this process").is_some());
    assert_eq!(pool.stats().expect("this process").num_live, 1);
}

thread_local! {
    /// Dropped at the end of a thread: after what it makes later.
    static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Uses a pool when it is dropped.
struct AtTheEnd(Arc<Pool>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let Self(pool) = self;
        assert_eq!(pool.open_scope("late", None, false), Err(Unusable::ThreadEnds));
        assert!(pool.is_fast_path_open(), "what was not opened is not counted");
        assert_eq!(set_tag(Some("late".into())), None);
        let shared = pool.open_scope("all", None, true).expect("no thread's own");
        let held = pool.allocate(MIB).expect("fits");
        pool.free_allocation(&held).expect("live");
        let stats = pool.close_scope(shared).expect("this process").expect("open");
        assert_eq!(figures(&stats), (MIB, MIB, MIB, 0));
    }
}

#[test]
fn a_thread_without_thread_local_data_opens_no_scope_of_its_own() {
    let pool = Arc::new(pool());
    let at_the_end = AtTheEnd(Arc::clone(&pool));
    let work = || {
        LAST.set(Some(at_the_end));
        set_tag(Some("early".into()));
        let scope = pool.open_scope("step", None, false).expect("this process");
        pool.close_scope(scope).expect("this process");
    };
    // A panic in a destructor of thread-local data ends the process.
    thread::scope(|scope| scope.spawn(work).join()).expect("no panic");
    assert!(pool.is_fast_path_open());
}
