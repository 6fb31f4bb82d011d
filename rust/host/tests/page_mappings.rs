//! Strict accounting needs a mapping for each span of pages, of which a process has a limited number. A program of its
//! own, as nothing else could map memory meanwhile.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use allotment::source::{Grant, RegionSource};
use allotment_host::HostMemory;

const PAGE: u64 = 4096;
/// More spans than a process has mappings by default.
const PAGES: u64 = 80_000;

fn first_byte(page: Grant) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(page.address).unwrap())
}

#[test]
fn memory_is_freed_when_there_are_no_more_mappings() {
    let limit: u64 = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    let mut host = HostMemory::with_strict_accounting();
    let host = host.pages().unwrap();
    if limit > PAGES || host.granule() != PAGE {
        return;
    }
    let range = host.reserve_addresses(PAGES * PAGE, PAGE).unwrap();
    let page = |number| Grant { address: range.address + number * PAGE, bytes: PAGE };
    host.commit(range).unwrap();
    // Opened before there are too many mappings for a buffer.
    let table = File::open("/proc/self/pagemap").unwrap();
    let is_resident = |number| {
        let mut entry = [0; 8];
        table.read_exact_at(&mut entry, page(number).address / PAGE * 8).unwrap();
        u64::from_ne_bytes(entry) >> 63 == 1
    };
    for number in 0..PAGES {
        // SAFETY: committed, and of this test alone.
        unsafe { first_byte(page(number)).write(7) };
    }
    for number in (0..PAGES).step_by(2) {
        host.decommit(page(number)).unwrap();
    }
    assert!((0..PAGES).all(|number| is_resident(number) == (number % 2 == 1)));
    for number in (0..PAGES).step_by(2) {
        host.commit(page(number)).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { first_byte(page(number)).read() }, 0);
    }
    for number in (1..PAGES).step_by(2) {
        // SAFETY: as above.
        assert_eq!(unsafe { first_byte(page(number)).read() }, 7);
    }
    host.decommit(range).unwrap();
    host.release_addresses(range);
}
