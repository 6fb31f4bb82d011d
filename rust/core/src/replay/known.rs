//! Which limits are known to serve, and what follows.
//!
//! Limits are counted in steps of the granularity. Threads take blocks of steps in rising order and finish them in any
//! order; a block counts once all steps below it are known.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::limits::Progress;

/// Neighbouring steps with the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) steps: Range<u64>,
    /// A replay refuses nothing.
    pub(super) serves: bool,
    /// Nor does one with falling addresses.
    pub(super) holds: bool,
}

/// The answers so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The smallest step that may serve.
    first: u64,
    /// From here on every step serves and holds.
    ample: u64,
    /// The first step that no thread has taken.
    next: u64,
    /// Every step below is known.
    upto: u64,
    /// Blocks that are known, and a smaller one is not yet, by their first step.
    waiting: BTreeMap<u64, Vec<Span>>,
    min: Option<u64>,
    /// All steps from here up to `upto` hold.
    holds_from: Option<u64>,
    /// Steps that are known in all.
    count: u64,
}

impl Known {
    /// Nothing is known but that steps below `first` do not serve, and those from `ample` on do.
    pub(super) fn new(first: u64, ample: u64) -> Self {
        Self { first, ample, next: first, upto: first, ..Self::default() }
    }

    /// Takes the next `length` steps that are to be known, or fewer where there are no more, or where `threads`
    /// threads would not get a share each.
    pub(super) fn take_block(&mut self, length: u64, threads: u64) -> Option<Range<u64>> {
        let left = self.end().checked_sub(self.next).filter(|&left| left > 0)?;
        let start = self.next;
        self.next += length.min(left.div_ceil(threads));
        Some(start..self.next)
    }

    /// Notes that so many more steps are known.
    pub(super) fn count(&mut self, steps: u64) {
        self.count += steps;
    }

    /// Notes the answers of a block, which spans the whole of it in rising order.
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
                if span.holds {
                    self.holds_from.get_or_insert(span.steps.start);
                } else {
                    self.holds_from = None;
                }
            }
        }
    }

    /// Whether the smallest step that serves and the smallest safe one are both known.
    pub(super) fn is_complete(&self) -> bool {
        self.upto >= self.end()
    }

    /// The smallest step that serves.
    pub(super) fn min(&self) -> Option<u64> {
        self.min.or_else(|| self.is_complete().then_some(self.ample))
    }

    /// The smallest step from which on all steps hold up to 1.25 times as many; the smallest that is known to be
    /// such a step, while there are others to be known.
    pub(super) fn safe(&self) -> u64 {
        self.holds_from.filter(|_| self.is_complete()).unwrap_or(self.ample)
    }

    /// The steps that are yet to be known, if any.
    pub(super) fn unknown(&self) -> Option<RangeInclusive<u64>> {
        (!self.is_complete()).then(|| self.upto..=self.end() - 1)
    }

    /// How many steps are known, and how many there are to know.
    pub(super) fn progress(&self) -> Progress {
        let all = self.end() - self.first;
        Progress { known: self.count.min(all), all }
    }

    /// The first step that need not be known.
    fn end(&self) -> u64 {
        let safe = |step: u64| (step + step / 4 + 1).min(self.ample);
        self.holds_from.map_or(self.ample, safe)
    }
}
