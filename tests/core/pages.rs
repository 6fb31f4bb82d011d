//! Random programs over sources of pages: see `tests/support/page_programs.rs`.

use allotment::source::{AddressSpace, Cap, Capped, DescendingAddresses, Log, Recording, RegionSource};
use allotment::{Options, PausedContent, Pool};

#[path = "../support/numbers.rs"]
#[allow(dead_code)]
mod numbers;
#[path = "../support/page_programs.rs"]
mod page_programs;
#[path = "../support/pages.rs"]
mod pages;

use page_programs::{Expected, PageProgram};
use pages::FreedByRecycling;

const PAGE: u64 = 1 << 16;
const NO_LIMIT: Expected = Expected { has_content: false, moves: true, capacity: u64::MAX };

fn play(source: impl RegionSource, expected: Expected, seed: u64) -> (u64, u64) {
    let mut program = PageProgram::new(source, PAGE, expected, seed);
    program.play(2000, 64);
    (program.moved, program.recycled)
}

#[test]
fn made_up_addresses() {
    for seed in 0..20 {
        assert!(play(AddressSpace::new(0), NO_LIMIT, seed).0 > 100);
        assert!(play(DescendingAddresses::new(1 << 20), NO_LIMIT, seed).0 > 100);
        assert!(play(Recording::new(AddressSpace::new(256), Log::default()), NO_LIMIT, seed).0 > 100);
    }
}

#[test]
fn a_cap_refuses_exactly_what_exceeds_it() {
    for seed in 0..20 {
        let cap = Cap::new(40 * PAGE);
        let expected = Expected { capacity: cap.bytes(), ..NO_LIMIT };
        play(Capped::new(AddressSpace::new(0), cap.clone()), expected, seed);
        assert_eq!(cap.used(), 0);
    }
}

#[test]
fn memory_that_is_freed_by_recycling_can_be_committed_again() {
    for seed in 0..20 {
        let expected = Expected { capacity: 40 * PAGE, ..NO_LIMIT };
        let source = FreedByRecycling::new(AddressSpace::new(0), expected.capacity);
        let (_, recycled) = play(source, expected, seed);
        assert!(recycled > 10, "{recycled} times");
    }
}

#[test]
fn a_pool_that_resumes_recycles_what_its_pause_decommitted() {
    let source = FreedByRecycling::new(AddressSpace::new(0), 8 * PAGE);
    let options = Options::new(8 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    pool.allocate(5 * PAGE).expect("room");
    pool.pause(PausedContent::Discard).expect("pausable");
    assert_eq!(pool.resume().expect("eight pages"), 5 * PAGE);
    pool.check().expect("sound");
}
