//! What does a pool lose to contention, and how long does a thread wait for an allocation?

use std::time::Duration;

use allotment::replay::Event;
use hdrhistogram::Histogram;

use crate::peers::{self, Behind, Ours, Peer, System};
use crate::race::{Speed, Turns, float, race};
use crate::settings::{Settings, Tables, threads as threads_text};
use crate::table::{self, Table};
use crate::traces;
use crate::waits::{Off, Stopwatch, Waits, histogram, reading};
use crate::workloads::{Churn, Pairs, Place, Replay, split};

/// What the threads do.
#[derive(Clone, Copy)]
enum Workload<'a> {
    Pairs,
    Churn,
    /// The parts of recorded programs, one for each thread.
    Replay(&'a [Vec<Event>]),
}

/// A measurement: threads that do a workload for some time.
#[derive(Clone, Copy)]
struct Job<'a> {
    workload: Workload<'a>,
    threads: usize,
    window: Duration,
    /// Whether each allocation is clocked.
    clocked: bool,
}

/// The result of a measurement.
struct Outcome {
    speed: Speed,
    /// Nanoseconds of all allocations, and without the time that their threads waited for a core.
    waits: [Histogram<u64>; 2],
}

impl Job<'_> {
    /// Runs the job on an allocator.
    fn shared<P: Peer>(&self, peer: P) -> Outcome {
        self.run(&[Place::new(peer)])
    }

    /// Runs the job on these allocators, which the threads take in turns.
    fn run<P: Peer>(&self, places: &[Place<P>]) -> Outcome {
        if self.clocked { self.measure(places, Waits::new) } else { self.measure(places, || Off) }
    }

    fn measure<P: Peer, S: Stopwatch>(&self, places: &[Place<P>], watch: impl Fn() -> S + Sync) -> Outcome {
        let place = |index: usize| &places[index % places.len()];
        match self.workload {
            Workload::Pairs => self.race(|index| Pairs::new(place(index), watch())),
            Workload::Churn => self.race(|index| Churn::new(place(index), watch(), index)),
            Workload::Replay(parts) => self.race(|index| Replay::new(place(index), watch(), &parts[index])),
        }
    }

    fn race<T: Turns>(&self, make: impl Fn(usize) -> T + Sync) -> Outcome {
        let laps = race(self.threads, self.window, make);
        let done: Vec<_> = laps.iter().map(|lap| lap.done).collect();
        let mut waits = [histogram(), histogram()];
        for recorded in laps.iter().filter_map(|lap| lap.turns.waits()) {
            waits[0].add(&recorded.all).expect("the same bounds");
            waits[1].add(&recorded.running).expect("the same bounds");
        }
        Outcome { speed: Speed::new(&done, self.window), waits }
    }
}

/// An allocator by name; each measurement gets a new one.
struct Contender {
    name: &'static str,
    run: fn(&Job) -> Outcome,
    /// Whether it calls the system for large blocks, which most of its time in recorded programs would be.
    is_process_wide: bool,
}

impl Contender {
    fn of_devices(name: &'static str, run: fn(&Job) -> Outcome) -> Self {
        Self { name, run, is_process_wide: false }
    }

    fn of_processes(name: &'static str, run: fn(&Job) -> Outcome) -> Self {
        Self { name, run, is_process_wide: true }
    }

    /// Runs the job, if the contender is meant for it.
    fn run(&self, job: &Job) -> Option<Outcome> {
        let is_left_out = self.is_process_wide && matches!(job.workload, Workload::Replay(_));
        (!is_left_out).then(|| (self.run)(job))
    }
}

/// Our pool, our allocator in other locks, and other allocators.
fn contenders() -> Vec<Contender> {
    let mut all = vec![
        Contender::of_devices("ours", |job| job.shared(Ours::new())),
        Contender::of_devices("ours, with thread caches", |job| job.shared(Ours::with_thread_caches())),
        Contender::of_devices(PRIVATE, |job| job.run(&private(job.threads))),
        Contender::of_devices("in parking_lot's lock", |job| job.shared(Behind::parking_lot())),
        Contender::of_devices("in the standard lock", |job| job.shared(Behind::std())),
    ];
    match peers::tensorflow() {
        Ok(_) => all.push(Contender::of_devices("TensorFlow", |job| {
            job.shared(peers::tensorflow().expect("as before"))
        })),
        Err(reason) => table::line(&format!("TensorFlow's allocator is left out: {reason}")),
    }
    all.push(Contender::of_processes("glibc", |job| job.shared(System(std::alloc::System))));
    all.push(Contender::of_processes("mimalloc", |job| job.shared(System(mimalloc::MiMalloc))));
    #[cfg(snmalloc)]
    all.push(Contender::of_processes("snmalloc", |job| job.shared(System(snmalloc_rs::SnMalloc))));
    #[cfg(not(snmalloc))]
    table::line("snmalloc is left out: `make bench-contention` has it");
    all
}

/// The control: threads that share nothing but the cores.
const PRIVATE: &str = "ours, a pool for each thread";

fn private(threads: usize) -> Vec<Place<Ours>> {
    (0..threads).map(|_| Place::new(Ours::new())).collect()
}

/// Returns the median speed of pairs in our pool.
pub(crate) fn pair_of_ours(threads: usize, settings: &Settings) -> Speed {
    pair(threads, settings, |job| job.shared(Ours::new()))
}

/// Returns the median speed of pairs in our allocator behind a lock of another crate.
pub(crate) fn pair_behind_lock(threads: usize, settings: &Settings) -> Speed {
    pair(threads, settings, |job| job.shared(Behind::parking_lot()))
}

fn pair(threads: usize, settings: &Settings, run: fn(&Job) -> Outcome) -> Speed {
    let job = Job { workload: Workload::Pairs, threads, window: settings.window, clocked: false };
    speeds(&job, &[Contender::of_devices("", run)], settings.runs)[0]
}

/// Prints the tables of the allocators.
pub(crate) fn measure(settings: &Settings) {
    let contenders = contenders();
    let names: Vec<_> = contenders.iter().map(|contender| contender.name).collect();
    let traces = if settings.wants("replay") { traces::named(|_| true) } else { Vec::new() };
    let mut tables = Tables::new("contention", "ns a pair of all threads together", &names);
    let mut waits = Vec::new();
    for part in ["pairs", "churn", "replay"] {
        if !settings.wants(part) {
            continue;
        }
        for &threads in &settings.threads {
            let parts = split(&traces, threads);
            let workload = match part {
                "pairs" => Workload::Pairs,
                "churn" => Workload::Churn,
                _ => Workload::Replay(&parts),
            };
            let name = format!("{part}, {}", threads_text(threads));
            let job = Job { workload, threads, window: settings.window, clocked: false };
            tables.row(&name, &speeds(&job, &contenders, settings.runs));
            waits.push((name, waited(&Job { clocked: true, ..job }, &contenders, settings.runs.div_ceil(2))));
        }
    }
    tables.finish();
    print_waits(&names, &waits);
}

/// Returns the median speed of each allocator; they take turns.
fn speeds(job: &Job, contenders: &[Contender], runs: usize) -> Vec<Speed> {
    let mut speeds: Vec<_> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for (contender, speeds) in contenders.iter().zip(&mut speeds) {
            speeds.extend(contender.run(job).map(|outcome| outcome.speed));
        }
    }
    speeds.iter().map(|speeds| Speed::median(speeds)).collect()
}

/// Returns the waits of each allocator in all runs together.
fn waited(job: &Job, contenders: &[Contender], runs: usize) -> Vec<[Histogram<u64>; 2]> {
    let mut waits: Vec<_> = contenders.iter().map(|_| [histogram(), histogram()]).collect();
    for _ in 0..runs {
        for (contender, sums) in contenders.iter().zip(&mut waits) {
            for (sum, waits) in
                sums.iter_mut().zip(contender.run(job).iter().flat_map(|outcome| &outcome.waits))
            {
                sum.add(waits).expect("the same bounds");
            }
        }
    }
    waits
}

fn print_waits(names: &[&str], rows: &[(String, Vec<[Histogram<u64>; 2]>)]) {
    let reading = reading();
    let cell = |waits: &Histogram<u64>| {
        if waits.is_empty() {
            return table::figure(f64::NAN);
        }
        let figures = [0.5, 0.99, 0.9999, 1.0].map(|quantile| {
            let nanoseconds = waits.value_at_quantile(quantile).saturating_sub(reading);
            table::figure(float(nanoseconds) / 1e3)
        });
        figures.join(" / ")
    };
    let tables = [
        ("contention_waits", "µs an allocation: p50 / p99 / p99.99 / max"),
        ("contention_waits_on_a_core", "the same without waiting for a core"),
    ];
    for (place, (name, what)) in tables.into_iter().enumerate() {
        let mut head = vec![what];
        head.extend(names);
        let mut table = Table::new(name, &head);
        for (name, waits) in rows {
            let cells = waits.iter().map(|waits| cell(&waits[place]));
            table.row(&std::iter::once(name.clone()).chain(cells).collect::<Vec<_>>());
        }
    }
    table::line(&format!("two readings of the clock, {reading} ns, are taken off each allocation"));
}
