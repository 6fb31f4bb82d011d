//! Computes how much lower a limit could be without any change to a replay.
//!
//! The limit only decides the length of the last region; earlier regions have the size of the growth step. A lower
//! limit shortens the free chunk at the end of the last region. While every comparison with the size of that chunk
//! has the same result, all blocks keep their addresses and all refusals stay. The comparisons follow from the grants
//! and the addresses of the blocks: free neighbours are merged at once, so a free chunk extends from one live block,
//! or its region's start, to the next.

use std::collections::BTreeMap;

use crate::source::{Call, Grant, Log};
use crate::tables::Allocation;
use crate::units::{GRANULE, round_up};

/// Tracks one replay.
pub(super) struct Slack {
    limit: u64,
    /// Distance of the limits to try: a smaller slack is useless.
    granularity: u64,
    split_threshold: u64,
    joins_regions: bool,
    /// Ends of live blocks, by address.
    live: BTreeMap<u64, u64>,
    /// Regions in the order of their grants.
    regions: Vec<Grant>,
    reserved: u64,
    /// Calls of the source that were not processed yet.
    log: Log,
    bound: SlackBound,
}

/// How much lower the limit could be, according to the events so far.
enum SlackBound {
    /// The limit has not shortened any region yet: down to the reserved bytes.
    NotLimited,
    /// The last region ends at the limit: down by this many bytes.
    Bytes(u64),
    /// Unknown or useless: regions were released, the source declined, or the slack is too small.
    Unknown,
}

impl Slack {
    /// Creates the tracker for a pool with this limit, a multiple of the granule; the split threshold must not depend
    /// on the limit.
    pub(super) fn new(
        limit: u64,
        granularity: u64,
        split_threshold: u64,
        joins_regions: bool,
        log: Log,
    ) -> Self {
        Self {
            limit,
            granularity,
            split_threshold,
            joins_regions,
            live: BTreeMap::new(),
            regions: Vec::new(),
            reserved: 0,
            log,
            bound: SlackBound::NotLimited,
        }
    }

    /// Processes an allocation and the source calls that it caused.
    pub(super) fn allocated(&mut self, allocation: &Allocation) {
        if allocation.address == 0 || matches!(self.bound, SlackBound::Unknown) {
            return;
        }
        let needed = round_up(allocation.requested);
        self.process_calls(needed);
        if let SlackBound::Bytes(slack) = self.bound {
            let slack = slack.min(self.slack_of(allocation, needed));
            if slack < self.granularity {
                self.bound = SlackBound::Unknown;
                self.live.clear();
                return;
            }
            self.bound = SlackBound::Bytes(slack);
        }
        self.live.insert(allocation.address, allocation.address + allocation.size);
    }

    /// Processes a refusal.
    pub(super) fn refused(&mut self) {
        // Without a source call, no chunk was large enough and the limit left no room; a lower limit leaves less of
        // both.
        if !self.log.take().is_empty() {
            self.bound = SlackBound::Unknown;
        }
    }

    /// Processes a free.
    pub(super) fn freed(&mut self, address: u64) {
        self.live.remove(&address);
    }

    /// Returns the lowest limit at which the replay is the same.
    pub(super) fn down_to(&self) -> u64 {
        match self.bound {
            SlackBound::NotLimited => self.reserved,
            SlackBound::Bytes(slack) => self.limit - slack,
            SlackBound::Unknown => self.limit,
        }
    }

    /// Processes the source calls of a request of `needed` bytes.
    fn process_calls(&mut self, needed: u64) {
        for call in self.log.take() {
            let Call::Reserve { answer: Some(grant), .. } = call else {
                self.bound = SlackBound::Unknown;
                return;
            };
            self.reserved += grant.bytes;
            match self.regions.last_mut() {
                Some(last) if self.joins_regions && last.end() == grant.address => last.bytes += grant.bytes,
                _ => self.regions.push(grant),
            }
            if self.reserved == self.limit {
                // The limit shortened the region, or just did not. Shortened by more than this it would not hold the
                // request.
                self.bound = SlackBound::Bytes(grant.bytes - needed);
            }
        }
    }

    /// Returns how much shorter the last region's final chunk could be while `allocation` stays in place.
    fn slack_of(&self, allocation: &Allocation, needed: u64) -> u64 {
        let Some(&last) = self.regions.last() else { return 0 };
        let end_of_live = self.live.range(last.address..last.end()).next_back().map(|(_, &end)| end);
        let start = end_of_live.unwrap_or(last.address);
        let size = last.end() - start;
        if size < needed {
            // A shorter chunk would not fit either.
            return u64::MAX;
        }
        if allocation.address == start {
            // It was the best fit and stays so while it fits. A split must remain a split; the rest of an unsplit
            // chunk may shrink.
            let rest = size - needed;
            let kept = if allocation.size == needed { needed.min(self.split_threshold) } else { 0 };
            return rest.saturating_sub(kept);
        }
        // It must stay longer than the best fit: among equals the lower address wins.
        size.saturating_sub(self.chunk_at(allocation.address) + GRANULE)
    }

    /// Returns the size of the free chunk that starts at `address`.
    fn chunk_at(&self, address: u64) -> u64 {
        let end_of = |region: &Grant| (region.address..region.end()).contains(&address).then(|| region.end());
        let region_end = self.regions.iter().find_map(end_of).unwrap_or(address);
        let next = self.live.range(address..).next().map_or(region_end, |(&next, _)| next);
        next.min(region_end) - address
    }
}
