//! Threads that run the same loop for a fixed time, and the work that each of them did.

use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::waits::Waits;

/// The work of one thread: a loop that is run in short parts.
pub(crate) trait Turns: Send {
    /// Runs a part of some microseconds and returns the number of pairs or operations it did.
    fn run(&mut self) -> u64;

    /// Runs once after a warm-up, before the counted time.
    fn begin(&mut self) {}

    /// Returns the recorded waits, if there are any.
    fn waits(&self) -> Option<&Waits> {
        None
    }
}

/// The work that a thread did in the counted time.
pub(crate) struct Lap<T> {
    pub(crate) done: u64,
    pub(crate) turns: T,
}

/// Runs `threads` threads for `window` after a tenth of it as a warm-up, each with the turns that `make` creates on it.
///
/// A thread reads the clock after each part, so that a part that crosses the end counts: all threads together count
/// a few microseconds too much in windows of milliseconds.
pub(crate) fn race<T: Turns>(
    threads: usize,
    window: Duration,
    make: impl Fn(usize) -> T + Sync,
) -> Vec<Lap<T>> {
    let barrier = Barrier::new(threads);
    let start = OnceLock::new();
    let run = |index: usize| {
        let mut turns = make(index);
        barrier.wait();
        let begin = *start.get_or_init(Instant::now) + window / 10;
        while Instant::now() < begin {
            turns.run();
        }
        turns.begin();
        let mut done = 0;
        while Instant::now() < begin + window {
            done += turns.run();
        }
        Lap { done, turns }
    };
    thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (0..threads).map(|index| scope.spawn(move || run(index))).collect();
        others.into_iter().map(|other| other.join().expect("no thread panics")).collect()
    })
}

/// The nanoseconds an operation of all threads together, and how evenly the threads share them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed {
    pub(crate) nanoseconds: f64,
    /// The operations of the slowest thread by the mean of all.
    pub(crate) fairness: f64,
}

impl Speed {
    pub(crate) fn new(done: &[u64], window: Duration) -> Self {
        let total: u64 = done.iter().sum();
        let least = done.iter().copied().min().unwrap_or(0);
        Self {
            nanoseconds: 1e9 * window.as_secs_f64() / float(total),
            fairness: float(least) * float(done.len() as u64) / float(total),
        }
    }

    /// Returns the median of each figure, or no numbers if there are no speeds.
    pub(crate) fn median(speeds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<_> = speeds.iter().map(figure).collect();
            figures.sort_unstable_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Self { nanoseconds: of(|speed| speed.nanoseconds), fairness: of(|speed| speed.fairness) }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of events are far below 2^52")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
