//! Replays a pool's history under another limit or policy, to find settings that serve its last request.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::policy::{Policy, SplitRule};
use crate::report::history::Event;
use crate::source::{Grant, PageSizes};
use crate::tables::free_target::FreeTarget;
use crate::tables::{ChunkRequest, Limit, Tables};
use crate::units::{GRANULE, MAX_BYTES, round_up};

/// Limits above the smallest candidate are tried by these fractions of it: 1/64 more, 1/16 more, up to twice.
const FRACTIONS: [u64; 5] = [64, 16, 4, 2, 1];

/// The number of bisections between a limit that fails and one that serves.
const HALVINGS: usize = 2;

/// The middle of the made-up address range.
const START: u64 = 1 << 62;

/// A program and the settings of its runs.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own, by name")]
pub(crate) struct Rerun {
    /// The events; the last one is the refused request.
    pub(crate) events: Vec<Event>,
    /// The settings of the first run.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    pub(crate) growth: bool,
    pub(crate) trim_on_oom: bool,
    pub(crate) fraction: f64,
    /// Whether adjacent regions are joined. Each grant then starts where the last one ended.
    pub(crate) joins_regions: bool,
    /// The most bytes that the source grants at once.
    pub(crate) capacity: u64,
    /// Whether `capacity` is exact. If not, limits above it are not judged.
    pub(crate) capacity_is_exact: bool,
    /// Bytes lost inside chunks at the end of the first run.
    pub(crate) internal_fragmentation: u64,
    /// Requested bytes of the live allocations at its end.
    pub(crate) live: u64,
    /// The page sizes of the source; `None` if the pool cannot be elastic, or is.
    pub(crate) page_sizes: Option<PageSizes>,
}

impl Rerun {
    /// Returns whether every request is certainly served under this limit and policy.
    ///
    /// The choice between equal chunks depends on addresses, and separate regions may lie in any order: both
    /// ascending and descending addresses must serve.
    pub(crate) fn serves(&self, limit: u64, policy: Policy) -> bool {
        if limit > self.capacity && !self.capacity_is_exact {
            return false;
        }
        let rising: &[bool] = if self.joins_regions { &[true] } else { &[true, false] };
        rising.iter().all(|&rising| self.serves_with(rising, limit, policy))
    }

    /// Returns the largest page size of an elastic pool that certainly serves every request under the same limit: one
    /// whose pages, wherever the live chunks lie, suffice at every time.
    pub(crate) fn page_size(&self) -> Option<u64> {
        let PageSizes { granule, default, .. } = self.page_sizes?;
        // Without growth the whole limit is committed at first.
        if !self.growth && self.capacity < self.limit {
            return None;
        }
        let most = self.limit.min(self.capacity);
        let halves = |&page_size: &u64| (page_size / 2 >= granule.max(GRANULE)).then_some(page_size / 2);
        core::iter::successors(Some(default), halves)
            .find(|&page_size| self.fits_pages(page_size, most / page_size))
    }

    /// Returns whether the live chunks never touch more than `most` pages, with those of a request at a new place.
    fn fits_pages(&self, page_size: u64, most: u64) -> bool {
        // A chunk starts at a multiple of the granule, so that it touches this many pages at most.
        let touched = |needed: u64| needed.saturating_add(page_size - GRANULE).div_ceil(page_size);
        let (mut live, mut chunks) = (0_u64, Vec::new());
        self.events.iter().all(|&event| match event {
            Event::Allocated(needed) => {
                let fits = live.saturating_add(needed.div_ceil(page_size)) <= most;
                chunks.push(touched(needed));
                live = live.saturating_add(touched(needed));
                fits
            }
            Event::Freed(id) => {
                let freed = usize::try_from(id).ok().and_then(|id| chunks.get(id.checked_sub(1)?));
                freed.is_some_and(|&pages| {
                    live -= pages;
                    true
                })
            }
        })
    }

    /// Returns a limit of at least `least` bytes under which every request is served, with the policy of the first
    /// run. Not minimal: only some limits are tried.
    pub(crate) fn limit_from(&self, least: u64) -> Option<u64> {
        if self.serves(least, self.policy) {
            return Some(least);
        }
        let mut fails = least;
        for fraction in FRACTIONS {
            let limit = round_up(least.saturating_add(least / fraction).min(MAX_BYTES));
            if self.serves(limit, self.policy) {
                return Some(self.bisect_limit(fails, limit));
            }
            fails = limit;
        }
        None
    }

    fn bisect_limit(&self, mut fails: u64, mut serves: u64) -> u64 {
        for _ in 0..HALVINGS {
            let middle = round_up(fails.midpoint(serves));
            if self.serves(middle, self.policy) { serves = middle } else { fails = middle }
        }
        serves
    }

    fn serves_with(&self, rising: bool, limit: u64, policy: Policy) -> bool {
        let split_rule = SplitRule { policy, fraction: self.fraction };
        let limit = Limit { bytes: limit, set_by: Arc::from("") };
        let allocator = Tables::new(limit, self.growth, split_rule, self.joins_regions);
        let mut run = Run { allocator, next: START, rising, left: self.capacity };
        let mut addresses = Vec::new();
        self.events.iter().all(|&event| match event {
            Event::Allocated(needed) => {
                let served = run.allocate(needed, self.trim_on_oom);
                addresses.extend(served);
                served.is_some()
            }
            Event::Freed(id) => {
                let address = usize::try_from(id).ok().and_then(|id| addresses.get(id.checked_sub(1)?));
                let target = NonZeroU64::new(id).map(FreeTarget::number);
                address
                    .zip(target)
                    .is_some_and(|(&address, target)| run.allocator.free(address, target).is_some())
            }
        })
    }
}

/// One run over a source of adjacent made-up addresses.
struct Run {
    allocator: Tables,
    next: u64,
    rising: bool,
    /// Bytes that the source can still grant.
    left: u64,
}

impl Run {
    /// Serves a request as a pool does: from a free chunk, by growth, or by growth after a release.
    fn allocate(&mut self, needed: u64, trim_on_oom: bool) -> Option<u64> {
        let request = ChunkRequest::new(needed, 1)?;
        if let Some(served) = self.allocator.try_allocate(request).or_else(|| self.grow(request)) {
            return Some(served.address);
        }
        if !trim_on_oom || !self.allocator.release_would_help(needed) {
            return None;
        }
        self.left += self.allocator.take_free_regions().iter().map(|region| region.bytes).sum::<u64>();
        Some(self.grow(request)?.address)
    }

    fn grow(&mut self, request: ChunkRequest) -> Option<crate::Allocation> {
        let plan = self.allocator.plan(request)?;
        let bytes = plan.sizes().find(|&bytes| bytes <= self.left)?;
        let address = if self.rising { self.next } else { self.next.checked_sub(bytes)? };
        self.next = if self.rising { self.next.checked_add(bytes)? } else { address };
        let grant = Grant { address, bytes };
        if self.allocator.grant_fault(grant).is_some() {
            return None;
        }
        self.left -= bytes;
        self.allocator.adopt(grant, &plan);
        self.allocator.try_allocate(request)
    }
}

#[cfg(test)]
mod tests;
