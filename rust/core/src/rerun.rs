//! Plays the history of a pool again under another limit or policy: is its last request served then?

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::allocator::{Allocator, Limit, Request};
use crate::claim::Claim;
use crate::history::Event;
use crate::policy::{Policy, SplitRule};
use crate::source::Grant;
use crate::units::{MAX_BYTES, round_up};

/// By which shares of the smallest limit in question larger ones are tried: a 64th more, a 16th more, up to twice.
const SHARES: [u64; 5] = [64, 16, 4, 2, 1];

/// How often the gap between a limit that fails and one that serves is halved.
const HALVINGS: usize = 2;

/// The middle of the made-up addresses.
const START: u64 = 1 << 62;

/// A program, and the settings of its runs.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own, by name")]
pub(crate) struct Rerun {
    /// What the program does; the last event is the request in question.
    pub(crate) events: Vec<Event>,
    /// The settings of the first run.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    pub(crate) growth: bool,
    pub(crate) trim_on_oom: bool,
    pub(crate) fraction: f64,
    /// Whether regions that touch are joined. If so, each grant starts where the last one ended.
    pub(crate) joins_regions: bool,
    /// What the source can have out at once, in bytes.
    pub(crate) capacity: u64,
    /// Whether it cannot have more out. If it may, a limit above the capacity is not judged.
    pub(crate) capacity_is_exact: bool,
    /// Bytes lost inside chunks at the end of the first run.
    pub(crate) lost: u64,
    /// Bytes that the allocations held at its end asked for.
    pub(crate) live: u64,
}

impl Rerun {
    /// Whether every request is served for sure under this limit and policy.
    ///
    /// Which of two equal chunks is taken depends on addresses, and regions that are not joined may lie in any order:
    /// the requests have to be served with rising and with falling addresses.
    pub(crate) fn serves(&self, limit: u64, policy: Policy) -> bool {
        if limit > self.capacity && !self.capacity_is_exact {
            return false;
        }
        let rising: &[bool] = if self.joins_regions { &[true] } else { &[true, false] };
        rising.iter().all(|&rising| self.serves_with(rising, limit, policy))
    }

    /// A limit of at least `least` bytes under which every request is served, with the policy of the first run. Limits
    /// between the ones that are tried are not: a smaller one may serve, too.
    pub(crate) fn limit_from(&self, least: u64) -> Option<u64> {
        if self.serves(least, self.policy) {
            return Some(least);
        }
        let mut fails = least;
        for share in SHARES {
            let limit = round_up(least.saturating_add(least / share).min(MAX_BYTES));
            if self.serves(limit, self.policy) {
                return Some(self.narrowed(fails, limit));
            }
            fails = limit;
        }
        None
    }

    fn narrowed(&self, mut fails: u64, mut serves: u64) -> u64 {
        for _ in 0..HALVINGS {
            let middle = round_up(fails.midpoint(serves));
            if self.serves(middle, self.policy) { serves = middle } else { fails = middle }
        }
        serves
    }

    fn serves_with(&self, rising: bool, limit: u64, policy: Policy) -> bool {
        let split_rule = SplitRule { policy, fraction: self.fraction };
        let limit = Limit { bytes: limit, set_by: Arc::from("") };
        let allocator = Allocator::new(limit, self.growth, split_rule, self.joins_regions);
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
                let claim = NonZeroU64::new(id).map(Claim::number);
                address
                    .zip(claim)
                    .is_some_and(|(&address, claim)| run.allocator.free(address, claim).is_some())
            }
        })
    }
}

/// One run of the program, over a source of made-up addresses, each grant beside the last one.
struct Run {
    allocator: Allocator,
    next: u64,
    rising: bool,
    /// Bytes that the source still has.
    left: u64,
}

impl Run {
    /// Serves a request as a pool does: from what is held, from a new region, or from one after a release.
    fn allocate(&mut self, needed: u64, trim_on_oom: bool) -> Option<u64> {
        let request = Request::new(needed, 1)?;
        if let Some(served) = self.allocator.try_allocate(request).or_else(|| self.grow(request)) {
            return Some(served.address);
        }
        if !trim_on_oom || !self.allocator.release_would_help(needed) {
            return None;
        }
        self.left += self.allocator.give_up_free_regions().iter().map(|region| region.bytes).sum::<u64>();
        Some(self.grow(request)?.address)
    }

    fn grow(&mut self, request: Request) -> Option<crate::Allocation> {
        let plan = self.allocator.plan(request)?;
        let bytes = plan.sizes().find(|&bytes| bytes <= self.left)?;
        let address = if self.rising { self.next } else { self.next.checked_sub(bytes)? };
        self.next = if self.rising { self.next.checked_add(bytes)? } else { address };
        let grant = Grant { address, bytes };
        if self.allocator.fault_of(grant).is_some() {
            return None;
        }
        self.left -= bytes;
        self.allocator.adopt(grant, &plan);
        self.allocator.try_allocate(request)
    }
}

#[cfg(test)]
mod tests;
