use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use allotment::source::RegionSource;

use super::*;
use crate::clear::touched_bytes;
use crate::end_of_region;

mod moves;

const HUGE: u64 = HUGE_PAGE as u64;

/// Returns the page sizes: the system's, one between, a huge page.
fn page_sizes() -> [u64; 3] {
    let page = rustix::param::page_size() as u64;
    [page, 16 * page, HUGE]
}

fn sources() -> [HostMemory; 3] {
    [HostMemory::new(), HostMemory::without_page_moves(), HostMemory::with_strict_accounting()]
}

/// Returns `count` pages of `size` bytes from the page `first` of a range on.
fn pages(range: Grant, size: u64, first: u64, count: u64) -> Grant {
    Grant { address: range.address + first * size, bytes: count * size }
}

fn bytes_at(span: Grant) -> &'static mut [u8] {
    let (start, length) = numbers(span).unwrap();
    // SAFETY: the test has committed these pages, and makes one slice of them at a time.
    unsafe { std::slice::from_raw_parts_mut(mapping::pages(start).cast(), length) }
}

/// Returns the resident bytes of a span, by the kernel's table of pages.
fn resident(span: Grant) -> u64 {
    let page = page_sizes()[0];
    let table = File::open("/proc/self/pagemap").unwrap();
    let mut entries = vec![0; usize::try_from(span.bytes / page * 8).unwrap()];
    table.read_exact_at(&mut entries, span.address / page * 8).unwrap();
    let is_present = |entry: &&[u8; 8]| u64::from_ne_bytes(**entry) >> 63 == 1;
    entries.as_chunks().0.iter().filter(is_present).count() as u64 * page
}

#[test]
fn resident_memory_follows_commits_and_decommits() {
    for mut host in sources() {
        for size in page_sizes() {
            let range = host.reserve_addresses(64 * size, size).unwrap();
            assert!(range.address.is_multiple_of(size));
            assert_eq!(resident(range), 0);
            host.commit(pages(range, size, 0, 40)).unwrap();
            assert_eq!(resident(range), 0, "memory is used from the first write on");
            bytes_at(pages(range, size, 0, 40)).fill(7);
            assert_eq!(resident(range), 40 * size);
            host.decommit(pages(range, size, 10, 20)).unwrap();
            assert_eq!(resident(range), 20 * size);
            host.commit(pages(range, size, 15, 5)).unwrap();
            let memory = bytes_at(pages(range, size, 15, 5));
            assert!(memory.iter().all(|&byte| byte == 0));
            memory.fill(8);
            assert_eq!(resident(range), 25 * size);
            for (first, count, byte) in [(0, 10, 7), (30, 10, 7), (15, 5, 8)] {
                assert!(bytes_at(pages(range, size, first, count)).iter().all(|&found| found == byte));
                host.decommit(pages(range, size, first, count)).unwrap();
            }
            assert_eq!(resident(range), 0);
            host.release_addresses(range);
        }
    }
}

#[test]
fn system_calls_reach_pages_that_nothing_was_written_to() {
    let mut host = HostMemory::new();
    let range = host.reserve_addresses(4 * HUGE, HUGE).unwrap();
    host.commit(range).unwrap();
    // The kernel itself writes to them: it may neither wait nor fail.
    let mut zeros = File::open("/dev/zero").unwrap();
    zeros.read_exact(bytes_at(pages(range, HUGE, 1, 2))).unwrap();
    assert_eq!(touched_bytes(range.address, range.bytes), 2 * HUGE);
    host.decommit(range).unwrap();
}

#[test]
fn ranges_are_regions_for_every_query() {
    for mut host in sources() {
        let size = page_sizes()[1];
        let range = host.reserve_addresses(16 * size, size).unwrap();
        assert_eq!([range.address, range.end() - 1].map(end_of_region), [Some(range.end()); 2]);
        let span = pages(range, size, 4, 4);
        host.commit(span).unwrap();
        let guard = host.guard().unwrap();
        guard.fill(span.address, span.bytes, 0xFA);
        assert_eq!(guard.first_other(span.address, span.bytes, 0xFA), None);
        host.discard(span);
        assert_eq!(guard.first_other(span.address, span.bytes, 0), None);
        host.write(span.address + 5, b"content").unwrap();
        let mut found = [0; 7];
        host.read(span.address + 5, &mut found).unwrap();
        assert_eq!(&found, b"content");
        assert_eq!(touched_bytes(range.address, range.bytes), page_sizes()[0]);
        host.decommit(span).unwrap();
        host.release_addresses(range);
        assert!(host.grants.is_empty());
    }
}

#[test]
fn a_dropped_source_unmaps_ranges_without_memory_and_keeps_others() {
    for mut host in sources() {
        let size = page_sizes()[1];
        // Of a size that no other test uses: those may map other memory there at once.
        let [used, unused] = [(); 2].map(|()| host.reserve_addresses(23 * size, size).unwrap());
        host.commit(pages(used, size, 3, 1)).unwrap();
        host.commit(pages(unused, size, 3, 1)).unwrap();
        host.decommit(pages(unused, size, 3, 1)).unwrap();
        bytes_at(pages(used, size, 3, 1)).fill(42);
        drop(host);
        assert!(bytes_at(pages(used, size, 3, 1)).iter().all(|&byte| byte == 42));
        assert_eq!(end_of_region(used.address), Some(used.end()));
        assert_ne!(end_of_region(unused.address), Some(unused.end()));
        assert_eq!(resident(used), size);
    }
}

#[test]
fn memory_that_the_system_keeps_is_an_error_and_stays_committed() {
    let mut host = HostMemory::new();
    let size = page_sizes()[0];
    let range = host.reserve_addresses(16 * size, size).unwrap();
    let span = pages(range, size, 0, 4);
    host.commit(span).unwrap();
    bytes_at(span).fill(7);
    let (start, length) = numbers(span).unwrap();
    // SAFETY: pages of this test.
    if unsafe { rustix::mm::mlock(mapping::pages(start), length) }.is_err() {
        return;
    }
    let failure = host.decommit(span).unwrap_err();
    let text =
        format!("the system did not take back the memory of {} bytes at {:#x}: ", span.bytes, span.address);
    assert!(failure.to_string().starts_with(&text), "{failure}");
    assert!(matches!(host.move_pages(span, range.address + 8 * size), Err(ReserveError::Declined)));
    assert!(bytes_at(span).iter().all(|&byte| byte == 7));
    assert!(host.pages.empty().is_empty());
    // SAFETY: as above.
    unsafe { rustix::mm::munlock(mapping::pages(start), length) }.unwrap();
    host.decommit(span).unwrap();
}

#[test]
fn too_many_addresses_are_declined() {
    for mut host in sources() {
        assert!(matches!(host.reserve_addresses(1 << 62, HUGE), Err(ReserveError::Declined)));
        let terabyte = host.reserve_addresses(1 << 40, HUGE).unwrap();
        host.commit(pages(terabyte, HUGE, 1000, 1)).unwrap();
        bytes_at(pages(terabyte, HUGE, 1000, 1))[5] = 7;
        host.decommit(pages(terabyte, HUGE, 1000, 1)).unwrap();
        host.release_addresses(terabyte);
    }
}

#[test]
fn spans_of_others_are_not_touched() {
    type Call = fn(&mut HostMemory, Grant);
    let calls: [Call; 6] = [
        |host, span| drop(host.commit(span)),
        |host, span| drop(host.decommit(span)),
        |host, span| drop(host.move_pages(span, span.address)),
        |host, span| drop(host.read(span.address, &mut vec![0; usize::try_from(span.bytes).unwrap()])),
        |host, span| host.release_addresses(span),
        |host, span| host.release(span),
    ];
    let size = page_sizes()[0];
    let other = HostMemory::new().reserve(16 * size, size).unwrap();
    let mut host = HostMemory::new();
    let range = host.reserve_addresses(16 * size, size).unwrap();
    let across = Grant { address: range.end() - size, bytes: 2 * size };
    for (number, call) in calls.into_iter().enumerate() {
        for span in [other, Grant { address: size, bytes: size }, across] {
            let caught = catch_unwind(AssertUnwindSafe(|| call(&mut host, span)));
            assert!(caught.is_err(), "call {number} of {span:?}");
        }
    }
    assert!(catch_unwind(AssertUnwindSafe(|| host.release(range))).is_err(), "a range is no region");
    assert_eq!(end_of_region(range.address), Some(range.end()));
    host.release_addresses(range);
}
