//! What does an event of a recorded program cost, beside TensorFlow's allocator?
//!
//! Both sides play every recorded program into a fresh pool of 64 GiB over made-up addresses, in turns in one
//! process; the best of the runs counts. With growth the clock covers everything. Without, the one region is
//! reserved before the clock starts: what that takes is a matter of the pool's size, and is printed apart.
//!
//! ```text
//! cargo bench --bench replay [-- [--quick] [PART OF A TRACE'S NAME …]]
//! ```
//!
//! `ALLOTMENT_TRACES` adds a folder of recorded programs. TensorFlow keeps a table of 2 GiB for such a pool.
#![allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::time::{Duration, Instant};

use allotment::replay::{Event, play};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};

#[path = "../../tests/support/oracle.rs"]
mod reference;
#[path = "../../tests/support/traces.rs"]
mod traces;

use reference::{Events, Reference, Setup};
use traces::Trace;

const LIMIT: u64 = 64 << 30;
const RUNS: usize = 7;
const SMALL: u64 = 1 << 30;

/// Time of the first region, where that is apart, and of the program.
#[derive(Clone, Copy)]
struct Times {
    first: Duration,
    program: Duration,
}

impl Times {
    const NEVER: Self = Self { first: Duration::MAX, program: Duration::MAX };

    fn best(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), program: self.program.min(other.program) }
    }
}

/// A row of the table.
struct Row {
    peak: u64,
    ours: f64,
    theirs: f64,
}

fn main() {
    reference::require();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    // Cargo passes options of its own.
    let parts: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |trace: &Trace| parts.is_empty() || parts.iter().any(|part| trace.name.contains(*part));
    let traces: Vec<_> = traces::all().into_iter().filter(wanted).collect();
    let runs = if quick { 1 } else { RUNS };
    println!("{} traces, best of {runs} runs, ns an event", traces.len());
    for growth in [true, false] {
        table(&traces, growth, runs);
    }
}

fn table(traces: &[Trace], growth: bool, runs: usize) {
    println!("\n{}", if growth { "with growth" } else { "without growth" });
    println!(
        "{:<28} {:>9} {:>12} {:>8} {:>11} {:>7}",
        "trace", "events", "peak MiB", "ours", "TensorFlow", "ratio"
    );
    let mut rows = Vec::new();
    let (mut our_first, mut their_first) = (Duration::MAX, Duration::MAX);
    for Trace { name, program } in traces {
        let events = Events::new(program.events());
        let (mut ours, mut theirs) = (Times::NEVER, Times::NEVER);
        for _ in 0..runs {
            ours = ours.best(play_ours(program, growth));
            theirs = theirs.best(play_theirs(&events, growth));
        }
        (our_first, their_first) = (our_first.min(ours.first), their_first.min(theirs.first));
        let (count, peak) = (program.events().len(), program.peak_live());
        let row =
            Row { peak, ours: per_event(ours.program, count), theirs: per_event(theirs.program, count) };
        let Row { ours, theirs, .. } = row;
        println!(
            "{name:<28} {count:>9} {:>12.1} {ours:>8.1} {theirs:>11.1} {:>7.2}",
            mib(peak),
            ours / theirs
        );
        rows.push(row);
    }
    let small: Vec<_> = rows.iter().filter(|row| row.peak < SMALL).collect();
    mean("geometric mean", &rows.iter().collect::<Vec<_>>());
    mean("geometric mean, below 1 GiB", &small);
    if !growth {
        println!("reserving the region took {our_first:.1?} here, {their_first:.1?} in TensorFlow");
    }
}

fn play_ours(program: &allotment::replay::Program, growth: bool) -> Times {
    let options = Options { growth, trim_on_oom: false, ..Options::new(LIMIT) };
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let start = Instant::now();
    if !growth {
        let first = pool.allocate(1).expect("an empty pool");
        pool.free(first.address).expect("a live allocation");
    }
    let first = start.elapsed();
    let outcome = play(&pool, program, |_, _| {}).expect("a source that does not fail");
    assert_eq!(outcome.refused, 0, "the limit is meant to be ample");
    Times { first, program: outcome.elapsed }
}

fn play_theirs(events: &Events, growth: bool) -> Times {
    let setup =
        Setup { limit: LIMIT, cap: LIMIT, gap: 0, fraction: 0.0, joins: true, growth, trim_on_oom: false };
    let mut reference = Reference::new(&setup);
    let mut first = Duration::ZERO;
    if !growth {
        let small = [Event::Allocate { slot: 0, bytes: 1 }, Event::Free { slot: 0 }];
        first = reference.replay(&Events::new(&small));
    }
    Times { first, program: reference.replay(events) }
}

fn mean(what: &str, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    let of = |value: fn(&Row) -> f64| {
        let logarithms: f64 = rows.iter().map(|row| value(row).ln()).sum();
        (logarithms / count(rows.len())).exp()
    };
    let (ours, theirs) = (of(|row| row.ours), of(|row| row.theirs));
    println!("{what:<51} {ours:>8.1} {theirs:>11.1} {:>7.2}", ours / theirs);
}

fn per_event(time: Duration, events: usize) -> f64 {
    time.as_secs_f64() * 1e9 / count(events)
}

#[allow(clippy::cast_precision_loss, reason = "counts of events are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
