//! Elastic pools: random programs beside a model that knows each live allocation and counts pages one by one; sources
//! that fail; pausing; the smallest limits of recorded programs.
//!
//! `ALLOTMENT_ELASTIC_STEPS` sets the steps of each random program, `ALLOTMENT_ELASTIC_SEED` the first seed.

#[path = "elastic/failures.rs"]
mod failures;
#[path = "elastic/limits.rs"]
mod limits;
#[path = "elastic/model.rs"]
mod model;
#[allow(dead_code, reason = "programs of many seeds use the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "elastic/options.rs"]
mod options;
#[path = "elastic/paused_content.rs"]
mod paused_content;
#[path = "elastic/pausing.rs"]
mod pausing;
#[path = "elastic/threads.rs"]
mod threads;
#[path = "../support/traces.rs"]
mod traces;

use allotment::source::{
    AddressSpace, Cap, Capped, CheckedPages, CommittedPages, FailingPages, PageCall, ReserveError,
};
use allotment::{Action, AllocError, Options, Pool, Request, Verdict};
use model::{Run, Setup, Switch};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PAGE_SIZES: [u64; 3] = [4 << 10, 64 << 10, 2 << 20];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn steps() -> u64 {
    number("ALLOTMENT_ELASTIC_STEPS", 4_000)
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("ALLOTMENT_ELASTIC_SEED", 1);
    first..first + 12
}

#[test]
fn a_request_is_refused_only_if_no_place_has_enough_pages() {
    for seed in seeds() {
        for page_size in PAGE_SIZES {
            let setup = Setup { seed, page_size, growth: seed % 4 != 0, ..Setup::default() };
            Run::new(AddressSpace::new(0), setup, &Switch::default()).play(steps());
            let most = 2 + seed * 5;
            let source = Capped::new(AddressSpace::new(0), Cap::new(most * page_size));
            Run::new(source, Setup { most: Some(most), ..setup }, &Switch::default()).play(steps());
        }
    }
}

#[test]
fn every_nth_call_of_each_kind_may_fail() {
    for (seed, call) in seeds().zip(PageCall::ALL.into_iter().cycle()) {
        for page_size in PAGE_SIZES {
            for period in [2, 3, 7] {
                let may_fail = Switch::new(true.into());
                let switch = Arc::clone(&may_fail);
                let source = FailingPages::new(AddressSpace::new(0), move |made, number, _| {
                    let fails = made == call && number % period == 1 && switch.load(Ordering::Relaxed);
                    fails.then_some(ReserveError::Declined)
                });
                let loses = call == PageCall::Recycle;
                let setup = Setup { seed, page_size, growth: true, fails: true, loses, ..Setup::default() };
                Run::new(source, setup, &may_fail).play(steps() / 4);
            }
        }
    }
}

#[test]
fn advice_holds_after_a_source_declined_what_it_promised() {
    for seed in seeds() {
        for page_size in PAGE_SIZES {
            let most = 3 + seed * 3;
            let mut committed = 0;
            let source = FailingPages::new(AddressSpace::new(0), move |call, number, span| {
                match call {
                    PageCall::ReserveAddresses if number % 3 > 0 => return Some(ReserveError::Declined),
                    PageCall::Commit if committed + span.bytes > most * page_size => {
                        return Some(ReserveError::Declined);
                    }
                    PageCall::Commit => committed += span.bytes,
                    PageCall::Decommit => committed -= span.bytes,
                    _ => {}
                }
                None
            });
            let setup = Setup { seed, page_size, most: Some(most), overpromises: true, ..Setup::default() };
            Run::new(source, setup, &Switch::default()).play(steps() / 2);
        }
    }
}

#[test]
fn a_source_that_cannot_move_pages_serves_as_much() {
    for seed in seeds() {
        let may_fail = Switch::default();
        let source = FailingPages::new(AddressSpace::new(0), |made, _, _| {
            (made == PageCall::Move).then_some(ReserveError::Declined)
        });
        let setup = Setup { seed, page_size: 64 << 10, growth: true, ..Setup::default() };
        Run::new(source, setup, &may_fail).play(steps());
    }
}

#[test]
fn a_source_fails_at_random() {
    for seed in seeds() {
        let mut random = numbers::Numbers::one_of(seed, 7);
        let may_fail = Switch::new(true.into());
        let switch = Arc::clone(&may_fail);
        let source = FailingPages::new(AddressSpace::new(0), move |_, _, _| {
            let fails = random.chance(30) && switch.load(Ordering::Relaxed);
            fails.then_some(ReserveError::Declined)
        });
        let (page_size, growth) = (4 << 10, seed % 2 == 0);
        let setup = Setup { seed, page_size, growth, fails: true, loses: true, ..Setup::default() };
        Run::new(source, setup, &may_fail).play(steps());
    }
}

/// A pool of 64 pages over a source with memory for `most` pages.
fn scarce(most: u64) -> (Pool, CommittedPages) {
    let page_size = 64 << 10;
    let capped = Capped::new(AddressSpace::new(0), Cap::new(most * page_size));
    let (source, pages) = CheckedPages::new(capped, page_size);
    let options = Options::new(64 * page_size).elastic(true).page_size(page_size);
    (Pool::new(source, options).expect("valid"), pages)
}

#[test]
fn free_pages_serve_what_the_source_declines() {
    let (pool, pages) = scarce(8);
    let page = 64 << 10;
    let parts: Vec<_> = (0..8).map(|_| pool.allocate(page).expect("room").address).collect();
    for address in parts.iter().step_by(2) {
        pool.free(*address).expect("live");
    }
    // Four pages are free, in four places; the policy would commit more, as the limit allows it.
    pool.allocate(4 * page).expect("four free pages");
    assert_eq!(pages.bytes(), 8 * page);
    assert!(pool.allocate(page).is_err());
}

#[test]
fn without_growth_a_pool_takes_what_the_source_has() {
    let page = 64 << 10;
    let (source, pages) = CheckedPages::new(Capped::new(AddressSpace::new(0), Cap::new(20 * page)), page);
    let options = Options::new(64 * page).growth(false).elastic(true).page_size(page);
    let pool = Pool::new(source, options).expect("valid");
    pool.allocate(1).expect("a page");
    assert_eq!(pages.bytes(), 20 * page);
    pool.allocate(19 * page).expect("the rest");
    assert!(pool.allocate(page).is_err());
    pool.check().expect("sound");
}

#[test]
fn without_growth_a_refused_request_keeps_nothing() {
    let page = 64 << 10;
    let (source, pages) = CheckedPages::new(Capped::new(AddressSpace::new(0), Cap::new(20 * page)), page);
    let options = Options::new(64 * page).growth(false).elastic(true).page_size(page);
    let pool = Pool::new(source, options).expect("valid");
    assert!(pool.allocate(30 * page).is_err());
    assert_eq!(pages.bytes(), 0);
    // A source that does not say what it has is asked for fewer and fewer pages.
    let failing = FailingPages::new(AddressSpace::new(0), move |made, _, span| {
        (made == PageCall::Commit && span.bytes > 20 * page).then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, page);
    let options = Options::new(64 * page).growth(false).elastic(true).page_size(page);
    let pool = Pool::new(source, options).expect("valid");
    pool.allocate(1).expect("a page");
    // Of 64, 57, 51, 45, 40, 36, 32, 28, 25, 22 and 19 pages the source grants the last.
    assert_eq!(pages.bytes(), 19 * page);
}

#[test]
fn a_commit_that_fails_half_way_leaves_nothing_new() {
    let (pool, pages) = scarce(7);
    let page = 64 << 10;
    let parts: Vec<_> = (0..6).map(|_| pool.allocate(page).expect("room").address).collect();
    for gone in [parts[1], parts[3]] {
        pool.free(gone).expect("live");
        assert_eq!(pool.trim().expect("usable"), page);
    }
    pool.allocate(page + 1).expect("two pages more");
    pool.free(parts[2]).expect("live");
    assert_eq!(pages.bytes(), 6 * page);
    // The hole has three pages, and only the middle one has memory: there is some for one of the others.
    let refused = pool.allocate(3 * page).expect_err("too little memory");
    assert!(
        matches!(refused, allotment::AllocError::OutOfMemory(refused) if refused.verdict == Verdict::Source)
    );
    assert_eq!((pages.bytes(), pool.stats().expect("usable").reserved), (6 * page, 6 * page));
    pool.check().expect("sound");
    pool.allocate(2 * page).expect("fits");
}

#[test]
fn a_request_that_the_source_declines_moves_no_page() {
    let (pool, pages) = scarce(8);
    let page = 64 << 10;
    let parts: Vec<_> = (0..8).map(|_| pool.allocate(page).expect("room").address).collect();
    for address in parts.iter().step_by(2) {
        pool.free(*address).expect("live");
    }
    let before = (pool.stats().expect("usable").num_commits, pool.snapshot().expect("usable").regions);
    // Four pages are free, and the source has none for the fifth.
    let refused = pool.allocate(5 * page).expect_err("too little memory");
    assert!(
        matches!(refused, allotment::AllocError::OutOfMemory(refused) if refused.verdict == Verdict::Source)
    );
    let after = (pool.stats().expect("usable").num_commits, pool.snapshot().expect("usable").regions);
    assert_eq!((after, pages.bytes()), (before, 8 * page));
}

#[test]
fn advice_counts_on_no_addresses_that_were_declined() {
    let page = 64 << 10;
    let source = FailingPages::new(AddressSpace::new(0), |call, number, _| {
        (call == PageCall::ReserveAddresses && number > 0).then_some(ReserveError::Declined)
    });
    let options = Options::new(64 * page).elastic(true).page_size(page);
    let pool = Pool::new(source, options).expect("valid");
    pool.allocate(60 * page).expect("room");
    // No address of the range is such a multiple.
    let aligned = |pages: u64| Request::new(pages * page).align(1 << 40);
    let refused = |pages| match pool.allocate(aligned(pages)) {
        Err(AllocError::OutOfMemory(mut refused)) => {
            pool.add_details(&mut refused).expect("usable");
            refused
        }
        other => panic!("not refused: {other:?}"),
    };
    let before: Vec<_> = refused(8).advice.iter().map(|advice| advice.action).collect();
    assert_eq!(before, [Action::Free, Action::RaiseLimit, Action::AskFor]);
    assert_eq!(refused(2).verdict, Verdict::Source);
    let after = refused(8);
    assert_eq!((after.verdict, &after.advice[..]), (Verdict::Full, &[][..]));
}
