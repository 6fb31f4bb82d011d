//! How much smaller a limit could be without any difference to a replay.
//!
//! The limit decides how long the last region is, and nothing else: those before it have the size of the growth
//! step. A smaller limit makes the free chunk at the end of the last region shorter. As long as each comparison with
//! the size of that chunk has the same result, each block lies where it was, and what is refused stays refused.
//! Everything that the comparisons need follows from the grants and from where the blocks lie, because free
//! neighbours are merged at once: a free chunk reaches from one live block, or its region's start, to the next.

use std::collections::BTreeMap;

use crate::allocator::Allocation;
use crate::source::{Call, Grant, Log};
use crate::units::{GRANULE, round_up};

/// Watches one replay.
pub(super) struct Slack {
    limit: u64,
    /// By how much the limits that are tried differ: a smaller slack is of no use.
    granularity: u64,
    split_threshold: u64,
    joins_regions: bool,
    /// Ends of live blocks, by address.
    live: BTreeMap<u64, u64>,
    /// Regions in the order in which they were granted.
    regions: Vec<Grant>,
    reserved: u64,
    /// Calls of the source that were not looked at yet.
    log: Log,
    found: Found,
}

/// By how much the limit could be smaller, from what was seen so far.
enum Found {
    /// The limit has cut no region yet: down to what is reserved.
    Uncut,
    /// The last region ends where the limit does: by this many bytes.
    Bytes(u64),
    /// Not known, or of no use: regions went back, or the source declined, or the slack is too small.
    Unknown,
}

impl Slack {
    /// Of a pool with this limit, a multiple of the granule; the split threshold is the same at every limit.
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
            found: Found::Uncut,
        }
    }

    /// Notes an allocation, and the calls of the source that it led to.
    pub(super) fn allocated(&mut self, allocation: &Allocation) {
        if allocation.address == 0 || matches!(self.found, Found::Unknown) {
            return;
        }
        let needed = round_up(allocation.requested);
        self.note_calls(needed);
        if let Found::Bytes(slack) = self.found {
            let slack = slack.min(self.slack_of(allocation, needed));
            if slack < self.granularity {
                self.found = Found::Unknown;
                self.live.clear();
                return;
            }
            self.found = Found::Bytes(slack);
        }
        self.live.insert(allocation.address, allocation.address + allocation.size);
    }

    /// Notes a refusal.
    pub(super) fn refused(&mut self) {
        // Without a call, no chunk was large enough and the limit left no room; a smaller limit leaves less of both.
        if !self.log.take().is_empty() {
            self.found = Found::Unknown;
        }
    }

    /// Notes a free.
    pub(super) fn freed(&mut self, address: u64) {
        self.live.remove(&address);
    }

    /// The smallest limit at which the replay is the same.
    pub(super) fn down_to(&self) -> u64 {
        match self.found {
            Found::Uncut => self.reserved,
            Found::Bytes(slack) => self.limit - slack,
            Found::Unknown => self.limit,
        }
    }

    /// Notes the calls of the source for a request of `needed` bytes.
    fn note_calls(&mut self, needed: u64) {
        for call in self.log.take() {
            let Call::Reserve { answer: Some(grant), .. } = call else {
                self.found = Found::Unknown;
                return;
            };
            self.reserved += grant.bytes;
            match self.regions.last_mut() {
                Some(last) if self.joins_regions && last.end() == grant.address => last.bytes += grant.bytes,
                _ => self.regions.push(grant),
            }
            if self.reserved == self.limit {
                // Cut, or as if it were. Cut by more than this there would be no room for the request.
                self.found = Found::Bytes(grant.bytes - needed);
            }
        }
    }

    /// By how much the chunk at the end of the last region could be shorter, and `allocation` be where it is.
    fn slack_of(&self, allocation: &Allocation, needed: u64) -> u64 {
        let Some(&last) = self.regions.last() else { return 0 };
        let end_of_live = self.live.range(last.address..last.end()).next_back().map(|(_, &end)| end);
        let start = end_of_live.unwrap_or(last.address);
        let size = last.end() - start;
        if size < needed {
            // A shorter one would not fit either.
            return u64::MAX;
        }
        if allocation.address == start {
            // It was the best fit and would be so as long as it fits. A split must stay one; the rest of a chunk that
            // was not split may become shorter.
            let rest = size - needed;
            let kept = if allocation.size == needed { needed.min(self.split_threshold) } else { 0 };
            return rest.saturating_sub(kept);
        }
        // It must stay longer than the chunk that was the best fit: among equals the lower address decides.
        size.saturating_sub(self.chunk_at(allocation.address) + GRANULE)
    }

    /// Size of the free chunk that starts at `address`.
    fn chunk_at(&self, address: u64) -> u64 {
        let end_of = |region: &Grant| (region.address..region.end()).contains(&address).then(|| region.end());
        let region_end = self.regions.iter().find_map(end_of).unwrap_or(address);
        let next = self.live.range(address..).next().map_or(region_end, |(&next, _)| next);
        next.min(region_end) - address
    }
}
