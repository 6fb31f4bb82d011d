//! What the allocator could serve, or could serve under another limit, given what the source has: arithmetic only.

use super::Allocator;
use crate::units::MAX_BYTES;

/// What a source could grant, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Supply {
    /// Now.
    pub(crate) now: u64,
    /// In addition, once the pools that share the source have been trimmed.
    pub(crate) reclaimable: u64,
    /// Whether it grants what was released before.
    grants_released: bool,
}

impl Supply {
    /// Whatever the limit allows.
    pub(crate) const UNLIMITED: Self = Self::new(u64::MAX, 0, true);
    /// Nothing.
    pub(crate) const NONE: Self = Self::new(0, 0, false);

    pub(crate) const fn new(now: u64, reclaimable: u64, grants_released: bool) -> Self {
        Self { now, reclaimable, grants_released }
    }

    /// The same after the release of `released` bytes.
    pub(crate) fn after_release(self, released: u64) -> Self {
        let more = if self.grants_released { released } else { 0 };
        Self { now: self.now.saturating_add(more), ..self }
    }
}

/// A moment at which the source is asked.
#[derive(Debug, Clone, Copy)]
struct Try {
    /// Reserved bytes.
    reserved: u64,
    /// What the source could grant.
    available: u64,
}

impl Allocator {
    /// Whether a request for a chunk of `needed` bytes would be served.
    pub(crate) fn would_serve(&self, needed: u64, trim_on_oom: bool, supply: Supply) -> bool {
        self.has_free(needed)
            || self.tries(trim_on_oom, supply).any(|Try { reserved, available }| {
                self.growth.serves(needed, reserved, self.limit, available)
            })
    }

    /// The largest chunk that a request could get, in bytes; 0 if none.
    pub(crate) fn largest_servable(&self, trim_on_oom: bool, supply: Supply) -> u64 {
        let grown = self
            .tries(trim_on_oom, supply)
            .map(|Try { reserved, available }| self.growth.largest_served(reserved, self.limit, available));
        grown.max().unwrap_or(0).max(self.largest_free())
    }

    /// The smallest limit above this one under which a chunk of `needed` bytes would be served, if any is.
    ///
    /// Just so much leaves room for a region of exactly that length.
    pub(crate) fn smallest_limit(&self, needed: u64, trim_on_oom: bool, supply: Supply) -> Option<u64> {
        let Try { reserved, available } = self.tries(trim_on_oom, supply).last()?;
        let limit = reserved.checked_add(needed)?;
        (limit > self.limit && limit <= MAX_BYTES && needed <= available).then_some(limit)
    }

    /// When a pool asks its source for one request: as things are, then after a trim of its own regions if that is
    /// allowed, then after a trim of the pools beside it.
    fn tries(&self, trim_on_oom: bool, supply: Supply) -> impl Iterator<Item = Try> {
        let reserved = self.counters.reserved();
        let releasable = if trim_on_oom { self.releasable() } else { 0 };
        let first = Try { reserved, available: supply.now };
        let trimmed =
            Try { reserved: reserved - releasable, available: supply.after_release(releasable).now };
        let reclaimed = Try { available: trimmed.available.saturating_add(supply.reclaimable), ..trimmed };
        [first, trimmed, reclaimed].into_iter()
    }
}
