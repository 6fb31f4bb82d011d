//! How long does an event of a recorded program take, compared with TensorFlow's allocator?
//!
//! Both sides play every recorded program in a new pool of 64 GiB over made-up addresses, interleaved in one process;
//! the best run counts. With growth the time covers everything. Without growth the one region is reserved before the
//! clock starts: that time depends on the pool's size and is printed separately.
//!
//! ```text
//! cargo bench --features oracle --bench replay [-- [--quick] [PART OF A TRACE'S NAME …]]
//! ```
//!
//! `ALLOTMENT_TRACES` adds a folder of recorded programs. TensorFlow keeps a table of 2 GiB for such a pool.

use std::time::{Duration, Instant};

use allotment::replay::{Event, play};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};

mod choice;
mod table;

#[path = "../../tests/support/oracle.rs"]
mod reference;
#[path = "../../tests/support/traces.rs"]
mod traces;

use choice::Choice;
use reference::{Events, Reference, Setup};
use table::Table;
use traces::Trace;

const LIMIT: u64 = 64 << 30;
const RUNS: usize = 7;
const SMALL: u64 = 1 << 30;

/// Time of the first region, if separate, and of the program.
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
    let has_theirs = table::is_there("TensorFlow's allocator", &reference::availability());
    let choice = Choice::from_arguments();
    let (traces, runs) = (choice.traces(), choice.runs(RUNS));
    for growth in [true, false] {
        measure(&traces, growth, runs, has_theirs);
    }
}

fn measure(traces: &[Trace], growth: bool, runs: usize, has_theirs: bool) {
    let (name, what) = if growth {
        ("replay", "ns an event, with growth")
    } else {
        ("replay_without_growth", "ns an event, without growth")
    };
    let mut table = Table::new(name, &[what, "events", "peak MiB", "ours", "TensorFlow", "ratio"]);
    let mut rows = Vec::new();
    let (mut our_first, mut their_first) = (Duration::MAX, Duration::MAX);
    for Trace { name, program } in traces {
        let events = Events::new(program.events());
        let (mut ours, mut theirs) = (Times::NEVER, Times::NEVER);
        for _ in 0..runs {
            ours = ours.best(play_ours(program, growth));
            if has_theirs {
                theirs = theirs.best(play_theirs(&events, growth));
            }
        }
        (our_first, their_first) = (our_first.min(ours.first), their_first.min(theirs.first));
        let (count, peak) = (program.events().len(), program.peak_live());
        let theirs = if has_theirs { per_event(theirs.program, count) } else { f64::NAN };
        let row = Row { peak, ours: per_event(ours.program, count), theirs };
        let size = [table::count(count as u64), table::figure(mib(peak))];
        table.row(&cells(name, size, &row));
        rows.push(row);
    }
    let small: Vec<_> = rows.iter().filter(|row| row.peak < SMALL).collect();
    for (what, rows) in [("geometric mean", rows.iter().collect()), ("geometric mean, below 1 GiB", small)] {
        if let Some(mean) = mean(&rows) {
            table.row(&cells(what, [String::new(), String::new()], &mean));
        }
    }
    if !growth && has_theirs {
        table::line(&format!(
            "reserving the region took {our_first:.1?} here, {their_first:.1?} in TensorFlow"
        ));
    }
}

fn cells(name: &str, [events, peak]: [String; 2], row: &Row) -> [String; 6] {
    let [ours, theirs, ratio] = [row.ours, row.theirs, row.ours / row.theirs].map(table::figure);
    [name.to_owned(), events, peak, ours, theirs, ratio]
}

fn play_ours(program: &allotment::replay::Program, growth: bool) -> Times {
    let options = Options::new(LIMIT).growth(growth).trim_on_oom(false);
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
    let setup = Setup { limit: LIMIT, joins: true, growth, ..Setup::NO_REFUSALS };
    let mut reference = Reference::new(&setup);
    let mut first = Duration::ZERO;
    if !growth {
        let small = [Event::Allocate { slot: 0, bytes: 1 }, Event::Free { slot: 0 }];
        first = reference.replay(&Events::new(&small));
    }
    Times { first, program: reference.replay(events) }
}

fn mean(rows: &[&Row]) -> Option<Row> {
    let of = |value: fn(&Row) -> f64| {
        let logarithms: f64 = rows.iter().map(|row| value(row).ln()).sum();
        (logarithms / count(rows.len())).exp()
    };
    (!rows.is_empty()).then(|| Row { peak: 0, ours: of(|row| row.ours), theirs: of(|row| row.theirs) })
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
