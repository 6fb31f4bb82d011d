//! The smallest limit that serves a program, and one from which on limits are safe.
//!
//! Both are found by trying each multiple of a granularity from below: best fit is not monotone, so bisection would
//! miss smaller limits that serve and larger ones that do not. Two facts save most of the replays. One replay at
//! an ample limit says from which limit on all replays are the same. And each replay can say for how many limits
//! below its own the answer holds (see [`super::slack`]): threads take blocks of limits from below, and try those of a
//! block from its end down.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use super::play::ReplayError;
use super::probe::Trial;
use super::program::Program;
use super::search::run_search;
use crate::pool::Options;
use crate::units::GRANULE;

/// The limits that [`find_limits`] tries are multiples of this, in bytes, unless told otherwise.
pub const LIMIT_STEP: u64 = 64 << 10;

/// The largest [`Search::granularity`], in bytes.
pub(super) const MAX_GRANULARITY: u64 = 1 << 60;

/// How a search for limits is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// The limits that are tried are its multiples, in bytes; itself a multiple of [`GRANULE`] up to 1 EiB.
    pub granularity: u64,
    /// The search ends after this time at the latest, but for the replays that are under way.
    pub time: Duration,
    /// Threads that replay.
    pub threads: NonZeroUsize,
}

impl Default for Search {
    /// Multiples of [`LIMIT_STEP`], a minute, one thread for each core.
    fn default() -> Self {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { granularity: LIMIT_STEP, time: Duration::from_secs(60), threads }
    }
}

/// What a search found; all limits are multiples of its granularity, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The smallest limit at which [`replay`](super::replay) refuses nothing: every smaller one down to
    /// [`Program::peak_in_granules`] was tried. If the search was not complete, the smallest that was found.
    pub min_limit: u64,
    /// Every limit from here up to 1.25 times this serves. It is the smallest such limit if the search was complete.
    ///
    /// Where regions lie apart, a limit serves if a replay refuses nothing with addresses of regions that rise and
    /// with addresses that fall: of equal chunks best fit uses the one with the lower address.
    pub safe_limit: u64,
    /// Where time ran out, the limits that were not tried and may serve or not.
    pub untried: Option<RangeInclusive<u64>>,
}

impl Limits {
    /// Whether every limit was tried that has to be.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.untried.is_none()
    }
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Limits that are known to serve or not.
    pub known: u64,
    /// Limits to know, as far as can be told by now.
    pub all: u64,
}

/// Finds the smallest limit that serves a program, and a safe one, in pools as those of [`replay`](super::replay).
///
/// The limit of `options` does not matter. While the search runs, `watch` is called on the calling thread some twenty
/// times a second, and once before; when it returns false the search ends.
///
/// # Errors
/// When the granularity or an option is out of range, when no limit is enough, or when `watch` ended the search.
///
/// # Panics
/// When `gap` is not a multiple of the granule.
pub fn find_limits(
    program: &Program,
    options: &Options,
    gap: u64,
    search: &Search,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<Limits, ReplayError> {
    let granularity = search.granularity;
    if !(1..=MAX_GRANULARITY).contains(&granularity) || !granularity.is_multiple_of(GRANULE) {
        return Err(ReplayError::Granularity { granularity });
    }
    if program.peak_in_granules() == 0 {
        return Ok(Limits { min_limit: 0, safe_limit: 0, untried: None });
    }
    run_search(Trial::new(program, options, gap, granularity), search, &mut watch)
}
