use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

/// Returns the kernel's account of each mapping that starts in one of the ranges: its lines.
fn mappings(ranges: &[Grant]) -> Vec<Vec<String>> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_within, mut found) = (false, Vec::new());
    for line in text.lines() {
        if let Some((start, _)) = line.split_whitespace().next().unwrap().split_once('-') {
            let start = u64::from_str_radix(start, 16).unwrap();
            is_within = ranges.iter().any(|range| (range.address..range.end()).contains(&start));
            found.extend(is_within.then(Vec::new));
        }
        if is_within && let Some(lines) = found.last_mut() {
            lines.push(line.to_owned());
        }
    }
    found
}

/// Returns the kilobytes of huge pages in the ranges.
fn huge_pages(ranges: &[Grant]) -> u64 {
    let lines = mappings(ranges).concat();
    let sizes = lines.iter().filter_map(|line| line.strip_prefix("AnonHugePages:"));
    sizes.map(|size| size.trim_end_matches("kB").trim().parse::<u64>().unwrap()).sum()
}

/// Returns whether moves succeed here.
fn moves() -> bool {
    let mut host = HostMemory::new();
    let range = host.reserve_addresses(2 * HUGE, HUGE).unwrap();
    host.commit(pages(range, HUGE, 0, 1)).unwrap();
    let moved = host.move_pages(pages(range, HUGE, 0, 1), range.address + HUGE).is_ok();
    host.decommit(pages(range, HUGE, u64::from(moved), 1)).unwrap();
    moved
}

#[test]
fn moved_memory_stays_as_much_and_takes_no_mapping() {
    if !moves() {
        return;
    }
    for size in page_sizes() {
        let mut host = HostMemory::new();
        let ranges = [(); 2].map(|()| host.reserve_addresses(64 * size, size).unwrap());
        host.commit(pages(ranges[0], size, 0, 32)).unwrap();
        bytes_at(pages(ranges[0], size, 0, 32)).fill(7);
        let huge = huge_pages(&ranges);
        let both_resident = || ranges.map(resident);
        // Within a range, to another range, and back, in pieces.
        host.move_pages(pages(ranges[0], size, 0, 8), ranges[0].address + 40 * size).unwrap();
        assert_eq!(both_resident(), [32 * size, 0]);
        host.move_pages(pages(ranges[0], size, 8, 8), ranges[1].address + 3 * size).unwrap();
        assert_eq!(both_resident(), [24 * size, 8 * size]);
        assert!(bytes_at(pages(ranges[1], size, 3, 8)).iter().all(|&byte| byte == 7), "moved, not lost");
        for page in 0..8 {
            host.move_pages(pages(ranges[1], size, 3 + page, 1), ranges[0].address + (7 - page) * size)
                .unwrap();
        }
        assert_eq!(both_resident(), [32 * size, 0]);
        assert_eq!(huge_pages(&ranges), huge, "huge pages stay huge");
        assert!(mappings(&ranges).len() <= 2, "no part has become a mapping of its own");
        for (first, count) in [(0, 8), (16, 16), (40, 8)] {
            let span = pages(ranges[0], size, first, count);
            assert!(bytes_at(span).iter().all(|&byte| byte == 7));
            host.decommit(span).unwrap();
        }
        assert_eq!((both_resident(), host.pages.empty().len()), ([0, 0], 2));
    }
}

#[test]
fn pages_move_that_were_written_in_part_or_not_at_all() {
    if !moves() {
        return;
    }
    for size in page_sizes() {
        let mut host = HostMemory::new();
        let range = host.reserve_addresses(16 * size, size).unwrap();
        host.commit(pages(range, size, 0, 8)).unwrap();
        bytes_at(pages(range, size, 6, 2)).fill(7);
        let has_huge_pages = huge_pages(&[range]) > 0;
        // Linux 6.14 and newer free page tables that are empty; before, small pages stay small.
        let (split, first) =
            (pages(range, size, 7, 1), pages(range, page_sizes()[0], 7 * (size / page_sizes()[0]), 1));
        host.discard(first);
        host.discard(split);
        bytes_at(split)[0] = 7;
        let unites_pages = has_huge_pages && resident(split) == size;
        bytes_at(split).fill(7);
        // Written, untouched, only read, written at the end, written at the start, split into small pages.
        bytes_at(pages(range, size, 0, 1)).fill(7);
        assert_eq!(bytes_at(pages(range, size, 2, 1))[0], 0);
        *bytes_at(pages(range, size, 3, 1)).last_mut().unwrap() = 7;
        bytes_at(pages(range, size, 4, 1))[0] = 7;
        let small_pages = pages(range, size, 5, 1);
        bytes_at(small_pages).fill(7);
        host.discard(pages(small_pages, page_sizes()[0], 0, 1));
        bytes_at(small_pages).fill(7);
        host.move_pages(pages(range, size, 0, 8), range.address + 8 * size).unwrap();
        assert_eq!(touched_bytes(range.address, 8 * size), 0, "nothing stays behind");
        assert!(resident(range) <= 8 * size);
        for page in [8, 13, 14, 15] {
            assert!(bytes_at(pages(range, size, page, 1)).iter().all(|&byte| byte == 7), "{size} {page}");
        }
        // The pages that were not touched, before and after the move, and the one that was split, before.
        for page in [1, 9, 5] {
            let span = pages(range, size, page, 1);
            bytes_at(span)[0] = 7;
            let is_huge = if page == 5 { unites_pages } else { has_huge_pages };
            assert!(!is_huge || resident(span) == size, "a huge page at the first write");
        }
        host.decommit(pages(range, size, 8, 8)).unwrap();
        assert_eq!(resident(pages(range, size, 8, 8)), 0);
    }
}

#[test]
fn a_source_that_cannot_move_declines_and_changes_nothing() {
    for mut host in [HostMemory::without_page_moves(), HostMemory::with_strict_accounting()] {
        let size = page_sizes()[0];
        let range = host.reserve_addresses(16 * size, size).unwrap();
        let half = pages(range, size, 0, 8);
        host.commit(half).unwrap();
        bytes_at(half).fill(7);
        assert!(matches!(host.move_pages(half, half.end()), Err(ReserveError::Declined)));
        assert!(bytes_at(half).iter().all(|&byte| byte == 7));
        host.decommit(half).unwrap();
        host.commit(pages(range, size, 8, 8)).unwrap();
        host.decommit(pages(range, size, 8, 8)).unwrap();
    }
}

#[test]
fn moves_continue_while_other_threads_write() {
    if !moves() {
        return;
    }
    for size in page_sizes() {
        let mut host = HostMemory::new();
        let range = host.reserve_addresses(64 * size, size).unwrap();
        host.commit(pages(range, size, 0, 16)).unwrap();
        host.commit(pages(range, size, 32, 2)).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for page in 32..34 {
                let over = &over;
                scope.spawn(move || {
                    let memory = bytes_at(pages(range, size, page, 1));
                    for round in (1..=u8::MAX).cycle() {
                        memory.fill(round);
                        assert!(memory.iter().all(|&byte| byte == round));
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            for _ in 0..2000 {
                bytes_at(pages(range, size, 5, 1))[0] = 1;
                // All around those pages, which are in use.
                host.move_pages(pages(range, size, 0, 16), range.address + 34 * size).unwrap();
                host.move_pages(pages(range, size, 34, 16), range.address).unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_clear_of_moved_pages_zeroes_them() {
    if !moves() {
        return;
    }
    let mut host = HostMemory::new();
    let range = host.reserve_addresses(32 * HUGE, HUGE).unwrap();
    host.commit(pages(range, HUGE, 0, 8)).unwrap();
    bytes_at(pages(range, HUGE, 0, 4)).fill(7);
    host.move_pages(pages(range, HUGE, 0, 8), range.address + 8 * HUGE).unwrap();
    let moved = bytes_at(pages(range, HUGE, 8, 8));
    // SAFETY: the span lies in a range of the source, and this test alone uses it.
    unsafe { crate::clear(moved.as_mut_ptr(), moved.len()) };
    assert!(moved.iter().all(|&byte| byte == 0));
    host.decommit(pages(range, HUGE, 8, 8)).unwrap();
}

#[test]
fn late_writes_to_free_pages_do_not_stop_moves() {
    if !moves() {
        return;
    }
    for size in page_sizes() {
        let mut host = HostMemory::new();
        let range = host.reserve_addresses(18 * size, size).unwrap();
        host.commit(pages(range, size, 0, 9)).unwrap();
        bytes_at(pages(range, size, 0, 9)).fill(7);
        // As a program does that uses memory after its free: to pages without memory, before and after they get it.
        bytes_at(pages(range, size, 12, 1))[0] = 1;
        host.move_pages(pages(range, size, 0, 8), range.address + 9 * size).unwrap();
        assert_eq!(resident(pages(range, size, 0, 8)), 0, "all of it left");
        assert!(bytes_at(pages(range, size, 8, 1)).iter().all(|&byte| byte == 7));
        bytes_at(pages(range, size, 0, 1))[0] = 1;
        host.move_pages(pages(range, size, 9, 8), range.address).unwrap();
        assert_eq!(resident(pages(range, size, 9, 8)), 0);
        assert!(resident(range) <= 9 * size);
        bytes_at(pages(range, size, 0, 8)).fill(8);
        assert!(bytes_at(pages(range, size, 8, 1)).iter().all(|&byte| byte == 7));
        host.decommit(pages(range, size, 0, 8)).unwrap();
    }
}
