//! How much memory does a pool's bookkeeping take: a byte per byte of memory, or a constant per chunk?
//!
//! Two tables, both over made-up addresses, so that bookkeeping is the only cost. The first covers a pool of 64 GiB
//! without growth and with 1,000 live chunks, in physical memory of the process. The second covers pools of 1,000 to
//! 1,000,000 chunks, in bytes per chunk: the host memory that our pool holds, its peak while a table is moved into a
//! larger one, and the physical memory of both sides. A moved table counts twice for a moment; the system allocator
//! may move pages without a copy.
//!
//! Each figure comes from a process of its own, which starts without reusable memory.
//!
//! ```text
//! cargo bench --features oracle --bench bookkeeping
//! ```
#![allow(clippy::print_stdout, reason = "what a process of its own finds out")]

use std::process::Command;

use allotment::replay::Event;
use allotment::source::AddressSpace;
use allotment::{Bytes, Options, Pool};
use peak_alloc::PeakAlloc;

mod table;

#[allow(dead_code, reason = "random programs use the rest")]
#[path = "../../tests/support/numbers.rs"]
mod numbers;
#[path = "../../tests/support/oracle.rs"]
mod reference;

use numbers::Numbers;
use reference::{Events, Reference, Setup};
use table::Table;

/// Counts bytes and passes the calls on.
#[global_allocator]
static HOST: PeakAlloc = PeakAlloc;

const LIMIT: u64 = 64 << 30;
/// The budget of the pool in the first table.
const BUDGET: u64 = 2 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--books") {
        let [side, state, chunks] = &arguments[place + 1..] else { panic!("--books SIDE STATE CHUNKS") };
        return print_books(side, state, chunks.parse().expect("a count of chunks"));
    }
    let has_theirs = table::is_there("TensorFlow's allocator", &reference::availability());
    large_pool(has_theirs);
    many_chunks(has_theirs);
}

/// The bookkeeping of one side in bytes; only the first figure is known for TensorFlow.
#[derive(Default)]
struct Books {
    resident: u64,
    held: u64,
    most: u64,
    /// The highest bytes per chunk, taken at each new peak with 1,000 chunks or more.
    worst_a_chunk: u64,
    chunks: u64,
}

fn large_pool(has_theirs: bool) {
    let ours = books("ours", "large", 2_000).resident;
    let mut table = Table::new("bookkeeping", &["64 GiB, 1,000 live chunks", "physical memory"]);
    table.row(&["ours", &Bytes(ours).to_string()]);
    if has_theirs {
        let theirs = books("theirs", "large", 2_000).resident;
        table.row(&["TensorFlow", &Bytes(theirs).to_string()]);
    }
    assert!(ours < BUDGET, "ours is meant to stay below {}", Bytes(BUDGET));
}

fn many_chunks(has_theirs: bool) {
    let columns =
        ["bytes a chunk", "chunks", "held", "the most for a moment", "in physical memory", "TensorFlow's"];
    let mut table = Table::new("bytes_a_chunk", &columns);
    let mut worst = 0;
    for chunks in [1_000, 10_000, 100_000, 1_000_000] {
        for (state, name) in
            [("live", "all live"), ("holes", "every second a hole"), ("churn", "after churn")]
        {
            let ours = books("ours", state, chunks);
            let theirs = has_theirs.then(|| books("theirs", state, chunks).resident);
            worst = worst.max(ours.worst_a_chunk);
            let a_chunk = |bytes: u64| table::figure(ratio(bytes, ours.chunks));
            table.row(&[
                name,
                &table::count(ours.chunks),
                &a_chunk(ours.held),
                &a_chunk(ours.most),
                &a_chunk(ours.resident),
                &theirs.map_or(table::ABSENT.to_owned(), a_chunk),
            ]);
        }
    }
    table::line(&format!(
        "the most for a moment at any number of chunks from 1,000 on: {worst} bytes a chunk"
    ));
}

/// Measures one case in a process of its own.
fn books(side: &str, state: &str, chunks: u32) -> Books {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args(["--books", side, state, &chunks.to_string()]).output();
    let output = output.expect("a program that starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [resident, held, most, worst_a_chunk, chunks] = numbers[..] else { panic!("five numbers: {text}") };
    Books { resident, held, most, worst_a_chunk, chunks }
}

fn print_books(side: &str, state: &str, chunks: u32) {
    let large = |slot: u32| 4096 + u64::from(slot) % 100 * 65_536;
    let events = match state {
        "large" => punched(chunks / 2, large),
        "live" => (0..chunks).map(|slot| Event::Allocate { slot, bytes: sizes(slot) }).collect(),
        "holes" => punched(chunks / 2, sizes),
        "churn" => churned(chunks),
        _ => panic!("no state {state}"),
    };
    let growth = state != "large";
    let books = if side == "ours" {
        measure_ours(&events, growth)
    } else {
        // Load the library, its log and its static tables before the measurement.
        measure_theirs(&[Event::Allocate { slot: 0, bytes: 1 }], 1 << 20, growth);
        Books { resident: measure_theirs(&events, LIMIT, growth), ..Books::default() }
    };
    let Books { resident, held, most, worst_a_chunk, chunks } = books;
    println!("{resident} {held} {most} {worst_a_chunk} {chunks}");
}

fn sizes(slot: u32) -> u64 {
    256 << (slot % 9)
}

/// Makes twice as many allocations as stay live, and frees every second one.
fn punched(live: u32, sizes: impl Fn(u32) -> u64) -> Vec<Event> {
    let mut events: Vec<_> = (0..2 * live).map(|slot| Event::Allocate { slot, bytes: sizes(slot) }).collect();
    events.extend((0..live).map(|hole| Event::Free { slot: 2 * hole }));
    events
}

/// Makes `live` allocations, then as often frees one and makes another.
fn churned(live: u32) -> Vec<Event> {
    let mut numbers = Numbers::new(5);
    let mut events: Vec<_> = (0..live).map(|slot| Event::Allocate { slot, bytes: sizes(slot) }).collect();
    for _ in 0..live {
        let slot = u32::try_from(numbers.below(u64::from(live))).expect("a slot");
        let bytes = 256 + numbers.below(64 << 10);
        events.extend([Event::Free { slot }, Event::Allocate { slot, bytes }]);
    }
    events
}

fn measure_ours(events: &[Event], growth: bool) -> Books {
    // Allocate and write the benchmark's own memory before the measurement.
    let mut addresses = vec![1; events.len()];
    let (resident_before, held_before) = (resident(), HOST.current_usage());
    HOST.reset_peak_usage();
    let options = Options::new(LIMIT).growth(growth).trim_on_oom(false);
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let since = |bytes: usize| bytes.saturating_sub(held_before) as u64;
    let (mut live, mut worst_a_chunk, mut most_before) = (0, 0, 0);
    for event in events {
        match *event {
            Event::Allocate { slot, bytes } => {
                addresses[slot as usize] = pool.allocate(bytes).expect("an ample limit").address;
                live += 1;
            }
            Event::Free { slot } => {
                pool.free(addresses[slot as usize]).expect("a live allocation");
                live -= 1;
            }
        }
        // There are more chunks than live ones, so this is an upper bound per chunk.
        let most = since(HOST.peak_usage());
        if most != most_before && live >= 1_000 {
            worst_a_chunk = worst_a_chunk.max(most.div_ceil(live));
        }
        most_before = most;
    }
    let most = since(HOST.peak_usage());
    let held = since(HOST.current_usage());
    let resident = resident().saturating_sub(resident_before);
    let snapshot = pool.snapshot().expect("a pool of this process");
    let chunks = snapshot.regions.iter().map(|region| region.chunks.len() as u64).sum();
    Books { resident, held, most, worst_a_chunk, chunks }
}

/// Returns the physical memory that TensorFlow's allocator takes for the same events.
fn measure_theirs(events: &[Event], limit: u64, growth: bool) -> u64 {
    let events = Events::new(events);
    let setup = Setup { limit, joins: true, growth, ..Setup::NO_REFUSALS };
    let before = resident();
    let mut reference = Reference::new(&setup);
    reference.replay(&events);
    resident().saturating_sub(before)
}

/// Returns the physical memory of this process in bytes. The roll-up is exact; `statm` lags by the pending counts of
/// each processor.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux, and its /proc");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a line on Rss");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kibibytes << 10
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn ratio(bytes: u64, chunks: u64) -> f64 {
    bytes as f64 / chunks as f64
}
