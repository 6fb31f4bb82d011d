//! Held allocations: an ordinary free, by address or by number, does not free them.

use core::num::NonZeroU64;

use super::Tables;
use crate::chunk::Chunk;
use crate::tables::decisions::Decision;
use crate::tables::free_target::{FreeTarget, HELD};

impl Tables {
    /// Returns the chunk in use at `address`.
    pub(crate) fn chunk_at(&self, address: u64) -> Option<&Chunk> {
        Some(self.chunks.get(self.live.find(&self.chunks, address)?))
    }

    /// Sets or clears the held bit of the allocation at `address`.
    #[inline(always)]
    pub(crate) fn set_held(&mut self, address: u64, held: bool) {
        if let Some(handle) = self.live.find(&self.chunks, address) {
            self.decisions.record(|| Decision::Held { address, held });
            let chunk = self.chunks.get_mut(handle);
            chunk.id = NonZeroU64::new(chunk.number() | if held { HELD } else { 0 });
        }
    }

    /// Returns whether a free with this target fails only because the allocation at `address` is held.
    pub(crate) fn is_blocked_by_hold(&self, address: u64, target: FreeTarget) -> bool {
        self.chunk_at(address).is_some_and(|chunk| target.is_blocked_by_hold(chunk.id))
    }
}
