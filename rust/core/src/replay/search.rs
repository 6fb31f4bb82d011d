//! The worker threads of a search for limits.

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

/// Time between two progress calls.
const TICK: Duration = Duration::from_millis(50);

/// The most replays from above before the search starts from below.
const MAX_REPLAYS_FROM_ABOVE: u32 = 64;

/// The number of steps that a replay from above must cover to be followed by another.
const MIN_REACH_FROM_ABOVE: u64 = 64;

/// The length of a thread's first block, in steps.
const FIRST_BLOCK: u64 = 16;

/// Later blocks have this many times the average number of steps that a replay covered.
const REPLAYS_PER_BLOCK: u64 = 4;

/// A replay that tracks its slack takes up to this many times as long.
const COST_OF_TRACKING: u64 = 5;

/// The number of replays without tracking after tracking was not worth its cost.
const UNTRACKED_REPLAYS: u32 = 8;

/// Searches on worker threads and calls `on_progress` on the calling thread.
pub(super) fn run_search(
    trial: Trial<'_>,
    search: &Search,
    on_progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Limits, ReplayError> {
    let workers = Workers { trial, search: *search, state: Mutex::default(), finished: Condvar::new() };
    let mut continues = on_progress(workers.lock().known.progress());
    if !continues {
        return Err(ReplayError::Interrupted);
    }
    let found = thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let _finished = Finished(&workers);
            workers.run()
        });
        while let Some((progress, must_release_regions)) = workers.wait() {
            continues = continues && on_progress(progress);
            if must_release_regions || !continues {
                workers.stop();
            }
        }
        join(leader)
    });
    if continues { found } else { Err(ReplayError::Interrupted) }
}

/// State shared by the threads of one search.
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
    /// The deadline; set once a first answer exists.
    ends: Option<Instant>,
    is_finished: bool,
}

impl Workers<'_> {
    fn run(&self) -> Result<Limits, ReplayError> {
        let granularity = self.search.granularity;
        let first = self.trial.smallest().div_ceil(granularity);
        let ample = self.ample()?;
        // From here on a first answer exists.
        self.lock().ends = Instant::now().checked_add(self.search.time);
        let ample = self.lower_ample(ample)?.max(first);
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

    /// Returns the smallest step from which all replays are the same as at every larger limit.
    fn ample(&self) -> Result<u64, ReplayError> {
        let granularity = self.search.granularity;
        let largest = self.trial.largest() / granularity * granularity;
        if largest == 0 {
            return Err(ReplayError::NoLimit);
        }
        let answer = self.trial.at(largest, true)?.ok_or(ReplayError::Interrupted)?;
        if answer.serves_descending {
            let ample = self.trial.ample_for_pages().unwrap_or(answer.down_to).min(answer.down_to);
            Ok(ample.div_ceil(granularity))
        } else {
            Err(ReplayError::NoLimit)
        }
    }

    /// Lowers the step from which every limit serves, while each replay covers many limits: a better answer if time
    /// runs out, and fewer limits to try.
    fn lower_ample(&self, mut ample: u64) -> Result<u64, ReplayError> {
        let granularity = self.search.granularity;
        for _ in 0..MAX_REPLAYS_FROM_ABOVE {
            let Some(step) = ample.checked_sub(1).filter(|&step| step > 0) else { break };
            let answer = self.trial.at(step * granularity, true)?;
            let Some(answer) = answer.filter(|answer| answer.serves_descending) else { break };
            let reach = ample - answer.down_to.div_ceil(granularity);
            ample -= reach;
            if reach < MIN_REACH_FROM_ABOVE {
                break;
            }
        }
        Ok(ample)
    }

    /// Finds a step that serves, by bisection while time remains.
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

    /// Tries blocks of limits until enough is known or time runs out.
    fn work(&self) -> Result<(), ReplayError> {
        let threads = self.search.threads.get() as u64;
        let mut length = FIRST_BLOCK;
        loop {
            let Some(block) = self.lock().known.take_block(length, threads) else { return Ok(()) };
            let spans = self.try_block(&block).inspect_err(|_| self.stop())?;
            let Some(spans) = spans else { return Ok(()) };
            let reach = (block.end - block.start) / spans.len() as u64;
            length = FIRST_BLOCK.max(reach * REPLAYS_PER_BLOCK);
            let mut state = self.lock();
            state.known.learn(block.start, spans);
            if state.known.is_complete() {
                self.stop();
            }
        }
    }

    /// Tries the limits of a block from its end down; returns the results in ascending order, `None` if stopped.
    fn try_block(&self, block: &Range<u64>) -> Result<Option<Vec<Span>>, ReplayError> {
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
            spans.push(Span {
                steps: start..end,
                serves: answer.serves,
                serves_descending: answer.serves_descending,
            });
            end = start;
        }
        spans.reverse();
        Ok(Some(spans))
    }

    /// Waits one tick; returns the progress and whether time is over, or `None` when the last thread has ended.
    fn wait(&self) -> Option<(Progress, bool)> {
        let state = self.finished.wait_timeout_while(self.lock(), TICK, |state| !state.is_finished);
        let (state, _) = state.unwrap_or_else(PoisonError::into_inner);
        let must_release_regions = state.ends.is_some_and(|ends| Instant::now() >= ends);
        (!state.is_finished).then(|| (state.known.progress(), must_release_regions))
    }

    /// Stops the replays in progress and starts no more.
    fn stop(&self) {
        self.trial.stop.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the search as finished when dropped, also on a panic.
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
