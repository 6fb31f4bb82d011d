//! Grants that are too short, too long, or cannot be regions; and sources that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::source::{AddressSpace, Call, RegionSource, ReserveError};
use allotment::{AllocError, GRANULE, Grant, GrantFault, MAX_BYTES, Options, Pool, Request, Verdict};
use allotment_host::HostMemory;

use super::sources::{Answering, Resized};
use super::{MIB, recorded, refused};

const START: u64 = AddressSpace::START;

/// Creates a pool with 2 MiB from `START`, of which 1 MiB is in use; `answer` answers later requests.
fn pool_with_one_region(
    mut answer: impl FnMut(u64) -> Result<Grant, ReserveError> + Send + 'static,
) -> (Pool, allotment::source::Log) {
    let mut first = true;
    let source = Answering(move |bytes| {
        if std::mem::take(&mut first) { Ok(Grant { address: START, bytes }) } else { answer(bytes) }
    });
    let (pool, log) = recorded(source, Options::new(64 * MIB));
    pool.allocate(MIB).expect("the first grant is sound");
    let _ = log.take();
    (pool, log)
}

/// Returns the fault of an answer, and whether the grant was released; checks that the pool is unchanged and usable.
fn grant_fault(answer: impl Fn(u64) -> Grant + Send + 'static) -> (GrantFault, bool) {
    let (pool, log) = pool_with_one_region(move |bytes| Ok(answer(bytes)));
    let before = pool.snapshot().expect("this process");
    let error = pool.allocate(4 * MIB).expect_err("no sound grant");
    let AllocError::BadGrant { grant, fault } = error else { panic!("not a bad grant: {error}") };
    assert_eq!(pool.snapshot().expect("this process"), before);
    pool.check().expect("every invariant holds");
    pool.allocate(MIB).expect("the other half of the first region");
    let calls = log.take();
    assert_eq!(calls[0], Call::Reserve { bytes: 4 * MIB, answer: Some(grant) }, "asked once");
    (fault, calls[1..] == [Call::Release(grant)])
}

#[test]
fn a_grant_at_an_odd_address_is_handed_back() {
    let odd = |bytes| Grant { address: (1 << 40) + 128, bytes };
    assert_eq!(grant_fault(odd), (GrantFault::Misaligned, true));
}

#[test]
fn a_grant_of_an_odd_length_is_handed_back() {
    let odd = |bytes| Grant { address: 1 << 40, bytes: bytes + 1 };
    assert_eq!(grant_fault(odd), (GrantFault::Misaligned, true));
}

#[test]
fn a_grant_at_address_zero_is_handed_back() {
    let zero = |bytes| Grant { address: 0, bytes };
    assert_eq!(grant_fault(zero), (GrantFault::OutOfRange, true));
}

#[test]
fn a_grant_past_the_last_address_is_handed_back() {
    let past = |bytes| Grant { address: MAX_BYTES - bytes + GRANULE, bytes };
    assert_eq!(grant_fault(past), (GrantFault::OutOfRange, true));
    let wraps = |bytes| Grant { address: u64::MAX - (GRANULE - 1), bytes };
    assert_eq!(grant_fault(wraps), (GrantFault::OutOfRange, true));
}

#[test]
fn a_grant_that_ends_at_the_last_address_is_a_region() {
    let (pool, _) = pool_with_one_region(|bytes| Ok(Grant { address: MAX_BYTES - bytes, bytes }));
    assert_eq!(pool.allocate(4 * MIB).expect("sound").address, MAX_BYTES - 4 * MIB);
    pool.check().expect("every invariant holds");
}

#[test]
fn a_grant_that_overlaps_a_region_is_not_handed_back() {
    let overlapping = [
        (START, 4 * MIB),
        (START + MIB, 4 * MIB),
        (START - MIB, 4 * MIB),
        (START + GRANULE, GRANULE),
        (START + GRANULE, 0),
        (START + 2 * MIB - GRANULE, 4 * MIB),
    ];
    for (address, bytes) in overlapping {
        assert_eq!(grant_fault(move |_| Grant { address, bytes }), (GrantFault::Overlap, false));
    }
}

#[test]
fn a_grant_between_two_regions_is_a_region() {
    let ends = [START + 2 * MIB, START + 6 * MIB];
    let mut places = [START + 6 * MIB, START + 2 * MIB].into_iter();
    let (pool, _) = pool_with_one_region(move |_| {
        let address = places.next().ok_or(ReserveError::Declined)?;
        Ok(Grant { address, bytes: 4 * MIB })
    });
    assert_eq!(pool.allocate(4 * MIB).expect("behind").address, ends[1]);
    assert_eq!(pool.allocate(4 * MIB).expect("between").address, ends[0]);
    assert_eq!(pool.stats().expect("this process").num_regions, 3);
    pool.check().expect("every invariant holds");
}

#[test]
fn a_bad_grant_is_no_refused_request() {
    let (pool, _) = pool_with_one_region(|bytes| Ok(Grant { address: 1, bytes }));
    pool.allocate(4 * MIB).expect_err("no sound grant");
    assert_eq!(pool.stats().expect("this process").num_refused, 0);
}

#[test]
fn a_grant_shorter_than_asked_serves_if_it_holds_the_request() {
    let (pool, log) = pool_with_one_region(|_| Ok(Grant { address: 1 << 40, bytes: 3 * MIB }));
    let allocation = pool.allocate(3 * MIB).expect("holds the request exactly");
    assert_eq!((allocation.address, allocation.size), (1 << 40, 3 * MIB));
    assert_eq!(log.take().len(), 1);
    assert_eq!(pool.stats().expect("this process").reserved, 5 * MIB);
}

#[test]
fn a_grant_shorter_than_the_request_goes_back_and_the_next_size_is_asked_for() {
    let too_short = Grant { address: 1 << 40, bytes: 3 * MIB - GRANULE };
    let (pool, log) = pool_with_one_region(move |_| Ok(too_short));
    assert_eq!(refused(pool.allocate(3 * MIB)).verdict, Verdict::Source);
    let calls = log.take();
    assert!(calls.len() > 2);
    for pair in calls.chunks(2) {
        assert!(matches!(pair[0], Call::Reserve { answer: Some(grant), .. } if grant == too_short));
        assert_eq!(pair[1], Call::Release(too_short));
    }
    let stats = pool.stats().expect("this process");
    assert_eq!((stats.reserved, stats.peak_reserved, stats.num_grants), (2 * MIB, 2 * MIB, 1));
}

#[test]
fn a_grant_of_nothing_goes_back() {
    assert_eq!(grant_fault(|_| Grant { address: 1 << 40, bytes: 0 }), (GrantFault::Empty, true));
}

#[test]
fn a_longer_grant_is_used_as_long_as_the_limit_allows() {
    let rounding = Resized { upstream: AddressSpace::new(256), rule: |n: u64| n.next_multiple_of(2 * MIB) };
    let (pool, _) = recorded(rounding, Options::new(5 * MIB));
    pool.allocate(MIB + 256).expect("2 MiB, whole");
    // 3 MiB are left: 3 requested, 4 granted, which is too much; smaller requests follow until 2 are granted.
    pool.allocate(MIB).expect("2 MiB fit the limit");
    let stats = pool.stats().expect("this process");
    assert_eq!((stats.reserved, stats.peak_reserved), (4 * MIB, 4 * MIB));
    // No grant fits the last 1 MiB. The reference loses its limit here.
    assert_eq!(refused(pool.allocate(MIB + 256)).verdict, Verdict::Fragmented);
    assert_eq!(refused(pool.allocate(50 * MIB)).verdict, Verdict::Limit);
    assert_eq!(pool.stats().expect("this process").reserved, 4 * MIB);
}

#[test]
fn a_source_that_always_grants_too_much_takes_nothing_and_loses_nothing() {
    let doubling = Resized { upstream: AddressSpace::new(0), rule: |bytes: u64| bytes * 2 };
    let (pool, log) = recorded(doubling, Options::new(MIB).growth(false));
    assert_eq!(refused(pool.allocate(MIB)).verdict, Verdict::Source);
    assert_eq!(pool.stats().expect("this process").peak_reserved, 0);
    let calls = log.take();
    assert!(
        matches!(calls[..], [Call::Reserve { answer: Some(grant), .. }, Call::Release(back)] if grant == back)
    );
    // Decreasing requests reach a size that fits the limit twice.
    pool.allocate(MIB / 4).expect("granted at half a MiB or less");
}

/// The error of a failing source.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the device fell off the bus")
    }
}

impl std::error::Error for Broken {}

#[test]
fn a_failure_of_the_source_reaches_the_caller_as_it_is_and_ends_the_asking() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let (pool, _) = pool_with_one_region(move |bytes| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Err(ReserveError::Declined),
        1 => Err(ReserveError::Failed(Arc::new(Broken))),
        _ => Ok(Grant { address: 1 << 40, bytes }),
    });
    let before = pool.snapshot().expect("this process");
    let error = pool.allocate(3 * MIB).expect_err("failed");
    assert_eq!(error.to_string(), "the region source failed: the device fell off the bus");
    let AllocError::SourceFailed { failure, refused } = error else { panic!("another error: {error}") };
    assert!(failure.downcast_ref::<Broken>().is_some());
    assert_eq!((refused.requested, refused.reserved, refused.in_use), (3 * MIB, 2 * MIB, MIB));
    assert_eq!(asked.load(Ordering::Relaxed), 2);

    let after = pool.snapshot().expect("this process");
    assert_eq!(after.regions, before.regions);
    pool.allocate(3 * MIB).expect("granted the next time");
    pool.check().expect("every invariant holds");
}

#[test]
fn a_failure_hands_back_no_region() {
    let (pool, log) = pool_with_one_region(|_| Err(ReserveError::Failed(Arc::new(Broken))));
    pool.free(START).expect("live");
    assert!(matches!(pool.allocate(3 * MIB), Err(AllocError::SourceFailed { .. })));
    assert_eq!(log.take().len(), 1);
    assert_eq!(pool.stats().expect("this process").reserved, 2 * MIB);
}

#[test]
fn a_source_is_asked_for_whole_granules_at_a_granule() {
    struct Careful(AddressSpace);

    impl RegionSource for Careful {
        fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
            assert!(bytes > 0 && bytes.is_multiple_of(GRANULE) && alignment == GRANULE);
            self.0.reserve(bytes, alignment)
        }

        fn release(&mut self, _region: Grant) {}
    }

    for limit in [257, 1_000_001, 3 * MIB + 1] {
        let (pool, _) = recorded(Careful(AddressSpace::new(0)), Options::new(limit));
        for alignment in [1, 256, 512, 4096] {
            let _ = pool.allocate_with_retry(Request::new(777).align(alignment), |_| false);
        }
    }
}

#[test]
fn joined_host_memory_goes_back_as_one_region() {
    // A pool may join regions of any source; its release then covers several grants.
    let mut host = HostMemory::new();
    let mut grants: Vec<_> = (0..64).filter_map(|_| host.reserve(MIB, GRANULE).ok()).collect();
    grants.sort_unstable();
    let touching = grants.windows(2).position(|pair| pair[0].end() == pair[1].address);
    let at = touching.expect("the system puts mappings side by side");
    let right = grants.remove(at + 1);
    grants[at].bytes += right.bytes;
    for grant in grants {
        host.release(grant);
    }
}
