//! Allocations that are held: neither their address alone nor their number frees them.

use std::num::NonZeroU64;

use super::Allocator;
use crate::chunk::Chunk;
use crate::claim::{Claim, HELD};

impl Allocator {
    /// The chunk in use at `address`.
    pub(crate) fn chunk_at(&self, address: u64) -> Option<&Chunk> {
        Some(self.chunks.get(self.live.find(&self.chunks, address)?))
    }

    /// Holds the allocation at `address`, or lets go of it.
    #[inline(always)]
    pub(crate) fn set_held(&mut self, address: u64, held: bool) {
        if let Some(handle) = self.live.find(&self.chunks, address) {
            let chunk = self.chunks.get_mut(handle);
            chunk.id = NonZeroU64::new(chunk.number() | if held { HELD } else { 0 });
        }
    }

    /// Whether a free is refused because the allocation at `address` is held.
    pub(crate) fn is_kept_off(&self, address: u64, claim: Claim) -> bool {
        self.chunk_at(address).is_some_and(|chunk| claim.is_kept_off(chunk.id))
    }
}
