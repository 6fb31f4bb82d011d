use std::fs;

use allotment::{Options, Pool};

use super::*;

fn bytes_at(grant: Grant) -> &'static mut [u8] {
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(grant.address).unwrap());
    // SAFETY: the test holds the grant, and makes one slice of it at a time.
    unsafe { std::slice::from_raw_parts_mut(start, usize::try_from(grant.bytes).unwrap()) }
}

/// Lines of the memory map that name an address within the span.
fn mapped(span: Grant) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split_once(' ').unwrap().0;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        number(start) < span.end() && span.address < number(end)
    })
}

#[test]
fn memory_is_there_reads_as_zero_and_goes_back() {
    let mut host = HostMemory::new();
    for bytes in [256, 4096, 1 << 20, 2 << 20, (5 << 20) + 256] {
        let grant = host.reserve(bytes, 256).unwrap();
        assert_eq!(grant.bytes, bytes);
        let memory = bytes_at(grant);
        assert!(memory.iter().all(|&byte| byte == 0));
        memory.fill(0xA5);
        assert!(memory.iter().all(|&byte| byte == 0xA5));
        assert!(mapped(grant));
        host.release(grant);
    }
    assert!(host.out.is_empty());
}

#[test]
fn large_regions_start_at_a_huge_page() {
    let mut host = HostMemory::new();
    let grants = [2 << 20, (2 << 20) + 256, 64 << 20].map(|bytes| host.reserve(bytes, 256).unwrap());
    for grant in grants {
        assert!(grant.address.is_multiple_of(2 << 20));
        host.release(grant);
    }
}

#[test]
fn address_space_is_free_and_too_much_is_declined() {
    let mut host = HostMemory::new();
    let terabyte = host.reserve(1 << 40, 256).unwrap();
    bytes_at(terabyte)[(1 << 39) + 5] = 7;
    host.release(terabyte);
    assert!(matches!(host.reserve(1 << 62, 256), Err(Refusal::Declined)));
    assert!(matches!(host.reserve(allotment::MAX_BYTES, 256), Err(Refusal::Declined)));
}

#[test]
#[should_panic(expected = "was not granted by this source")]
fn a_foreign_region_is_not_unmapped() {
    HostMemory::new().release(Grant { address: 4096, bytes: 4096 });
}

#[test]
fn a_dropped_pool_unmaps_what_is_free_and_leaves_what_is_live() {
    let pool = Pool::new(HostMemory::new(), Options::new(64 << 20)).unwrap();
    let first = pool.allocate(2 << 20).unwrap();
    let second = pool.allocate(4 << 20).unwrap();
    let span = |a: allotment::Allocation| Grant { address: a.address, bytes: a.size };
    pool.free(second.address).unwrap();
    bytes_at(span(first))[0] = 42;
    drop(pool);
    assert_eq!(bytes_at(span(first))[0], 42);
    assert!(mapped(span(first)));
}
