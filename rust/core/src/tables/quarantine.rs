//! Chunks in quarantine: neither in use nor free, never allocated and never merged.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{ChunkRequest, Tables};
use crate::bins::free_list::FreeChunk;
use crate::chunk::region::Region;
use crate::chunk::{Chunk, Handle};
use crate::source::Grant;
use crate::tables::free_target::FreeTarget;

impl Tables {
    /// Moves the chunk in use at `address` into quarantine until [`Tables::release_from_quarantine`]; returns its
    /// former state.
    ///
    /// Fails like [`Tables::free`].
    pub(crate) fn quarantine(&mut self, address: u64, target: FreeTarget) -> Option<(Handle, Chunk)> {
        let handle = self.live.remove(&mut self.chunks, address, target)?;
        let former = *self.chunks.get(handle);
        self.clear_owner(handle);
        self.chunks.get_mut(handle).requested = 0;
        self.counters.account_free(former.requested, former.size);
        self.quarantined.insert(handle);
        Some((handle, former))
    }

    /// Detaches the free chunks of at least `bytes` bytes from the bins, so that no request gets them.
    pub(crate) fn detach_free_chunks(&mut self, bytes: u64) -> Vec<(Handle, Grant)> {
        let mut aside = self.bins.sorted(&self.chunks);
        aside.retain(|free| free.size >= bytes);
        self.largest_detached = aside.last().map_or(0, |free| free.size);
        for &FreeChunk { size, handle, .. } in &aside {
            self.bins.remove(&mut self.chunks, handle, size);
            // Mark it as in use, so that its neighbours do not merge with it.
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

    /// Returns detached chunks to the bins.
    pub(crate) fn reattach_free_chunks(&mut self, aside: Vec<(Handle, Grant)>) {
        for (chunk, _) in aside {
            self.release_from_quarantine(chunk);
        }
        self.largest_detached = 0;
    }

    /// Returns the bytes of regions without an allocation; chunks in quarantine do not count as allocations.
    ///
    /// # Cost
    /// Linear in the number of regions; linear in the number of chunks while the quarantine is not empty.
    pub(crate) fn idle_bytes(&self) -> u64 {
        if self.quarantined.is_empty() || self.elastic.is_some() {
            return self.releasable();
        }
        let is_idle = |region: &&Region| {
            self.chunks.run(region.first).all(|(handle, chunk)| !self.is_occupied(handle, chunk))
        };
        self.regions.iter().filter(is_idle).map(|region| region.span.bytes).sum()
    }

    /// Returns whether an allocation occupies the chunk. A detached free chunk counts as free.
    pub(crate) fn is_occupied(&self, handle: Handle, chunk: &Chunk) -> bool {
        !chunk.is_free() && (chunk.requested > 0 || !self.quarantined.contains(&handle))
    }

    /// Returns the size of the largest free chunk, detached ones included; 0 if there is none.
    pub(crate) fn largest_free(&self) -> u64 {
        #[cfg(feature = "std")]
        if self.elastic.is_some() {
            return self.largest_free_in_pages();
        }
        self.bins.largest(&self.chunks).max(self.largest_detached)
    }

    /// Returns whether a free chunk, detached ones included, serves a request; in an elastic pool, with free pages.
    pub(crate) fn has_free(&self, request: ChunkRequest) -> bool {
        #[cfg(feature = "std")]
        if self.elastic.is_some() {
            return self.would_serve_in_pages(request, super::Supply::NONE);
        }
        self.bins.fits(&self.chunks, request.needed) || request.needed <= self.largest_detached
    }

    /// Frees a chunk in quarantine and merges it with its free neighbours.
    pub(crate) fn release_from_quarantine(&mut self, handle: Handle) {
        self.quarantined.remove(&handle);
        let chunk = self.chunks.get_mut(handle);
        let Chunk { size, prev, next, .. } = *chunk;
        chunk.id = None;
        self.merge_with_neighbours(handle, size, prev, next);
    }
}
