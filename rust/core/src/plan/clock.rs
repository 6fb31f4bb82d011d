//! How long a search goes on: by time, by steps, and as long as the caller wants.

use std::time::{Duration, Instant};

/// How much work a search for a plan may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Effort {
    /// The search ends after this time; a first plan is made in any case.
    pub time: Duration,
    /// The search ends after this many steps, each about the placing of one buffer. With `None`, the default, time alone
    /// counts, and a slower machine may find a larger arena. With enough `time` for all steps the plan is the same on
    /// every machine.
    pub steps: Option<u64>,
    /// Start of the random numbers: another one searches in another order.
    pub seed: u64,
}

impl Default for Effort {
    /// Ten seconds.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), steps: None, seed: 0 }
    }
}

impl Effort {
    /// Sets the time after which the search ends.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the steps after which the search ends.
    #[must_use]
    pub fn steps(mut self, steps: impl Into<Option<u64>>) -> Self {
        self.steps = steps.into();
        self
    }

    /// Sets the start of the random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// How far a search for a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct PlanProgress {
    /// The smallest arena so far in bytes; `None` before the first plan.
    pub arena: Option<u64>,
    /// The most bytes that live at once: no arena is smaller.
    pub lower_bound: u64,
    /// The time since the search began.
    pub elapsed: Duration,
}

/// The time between two calls of the caller's function.
const BETWEEN_CALLS: Duration = Duration::from_millis(50);

/// The steps between two looks at the time.
const BETWEEN_LOOKS: u64 = 1 << 12;

/// Counts steps, looks at the time now and then, and asks the caller whether to go on.
pub(super) struct Clock<'a> {
    begun: Instant,
    time: Duration,
    steps_left: u64,
    until_look: u64,
    last_call: Option<Duration>,
    on_progress: &'a mut dyn FnMut(PlanProgress) -> bool,
    pub(super) progress: PlanProgress,
    is_over: bool,
    is_stopped: bool,
}

impl<'a> Clock<'a> {
    pub(super) fn new(
        effort: &Effort,
        lower_bound: u64,
        on_progress: &'a mut dyn FnMut(PlanProgress) -> bool,
    ) -> Self {
        let mut clock = Self {
            begun: Instant::now(),
            time: effort.time,
            steps_left: effort.steps.unwrap_or(u64::MAX),
            until_look: 0,
            last_call: None,
            on_progress,
            progress: PlanProgress { arena: None, lower_bound, elapsed: Duration::ZERO },
            is_over: false,
            is_stopped: false,
        };
        clock.look();
        clock
    }

    /// Counts steps; returns whether the search goes on.
    #[inline]
    pub(super) fn goes_on(&mut self, steps: u64) -> bool {
        if self.steps_left < steps {
            self.steps_left = 0;
            self.is_over = true;
        } else {
            self.steps_left -= steps;
        }
        if self.until_look <= steps {
            self.look();
        } else {
            self.until_look -= steps;
        }
        !self.is_over
    }

    /// Returns whether the caller ended the search.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns whether time or steps have run out.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    #[cold]
    fn look(&mut self) {
        self.until_look = BETWEEN_LOOKS;
        let elapsed = self.begun.elapsed();
        self.is_over |= elapsed >= self.time;
        if self.last_call.is_none_or(|last| elapsed >= last + BETWEEN_CALLS) {
            self.last_call = Some(elapsed);
            self.progress.elapsed = elapsed;
            self.is_stopped |= !(self.on_progress)(self.progress);
            self.is_over |= self.is_stopped;
        }
    }
}

/// Random numbers: the generator `SplitMix64`.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, which is not 0; close enough to uniform.
    #[expect(clippy::cast_possible_truncation, reason = "below a number of that type")]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
