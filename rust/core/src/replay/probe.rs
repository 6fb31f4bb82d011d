//! Replays at one limit, up to the first refusal.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::play::{ReplayError, ReplayObserver, run};
use super::program::Program;
use super::slack::Slack;
use crate::options::Options;
use crate::policy::SplitRule;
use crate::pool::Pool;
use crate::source::{AddressSpace, DescendingAddresses, Log, PageSource, Recording, RegionSource};
use crate::tables::Allocation;
use crate::units::MAX_BYTES;

/// Number of events between two checks of the stop flag.
const EVENTS_BETWEEN_CHECKS: usize = 1 << 16;

/// A program and the parameters of the pools it is replayed in.
pub(super) struct Trial<'a> {
    program: &'a Program,
    /// The options except the limit.
    options: Options,
    joins_regions: bool,
    gap: u64,
    granularity: u64,
    /// The page size of elastic pools; not validated before a first replay.
    page_size: Option<u64>,
    /// Ends all replays when set.
    pub(super) stop: AtomicBool,
}

/// The result of the replays at one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrialResult {
    /// Whether a replay refuses nothing.
    pub(super) serves: bool,
    /// Whether a replay with descending region addresses refuses nothing either.
    pub(super) serves_descending: bool,
    /// All limits from this one up to the tried one have the same result.
    pub(super) down_to: u64,
}

impl<'a> Trial<'a> {
    pub(super) fn new(program: &'a Program, options: &Options, gap: u64, granularity: u64) -> Self {
        let joins_regions = options.joins_regions.unwrap_or(gap == 0);
        // The first refusal ends a replay, so no other thread could free.
        let options = options.clone().wait(Duration::ZERO).joins_regions(joins_regions);
        let default_page_size = || AddressSpace::new(gap).page_size();
        let page_size = options.elastic.then(|| options.page_size.unwrap_or_else(default_page_size));
        Self { program, options, joins_regions, gap, granularity, page_size, stop: AtomicBool::new(false) }
    }

    /// Returns the smallest limit that may serve the program: an elastic pool has at least a page.
    pub(super) fn smallest(&self) -> u64 {
        self.program.peak_in_granules().max(self.page_size.unwrap_or(0))
    }

    /// Returns a limit of elastic pools from which on every limit serves the program, `None` for other pools: an elastic
    /// pool refuses only if pages of live chunks and of the request are above the limit.
    ///
    /// # Panics
    /// If the page size is 0: a replay says so before.
    pub(super) fn ample_for_pages(&self) -> Option<u64> {
        self.page_size.map(|page_size| self.program.most_pages(page_size).saturating_mul(page_size))
    }

    /// Returns the largest limit for which the addresses suffice if regions are few.
    pub(super) fn largest(&self) -> u64 {
        (MAX_BYTES - AddressSpace::START).saturating_sub(self.gap)
    }

    /// Tries one limit, a multiple of the granule. Returns `None` if the stop flag is set.
    ///
    /// With `track` the replay tracks its slack: the result then covers lower limits too, and takes up to five times
    /// as long.
    pub(super) fn at(&self, limit: u64, track: bool) -> Result<Option<TrialResult>, ReplayError> {
        let Some((serves, down_to)) = self.over(AddressSpace::new(self.gap), limit, track)? else {
            return Ok(None);
        };
        // Best fit takes the lower address among equal chunks. If regions are apart, that depends on the order in
        // which the source places them.
        if !serves || !self.options.growth || self.options.elastic || (self.joins_regions && self.gap == 0) {
            return Ok(Some(TrialResult { serves, serves_descending: serves, down_to }));
        }
        let falling = self.over(DescendingAddresses::new(self.gap), limit, track)?;
        Ok(falling.map(|(serves_descending, also_down_to)| TrialResult {
            serves,
            serves_descending,
            down_to: down_to.max(also_down_to),
        }))
    }

    /// Replays until the first refusal; returns whether there is none, and the lowest limit for which that holds.
    fn over(
        &self,
        source: impl RegionSource + 'static,
        limit: u64,
        track: bool,
    ) -> Result<Option<(bool, u64)>, ReplayError> {
        let options = self.options.clone().limit(limit);
        let mut watch = StopAtRefusal { stop: &self.stop, slack: None, refused: false };
        let pool = match self.constant_split_threshold() {
            Some(threshold) if track => {
                let log = Log::default();
                watch.slack =
                    Some(Slack::new(limit, self.granularity, threshold, self.joins_regions, log.clone()));
                Pool::new(Recording::new(source, log), options)?
            }
            _ => Pool::new(source, options)?,
        };
        let flow = run(&pool, self.program, &mut watch).map_err(ReplayError::Alloc)?;
        if flow.is_break() && !watch.refused {
            return Ok(None);
        }
        let down_to = watch.slack.map_or(limit, |slack| slack.down_to());
        Ok(Some((!watch.refused, down_to)))
    }

    /// Returns the split threshold, unless it depends on the limit. Elastic pools have none, and their decisions depend on
    /// the limit otherwise.
    fn constant_split_threshold(&self) -> Option<u64> {
        if self.options.elastic {
            return None;
        }
        let rule = SplitRule { policy: self.options.policy, fraction: self.options.fragmentation_fraction };
        // The threshold is monotone in the limit.
        Some(rule.threshold(1)).filter(|&threshold| threshold == rule.threshold(MAX_BYTES))
    }
}

/// Ends a replay at the first refusal.
struct StopAtRefusal<'a> {
    stop: &'a AtomicBool,
    slack: Option<Slack>,
    refused: bool,
}

impl ReplayObserver for StopAtRefusal<'_> {
    fn allocated(&mut self, event: usize, allocation: &Allocation) -> ControlFlow<()> {
        if let Some(slack) = &mut self.slack {
            slack.allocated(allocation);
        }
        if event.is_multiple_of(EVENTS_BETWEEN_CHECKS) && self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn refused(&mut self, _event: usize) -> ControlFlow<()> {
        if let Some(slack) = &mut self.slack {
            slack.refused();
        }
        self.refused = true;
        ControlFlow::Break(())
    }

    fn freed(&mut self, _event: usize, address: u64) {
        if let Some(slack) = &mut self.slack {
            slack.freed(address);
        }
    }
}
