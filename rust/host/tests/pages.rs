//! Random programs of pages in host memory: contents, resident memory, and the number of mappings of this process. One
//! test, as others would make mappings meanwhile.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use allotment::source::{CommittedPages, Grant, RegionSource};
use allotment_host::HostMemory;

#[path = "../../../tests/support/numbers.rs"]
#[allow(dead_code)]
mod numbers;
#[path = "../../../tests/support/page_programs.rs"]
#[allow(dead_code)]
mod page_programs;

use page_programs::{Expected, PageProgram};

const KIB: u64 = 1 << 10;

/// Page size, pages of a range, and the moves to make; `ALLOTMENT_PAGE_MOVES` sets another number.
const SIZES: [(u64, u64, u64); 3] = [(4 * KIB, 64, 25_000), (64 * KIB, 64, 25_000), (2048 * KIB, 8, 4000)];

/// Returns the mappings of this process.
fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").expect("a list of mappings").lines().count()
}

/// Returns the resident bytes of the ranges, by the kernel's table of pages.
fn resident(account: &CommittedPages) -> u64 {
    const SMALL: u64 = 4 * KIB;
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

fn play(source: HostMemory, (page_size, pages, moves): (u64, u64, u64), is_movable: bool) {
    let expected = Expected { has_content: true, moves: is_movable, capacity: u64::MAX };
    let before = mappings();
    let mut program = PageProgram::new(source, page_size, expected, page_size);
    let account = program.account.clone();
    let (mut step, mut most_mappings) = (0, 0);
    while if is_movable { account.calls().moves < moves } else { step < moves / 10 } {
        program.step(pages);
        if step % 2048 == 0 {
            program.check_stamps();
            assert!(resident(&account) <= account.bytes(), "decommitted memory went back to the system");
            most_mappings = most_mappings.max(mappings() - account.ranges().len());
        }
        step += 1;
    }
    program.end();
    if is_movable {
        assert!(most_mappings <= before + 8, "{most_mappings} mappings beside the ranges, {before} before");
    }
}

#[test]
fn contents_survive_while_pages_move() {
    let is_movable = moves_pages();
    let given = std::env::var("ALLOTMENT_PAGE_MOVES").ok().map(|moves| moves.parse().expect("a number"));
    for (page_size, pages, moves) in SIZES {
        let size = (page_size, pages, given.unwrap_or(moves));
        play(HostMemory::new(), size, is_movable);
        play(HostMemory::without_page_moves(), size, false);
        play(HostMemory::with_strict_accounting(), size, false);
    }
}
