use allotment::source::{Grant, RegionSource};

use super::*;
use crate::HostMemory;

fn pointer(grant: Grant) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(grant.address).unwrap())
}

fn bytes_of(grant: Grant) -> &'static mut [u8] {
    // SAFETY: the test holds the grant and makes one slice of it at a time.
    unsafe { std::slice::from_raw_parts_mut(pointer(grant), usize::try_from(grant.bytes).unwrap()) }
}

/// Counts the pages of the span that use physical memory.
fn touched(grant: Grant) -> usize {
    let page = rustix::param::page_size();
    let map = File::open("/proc/self/pagemap").unwrap();
    let mut count = 0;
    let number = usize::try_from(grant.address).unwrap() / page;
    for_each_touched(&map, number, usize::try_from(grant.bytes).unwrap() / page, |from, to| {
        count += to - from;
    });
    count
}

#[test]
fn untouched_pages_stay_untouched() {
    let mut host = HostMemory::new();
    let grant = host.reserve(1 << 33, 256).unwrap();
    // SAFETY: the test holds the grant.
    unsafe { clear(pointer(grant), 1 << 33) };
    assert_eq!(touched(grant), 0);
    host.release(grant);
}

#[test]
fn written_bytes_are_zero_afterwards() {
    let mut host = HostMemory::new();
    let grant = host.reserve(9 << 20, 256).unwrap();
    let length = 9 << 20;
    let places =
        [0, 1, 4095, 4096, 8191, (2 << 20) - 1, 2 << 20, (4 << 20) + 77, (8 << 20) + 4096, length - 1];
    let (from, to) = (256, length - 256);
    for place in places {
        bytes_of(grant)[place] = 0xA5;
    }
    // SAFETY: the test holds the grant.
    unsafe { clear(pointer(grant).add(from), to - from) };
    for (place, &byte) in bytes_of(grant).iter().enumerate() {
        let outside = place < from || place >= to;
        assert_eq!(byte, if outside && places.contains(&place) { 0xA5 } else { 0 }, "at {place}");
    }
    host.release(grant);
}

#[test]
fn a_span_that_was_filled_is_zero_afterwards_whatever_its_ends() {
    let mut host = HostMemory::new();
    let grant = host.reserve(12 << 20, 256).unwrap();
    for (from, bytes) in
        [(0, 12 << 20), (256, 9 << 20), (4096, 8 << 20), (4095, (8 << 20) + 2), (512, 700_000), (0, 0)]
    {
        bytes_of(grant).fill(0xA5);
        // SAFETY: the test holds the grant.
        unsafe { clear(pointer(grant).add(from), bytes) };
        let (before, rest) = bytes_of(grant).split_at(from);
        let (within, after) = rest.split_at(bytes);
        assert!(within.iter().all(|&byte| byte == 0));
        assert!(before.iter().chain(after).all(|&byte| byte == 0xA5));
    }
    host.release(grant);
}

/// With the scan query, where the kernel supports it.
#[cfg(target_os = "linux")]
#[test]
fn both_ways_to_find_written_pages_agree() {
    let page = rustix::param::page_size();
    let mut host = HostMemory::new();
    let grant = host.reserve(3 << 20, 256).unwrap();
    for place in (0..3 << 20).step_by(5 * page) {
        bytes_of(grant)[place] = 1;
    }
    let start = pointer(grant).addr();
    let map = File::open("/proc/self/pagemap").unwrap();
    let mut reported = Vec::new();
    let mut pages = Vec::new();
    let mut record = |from: usize, to: usize| reported.extend((from..to).step_by(page));
    let reached = scan::for_each_touched(&map, start, start + (3 << 20), &mut record);
    let count = (reached - start) / page;
    for_each_touched(&map, start / page, count, |from, to| {
        pages.extend((from..to).map(|number| start + number * page));
    });
    assert_eq!(reported, pages);
    // Without `pagemap` nothing is reported, and callers continue from the start.
    let other = File::open("/dev/null").unwrap();
    let all = scan::for_each_touched(&other, start, start + page, |_, _| panic!("reported a page"));
    assert_eq!(all, start);
    host.release(grant);
}

#[test]
fn unreadable_pages_count_as_touched() {
    // A truncated file: two pages are readable, the others are not.
    let path = std::env::temp_dir().join(format!("allotment-pagemap-{}", std::process::id()));
    std::fs::write(&path, [0; 16]).unwrap();
    let map = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut runs = Vec::new();
    for_each_touched(&map, 0, 2, |from, to| runs.push((from, to)));
    assert_eq!(runs, []);
    for_each_touched(&map, 0, 5, |from, to| runs.push((from, to)));
    assert_eq!(runs, [(0, 5)]);
}
