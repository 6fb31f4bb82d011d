//! How long does a pair of an allocation and a free take, for any number of holes, compared with other allocators?
//!
//! Three cases: 1 KiB with nothing else live; 1 KiB and mixed sizes among 16 to 1,048,576 holes of mixed sizes; and
//! random churn with 8,192 live allocations of 256 bytes to 4 MiB. All allocators get the same requests, interleaved
//! in one process; the best run counts.
//!
//! ```text
//! cargo bench --features oracle --bench pairs [-- --quick]
//! ```
//!
//! The largest number of holes takes 5 GiB of address space, most of it resident for the allocators that keep their
//! bookkeeping in the memory. `--quick` skips it.

use std::time::Duration;

use allotment::replay::Event;

mod peers;
mod table;

#[allow(dead_code, reason = "random programs use the rest")]
#[path = "../../tests/support/numbers.rs"]
mod numbers;
#[path = "../../tests/support/oracle.rs"]
mod reference;

use numbers::Numbers;
use peers::{Contender, Held, Ours, Player, Script};
use table::Table;

const LIMIT: u64 = 64 << 30;
const RUNS: usize = 5;
/// The number of runs if the preparation takes seconds.
const FEW_RUNS: usize = 2;
/// How often one run plays the pairs: they restore the initial state.
const ROUNDS: usize = 3;
const BATCH: u32 = 1_000;
const BATCHES: u32 = 100;
/// The time limit of a run; a slower allocator is measured by the batches it has finished.
const PATIENCE: Duration = Duration::from_millis(500);
const MOST_HOLES: u32 = 1 << 20;
const LIVE: u32 = 8_192;
/// A slot that nothing else uses.
const SPARE: u32 = 2 * MOST_HOLES;

fn main() {
    let contenders = peers::contenders();
    let quick = std::env::args().any(|argument| argument == "--quick");
    let mut columns = vec!["ns a pair"];
    columns.extend(contenders.iter().map(|contender| contender.name));
    let measure = |before: &_, lists: &_, runs, rounds| measure(&contenders, before, lists, runs, rounds);
    let mut table = Table::new("pairs", &columns);

    let kib = batches(|_| 1024);
    let mixed = batches(|numbers| log_uniform(numbers, 8, 14));
    let rows = measure(&Script::new(Vec::new()), &[&kib], RUNS, ROUNDS);
    table.row(&cells("1 KiB, nothing else live", &rows[0]));
    for holes in [16, 4_096, 65_536, MOST_HOLES] {
        if quick && holes == MOST_HOLES {
            continue;
        }
        let before = punched(holes);
        check_holes(&before, &[&kib, &mixed], holes as usize);
        let runs = if holes == MOST_HOLES { FEW_RUNS } else { RUNS };
        let rows = measure(&before, &[&kib, &mixed], runs, ROUNDS);
        let holes = table::count(u64::from(holes));
        table.row(&cells(&format!("1 KiB, {holes} holes"), &rows[0]));
        table.row(&cells(&format!("256 B to 16 KiB, {holes} holes"), &rows[1]));
    }
    let (before, churn) = churn();
    let rows = measure(&before, &[&churn], RUNS, 1);
    table.row(&cells("churn of 8,192 live, 256 B to 4 MiB", &rows[0]));
}

fn cells(name: &str, row: &[f64]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(row.iter().map(|&value| table::figure(value))).collect()
}

/// Returns the nanoseconds per pair for each list of batches and each allocator, after playing `before`.
fn measure(
    contenders: &[Contender],
    before: &Script,
    lists: &[&[Script]],
    runs: usize,
    rounds: usize,
) -> Vec<Vec<f64>> {
    let mut best = vec![vec![f64::INFINITY; contenders.len()]; lists.len()];
    for run in 0..runs {
        for (place, contender) in contenders.iter().enumerate() {
            let mut player = contender.make(LIMIT);
            player.play(before);
            for (list, best) in lists.iter().zip(&mut best) {
                // An allocator that exceeded the time limit once is measured by that run.
                let slow =
                    |best: f64| best.is_finite() && best > 1e9 * PATIENCE.as_secs_f64() / f64::from(BATCH);
                if run > 0 && slow(best[place]) {
                    continue;
                }
                for _ in 0..rounds {
                    best[place] = best[place].min(nanoseconds_a_pair(player.as_mut(), list));
                    if slow(best[place]) {
                        break;
                    }
                }
            }
        }
    }
    best
}

fn nanoseconds_a_pair(player: &mut dyn Player, batches: &[Script]) -> f64 {
    let (mut time, mut pairs) = (Duration::ZERO, 0);
    for batch in batches {
        time += player.play(batch);
        pairs += batch.pairs();
        if time > PATIENCE {
            break;
        }
    }
    time.as_secs_f64() * 1e9 / f64::from(pairs)
}

/// Generates alternating allocations and frees.
fn batches(mut bytes: impl FnMut(&mut Numbers) -> u64) -> Vec<Script> {
    let mut numbers = Numbers::new(1);
    let mut pair =
        |_| [Event::Allocate { slot: SPARE, bytes: bytes(&mut numbers) }, Event::Free { slot: SPARE }];
    (0..BATCHES).map(|_| Script::new((0..BATCH).flat_map(&mut pair).collect())).collect()
}

/// Generates `holes` allocations, each followed by a small one as a separator, and frees the former.
fn punched(holes: u32) -> Script {
    let mut numbers = Numbers::new(2);
    let mut two = |hole| {
        let bytes = log_uniform(&mut numbers, 8, 14);
        [Event::Allocate { slot: 2 * hole, bytes }, Event::Allocate { slot: 2 * hole + 1, bytes: 256 }]
    };
    let mut events: Vec<_> = (0..holes).flat_map(&mut two).collect();
    events.extend((0..holes).map(|hole| Event::Free { slot: 2 * hole }));
    Script::new(events)
}

/// Checks that there are exactly these holes before and after the pairs.
fn check_holes(before: &Script, lists: &[&[Script]], holes: usize) {
    let mut ours = Held::new(Ours::new(LIMIT));
    ours.play(before);
    assert_eq!(count_holes(&ours), holes);
    for batch in lists.iter().copied().flatten() {
        ours.play(batch);
    }
    assert_eq!(count_holes(&ours), holes);
}

/// Counts the free chunks, without the one at the region's end.
fn count_holes(ours: &Held<Ours>) -> usize {
    let snapshot = ours.peer.0.snapshot().expect("a pool of this process");
    let [region] = snapshot.regions.as_slice() else { panic!("one region, grown by what touches it") };
    let (_, chunks) = region.chunks.split_last().expect("a region has chunks");
    chunks.iter().filter(|chunk| !chunk.in_use).count()
}

/// Generates a full pool, then random frees, each followed by a new allocation.
fn churn() -> (Script, Vec<Script>) {
    let mut numbers = Numbers::new(3);
    let mut allocate = |slot| Event::Allocate { slot, bytes: log_uniform(&mut numbers, 8, 22) };
    let before = Script::new((0..LIVE).map(&mut allocate).collect());
    let mut places = Numbers::new(4);
    let mut turn = |_| {
        let slot = u32::try_from(places.below(u64::from(LIVE))).expect("a slot");
        [Event::Free { slot }, allocate(slot)]
    };
    (before, (0..BATCHES).map(|_| Script::new((0..BATCH).flat_map(&mut turn).collect())).collect())
}

/// Returns a number between 2^`low` and 2^`high`; all powers of two are equally likely.
fn log_uniform(numbers: &mut Numbers, low: u64, high: u64) -> u64 {
    let doubling = 1 << (low + numbers.below(high - low));
    doubling + numbers.below(doubling)
}
