//! Predicts which requests the allocator can serve, under this limit or another one, for a given supply of the
//! source.

use super::{ChunkRequest, Tables};
use crate::units::MAX_BYTES;

/// The bytes that a source could grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Supply {
    /// Available now, in bytes.
    pub(crate) now: u64,
    /// Available in addition after a trim of the sibling pools, in bytes.
    pub(crate) reclaimable: u64,
    /// Whether the source grants released memory again.
    grants_released: bool,
    /// Whether the source grants an elastic pool addresses without memory.
    pub(crate) grants_addresses: bool,
}

impl Supply {
    /// A source that grants everything the limit allows.
    pub(crate) const UNLIMITED: Self = Self::new(u64::MAX, 0, true).with_addresses(true);
    /// A source that grants nothing.
    pub(crate) const NONE: Self = Self::new(0, 0, false);

    /// Creates a supply without addresses for elastic pools.
    pub(crate) const fn new(now: u64, reclaimable: u64, grants_released: bool) -> Self {
        Self { now, reclaimable, grants_released, grants_addresses: false }
    }

    pub(crate) const fn with_addresses(self, grants_addresses: bool) -> Self {
        Self { grants_addresses, ..self }
    }

    /// Returns all bytes that the source could grant.
    pub(crate) fn total(self) -> u64 {
        self.now.saturating_add(self.reclaimable)
    }

    /// Returns the supply after the release of `released` bytes.
    pub(crate) fn after_release(self, released: u64) -> Self {
        let more = if self.grants_released { released } else { 0 };
        Self { now: self.now.saturating_add(more), ..self }
    }
}

/// One moment at which a pool calls its source.
#[derive(Debug, Clone, Copy)]
struct GrowthAttempt {
    /// Reserved bytes at that moment.
    reserved: u64,
    /// Bytes that the source could grant at that moment.
    available: u64,
}

impl Tables {
    /// Returns whether a request would be served.
    pub(crate) fn would_serve(&self, request: ChunkRequest, trim_on_oom: bool, supply: Supply) -> bool {
        if self.elastic.is_some() {
            return self.would_serve_in_pages(request, supply);
        }
        let needed = request.needed;
        self.has_free(request)
            || self.growth_attempts(trim_on_oom, supply).any(|GrowthAttempt { reserved, available }| {
                self.growth.serves(needed, reserved, self.limit, available)
                    || self.arena_serves(needed, reserved, available)
            })
    }

    /// Returns the bytes of the largest request with the alignment and the margins of `request` that would be served; 0 if
    /// none.
    pub(crate) fn largest_servable(&self, request: ChunkRequest, trim_on_oom: bool, supply: Supply) -> u64 {
        if self.elastic.is_some() {
            return self.largest_servable_in_pages(request.alignment, supply);
        }
        let grown = self.growth_attempts(trim_on_oom, supply).map(|GrowthAttempt { reserved, available }| {
            let grown = self.growth.largest_served(reserved, self.limit, available);
            grown.max(self.servable_in_arena(reserved, available))
        });
        let chunk = grown.max().unwrap_or(0).max(self.largest_free());
        chunk.saturating_sub(request.needed - request.rounded())
    }

    /// Returns the smallest limit above the current one under which a request would be served.
    ///
    /// In a pool of regions that limit leaves room for a region of exactly the needed size.
    pub(crate) fn smallest_limit(
        &self,
        request: ChunkRequest,
        trim_on_oom: bool,
        supply: Supply,
    ) -> Option<u64> {
        if self.elastic.is_some() {
            return self.smallest_limit_in_pages(request, supply);
        }
        let needed = request.needed;
        let GrowthAttempt { reserved, available } = self.growth_attempts(trim_on_oom, supply).last()?;
        let limit = reserved.checked_add(needed)?;
        (limit > self.limit && limit <= MAX_BYTES && needed <= available).then_some(limit)
    }

    /// Returns the moments at which a pool calls its source for one request: first as is, then after a trim of its
    /// own regions if allowed, then after a trim of the sibling pools.
    fn growth_attempts(&self, trim_on_oom: bool, supply: Supply) -> impl Iterator<Item = GrowthAttempt> {
        let reserved = self.counters.reserved();
        let releasable = if trim_on_oom { self.releasable() } else { 0 };
        let first = GrowthAttempt { reserved, available: supply.now };
        let trimmed = GrowthAttempt {
            reserved: reserved - releasable,
            available: supply.after_release(releasable).now,
        };
        let reclaimed =
            GrowthAttempt { available: trimmed.available.saturating_add(supply.reclaimable), ..trimmed };
        [first, trimmed, reclaimed].into_iter()
    }
}
