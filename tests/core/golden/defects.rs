//! Cases in which TensorFlow 2.21 loops, corrupts its state or aborts, and our behaviour there.
//!
//! Its mode with time stamps has further defects; this allocator has no such mode.

use std::time::{Duration, Instant};

use allotment::source::{AddressSpace, Call, FailingSource, ReserveError};
use allotment::{
    AllocError, Allocation, FreeError, GRANULE, Grant, GrantFault, MAX_BYTES, Pool, RegionSource,
};

use crate::probe::{Probe, bump, options};

const START: u64 = AddressSpace::START;

/// Grants the next multiple of a number of bytes.
struct Generous {
    upstream: AddressSpace,
    unit: u64,
}

impl RegionSource for Generous {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.upstream.reserve(bytes.next_multiple_of(self.unit), alignment)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
    }
}

/// Grants what is requested, always at the same address.
struct Fixed(u64);

impl RegionSource for Fixed {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        Ok(Grant { address: self.0, bytes })
    }

    fn release(&mut self, _region: Grant) {}
}

fn generous(unit: u64) -> Generous {
    Generous { upstream: AddressSpace::new(0), unit }
}

// Endless loops and overflow.

#[test]
fn a_source_that_refuses_for_ever_ends_the_request() {
    // TensorFlow asks for 2304 bytes for ever, with its lock held.
    let probe = Probe::over(options(1 << 30).growth(true), FailingSource::new(bump(0, 1), |_, _| true));
    assert_eq!(probe.alloc(100), None);
    let asked = probe.asked();
    assert!(asked.iter().all(|&(_, granted)| !granted));
    let sizes: Vec<_> = asked.into_iter().map(|(bytes, _)| bytes).collect();
    assert_eq!(sizes[..3], [2_097_152, 1_887_488, 1_698_816]);
    let tail = [3072, 2816, 2560, 2304, 2048, 1792, 1536, 1280, 1024, 768, 512, 256];
    assert!(sizes.ends_with(&tail), "{sizes:?}");
}

#[test]
fn the_growth_step_stops_doubling_before_it_wraps() {
    // TensorFlow's step is 0 after 43 doublings from 2 MiB, and the next growth never ends.
    let limit = 1 << 40;
    let probe = Probe::new(options(limit).growth(true));
    for round in 0..100_u32 {
        let (offset, size) = probe.alloc(1).unwrap();
        assert_eq!(size, 256);
        let step = 2_u64.checked_pow(21 + round).unwrap_or(u64::MAX);
        assert_eq!(probe.granted(), [(offset, step.min(limit))], "round {round}");
        probe.free(offset);
        assert_eq!(probe.pool.trim(), Ok(step.min(limit)));
    }
}

#[test]
fn a_grant_above_what_the_limit_leaves_is_handed_back_and_counts_as_refused() {
    // TensorFlow adopts it, and its limit has no effect afterwards: the subtraction overflows.
    let probe = Probe::over(options(3_145_728).growth(true), generous(2 << 20));
    assert_eq!(probe.alloc(2_097_152), Some((0, 2_097_152)));
    let _ = probe.calls();
    assert_eq!(probe.alloc(1_000_000), None);
    let grant = Grant { address: START + 2_097_152, bytes: 2_097_152 };
    // A tenth less than 1,048,576 is below the request.
    let refused = [Call::Reserve { bytes: 1_048_576, answer: Some(grant) }, Call::Release(grant)];
    assert_eq!(probe.calls(), refused);
    assert_eq!(probe.alloc(50_000_000), None);
    assert_eq!(probe.calls(), []);
    let stats = probe.stats();
    assert_eq!((stats.reserved, stats.peak_reserved, stats.num_grants), (2_097_152, 2_097_152, 1));
}

#[test]
fn after_a_grant_that_was_too_generous_each_smaller_size_is_tried() {
    let unit = 700_160;
    let probe = Probe::over(options(4 << 20).growth(true), generous(unit));
    assert_eq!(probe.alloc(1), Some((0, 256)));
    assert_eq!(probe.granted(), [(0, 3 * unit)]);
    // The limit leaves 2,093,824 bytes. A tenth less each time, until two units suffice.
    let (offset, size) = probe.alloc(3 * unit - 256).unwrap();
    assert_eq!((offset, size), (256, 3 * unit - 256));
    assert_eq!(probe.alloc(1_048_576).unwrap().1, 2 * unit);
    let asked = [2_093_824, 1_884_672, 1_696_256, 1_526_784, 1_374_208].map(|bytes| (bytes, true));
    assert_eq!(probe.asked(), asked);
    let stats = probe.stats();
    assert_eq!((stats.num_grants, stats.reserved), (2, 5 * unit));
}

#[test]
fn a_surplus_within_the_limit_is_used() {
    let probe = Probe::over(options(8 << 20).growth(true), generous(3 << 20));
    assert_eq!(probe.alloc(256), Some((0, 256)));
    assert_eq!(probe.alloc((3 << 20) - 256), Some((256, (3 << 20) - 256)));
    assert_eq!(probe.asked(), [(2 << 20, true)]);
    assert_eq!(probe.stats().reserved, 3 << 20);
}

#[test]
fn a_fraction_of_less_than_a_byte_never_makes_an_empty_chunk() {
    // TensorFlow "splits" an exact fit, and the second half is a chunk of 0 bytes.
    let probe = Probe::new(options(1 << 20).fragmentation_fraction(1e-9));
    assert_eq!(probe.alloc(1 << 20), Some((0, 1 << 20)));
    assert_eq!(probe.free_chunks(), []);
    probe.free(0);
    // Any remainder is kept.
    assert_eq!(probe.alloc((1 << 20) - 256), Some((0, (1 << 20) - 256)));
    assert_eq!(probe.free_chunks(), [((1 << 20) - 256, 256)]);
}

#[test]
fn a_free_between_a_refusal_and_the_wait_is_not_missed() {
    // In TensorFlow the waiting thread sleeps until the next free, or for ten seconds.
    let wait = Duration::from_secs(60);
    let pool = Pool::new(bump(0, 1 << 20), options(1 << 20).wait(wait)).unwrap();
    let mut wait = pool.memory_wait();
    let all = pool.allocate(1 << 20).unwrap();
    let start = Instant::now();
    let mut asked = 0;
    let allocation = pool.allocate_with_retry(512, |refused| {
        asked += 1;
        pool.free(all.address).unwrap();
        wait.should_retry(refused, || false)
    });
    assert_eq!(allocation.unwrap().address, START);
    assert_eq!(asked, 1);
    assert!(start.elapsed() < Duration::from_secs(30));
}

// Invalid frees.

/// Creates two regions with a gap of a granule between them; returns an allocation at the start of each.
fn two_regions() -> (Probe, [Allocation; 2]) {
    let probe = Probe::over(options(64 << 20).growth(true), bump(256, 1 << 30));
    let first = probe.pool.allocate(1000).unwrap();
    let second = probe.pool.allocate(4 << 20).unwrap();
    assert_eq!([first.address, second.address], [START, START + (2 << 20) + 256]);
    (probe, [first, second])
}

/// Asserts that a free of the address is an error and changes nothing.
fn assert_foreign(probe: &Probe, address: u64) {
    let before = (probe.stats(), probe.free_chunks());
    assert_eq!(probe.try_free(address), Err(FreeError::NotAllocated { address }));
    assert_eq!((probe.stats(), probe.free_chunks()), before);
}

#[test]
fn a_second_free_is_an_error_whether_or_not_the_chunk_was_merged() {
    let probe = Probe::new(options(1 << 20));
    for offset in [0, 256, 512] {
        assert_eq!(probe.alloc(1), Some((offset, 256)));
    }
    probe.free(0);
    // It is still a separate chunk.
    assert_foreign(&probe, START);
    probe.free(256);
    // Its left neighbour absorbed it.
    assert_foreign(&probe, START + 256);
}

#[test]
fn an_address_inside_a_chunk_is_not_its_start() {
    let (probe, [first, _]) = two_regions();
    // TensorFlow treats an address in the first 256 bytes as the start, and aborts beyond.
    for inside in [1, 255, 256, 512, 1023] {
        assert_foreign(&probe, first.address + inside);
    }
}

#[test]
fn an_address_outside_every_region_is_an_error() {
    let empty = Probe::new(options(1 << 20));
    assert_foreign(&empty, START);

    let (probe, [first, second]) = two_regions();
    // At and beyond the end TensorFlow aborts; below a region it reads out of bounds.
    let past = second.address + (4 << 20);
    for outside in [past, past + 256, u64::MAX, first.address - 1, 256, 1, second.address - 256] {
        assert_foreign(&probe, outside);
    }
    assert_foreign(&probe, first.address + 1024);
    // A free of 0 does nothing, as in TensorFlow.
    assert_eq!(probe.try_free(0), Ok(()));
}

#[test]
fn freeing_an_allocation_does_not_free_the_next_owner_of_its_address() {
    let probe = Probe::new(options(1 << 20));
    let old = probe.pool.allocate(100).unwrap();
    probe.free(0);
    let new = probe.pool.allocate(200).unwrap();
    assert_eq!(old.address, new.address);
    let error = FreeError::NotAllocated { address: old.address };
    assert_eq!(probe.pool.free_allocation(&old), Err(error));
    assert_eq!(probe.stats().num_live, 1);
    assert_eq!(probe.pool.free_allocation(&new), Ok(()));
}

// The ends of the address range.

#[test]
fn a_request_near_the_end_of_64_bits_is_refused_and_does_not_wrap_to_nothing() {
    let probe = Probe::new(options(1 << 20));
    for bytes in [MAX_BYTES + 1, 1 << 63, u64::MAX - 255, u64::MAX - 254, u64::MAX] {
        let refused = probe.pool.allocate(bytes);
        assert!(matches!(refused, Err(AllocError::TooLarge { bytes: named }) if named == bytes));
    }
    assert_eq!(probe.alloc(MAX_BYTES), None);
    assert_eq!((probe.stats().num_allocs, probe.calls()), (0, vec![]));
}

#[test]
fn the_largest_region_is_split_and_merged_like_any_other() {
    let whole = MAX_BYTES - GRANULE;
    let pool = Pool::new(Fixed(GRANULE), options(whole)).unwrap();
    // Twice this request overflows signed 64 bits.
    for (bytes, size) in [(1 << 62, 1 << 62), ((1 << 62) + 1, (1 << 62) + 256), (whole, whole)] {
        let allocation = pool.allocate(bytes).unwrap();
        assert_eq!((allocation.address, allocation.size), (GRANULE, size));
        pool.check().unwrap();
        pool.free(allocation.address).unwrap();
    }
}

#[test]
fn a_grant_that_cannot_be_a_region_is_an_error_and_goes_back() {
    let last = MAX_BYTES - (1 << 20);
    for (address, fault) in [
        (0, Some(GrantFault::OutOfRange)),
        (GRANULE + 1, Some(GrantFault::Misaligned)),
        (last, None),
        (last + GRANULE, Some(GrantFault::OutOfRange)),
        (u64::MAX - 255, Some(GrantFault::OutOfRange)),
    ] {
        let probe = Probe::over(options(1 << 20), Fixed(address));
        let granted = Grant { address, bytes: 1 << 20 };
        let served = probe.pool.allocate(1);
        let Some(fault) = fault else {
            assert_eq!(served.unwrap().address, address);
            continue;
        };
        let named =
            matches!(served, Err(AllocError::BadGrant { grant, fault: f }) if grant == granted && f == fault);
        assert!(named, "{address:#x}");
        assert_eq!(probe.calls()[1..], [Call::Release(granted)]);
        assert_eq!(probe.stats().reserved, 0);
    }
}

// The end of a pool.

#[test]
fn a_dropped_pool_releases_only_regions_that_nobody_uses() {
    // TensorFlow releases every region, including those in use.
    let (probe, [first, second]) = two_regions();
    let third = probe.pool.allocate(5 << 20).unwrap();
    for freed in [second, third] {
        probe.pool.free(freed.address).unwrap();
    }
    let _ = probe.calls();
    let log = probe.log();
    drop(probe);
    let region = |address, bytes| Call::Release(Grant { address, bytes });
    assert_eq!(log.take(), [region(second.address, 4 << 20), region(third.address, 8 << 20)]);
    assert_eq!(first.address, START);
}
