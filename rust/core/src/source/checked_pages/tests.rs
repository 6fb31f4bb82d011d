use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::{
    AddressSpace, Call, Cap, Capped, DescendingAddresses, FailingPages, Log, PageCall, Recording,
};
use super::*;

const PAGE: u64 = 1 << 16;

/// Returns `count` pages of a range from the page `first` on.
fn pages(range: Grant, first: u64, count: u64) -> Grant {
    Grant { address: range.address + first * PAGE, bytes: count * PAGE }
}

fn range_of(source: &mut impl RegionSource, count: u64) -> Grant {
    of_upstream(source).reserve_addresses(count * PAGE, PAGE).unwrap()
}

#[test]
fn sources_of_addresses_count_pages() {
    let sources: [Box<dyn RegionSource>; 2] =
        [Box::new(AddressSpace::new(256)), Box::new(DescendingAddresses::new(256))];
    for source in sources {
        let (mut source, account) = CheckedPages::new(source, PAGE);
        let ranges = [5, 3, 1000].map(|count| range_of(&mut source, count));
        assert_eq!(account.ranges().len(), 3);
        let source = of_upstream(&mut source);
        assert_eq!((source.granule(), source.page_size()), (256, 2 << 20));
        source.commit(pages(ranges[0], 0, 4)).unwrap();
        source.commit(ranges[1]).unwrap();
        source.move_pages(pages(ranges[0], 2, 2), pages(ranges[2], 998, 2).address).unwrap();
        source.move_pages(pages(ranges[0], 0, 1), pages(ranges[0], 4, 1).address).unwrap();
        source.decommit(pages(ranges[1], 1, 1)).unwrap();
        for (range, first, count, is_committed) in [
            (0, 0, 1, false),
            (0, 1, 1, true),
            (0, 2, 2, false),
            (0, 4, 1, true),
            (2, 998, 2, true),
            (2, 997, 2, false),
        ] {
            assert_eq!(
                account.covers(pages(ranges[range], first, count)),
                is_committed,
                "{range} {first} {count}"
            );
        }
        assert_eq!((account.bytes(), account.most_bytes()), (6 * PAGE, 7 * PAGE));
        let calls = PageCalls {
            commits: 2,
            committed_bytes: 7 * PAGE,
            decommits: 1,
            decommitted_bytes: PAGE,
            moves: 2,
            moved_bytes: 3 * PAGE,
        };
        assert_eq!(account.calls(), calls);
        let failure = source.read(pages(ranges[0], 1, 1).address, &mut [0; 8]).unwrap_err();
        assert!(failure.to_string().ends_with("it has no content to read or write"), "{failure}");
        source.decommit(pages(ranges[1], 0, 1)).unwrap();
        source.decommit(pages(ranges[1], 2, 1)).unwrap();
        source.release_addresses(ranges[1]);
        assert_eq!(account.ranges().len(), 2);
    }
}

/// A range of pages of which 0 to 3 are committed, and what panics there.
#[test]
fn every_breach_of_the_contract_panics() {
    type Breach = fn(&mut dyn PageSource, Grant);
    let breaches: [(&str, Breach); 20] = [
        ("odd address", |source, range| {
            drop(source.commit(Grant { address: range.address + 6 * PAGE + 256, bytes: PAGE }));
        }),
        ("odd length", |source, range| drop(source.commit(Grant { bytes: PAGE / 2, ..pages(range, 6, 1) }))),
        ("nothing", |source, range| drop(source.commit(pages(range, 6, 0)))),
        ("commit twice", |source, range| drop(source.commit(pages(range, 3, 2)))),
        ("commit outside", |source, range| drop(source.commit(pages(range, 7, 2)))),
        ("decommit without memory", |source, range| drop(source.decommit(pages(range, 3, 2)))),
        ("decommit before the first", |source, _| {
            drop(source.decommit(Grant { address: 0, bytes: PAGE }));
        }),
        ("decommit outside", |source, range| drop(source.decommit(pages(range, 8, 1)))),
        ("move without memory", |source, range| {
            drop(source.move_pages(pages(range, 4, 1), pages(range, 6, 1).address));
        }),
        ("move onto memory", |source, range| {
            drop(source.move_pages(pages(range, 0, 2), pages(range, 3, 1).address));
        }),
        ("move onto itself", |source, range| {
            drop(source.move_pages(pages(range, 3, 1), pages(range, 3, 1).address));
        }),
        ("move outside", |source, range| {
            drop(source.move_pages(pages(range, 0, 2), pages(range, 7, 1).address));
        }),
        ("move to an odd address", |source, range| {
            drop(source.move_pages(pages(range, 0, 1), range.end() - PAGE - 256));
        }),
        ("release with memory", |source, range| source.release_addresses(range)),
        ("release of a part", |source, range| source.release_addresses(pages(range, 4, 4))),
        ("recycle of a part", |source, range| drop(source.recycle(pages(range, 0, 4)))),
        ("read without memory", |source, range| drop(source.read(range.address + 4 * PAGE - 1, &mut [0; 2]))),
        ("write without memory", |source, range| drop(source.write(range.address + 4 * PAGE - 1, &[0; 2]))),
        ("odd reservation", |source, _| drop(source.reserve_addresses(PAGE + 256, PAGE))),
        ("another page size", |source, _| drop(source.reserve_addresses(PAGE, 256))),
    ];
    for (name, breach) in breaches {
        let (mut source, account) = CheckedPages::new(AddressSpace::new(0), PAGE);
        let range = range_of(&mut source, 8);
        let source = of_upstream(&mut source);
        source.commit(pages(range, 0, 4)).unwrap();
        let calls = account.calls();
        let caught = catch_unwind(AssertUnwindSafe(|| breach(source, range)));
        assert!(caught.is_err(), "{name}");
        assert_eq!((account.bytes(), account.calls()), (4 * PAGE, calls), "{name}");
        source.decommit(pages(range, 0, 4)).unwrap();
        source.release_addresses(range);
    }
}

#[test]
fn a_range_that_was_lost_gets_no_more_memory() {
    let rule = |call, _, _| (call == PageCall::Recycle).then_some(ReserveError::Declined);
    let (mut source, _) = CheckedPages::new(FailingPages::new(AddressSpace::new(0), rule), PAGE);
    let [lost, kept] = [8, 8].map(|count| range_of(&mut source, count));
    let source = of_upstream(&mut source);
    source.commit(pages(lost, 0, 2)).unwrap();
    assert_eq!(source.recycle(lost).unwrap_err().to_string(), "refused on purpose");
    assert!(catch_unwind(AssertUnwindSafe(|| source.commit(pages(lost, 4, 1)))).is_err());
    assert!(
        catch_unwind(AssertUnwindSafe(|| source.move_pages(pages(lost, 0, 1), pages(lost, 4, 1).address)))
            .is_err()
    );
    source.move_pages(pages(lost, 0, 1), kept.address).unwrap();
    source.decommit(pages(lost, 1, 1)).unwrap();
    source.release_addresses(lost);
    source.commit(pages(kept, 1, 1)).unwrap();
}

#[test]
fn each_kind_of_call_fails_by_its_own_number_and_without_an_effect() {
    for failing in PageCall::ALL {
        let rule =
            move |call, number, _: Grant| (call == failing && number == 1).then_some(ReserveError::Declined);
        let log = Log::default();
        let upstream = Recording::new(AddressSpace::new(0), log.clone());
        let (mut source, account) = CheckedPages::new(FailingPages::new(upstream, rule), PAGE);
        let source = of_upstream(&mut source);
        let reserved = [(); 3].map(|()| source.reserve_addresses(8 * PAGE, PAGE).ok());
        let range = reserved[0].unwrap();
        let commits = [0, 1, 2].map(|page| source.commit(pages(range, page, 1)).is_ok());
        let targets =
            [(0, 4), (2, 5), (4, 6)].map(|(from, to)| (pages(range, from, 1), pages(range, to, 1).address));
        let moves = targets.map(|(from, to)| account.covers(from) && source.move_pages(from, to).is_ok());
        let recycles = [(); 3].map(|()| source.recycle(range).is_ok());
        let held = [1, 5, 6, 2, 4, 0]
            .map(|page| pages(range, page, 1))
            .into_iter()
            .filter(|&page| account.covers(page));
        let decommits: Vec<bool> = held.map(|page| source.decommit(page).is_ok()).collect();
        let second =
            |results: &[bool]| results.iter().enumerate().all(|(number, &done)| done == (number != 1));
        let results: [(PageCall, &[bool]); 5] = [
            (PageCall::ReserveAddresses, &reserved.map(|range| range.is_some())),
            (PageCall::Commit, &commits),
            (PageCall::Move, &moves),
            (PageCall::Recycle, &recycles),
            (PageCall::Decommit, &decommits),
        ];
        for (call, results) in results {
            assert!(
                if call == failing { second(results) } else { results.iter().all(|&done| done) },
                "{failing:?} {call:?} {results:?}"
            );
        }
    }
}

#[test]
fn committed_pages_count_against_a_cap_and_addresses_do_not() {
    let cap = Cap::new(4 * PAGE);
    let upstream = FailingPages::new(AddressSpace::new(0), |call, number, _| {
        (number == 3 && call != PageCall::ReserveAddresses).then_some(ReserveError::Declined)
    });
    let mut source = Capped::new(upstream, Arc::clone(&cap));
    let range = range_of(&mut source, 100);
    assert_eq!(cap.used(), 0);
    let commit =
        |source: &mut Capped<_>, first, count| of_upstream(source).commit(pages(range, first, count)).is_ok();
    assert!(commit(&mut source, 0, 3));
    assert!(!commit(&mut source, 10, 2), "more than the cap");
    assert!(commit(&mut source, 10, 1));
    assert_eq!(cap.used(), 4 * PAGE);
    of_upstream(&mut source).move_pages(pages(range, 0, 3), pages(range, 20, 1).address).unwrap();
    assert_eq!(cap.used(), 4 * PAGE);
    assert!(source.reserve(PAGE, 256).is_err(), "regions and pages share the cap");
    of_upstream(&mut source).decommit(pages(range, 20, 3)).unwrap();
    of_upstream(&mut source).decommit(pages(range, 10, 1)).unwrap();
    assert_eq!(cap.used(), 0);
    assert!(commit(&mut source, 0, 1));
    assert!(!commit(&mut source, 1, 1), "the upstream declines");
    assert_eq!(cap.used(), PAGE, "what was not committed does not count");
    of_upstream(&mut source).decommit(pages(range, 0, 1)).unwrap();
    assert!(commit(&mut source, 0, 1));
    assert!(of_upstream(&mut source).decommit(pages(range, 0, 1)).is_err());
    assert_eq!(cap.used(), PAGE, "what was not decommitted counts");
}

#[test]
fn calls_of_pages_are_recorded() {
    let log = Log::default();
    let rule = |call, _, _| (call == PageCall::Move).then_some(ReserveError::Declined);
    let mut source = Recording::new(FailingPages::new(AddressSpace::new(0), rule), log.clone());
    let range = range_of(&mut source, 4);
    let pages = of_upstream(&mut source);
    pages.commit(range).unwrap();
    let half = Grant { bytes: 2 * PAGE, ..range };
    assert!(pages.move_pages(half, range.end() - 2 * PAGE).is_err());
    pages.decommit(range).unwrap();
    assert!(!pages.recycle(range).unwrap());
    pages.release_addresses(range);
    let calls = [
        Call::ReserveAddresses { bytes: 4 * PAGE, answer: Some(range) },
        Call::Commit { span: range, done: true },
        Call::Move { from: half, to: range.end() - 2 * PAGE, done: false },
        Call::Decommit { span: range, done: true },
        Call::Recycle(range),
        Call::ReleaseAddresses(range),
    ];
    assert_eq!(log.take(), calls);
}

#[test]
fn a_wrapper_of_regions_has_no_pages() {
    struct Regions;
    impl RegionSource for Regions {
        fn reserve(&mut self, _: u64, _: u64) -> Result<Grant, ReserveError> {
            Err(ReserveError::Declined)
        }
        fn release(&mut self, _: Grant) {}
    }
    assert!(Capped::new(Regions, Cap::new(1 << 30)).pages().is_none());
    assert!(Recording::new(Regions, Log::default()).pages().is_none());
    assert!(FailingPages::new(Regions, |_, _, _| None).pages().is_none());
    assert!(CheckedPages::new(Regions, PAGE).0.pages().is_none());
}
