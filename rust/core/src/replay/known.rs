//! The state of a search for limits: which limits serve, and which remain to be tried.
//!
//! Limits are counted in steps of the granularity. Threads take blocks of steps in ascending order and finish them in
//! any order; a block counts once all steps below it are known.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::limits::Progress;

/// Adjacent steps with the same result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) steps: Range<u64>,
    /// Whether a replay refuses nothing.
    pub(super) serves: bool,
    /// Whether a replay with descending addresses refuses nothing either.
    pub(super) serves_descending: bool,
}

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The smallest step that may serve.
    first: u64,
    /// From here on every step serves, with descending addresses too.
    ample: u64,
    /// The first step that no thread has taken.
    next: u64,
    /// Every step below is known.
    upto: u64,
    /// Finished blocks above an unfinished one, by their first step.
    waiting: BTreeMap<u64, Vec<Span>>,
    min: Option<u64>,
    /// All steps from here up to `upto` serve, with descending addresses too.
    serves_descending_from: Option<u64>,
    /// Total number of known steps.
    count: u64,
}

impl Known {
    /// Creates the state in which steps below `first` fail, steps from `ample` on serve, and the others are unknown.
    pub(super) fn new(first: u64, ample: u64) -> Self {
        Self { first, ample, next: first, upto: first, ..Self::default() }
    }

    /// Takes the next `length` unknown steps; fewer near the end, so that each of `threads` threads gets a part.
    pub(super) fn take_block(&mut self, length: u64, threads: u64) -> Option<Range<u64>> {
        let left = self.end().checked_sub(self.next).filter(|&left| left > 0)?;
        let start = self.next;
        self.next += length.min(left.div_ceil(threads));
        Some(start..self.next)
    }

    /// Counts `steps` more known steps.
    pub(super) fn count(&mut self, steps: u64) {
        self.count += steps;
    }

    /// Records the results of a whole block, in ascending order.
    pub(super) fn learn(&mut self, start: u64, spans: Vec<Span>) {
        self.waiting.insert(start, spans);
        while let Some(spans) = self.waiting.remove(&self.upto) {
            for span in spans {
                if self.is_complete() {
                    return;
                }
                self.upto = span.steps.end;
                if span.serves {
                    self.min.get_or_insert(span.steps.start);
                }
                if span.serves_descending {
                    self.serves_descending_from.get_or_insert(span.steps.start);
                } else {
                    self.serves_descending_from = None;
                }
            }
        }
    }

    /// Returns whether the smallest step that serves and the smallest safe step are both known.
    pub(super) fn is_complete(&self) -> bool {
        self.upto >= self.end()
    }

    /// Returns the smallest step that serves.
    pub(super) fn min(&self) -> Option<u64> {
        self.min.or_else(|| self.is_complete().then_some(self.ample))
    }

    /// Returns the smallest step from which all steps up to 1.25 times it serve; an upper bound of it while the
    /// search is incomplete.
    pub(super) fn safe(&self) -> u64 {
        self.serves_descending_from.filter(|_| self.is_complete()).unwrap_or(self.ample)
    }

    /// Returns the unknown steps, if any.
    pub(super) fn unknown(&self) -> Option<RangeInclusive<u64>> {
        (!self.is_complete()).then(|| self.upto..=self.end() - 1)
    }

    /// Returns the numbers of known steps and of all steps to try.
    pub(super) fn progress(&self) -> Progress {
        let all = self.end() - self.first;
        Progress { known: self.count.min(all), all }
    }

    /// Returns the first step that need not be tried.
    fn end(&self) -> u64 {
        let safe = |step: u64| (step + step / 4 + 1).min(self.ample);
        self.serves_descending_from.map_or(self.ample, safe)
    }
}
