//! Changes of limit and growth while a pool is in use: the reserved bytes never exceed the limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allotment::source::{AddressSpace, Log, Recording};
use allotment::{AllocError, LimitError, MAX_BYTES, Options, Pool, Verdict};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn pool(limit: u64, growth: bool) -> Pool {
    // With gaps, so that regions are not joined and are released one by one.
    Pool::new(AddressSpace::new(4096), Options::new(limit).growth(growth)).expect("options in range")
}

fn reserved(pool: &Pool) -> u64 {
    pool.stats().expect("this process").reserved
}

#[test]
fn a_raised_limit_serves_what_was_refused() {
    for growth in [true, false] {
        let pool = pool(4 * MIB, growth);
        let first = pool.allocate(3 * MIB).expect("fits");
        assert!(matches!(pool.allocate(3 * MIB), Err(AllocError::OutOfMemory(_))));
        assert_eq!(pool.set_limit(8 * MIB, false, "a test"), Ok(0));
        assert_eq!(pool.limit(), Ok(8 * MIB));
        pool.allocate(3 * MIB).expect("fits now");
        assert_eq!(pool.stats().expect("this process").limit, 8 * MIB);
        let refused = pool.explain(MIB * 64).expect("in range").expect("too much");
        assert_eq!((refused.limit, &*refused.limit_set_by), (8 * MIB, "a test"));
        pool.free_allocation(&first).expect("live");
        pool.check().expect("every invariant holds");
    }
}

#[test]
fn a_lowered_limit_binds_what_comes_after() {
    let pool = pool(64 * MIB, true);
    pool.allocate(MIB).expect("fits");
    pool.set_limit(reserved(&pool), false, "a test").expect("what is reserved stays within it");
    let refused = pool.allocate(4 * MIB).expect_err("above the limit");
    let AllocError::OutOfMemory(refused) = refused else { panic!("{refused}") };
    assert_eq!((refused.limit, refused.verdict), (2 * MIB, Verdict::Limit));
}

#[test]
fn a_limit_below_what_is_reserved_changes_nothing() {
    let pool = pool(64 * MIB, true);
    let small = pool.allocate(MIB).expect("fits");
    let large = pool.allocate(8 * MIB).expect("fits");
    pool.free_allocation(&large).expect("live");
    let before = pool.snapshot().expect("this process");
    let held = reserved(&pool);
    let below = |reserved, after_trim, trim_helps| {
        Err(LimitError::BelowReserved { limit: 4 * MIB, reserved, after_trim, trim_helps })
    };
    assert_eq!(pool.set_limit(4 * MIB, false, "a test"), below(held, false, true));
    assert_eq!(pool.snapshot().expect("this process"), before);
    let released = pool.set_limit(4 * MIB, true, "a test").expect("the large region goes back");
    assert_eq!((released, reserved(&pool)), (held - 2 * MIB, 2 * MIB));
    let error = pool.set_limit(MIB, true, "a test");
    let kept =
        LimitError::BelowReserved { limit: MIB, reserved: 2 * MIB, after_trim: true, trim_helps: false };
    assert_eq!(error, Err(kept));
    assert!(error.unwrap_err().to_string().contains("2097152 bytes that stay reserved"));
    pool.free_allocation(&small).expect("live");
}

#[test]
fn limits_out_of_range_are_refused() {
    let pool = pool(MIB, true);
    for limit in [0, MAX_BYTES + 1, u64::MAX] {
        assert_eq!(pool.set_limit(limit, true, "a test"), Err(LimitError::OutOfRange { limit }));
    }
    assert_eq!(pool.limit(), Ok(MIB));
}

#[test]
fn growth_turned_off_reserves_the_rest_at_once_and_turned_on_starts_small() {
    let pool = pool(64 * MIB, true);
    pool.allocate(2 * MIB).expect("fits");
    pool.set_growth(false).expect("this process");
    assert_eq!(pool.growth(), Ok(false));
    pool.allocate(MIB).expect("fits");
    assert_eq!(reserved(&pool), 64 * MIB);
    pool.set_growth(true).expect("this process");
    pool.set_limit(128 * MIB, false, "a test").expect("in range");
    pool.allocate(60 * MIB).expect("fits");
    pool.allocate(3 * MIB).expect("fits, with a second region of 4 MiB");
    assert_eq!(reserved(&pool), 68 * MIB);
}

#[test]
fn without_growth_a_new_limit_is_what_is_reserved_first() {
    let log = Log::default();
    let source = Recording::new(AddressSpace::new(0), log.clone());
    let pool = Pool::new(source, Options::new(64 * MIB).growth(false)).expect("options in range");
    pool.set_limit(16 * MIB, false, "a test").expect("in range");
    pool.allocate(1).expect("fits");
    assert_eq!((reserved(&pool), log.take().len()), (16 * MIB, 1));
}

#[test]
fn the_limit_holds_while_it_moves_under_threads() {
    let pool = pool(8 * MIB, true);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 1..4_u64 {
            let (pool, over) = (&pool, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let held: Vec<_> = (0..8).filter_map(|_| pool.allocate(number * MIB / 4).ok()).collect();
                    for allocation in &held {
                        pool.free_allocation(allocation).expect("live");
                    }
                }
            });
        }
        for round in 0..400_u64 {
            let limit = (2 + round % 7) * MIB;
            // Whether or not it succeeds, no amount exceeds the pool's limit.
            let _ = pool.set_limit(limit, round % 2 == 0, "a test");
            let _ = pool.set_growth(round % 3 == 0);
            let stats = pool.stats().expect("this process");
            assert!(stats.reserved <= stats.limit, "{stats:?}");
        }
        over.store(true, Ordering::Relaxed);
    });
    pool.check().expect("every invariant holds");
    pool.trim().expect("this process");
    assert_eq!(reserved(&pool), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// After any changes, a pool that is empty at the end serves its whole limit as one request.
    #[test]
    fn nothing_is_lost_by_changes(steps in prop::collection::vec((0..6_u8, 1..64_u64), 1..60)) {
        let pool = pool(16 * MIB, true);
        let mut live = Vec::new();
        for (kind, amount) in steps {
            match kind {
                0 | 1 => live.extend(pool.allocate(amount * MIB / 16)),
                2 => if let Some(allocation) = live.pop() {
                    pool.free_allocation(&allocation).expect("live");
                },
                3 => drop(pool.set_limit(amount * MIB, amount % 2 == 0, "a test")),
                4 => pool.set_growth(amount % 2 == 0).expect("this process"),
                _ => drop(pool.trim().expect("this process")),
            }
            let stats = pool.stats().expect("this process");
            prop_assert!(stats.in_use <= stats.reserved && stats.reserved <= stats.limit);
            pool.check().expect("every invariant holds");
        }
        for allocation in &live {
            pool.free_allocation(allocation).expect("live");
        }
        pool.trim().expect("this process");
        let limit = pool.limit().expect("this process");
        prop_assert_eq!(pool.allocate(limit).expect("all of it").size, limit);
    }
}
