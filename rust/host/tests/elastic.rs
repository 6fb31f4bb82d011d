//! An elastic pool of host memory at its limit, where pages move all the time: contents of all allocations, resident
//! memory, and the number of mappings of this process. One test, as others would make mappings meanwhile.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use allotment::source::{CheckedPages, CommittedPages, Grant, RegionSource};
use allotment::{AllocError, Allocation, Options, Pool};
use allotment_host::HostMemory;

#[path = "../../../tests/support/numbers.rs"]
#[allow(dead_code)]
mod numbers;

use numbers::Numbers;

const KIB: u64 = 1 << 10;
/// The unit of the kernel's table of pages.
const SMALL: u64 = 4 * KIB;

/// Page size, pages of the limit, the largest request in pages, and the events; `ALLOTMENT_ELASTIC_EVENTS` sets their
/// number for all.
const SIZES: [(u64, u64, u64, u64); 3] =
    [(4 * KIB, 512, 60, 40_000), (64 * KIB, 128, 20, 30_000), (2048 * KIB, 40, 6, 6_000)];

fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").expect("a list of mappings").lines().count()
}

/// Returns the resident bytes of the ranges, by the kernel's table of pages.
fn resident(account: &CommittedPages) -> u64 {
    let table = File::open("/proc/self/pagemap").expect("a table of pages");
    let is_present = |entry: &[u8; 8]| u64::from_ne_bytes(*entry) >> 63 == 1;
    let pages_of = |range: &Grant| {
        let mut entries = vec![0; usize::try_from(range.bytes / SMALL * 8).expect("a small number")];
        table.read_exact_at(&mut entries, range.address / SMALL * 8).expect("entries");
        entries.as_chunks().0.iter().filter(|entry| is_present(entry)).count() as u64
    };
    account.ranges().iter().map(pages_of).sum::<u64>() * SMALL
}

/// Returns whether this kernel moves pages, and this process may ask it to.
fn moves_pages() -> bool {
    let mut host = HostMemory::new();
    let pages = host.pages().expect("pages");
    let range = pages.reserve_addresses(4 << 20, 2 << 20).expect("addresses");
    let half = Grant { bytes: 2 << 20, ..range };
    pages.commit(half).expect("memory");
    pages.move_pages(half, half.end()).is_ok()
}

/// Returns the places of an allocation that are written and compared: its start, its end, and one in each small page.
fn places(allocation: &Allocation) -> impl Iterator<Item = *mut u64> {
    let words = allocation.size / 8;
    let last = allocation.address + 8 * (words - 1);
    let starts = (allocation.address..last).step_by(4096).chain([last]);
    starts.map(|address| std::ptr::with_exposed_provenance_mut(usize::try_from(address).expect("an address")))
}

fn write(allocation: &Allocation, stamp: u64) {
    for (at, place) in (stamp..).zip(places(allocation)) {
        // SAFETY: the pool's memory is memory of this process, and the allocation is live.
        unsafe { place.write(at) };
    }
}

fn is_intact(allocation: &Allocation, stamp: u64) -> bool {
    // SAFETY: as above.
    (stamp..).zip(places(allocation)).all(|(at, place)| unsafe { place.read() } == at)
}

fn play(source: HostMemory, (page_size, limit, largest, events): (u64, u64, u64, u64), moves: bool) {
    let before = mappings();
    let (source, account) = CheckedPages::new(source, page_size);
    let options = Options::new(limit * page_size).elastic(true).page_size(page_size);
    let pool = Pool::new(source, options).expect("options in range");
    let mut random = Numbers::new(page_size);
    let mut live: Vec<(Allocation, u64)> = Vec::new();
    let (mut refusals, mut most_mappings) = (0, 0);
    for event in 0..events {
        if live.is_empty() || random.chance(60) {
            let most = if random.chance(70) { page_size } else { largest * page_size };
            match pool.allocate(8 + random.below(most)) {
                Ok(allocation) => {
                    let stamp = random.next() >> 1;
                    write(&allocation, stamp);
                    live.push((allocation, stamp));
                }
                Err(AllocError::OutOfMemory(_)) => {
                    refusals += 1;
                    for _ in 0..random.below(6).min(live.len() as u64) {
                        free_one(&pool, &mut live, &mut random);
                    }
                }
                Err(error) => panic!("{error}"),
            }
        } else {
            free_one(&pool, &mut live, &mut random);
        }
        if event % 512 == 0 {
            assert!(resident(&account) <= account.bytes(), "no more memory than is committed");
            assert!(account.bytes() <= limit * page_size);
            assert!(live.iter().all(|(allocation, stamp)| is_intact(allocation, *stamp)));
            most_mappings = most_mappings.max(mappings() - account.ranges().len());
        }
    }
    pool.check().expect("sound");
    assert!(refusals > events / 100, "it was at its limit {refusals} times");
    let calls = account.calls();
    if moves {
        assert!(calls.moves > events / 20, "{calls:?}");
        assert!(most_mappings <= before + 8, "{most_mappings} mappings, {before} before");
    }
    while !live.is_empty() {
        free_one(&pool, &mut live, &mut random);
    }
    pool.trim().expect("usable");
    assert_eq!((account.bytes(), resident(&account)), (0, 0));
}

fn free_one(pool: &Pool, live: &mut Vec<(Allocation, u64)>, random: &mut Numbers) {
    let (allocation, stamp) = live.swap_remove(random.place(live.len()));
    assert!(is_intact(&allocation, stamp), "{allocation:?}");
    pool.free(allocation.address).expect("live");
}

#[test]
fn contents_survive_while_pages_move_to_where_they_are_needed() {
    let moves = moves_pages();
    let given =
        std::env::var("ALLOTMENT_ELASTIC_EVENTS").ok().map(|events| events.parse().expect("a number"));
    for (page_size, limit, largest, events) in SIZES {
        let size = (page_size, limit, largest, given.unwrap_or(events));
        play(HostMemory::new(), size, moves);
        play(HostMemory::without_page_moves(), size, false);
        play(HostMemory::with_strict_accounting(), size, false);
    }
}
