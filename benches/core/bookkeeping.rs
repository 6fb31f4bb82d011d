//! What does a pool of 64 GiB with 1,000 live chunks cost the process?
//!
//! Physical memory of this process before and after, for a pool of ours and for one of TensorFlow's, both over
//! made-up addresses and without growth. The bookkeeping lies beside the memory, so it is all there is.
#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use allotment::replay::{Event, Program, play};
use allotment::source::AddressSpace;
use allotment::{Bytes, Options, Pool};

#[path = "../../tests/support/oracle.rs"]
mod reference;

use reference::{Events, Reference, Setup};

const LIMIT: u64 = 64 << 30;
const CHUNKS: i64 = 1_000;
/// What ours may cost.
const BUDGET: u64 = 2 << 20;

fn main() {
    // Every second block of 2,000 is freed again, so that there are free chunks to keep, too.
    let allocated: Vec<i64> = (0..2 * CHUNKS).collect();
    let freed: Vec<i64> = (0..2 * CHUNKS).step_by(2).collect();
    let ops = [vec![1; allocated.len()], vec![2; freed.len()]].concat();
    let ids = [allocated, freed].concat();
    let sizes: Vec<_> = ids.iter().map(|id| 4096 + id % 100 * 65_536).collect();
    let program = Program::from_columns(&ops, &ids, &sizes).expect("every free has its allocation");
    let setup = Setup {
        limit: LIMIT,
        cap: LIMIT,
        gap: 0,
        fraction: 0.0,
        joins: true,
        growth: false,
        trim_on_oom: false,
    };
    let events = Events::new(program.events());
    // The library itself, its log and its static tables are there before anything is measured.
    drop(Reference::new(&Setup { limit: 1 << 20, ..setup }));
    let warm = [Event::Allocate { slot: 0, bytes: 1 }];
    Reference::new(&Setup { limit: 1 << 20, ..setup }).replay(&Events::new(&warm));

    let before = resident();
    let pool = Pool::new(AddressSpace::new(0), Options { growth: false, ..Options::new(LIMIT) })
        .expect("options in range");
    let outcome = play(&pool, &program, |_, _| {}).expect("a source that does not fail");
    let ours = resident().saturating_sub(before);
    assert_eq!((outcome.stats.num_live, outcome.stats.reserved), (1_000, LIMIT));

    let before = resident();
    let mut reference = Reference::new(&setup);
    reference.replay(&events);
    let theirs = resident().saturating_sub(before);

    println!("a pool of {} with {CHUNKS} live chunks", Bytes(LIMIT));
    println!("ours       {:>12}", Bytes(ours).to_string());
    println!("TensorFlow {:>12}", Bytes(theirs).to_string());
    assert!(ours < BUDGET, "ours is meant to stay below {}", Bytes(BUDGET));
    drop((pool, reference));
}

/// Physical memory of this process in bytes. The roll-up is exact; `statm` lags by what each processor has
/// not yet added.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux, and its /proc");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a line on Rss");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kibibytes << 10
}
