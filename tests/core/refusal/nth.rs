//! The source declines one request, or all from some point on: nothing is lost, the limit holds, and a later attempt
//! succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::source::{AddressSpace, Call, FailingSource};
use allotment::{Options, Pool, Verdict};

use super::{MIB, recorded};

const LIMIT: u64 = 256 * MIB;

/// Sizes that each need a region in a growing pool, and some that need none.
const SIZES: [u64; 10] =
    [MIB, 3 * MIB, 5 * MIB, 100, 9 * MIB, 1_000_000, 17 * MIB, 256, 2 * MIB + 1, 7 * MIB];

fn both_ways_to_grow() -> [Options; 2] {
    [true, false].map(|growth| Options::new(LIMIT).growth(growth))
}

/// Allocates as much as possible, checks the invariants after each request, and frees everything.
fn allocate_and_free(pool: &Pool) -> usize {
    let mut live = Vec::new();
    for bytes in SIZES {
        live.extend(pool.allocate(bytes));
        pool.check().expect("every invariant holds");
        let stats = pool.stats().expect("this process");
        assert!(stats.peak_reserved <= LIMIT, "{stats:?}");
        assert_eq!(stats.num_live, live.len() as u64);
    }
    for allocation in &live {
        pool.free_allocation(allocation).expect("live");
    }
    live.len()
}

/// Checks that everything is free, can be released, and can be allocated as a whole.
fn nothing_is_lost(pool: &Pool) {
    let stats = pool.stats().expect("this process");
    assert_eq!((stats.requested, stats.in_use, stats.num_live), (0, 0, 0));
    assert_eq!(pool.trim().expect("no other thread holds the source lock"), stats.reserved);
    // This may be the declined request.
    let all = pool.allocate(LIMIT).or_else(|_| pool.allocate(LIMIT));
    let all = all.expect("the source grants everything again");
    assert_eq!(all.size, LIMIT);
    pool.free(all.address).expect("live");
    pool.check().expect("every invariant holds");
}

#[test]
fn one_refused_request_costs_nothing() {
    for options in both_ways_to_grow() {
        for n in 0..=20 {
            let rule = move |number, _| number == n;
            let (pool, _) = recorded(FailingSource::new(AddressSpace::new(256), rule), options.clone());
            // Without growth the first region is a tenth smaller then, and still holds every request.
            let served = allocate_and_free(&pool);
            assert_eq!(served, SIZES.len(), "request {n} of the source refused");
            assert_eq!(pool.stats().expect("this process").num_refused, 0);
            nothing_is_lost(&pool);
        }
    }
}

#[test]
fn refusals_from_some_request_on_cost_nothing_that_was_there_before() {
    for options in both_ways_to_grow() {
        for n in 0..=20 {
            let from = Arc::new(AtomicU64::new(n));
            let last = Arc::clone(&from);
            let rule = move |number, _| number >= last.load(Ordering::Relaxed);
            let (pool, _) = recorded(FailingSource::new(AddressSpace::new(0), rule), options.clone());
            let served = allocate_and_free(&pool);
            let refused = pool.stats().expect("this process").num_refused;
            assert_eq!(served as u64 + refused, SIZES.len() as u64, "refused from request {n} on");
            from.store(u64::MAX, Ordering::Relaxed);
            assert_eq!(allocate_and_free(&pool), SIZES.len(), "all granted later, {n} granted before");
            nothing_is_lost(&pool);
        }
    }
}

#[test]
fn each_refused_request_counts_once_however_often_the_source_is_asked() {
    let (pool, log) = recorded(FailingSource::new(AddressSpace::new(0), |_, _| true), Options::new(LIMIT));
    for refusals in 1..=3 {
        pool.allocate(5 * MIB).expect_err("refused");
        assert_eq!(pool.stats().expect("this process").num_refused, refusals);
        assert!(log.take().len() > 1);
    }
}

#[test]
fn a_request_that_is_tried_again_and_served_is_no_refusal() {
    let (pool, _) = recorded(AddressSpace::new(0), Options::new(LIMIT).growth(false));
    let all = pool.allocate(LIMIT).expect("fits");
    let mut asked = 0;
    let served = pool.allocate_with_retry(MIB, |refused| {
        asked += 1;
        assert_eq!(refused.out_of_memory.verdict, Verdict::Full);
        pool.free_allocation(&all).is_ok()
    });
    assert_eq!(served.expect("served in the end").address, all.address);
    assert_eq!(asked, 1);
    assert_eq!(pool.stats().expect("this process").num_refused, 0);
}

#[test]
fn the_retry_callback_is_called_once_for_each_attempt() {
    let (pool, _) = recorded(AddressSpace::new(0), Options::new(LIMIT).growth(false));
    let mut asked = 0;
    let result = pool.allocate_with_retry(LIMIT + 1, |_| {
        asked += 1;
        asked < 4
    });
    result.expect_err("above the limit");
    assert_eq!(asked, 4);
    assert_eq!(pool.stats().expect("this process").num_refused, 1);
}

#[test]
fn try_allocate_neither_counts_a_refusal_nor_calls_the_source() {
    let (pool, log) = recorded(AddressSpace::new(0), Options::new(LIMIT));
    assert_eq!(pool.try_allocate(1).expect("an open pool"), None);
    assert_eq!(log.take(), []);
    assert_eq!(pool.stats().expect("this process").num_refused, 0);
    let allocation = pool.allocate(1).expect("grows");
    assert_eq!(log.take().len(), 1);
    assert!(pool.try_allocate(1).expect("an open pool").is_some_and(|other| other != allocation));
}

#[test]
fn a_refused_request_of_the_source_leaves_the_growth_step_as_far_as_it_was_doubled() {
    let rule = |number, _| number < 5;
    let (pool, log) = recorded(FailingSource::new(AddressSpace::new(0), rule), Options::new(1 << 30));
    // The reference: five requests from 8 MiB down, all declined, then the step is still 8 MiB.
    pool.allocate(5_000_000).expect_err("refused");
    let asked: Vec<_> = log.take().iter().map(bytes_asked).collect();
    assert_eq!(asked, [8_388_608, 7_549_952, 6_795_008, 6_115_584, 5_504_256]);
    pool.allocate(1).expect("granted");
    let asked: Vec<_> = log.take().iter().map(bytes_asked).collect();
    assert_eq!(asked, [8_388_608]);
}

fn bytes_asked(call: &Call) -> u64 {
    match call {
        Call::Reserve { bytes, .. } => *bytes,
        other => panic!("{other:?}"),
    }
}
