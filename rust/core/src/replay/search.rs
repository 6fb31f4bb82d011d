//! The threads of a search for limits.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::known::{Known, Span};
use super::limits::{Limits, Progress, Search};
use super::play::ReplayError;
use super::probe::Trial;

/// Time between two calls of the function that watches a search.
const TICK: Duration = Duration::from_millis(50);

/// The most replays from above, before the search starts from below.
const MOST_REPLAYS_FROM_ABOVE: u32 = 64;

/// The steps that a replay from above must reach down to be followed by another.
const WORTH_A_REPLAY_FROM_ABOVE: u64 = 64;

/// The steps of a thread's first block.
const FIRST_BLOCK: u64 = 16;

/// Later blocks are this many times as long as the replays of the one before reached down.
const REPLAYS_IN_A_BLOCK: u64 = 4;

/// A replay that tracks its slack takes up to this many times as long as one that does not.
const COST_OF_TRACKING: u64 = 5;

/// Where tracking was not worth its cost, so many replays do not track before the next that does.
const UNTRACKED_REPLAYS: u32 = 8;

/// Searches on threads of its own, and calls `watch` on this one.
pub(super) fn run_search(
    trial: Trial<'_>,
    search: &Search,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Limits, ReplayError> {
    let workers = Workers { trial, search: *search, state: Mutex::default(), finished: Condvar::new() };
    let mut go_on = watch(workers.lock().known.progress());
    if !go_on {
        return Err(ReplayError::Interrupted);
    }
    let found = thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let _finished = Finished(&workers);
            workers.run()
        });
        while let Some((progress, is_over)) = workers.wait() {
            go_on = go_on && watch(progress);
            if is_over || !go_on {
                workers.stop();
            }
        }
        join(leader)
    });
    if go_on { found } else { Err(ReplayError::Interrupted) }
}

/// What the threads of one search share.
struct Workers<'a> {
    trial: Trial<'a>,
    search: Search,
    state: Mutex<State>,
    /// Notified when the last thread has ended.
    finished: Condvar,
}

#[derive(Default)]
struct State {
    known: Known,
    /// When time is over; set once there is an answer that can be given.
    ends: Option<Instant>,
    is_finished: bool,
}

impl Workers<'_> {
    fn run(&self) -> Result<Limits, ReplayError> {
        let granularity = self.search.granularity;
        let first = self.trial.least().div_ceil(granularity);
        let ample = self.ample()?;
        // From here on there is an answer.
        self.lock().ends = Instant::now().checked_add(self.search.time);
        let ample = self.lower(ample)?.max(first);
        let serves = self.bisect(first, ample)?;
        self.lock().known = Known::new(first, ample);
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.search.threads.get()).map(|_| scope.spawn(|| self.work())).collect();
            threads.into_iter().try_for_each(join)
        })?;
        let known = &self.lock().known;
        Ok(Limits {
            min_limit: known.min().unwrap_or(serves) * granularity,
            safe_limit: known.safe() * granularity,
            untried: known.unknown().map(|steps| *steps.start() * granularity..=*steps.end() * granularity),
        })
    }

    /// The smallest step from which on replays are the same as at every larger limit.
    fn ample(&self) -> Result<u64, ReplayError> {
        let granularity = self.search.granularity;
        let largest = self.trial.largest() / granularity * granularity;
        if largest == 0 {
            return Err(ReplayError::NoLimit);
        }
        let answer = self.trial.at(largest, true)?.ok_or(ReplayError::Interrupted)?;
        if answer.holds { Ok(answer.down_to.div_ceil(granularity)) } else { Err(ReplayError::NoLimit) }
    }

    /// A smaller step from which on every limit holds, as long as few replays tell of many limits: for an answer if
    /// time is over early, and less is left to try.
    fn lower(&self, mut ample: u64) -> Result<u64, ReplayError> {
        let granularity = self.search.granularity;
        for _ in 0..MOST_REPLAYS_FROM_ABOVE {
            let Some(step) = ample.checked_sub(1).filter(|&step| step > 0) else { break };
            let answer = self.trial.at(step * granularity, true)?;
            let Some(answer) = answer.filter(|answer| answer.holds) else { break };
            let reach = ample - answer.down_to.div_ceil(granularity);
            ample -= reach;
            if reach < WORTH_A_REPLAY_FROM_ABOVE {
                break;
            }
        }
        Ok(ample)
    }

    /// A step that serves: by bisection, as long as there is time.
    fn bisect(&self, first: u64, ample: u64) -> Result<u64, ReplayError> {
        let (mut low, mut high) = (first, ample);
        while low < high {
            let middle = low.midpoint(high);
            match self.trial.at(middle * self.search.granularity, false)? {
                Some(answer) if answer.serves => high = middle,
                Some(_) => low = middle + 1,
                None => break,
            }
        }
        Ok(high)
    }

    /// Tries blocks of limits until enough is known or time is over.
    fn work(&self) -> Result<(), ReplayError> {
        let threads = self.search.threads.get() as u64;
        let mut length = FIRST_BLOCK;
        loop {
            let Some(block) = self.lock().known.take_block(length, threads) else { return Ok(()) };
            let spans = self.cover(&block).inspect_err(|_| self.stop())?;
            let Some(spans) = spans else { return Ok(()) };
            let reach = (block.end - block.start) / spans.len() as u64;
            length = FIRST_BLOCK.max(reach * REPLAYS_IN_A_BLOCK);
            let mut state = self.lock();
            state.known.learn(block.start, spans);
            if state.known.is_complete() {
                self.stop();
            }
        }
    }

    /// Tries the limits of a block, from its end down; returns the answers in rising order, none if it was stopped.
    fn cover(&self, block: &Range<u64>) -> Result<Option<Vec<Span>>, ReplayError> {
        let granularity = self.search.granularity;
        let mut spans = Vec::new();
        let mut end = block.end;
        let mut untracked = 0;
        while end > block.start {
            let track = untracked == 0;
            let Some(answer) = self.trial.at((end - 1) * granularity, track)? else { return Ok(None) };
            let start = answer.down_to.div_ceil(granularity).max(block.start);
            untracked = match track {
                true if end - start < COST_OF_TRACKING => UNTRACKED_REPLAYS,
                true => 0,
                false => untracked - 1,
            };
            self.lock().known.count(end - start);
            spans.push(Span { steps: start..end, serves: answer.serves, holds: answer.holds });
            end = start;
        }
        spans.reverse();
        Ok(Some(spans))
    }

    /// Waits a moment: the progress and whether time is over, or none when the last thread has ended.
    fn wait(&self) -> Option<(Progress, bool)> {
        let state = self.finished.wait_timeout_while(self.lock(), TICK, |state| !state.is_finished);
        let (state, _) = state.unwrap_or_else(PoisonError::into_inner);
        let is_over = state.ends.is_some_and(|ends| Instant::now() >= ends);
        (!state.is_finished).then(|| (state.known.progress(), is_over))
    }

    /// Ends the replays that are under way, and starts no more.
    fn stop(&self) {
        self.trial.stop.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that the search has ended, also when it panics.
struct Finished<'a>(&'a Workers<'a>);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.lock().is_finished = true;
        self.0.finished.notify_all();
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
