//! Chunks lent to thread caches: in use for the allocator, which does not know what is in them.

use core::num::NonZeroU64;

use super::Tables;
use crate::tables::decisions::Decision;
use crate::tables::free_target::{FreeTarget, HELD, LENT};
use crate::units::GRANULE;

impl Tables {
    /// Lends a chunk of exactly `size` bytes, a multiple of the granule; returns its address. All of it counts as
    /// requested. `None` if no free chunk fits.
    pub(crate) fn lend(&mut self, size: u64) -> Option<u64> {
        let largest_requested = self.counters.largest_requested();
        // Every remainder is split off: a magazine has chunks of one size. Not by an argument of `take`, which has the
        // same code as without caches then.
        let split_threshold = core::mem::replace(&mut self.split_threshold, GRANULE);
        let taken = self.take(size, size);
        self.split_threshold = split_threshold;
        let (address, _) = taken?;
        self.decisions.replace_last(|| Decision::Lent { address, size });
        self.counters.account_lend(size, largest_requested);
        let handle = self.live.find(&self.chunks, address)?;
        let chunk = self.chunks.get_mut(handle);
        chunk.id = NonZeroU64::new(chunk.number() | LENT);
        Some(address)
    }

    /// Frees a lent chunk of `size` bytes.
    pub(crate) fn take_back(&mut self, address: u64, size: u64) {
        let freed = self.free(address, FreeTarget::LENT);
        self.decisions.replace_last(|| Decision::TakenBack { address });
        debug_assert!(freed.is_some(), "what a cache keeps is lent");
        self.counters.account_take_back(size);
    }

    /// Turns a lent chunk into an ordinary allocation of `requested` bytes with this number, held or not.
    pub(crate) fn withdraw(&mut self, address: u64, number: u64, requested: u64) {
        let Some(handle) = self.live.find(&self.chunks, address) else { return };
        let chunk = self.chunks.get_mut(handle);
        debug_assert!(chunk.is_lent(), "what was served from a cache is lent");
        self.decisions.record(|| Decision::Withdrawn { address, id: number & !HELD });
        self.counters.account_withdraw(chunk.size, requested);
        chunk.requested = requested;
        chunk.id = NonZeroU64::new(number);
    }
}
