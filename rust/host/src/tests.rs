use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allotment::{Options, Pool};

use super::*;

fn bytes_at(grant: Grant) -> &'static mut [u8] {
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(grant.address).unwrap());
    // SAFETY: the test holds the grant and makes one slice of it at a time.
    unsafe { std::slice::from_raw_parts_mut(start, usize::try_from(grant.bytes).unwrap()) }
}

/// Returns whether the memory map has a mapping within the span.
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
    assert!(host.grants.is_empty());
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

/// Returns the kernel's flags of the mapping that starts at the address.
#[cfg(target_os = "linux")]
fn flags(address: u64) -> String {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mapping = maps.split_once(&format!("{address:x}-")).expect("a mapping starts there").1;
    let flags = mapping.lines().find(|line| line.starts_with("VmFlags:")).expect("a kernel that tells");
    format!("{flags} ")
}

#[test]
#[cfg(target_os = "linux")]
fn the_system_is_asked_for_huge_pages_where_a_region_is_long_enough() {
    if !fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
        return;
    }
    let mut host = HostMemory::new();
    for (bytes, asked) in [(2 << 20, false), (4 << 20, true), (64 << 20, true)] {
        let grant = host.reserve(bytes, 256).unwrap();
        assert_eq!(flags(grant.address).contains(" hg "), asked, "{bytes} bytes");
        host.release(grant);
    }
}

#[test]
fn the_end_of_a_region_is_known_while_it_is_out() {
    let mut host = HostMemory::new();
    let grant = host.reserve(5 << 20, 256).unwrap();
    assert_eq!(end_of_region(grant.address + 1), Some(grant.end()));
    assert_eq!(end_of_region(grant.end() - 1), Some(grant.end()));
    host.release(grant);
    assert_eq!(end_of_region(grant.address + 1), None);
}

#[test]
fn address_space_is_free_and_too_much_is_declined() {
    let mut host = HostMemory::new();
    let terabyte = host.reserve(1 << 40, 256).unwrap();
    bytes_at(terabyte)[(1 << 39) + 5] = 7;
    host.release(terabyte);
    assert!(matches!(host.reserve(1 << 62, 256), Err(ReserveError::Declined)));
    assert!(matches!(host.reserve(allotment::MAX_BYTES, 256), Err(ReserveError::Declined)));
}

#[test]
#[should_panic(expected = "was not granted by this source")]
fn a_foreign_region_is_not_unmapped() {
    HostMemory::new().release(Grant { address: 4096, bytes: 4096 });
}

#[test]
fn a_dropped_pool_unmaps_free_regions_and_keeps_live_ones() {
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

/// Returns the bytes of a span in physical memory. Not from the memory map, whose mappings may be longer than a
/// region.
fn resident(span: Grant) -> u64 {
    clear::touched_bytes(span.address, span.bytes)
}

#[test]
#[cfg(target_os = "linux")]
fn pages_that_were_written_to_are_counted() {
    let mut host = HostMemory::new();
    let grant = host.reserve(64 << 12, 256).unwrap();
    assert_eq!(resident(grant), 0);
    let memory = bytes_at(grant);
    // Pages that were only read use no memory.
    assert_eq!(memory[5 << 12], 0);
    for page in [3, 4, 63] {
        memory[page << 12] = 1;
    }
    let page = rustix::param::page_size() as u64;
    assert!(resident(grant) >= 3 * page.min(4096) && resident(grant) <= 3 * page);
    host.release(grant);
}

#[test]
fn a_trim_discards_free_pages_beside_live_allocations() {
    let pool = Pool::new(HostMemory::new(), Options::new(64 << 20).growth(false)).unwrap();
    let quarters = [(); 4].map(|()| pool.allocate(16 << 20).unwrap());
    let span = |a: &allotment::Allocation| Grant { address: a.address, bytes: a.size };
    for quarter in &quarters {
        bytes_at(span(quarter)).fill(7);
    }
    let all = Grant { address: quarters[0].address, bytes: 64 << 20 };
    assert!(resident(all) >= 64 << 20);
    for which in [0, 1, 3] {
        pool.free(quarters[which].address).unwrap();
    }
    assert_eq!(pool.trim(), Ok(0));
    assert!(resident(all) < 17 << 20, "{}", resident(all));
    assert!(bytes_at(span(&quarters[2])).iter().all(|&byte| byte == 7));
    pool.check().unwrap();
    let again = pool.allocate(32 << 20).unwrap();
    assert!(bytes_at(span(&again)).iter().all(|&byte| byte == 0), "what was discarded reads as zero");
    bytes_at(span(&again)).fill(7);
    pool.free(again.address).unwrap();
    for _ in 0..2 {
        assert_eq!(pool.trim(), Ok(0));
        assert!(resident(all) < 17 << 20, "what was used since is discarded again");
    }
}

#[test]
fn a_trim_discards_no_page_that_is_allocated_meanwhile() {
    let pool = Pool::new(HostMemory::new(), Options::new(64 << 20)).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for tag in 1..3_u8 {
            let (pool, over) = (&pool, &over);
            scope.spawn(move || {
                let mut sizes = (0..).map(|step: u64| 1 + step * 7919 % (1 << 20));
                while !over.load(Ordering::Relaxed) {
                    let held: Vec<_> =
                        sizes.by_ref().take(8).map(|size| pool.allocate(size).unwrap()).collect();
                    let span = |a: &allotment::Allocation| Grant { address: a.address, bytes: a.size };
                    for allocation in &held {
                        bytes_at(span(allocation)).fill(tag);
                    }
                    for allocation in &held {
                        assert!(bytes_at(span(allocation)).iter().all(|&byte| byte == tag));
                        pool.free(allocation.address).unwrap();
                    }
                }
            });
        }
        for _ in 0..300 {
            pool.trim().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    pool.check().unwrap();
    pool.trim().unwrap();
    assert_eq!(pool.stats().unwrap().reserved, 0);
}
