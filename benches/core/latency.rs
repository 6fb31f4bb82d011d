//! How long does the slowest event of a recorded program take, once the memory is reserved?
//!
//! The clock is read after every event, on both sides. The time of an event is the least of seven plays, less the
//! cost of the reading. It excludes other activity of the machine. The pool has its one region before the clock
//! starts, but its tables start empty and grow with the program: the last columns show the slowest event that
//! allocated host memory for them, the number of such events, and the slowest of the others.
//!
//! ```text
//! cargo bench --features oracle --bench latency [-- [--quick] [PART OF A TRACE'S NAME …]]
//! ```

use std::alloc::System;
use std::time::Instant;

use allotment::replay::{Event, Program};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

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

/// Counts the calls and passes them on.
#[global_allocator]
static HOST: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LIMIT: u64 = 64 << 30;
const RUNS: usize = 7;

fn main() {
    let has_theirs = table::is_there("TensorFlow's allocator", &reference::availability());
    let choice = Choice::from_arguments();
    let runs = choice.runs(RUNS);
    let reading = reading();
    let mut table = Table::new(
        "latency",
        &[
            "ns an event, without growth",
            "events",
            "p50",
            "p99",
            "p99.99",
            "max",
            "TensorFlow's p50",
            "p99",
            "p99.99",
            "max",
            "ours, max with host memory",
            "such events",
            "max without",
        ],
    );
    let mut worst = [0; 2];
    for Trace { name, program } in choice.traces() {
        let events = Events::new(program.events());
        let (mut ours, mut theirs) = (Least::new(reading), Least::new(reading));
        for _ in 0..runs {
            ours.add(&clock_ours(&program));
            if has_theirs {
                theirs.add(&clock_theirs(&events));
            }
        }
        let took = took_host_memory(&program);
        let of = |wanted: bool| {
            let times = ours.times.iter().zip(&took).filter(|&(_, &took)| took == wanted);
            times.map(|(&time, _)| time).max().unwrap_or(0)
        };
        let (with, without) = (of(true), of(false));
        let such = took.iter().filter(|&&took| took).count();
        let (ours, theirs) = (ours.percentiles(), has_theirs.then(|| theirs.percentiles()));
        worst = [worst[0].max(ours[2]), worst[1].max(theirs.map_or(0, |theirs| theirs[2]))];
        let theirs = theirs.map_or([table::ABSENT; 4].map(str::to_owned), |theirs| theirs.map(table::count));
        let ours = [program.events().len() as u64].into_iter().chain(ours).map(table::count);
        let memory = [with, such as u64, without].map(table::count);
        let cells: Vec<_> = std::iter::once(name).chain(ours).chain(theirs).chain(memory).collect();
        table.row(&cells);
    }
    table::line(&format!(
        "the largest p99.99 is {} ns here, {} ns in TensorFlow; a reading of the clock takes {reading} ns",
        table::count(worst[0]),
        if has_theirs { table::count(worst[1]) } else { table::ABSENT.to_owned() }
    ));
}

/// The least time of each event so far in nanoseconds, without the clock reading.
struct Least {
    reading: u64,
    times: Vec<u64>,
}

impl Least {
    fn new(reading: u64) -> Self {
        Self { reading, times: Vec::new() }
    }

    fn add(&mut self, times: &[u64]) {
        self.times.resize(times.len(), u64::MAX);
        for (least, &time) in self.times.iter_mut().zip(times) {
            *least = (*least).min(time.saturating_sub(self.reading));
        }
    }

    /// Returns p50, p99, p99.99 and the maximum.
    fn percentiles(mut self) -> [u64; 4] {
        self.times.sort_unstable();
        let last = self.times.len() - 1;
        [5_000, 9_900, 9_999, 10_000].map(|of_ten_thousand| self.times[last * of_ten_thousand / 10_000])
    }
}

/// Returns the median nanoseconds between two adjacent clock readings.
fn reading() -> u64 {
    let mut before = Instant::now();
    let mut times: Vec<_> = (0..1_000_000).map(|_| nanoseconds_since(&mut before)).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the nanoseconds since `before`, and sets it to now.
#[inline]
fn nanoseconds_since(before: &mut Instant) -> u64 {
    let now = Instant::now();
    let time = now.duration_since(std::mem::replace(before, now));
    u64::try_from(time.as_nanos()).expect("less than centuries")
}

/// A pool with its one region and its live allocations.
struct Ours {
    pool: Pool,
    addresses: Vec<u64>,
}

impl Ours {
    fn new(program: &Program) -> Self {
        let options = Options::new(LIMIT).growth(false).trim_on_oom(false);
        let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
        let first = pool.allocate(1).expect("an empty pool");
        pool.free(first.address).expect("a live allocation");
        Self { pool, addresses: vec![0; program.slots()] }
    }

    #[inline]
    fn step(&mut self, event: Event) {
        match event {
            Event::Allocate { slot, bytes } => {
                self.addresses[slot as usize] = self.pool.allocate(bytes).expect("an ample limit").address;
            }
            Event::Free { slot } => {
                self.pool.free(self.addresses[slot as usize]).expect("a live allocation");
            }
        }
    }
}

fn clock_ours(program: &Program) -> Vec<u64> {
    let mut ours = Ours::new(program);
    let mut times = vec![0; program.events().len()];
    let mut before = Instant::now();
    for (&event, time) in program.events().iter().zip(&mut times) {
        ours.step(event);
        *time = nanoseconds_since(&mut before);
    }
    times
}

/// Returns for each event whether the pool allocated or freed host memory.
fn took_host_memory(program: &Program) -> Vec<bool> {
    let mut ours = Ours::new(program);
    // Allocated beforehand, so that it does not count for the pool.
    let mut took = vec![false; program.events().len()];
    for (&event, took) in program.events().iter().zip(&mut took) {
        let before = Region::new(HOST);
        ours.step(event);
        let change = before.change();
        *took = change.allocations + change.deallocations + change.reallocations > 0;
    }
    took
}

fn clock_theirs(events: &Events) -> Vec<u64> {
    let setup = Setup { limit: LIMIT, joins: true, ..Setup::NO_REFUSALS };
    let mut reference = Reference::new(&setup);
    let first = [Event::Allocate { slot: 0, bytes: 1 }, Event::Free { slot: 0 }];
    reference.replay(&Events::new(&first));
    reference.clock(events)
}
