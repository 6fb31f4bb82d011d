//! How long does a query of a pool take, for any number of chunks?
//!
//! The counters, including the largest free chunk and the fragmentation, at 10, 10,000 and 1,000,000 live chunks with
//! as many holes between them; compared with TensorFlow's counters, which lack those two, and the largest free region
//! of `offset-allocator`. Each query repeats many times; the best run counts.
//!
//! ```text
//! cargo bench --features oracle --bench queries
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use allotment::replay::Event;

mod peers;
mod table;

#[path = "../../tests/support/oracle.rs"]
mod reference;

use peers::{Held, Ours, Player, Script};
use table::Table;

const LIMIT: u64 = 64 << 30;
const TIMES: u32 = 10_000;
const RUNS: usize = 9;

fn main() {
    let has_theirs = table::is_there("TensorFlow's allocator", &reference::availability());
    let columns = ["ns a question", "ours", "TensorFlow", "offset-allocator"];
    let mut table = Table::new("queries", &columns);
    for live in [10, 10_000, 1_000_000] {
        let script = punched(live);
        let mut ours = Held::new(Ours::new(LIMIT));
        ours.play(&script);
        check(&ours, live);
        let mut theirs = has_theirs.then(|| peers::tensorflow(LIMIT));
        if let Some(theirs) = &mut theirs {
            theirs.play(&script);
        }
        let mut offset = Held::new(peers::offset(LIMIT));
        offset.play(&script);

        let mut best = [Duration::MAX; 3];
        for _ in 0..RUNS {
            let times = [
                ask(|| ours.peer.0.stats()),
                theirs.as_mut().map_or(Duration::ZERO, |theirs| theirs.ask(TIMES as usize)),
                ask(|| offset.peer.storage_report()),
            ];
            for (best, time) in best.iter_mut().zip(times) {
                *best = time.min(*best);
            }
        }
        let mut figures = best.map(|time| table::figure(time.as_secs_f64() * 1e9 / f64::from(TIMES)));
        if theirs.is_none() {
            table::ABSENT.clone_into(&mut figures[1]);
        }
        let name = format!("{} live chunks and as many holes", table::count(u64::from(live)));
        table.row(&[&name, &figures[0], &figures[1], &figures[2]]);
    }
}

fn ask<T>(question: impl Fn() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..TIMES {
        black_box(question());
    }
    start.elapsed()
}

/// Generates as many holes as live chunks, of sizes in all bins up to 64 KiB.
fn punched(live: u32) -> Script {
    let size = |slot: u32| 256 << (slot / 2 % 9);
    let mut events: Vec<_> = (0..2 * live).map(|slot| Event::Allocate { slot, bytes: size(slot) }).collect();
    events.extend((0..live).map(|hole| Event::Free { slot: 2 * hole }));
    Script::new(events)
}

/// Checks the answers against a walk over all chunks.
fn check(ours: &Held<Ours>, live: u32) {
    let pool = &ours.peer.0;
    let (stats, snapshot) = (pool.stats().expect("a pool of this process"), pool.snapshot());
    let snapshot = snapshot.expect("a pool of this process");
    let free = || snapshot.regions.iter().flat_map(|region| &region.chunks).filter(|chunk| !chunk.in_use);
    assert_eq!(stats.num_live, u64::from(live));
    assert_eq!(Some(stats.largest_free), free().map(|chunk| chunk.size).max());
    assert_eq!(stats.free, free().map(|chunk| chunk.size).sum());
    // The rest at the region's end is one more free chunk.
    assert!((live..=live + 1).contains(&u32::try_from(free().count()).expect("a count of chunks")));
}
