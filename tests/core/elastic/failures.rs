//! Sources that fail or grant what cannot be used: the caller hears of it, and no address and no memory is lost.

use std::sync::{Arc, Mutex};

use allotment::source::{
    AddressSpace, CheckedPages, CommittedPages, FailingPages, Grant, PageCall, PageSource, RegionSource,
    ReserveError, SourceFailure,
};
use allotment::{AllocError, GrantFault, LimitError, Options, Pool, TrimError};

const PAGE: u64 = 64 << 10;

/// Returns a pool with free spans of 1, 2 and 3 pages, and 3 pages in use between them; decommits with a
/// number in `failing` fail.
fn pool_with_holes(failing: &'static [u64]) -> (Pool, CommittedPages) {
    let source = FailingPages::new(AddressSpace::new(0), move |call, number, _| {
        (call == PageCall::Decommit && failing.contains(&number)).then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(source, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let sizes = [1, 1, 2, 1, 3, 1];
    let all = sizes.map(|size| pool.allocate(size * PAGE).expect("room").address);
    for free in all.into_iter().step_by(2) {
        pool.free(free).expect("live");
    }
    assert_eq!(pages.bytes(), 9 * PAGE);
    (pool, pages)
}

#[test]
fn a_trim_reports_pages_that_the_source_does_not_take() {
    // The largest span goes first.
    let (pool, pages) = pool_with_holes(&[1]);
    let error = pool.trim().expect_err("the second decommit fails");
    assert_eq!(error.released(), 4 * PAGE);
    let text =
        "the region source failed: refused on purpose; it took 262144 bytes, and the pool keeps the rest";
    assert_eq!(error.to_string(), text);
    assert_eq!((pages.bytes(), pool.stats().expect("usable").reserved), (5 * PAGE, 5 * PAGE));
    assert_eq!(pool.trim(), Ok(2 * PAGE));
    pool.check().expect("sound");
}

#[test]
fn a_trim_to_a_target_reports_them_too() {
    let (pool, pages) = pool_with_holes(&[0]);
    let error = pool.trim_to(6 * PAGE).expect_err("the first decommit fails");
    assert!(matches!(error, TrimError::SourceFailed { released: 0, .. }), "{error}");
    assert_eq!(pages.bytes(), 9 * PAGE);
    assert_eq!(pool.trim_to(6 * PAGE), Ok(3 * PAGE));
}

#[test]
fn a_limit_that_the_source_prevents_is_the_fault_of_the_source() {
    let (pool, pages) = pool_with_holes(&[1]);
    let error = pool.set_limit(3 * PAGE, true, "test").expect_err("the second decommit fails");
    assert!(
        matches!(error, LimitError::SourceFailed { limit, reserved, .. } if limit == 3 * PAGE && reserved == 5 * PAGE)
    );
    let text = "limit 196608 is below the 327680 bytes that stay reserved, as the region source failed: refused on purpose";
    assert_eq!(error.to_string(), text);
    assert_eq!((pool.limit(), pages.bytes()), (Ok(64 * PAGE), 5 * PAGE));
    assert_eq!(pool.set_limit(3 * PAGE, true, "test"), Ok(2 * PAGE));
}

/// A source that grants one range of addresses, whatever it is asked for.
struct Grants {
    grant: Grant,
    calls: Arc<Mutex<Vec<(&'static str, Grant)>>>,
}

impl Grants {
    fn record(&self, call: &'static str, span: Grant) {
        self.calls.lock().expect("sound").push((call, span));
    }
}

impl RegionSource for Grants {
    fn reserve(&mut self, _bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Err(ReserveError::Declined)
    }

    fn release(&mut self, _region: Grant) {}

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }
}

impl PageSource for Grants {
    fn granule(&self) -> u64 {
        4096
    }

    fn reserve_addresses(&mut self, bytes: u64, _page_size: u64) -> Result<Grant, ReserveError> {
        self.record("reserve", Grant { address: 0, bytes });
        Ok(self.grant)
    }

    fn release_addresses(&mut self, range: Grant) {
        self.record("release", range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.record("commit", span);
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.record("decommit", span);
        Ok(())
    }

    fn read(&mut self, _address: u64, _into: &mut [u8]) -> Result<(), SourceFailure> {
        Ok(())
    }

    fn write(&mut self, _address: u64, _from: &[u8]) -> Result<(), SourceFailure> {
        Ok(())
    }
}

#[test]
fn a_range_that_cannot_be_used_is_handed_back_without_memory() {
    let page_size = PAGE;
    for growth in [false, true] {
        for (address, bytes, fault) in [
            (4096, 8 * PAGE, GrantFault::NoPages { page_size }),
            (PAGE, 8 * PAGE + 4096, GrantFault::NoPages { page_size }),
            (0, 8 * PAGE, GrantFault::OutOfRange),
            (u64::MAX - PAGE + 1, 8 * PAGE, GrantFault::OutOfRange),
        ] {
            let grant = Grant { address, bytes };
            let calls = Arc::default();
            let source = Grants { grant, calls: Arc::clone(&calls) };
            let options = Options::new(8 * PAGE).elastic(true).page_size(PAGE).growth(growth);
            let pool = Pool::new(source, options).expect("valid");
            let error = pool.allocate(PAGE).expect_err("no range");
            assert!(
                matches!(error, AllocError::BadGrant { grant: named, fault: found } if named == grant && found == fault),
                "{error}"
            );
            assert_eq!(calls.lock().expect("sound").split_off(1), [("release", grant)], "{error}");
        }
    }
}

#[test]
fn a_range_that_is_too_short_is_handed_back() {
    let grant = Grant { address: PAGE, bytes: PAGE };
    let calls = Arc::default();
    let source = Grants { grant, calls: Arc::clone(&calls) };
    let options = Options::new(8 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let error = pool.allocate(3 * PAGE).expect_err("no range");
    let text = "the region source granted 65536 bytes at address 65536, which is shorter than the 262144 bytes that were \
                needed; it was handed back";
    assert_eq!(error.to_string(), text);
    assert_eq!(calls.lock().expect("sound").last(), Some(&("release", grant)));
}

#[test]
fn a_range_in_use_that_is_granted_again_stays() {
    let grant = Grant { address: PAGE, bytes: 4 * PAGE };
    let calls = Arc::default();
    let source = Grants { grant, calls: Arc::clone(&calls) };
    let options = Options::new(8 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    pool.allocate(3 * PAGE).expect("the first range");
    let error = pool.allocate(3 * PAGE).expect_err("the same range");
    assert!(matches!(error, AllocError::BadGrant { fault: GrantFault::Overlap, .. }), "{error}");
    assert!(calls.lock().expect("sound").iter().all(|(call, _)| *call != "release"));
}
