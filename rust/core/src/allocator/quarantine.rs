//! Chunks that are neither in use nor free: nobody gets them, and no neighbour merges with them.

use std::num::NonZeroU64;

use super::Allocator;
use crate::chunk::{Chunk, Handle};
use crate::claim::Claim;
use crate::free_list::FreeChunk;
use crate::region::Region;
use crate::source::Grant;

impl Allocator {
    /// Takes the chunk at `address` back without making it free: it is in quarantine until
    /// [`Allocator::release_from_quarantine`]. Returns it as it was.
    ///
    /// # Errors
    /// As [`Allocator::free`].
    pub(crate) fn quarantine(&mut self, address: u64, claim: Claim) -> Option<(Handle, Chunk)> {
        let handle = self.live.remove(&mut self.chunks, address, claim)?;
        let former = *self.chunks.get(handle);
        self.disown(handle);
        self.chunks.get_mut(handle).requested = 0;
        self.counters.account_free(former.requested, former.size);
        self.quarantined.insert(handle);
        Some((handle, former))
    }

    /// Takes the free chunks of at least `bytes` bytes out of the bins, so that nobody gets them.
    pub(crate) fn set_free_aside(&mut self, bytes: u64) -> Vec<(Handle, Grant)> {
        let mut aside = self.bins.sorted(&self.chunks);
        aside.retain(|free| free.size >= bytes);
        self.aside = aside.last().map_or(0, |free| free.size);
        for &FreeChunk { size, handle, .. } in &aside {
            self.bins.remove(&mut self.chunks, handle, size);
            // In use, as far as its neighbours are concerned.
            let chunk = self.chunks.get_mut(handle);
            chunk.id = Some(NonZeroU64::MAX);
            chunk.requested = 0;
            self.quarantined.insert(handle);
        }
        aside
            .into_iter()
            .map(|free| (free.handle, Grant { address: free.address, bytes: free.size }))
            .collect()
    }

    /// Makes what was set aside free again.
    pub(crate) fn take_back_aside(&mut self, aside: Vec<(Handle, Grant)>) {
        for (chunk, _) in aside {
            self.release_from_quarantine(chunk);
        }
        self.aside = 0;
    }

    /// Bytes of the regions that no allocation is in, also where a chunk is in quarantine.
    ///
    /// # Cost
    /// Linear in the regions, and while anything is in quarantine in the chunks.
    pub(crate) fn idle_bytes(&self) -> u64 {
        if self.quarantined.is_empty() {
            return self.releasable();
        }
        let is_idle = |region: &&Region| {
            self.chunks.run(region.first).all(|(handle, chunk)| !self.is_occupied(handle, chunk))
        };
        self.regions.iter().filter(is_idle).map(|region| region.span.bytes).sum()
    }

    /// Whether an allocation holds the chunk. One that is set aside for a moment is as good as free.
    pub(crate) fn is_occupied(&self, handle: Handle, chunk: &Chunk) -> bool {
        !chunk.is_free() && (chunk.requested > 0 || !self.quarantined.contains(&handle))
    }

    /// Size of the largest free chunk, also if it is set aside for a moment; 0 if there is none.
    pub(crate) fn largest_free(&self) -> u64 {
        self.bins.largest(&self.chunks).max(self.aside)
    }

    /// Whether a free chunk of at least `needed` bytes is there, or is set aside for a moment.
    pub(crate) fn has_free(&self, needed: u64) -> bool {
        self.bins.fits(&self.chunks, needed) || needed <= self.aside
    }

    /// Makes a chunk in quarantine free, and merges it with its free neighbours.
    pub(crate) fn release_from_quarantine(&mut self, handle: Handle) {
        self.quarantined.remove(&handle);
        let chunk = self.chunks.get_mut(handle);
        let Chunk { size, prev, next, .. } = *chunk;
        chunk.id = None;
        self.merge_with_neighbours(handle, size, prev, next);
    }
}
