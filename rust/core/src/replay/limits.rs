//! Finds the smallest limit that serves a program, and a limit from which on limits are safe.
//!
//! Both searches try each multiple of a granularity from below: best fit is not monotone, so bisection would miss
//! smaller limits that serve and larger ones that fail. Two facts save most of the replays. A replay at an ample
//! limit tells from which limit on all replays are the same. And each replay tells for how many lower limits its
//! result holds (see [`super::slack`]): threads take blocks of limits from below and try each block from its end
//! down.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use super::play::ReplayError;
use super::probe::Trial;
use super::program::Program;
use super::search::run_search;
use crate::options::Options;
use crate::units::GRANULE;

/// The default granularity of [`find_limits`], in bytes.
pub const LIMIT_STEP: u64 = 64 << 10;

/// The largest [`Search::granularity`], in bytes.
pub(super) const MAX_GRANULARITY: u64 = 1 << 60;

/// Parameters of a search for limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Search {
    /// Limits to try are multiples of this, in bytes; it is itself a multiple of [`GRANULE`] up to 1 EiB.
    pub granularity: u64,
    /// The search ends after this time, except for replays in progress.
    pub time: Duration,
    /// Number of threads that replay.
    pub threads: NonZeroUsize,
}

impl Default for Search {
    /// Multiples of [`LIMIT_STEP`], one minute, one thread per core.
    fn default() -> Self {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { granularity: LIMIT_STEP, time: Duration::from_secs(60), threads }
    }
}

/// The result of a search; all limits are multiples of its granularity, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Limits {
    /// The smallest limit at which [`replay`](super::replay) refuses nothing: every lower limit down to
    /// [`Program::peak_in_granules`] was tried. For an incomplete search, the smallest one found.
    pub min_limit: u64,
    /// Every limit from here up to 1.25 times it serves. The smallest such limit if the search was complete.
    ///
    /// If regions are apart, a limit serves if replays with ascending and with descending region addresses both
    /// refuse nothing: among equal chunks best fit takes the lower address.
    pub safe_limit: u64,
    /// The limits that were not tried because time ran out.
    pub untried: Option<RangeInclusive<u64>>,
}

impl Limits {
    /// Returns whether the search tried every limit that it had to.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.untried.is_none()
    }
}

/// The progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Progress {
    /// Number of limits with a known result.
    pub known: u64,
    /// Current estimate of the number of limits to try.
    pub all: u64,
}

/// Finds the smallest limit that serves a program, and a safe one, in pools like those of [`replay`](super::replay).
///
/// The limit in `options` is ignored. The calling thread calls `on_progress` once before the search and about twenty
/// times a second during it; the search ends when it returns false.
///
/// # Errors
/// If the granularity or an option is out of range, if no limit suffices, or if `on_progress` ended the search.
///
/// # Panics
/// If `gap` is not a multiple of the granule.
pub fn find_limits(
    program: &Program,
    options: &Options,
    gap: u64,
    search: &Search,
    mut on_progress: impl FnMut(Progress) -> bool,
) -> Result<Limits, ReplayError> {
    let granularity = search.granularity;
    if !(1..=MAX_GRANULARITY).contains(&granularity) || !granularity.is_multiple_of(GRANULE) {
        return Err(ReplayError::Granularity { granularity });
    }
    if program.peak_in_granules() == 0 {
        return Ok(Limits { min_limit: 0, safe_limit: 0, untried: None });
    }
    run_search(Trial::new(program, options, gap, granularity), search, &mut on_progress)
}
