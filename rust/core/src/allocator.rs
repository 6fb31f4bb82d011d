//! The allocator: best fit among free chunks, merge on every free, regions adopted and given up.
//!
//! It works on `&mut self` and calls no source. A pool asks the source and hands the answer in here.

use std::num::NonZeroU64;

use crate::bins::Bins;
use crate::chunk::{Chunk, ChunkTable, Handle};
use crate::error::{GrantFault, OutOfMemory, Verdict};
use crate::free_list::FreeChunk;
use crate::growth::{Growth, Plan};
use crate::live::LiveTable;
use crate::region::{Place, Region, Regions};
use crate::source::Grant;
use crate::stats::{Counters, Stats};
use crate::units::{GRANULE, MAX_BYTES, align_up, round_up, share_of};

/// A remainder of this many bytes is kept, however large the request, unless a fraction is set.
const SPLIT_THRESHOLD: u64 = 128 << 20;

/// What a caller holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// First byte of the chunk, a multiple of the granule; 0 for a request of zero bytes.
    pub address: u64,
    /// Bytes of the chunk: the request in whole granules, or more where a split was not worth it.
    pub size: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Counts up from 1 with every allocation of the pool and is never used again; 0 for zero bytes.
    pub id: u64,
}

/// A request in bytes, and in the bytes a chunk must have to serve it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) bytes: u64,
    pub(crate) needed: u64,
}

/// Chunks, bins, regions and counters of one pool.
#[derive(Debug)]
pub(crate) struct Allocator {
    pub(crate) chunks: ChunkTable,
    pub(crate) bins: Bins,
    pub(crate) live: LiveTable,
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    growth: Growth,
    pub(crate) limit: u64,
    split_threshold: u64,
    joins_regions: bool,
}

impl Allocator {
    /// An allocator without regions.
    pub(crate) fn new(limit: u64, growth: bool, fragmentation_fraction: f64, joins_regions: bool) -> Self {
        let threshold = share_of(limit, fragmentation_fraction);
        Self {
            chunks: ChunkTable::default(),
            bins: Bins::default(),
            live: LiveTable::default(),
            regions: Regions::default(),
            counters: Counters::default(),
            growth: Growth::new(limit, growth),
            limit,
            // Chunk sizes are whole granules, so 1 already means "split on any remainder"; 0 would cut off
            // chunks of zero bytes.
            split_threshold: if fragmentation_fraction > 0.0 { threshold.max(1) } else { SPLIT_THRESHOLD },
            joins_regions,
        }
    }

    /// Serves a request from what is held: the best fit, split if the rest is worth keeping.
    ///
    /// None when no free chunk fits. Nothing changed then.
    #[inline]
    pub(crate) fn try_allocate(&mut self, request: Request) -> Option<Allocation> {
        // Two numbers come back in registers. What has just been written would be slow to read again.
        let (address, size) = self.take(request)?;
        let address = address.get();
        Some(Allocation { address, size, requested: request.bytes, id: self.counters.allocs() })
    }

    /// Puts the request into a chunk; returns its address, which is never 0, and its size.
    fn take(&mut self, request: Request) -> Option<(NonZeroU64, u64)> {
        let FreeChunk { mut size, address, handle } =
            self.bins.take_best_fit(&mut self.chunks, request.needed)?;
        let rest = size - request.needed;
        if rest >= request.needed.min(self.split_threshold) {
            size = request.needed;
            let new = self.chunks.split(handle, size, rest);
            self.bins.insert(&mut self.chunks, new, rest);
        }
        let id = self.counters.account_allocate(request.bytes, size);
        let link = self.live.push(&mut self.chunks, handle, address);
        let chunk = self.chunks.get_mut(handle);
        chunk.requested = request.bytes;
        chunk.id = NonZeroU64::new(id);
        chunk.link = link;
        NonZeroU64::new(address).map(|address| (address, size))
    }

    /// Takes back the chunk at `address` and merges it with its free neighbours.
    ///
    /// With an `id`, only the allocation of that number: the address may have a new owner by now.
    ///
    /// # Errors
    /// When no chunk in use starts there. Nothing changed.
    pub(crate) fn free(&mut self, address: u64, id: Option<NonZeroU64>) -> Option<()> {
        let handle = self.live.remove(&mut self.chunks, address, id)?;
        let chunk = self.chunks.get_mut(handle);
        let Chunk { size, requested, prev, next, .. } = *chunk;
        chunk.requested = 0;
        chunk.id = None;
        self.counters.account_free(requested, size);
        self.merge_with_neighbours(handle, size, prev, next);
        Some(())
    }

    /// Whether the allocation of number `id` is at `address`.
    pub(crate) fn is_live(&self, address: u64, id: Option<NonZeroU64>) -> bool {
        self.live.find(&self.chunks, address).is_some_and(|handle| self.chunks.get(handle).id == id)
    }

    /// Changes what was asked for at `address`, if the chunk holds that; returns the bytes of the chunk.
    pub(crate) fn resize_in_place(&mut self, address: u64, bytes: u64) -> Option<u64> {
        let handle = self.live.find(&self.chunks, address)?;
        let chunk = self.chunks.get_mut(handle);
        if bytes <= chunk.size {
            self.counters.account_resize(chunk.requested, bytes);
            chunk.requested = bytes;
        }
        Some(chunk.size)
    }

    /// Frees so far.
    pub(crate) fn frees(&self) -> u64 {
        self.counters.allocs() - self.live.len() as u64
    }

    /// Plans a round of asking the source; none if the limit leaves no room.
    pub(crate) fn plan(&mut self, request: Request) -> Option<Plan> {
        self.growth.plan(request.needed, self.counters.reserved(), self.limit)
    }

    /// What is wrong with a grant, if anything.
    pub(crate) fn fault_of(&self, grant: Grant) -> Option<GrantFault> {
        if !grant.address.is_multiple_of(GRANULE) || !grant.bytes.is_multiple_of(GRANULE) {
            return Some(GrantFault::Misaligned);
        }
        let end = grant.address.checked_add(grant.bytes);
        if grant.address == 0 || end.is_none_or(|end| end > MAX_BYTES) {
            return Some(GrantFault::OutOfRange);
        }
        self.regions.place(grant).is_none().then_some(GrantFault::Overlap)
    }

    /// Makes a region of a sound grant, or lengthens the one it touches; either way one more free chunk.
    pub(crate) fn adopt(&mut self, grant: Grant, plan: &Plan) {
        self.growth.granted(plan);
        self.counters.account_reserve(grant.bytes);
        let chunk = self.chunks.insert(grant.address, grant.bytes);
        match self.regions.place(grant) {
            Some(Place::After(index)) if self.joins_regions => {
                let last = self.last_chunk(self.regions.get(index).first);
                self.chunks.link(last, chunk);
                self.regions.lengthen(index, grant.bytes);
            }
            Some(Place::After(index)) => self.regions.insert(index + 1, Region { span: grant, first: chunk }),
            Some(Place::Between(index)) => self.regions.insert(index, Region { span: grant, first: chunk }),
            None => unreachable!("`fault_of` found no overlap under the same lock"),
        }
        let prev = self.chunks.get(chunk).prev;
        self.merge_with_neighbours(chunk, grant.bytes, prev, None);
    }

    /// Takes out every wholly free region, for the source to have back, in address order.
    pub(crate) fn give_up_free_regions(&mut self) -> Vec<Grant> {
        let chunks = &self.chunks;
        let gone = self.regions.take(|region| is_wholly_free(chunks, region));
        for region in &gone {
            self.bins.remove(&mut self.chunks, region.first, region.span.bytes);
            self.chunks.remove(region.first);
            self.counters.account_release(region.span.bytes);
        }
        gone.into_iter().map(|region| region.span).collect()
    }

    /// Bytes in wholly free regions.
    ///
    /// # Cost
    /// Linear in the regions.
    pub(crate) fn releasable(&self) -> u64 {
        let free = self.regions.iter().filter(|region| is_wholly_free(&self.chunks, region));
        free.map(|region| region.span.bytes).sum()
    }

    /// Whether releasing every wholly free region would leave room for `needed` bytes under the limit.
    pub(crate) fn release_would_help(&self, needed: u64) -> bool {
        let releasable = self.releasable();
        releasable > 0 && needed <= self.limit - self.counters.reserved() + releasable
    }

    /// Whether the limit leaves room for a region of `needed` bytes now.
    pub(crate) fn may_grow(&self, needed: u64) -> bool {
        needed <= self.limit - self.counters.reserved()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.stats(self.limit, self.bins.largest(&self.chunks), self.live.len(), self.regions.len())
    }

    /// The refusal of a request, with the figures of this moment.
    pub(crate) fn refusal(&self, request: Request, source_refused: bool) -> OutOfMemory {
        let Stats { in_use, reserved, limit, free, largest_free, num_live, .. } = self.stats();
        let verdict = if request.needed > limit {
            Verdict::Limit
        } else if source_refused {
            Verdict::Source
        } else if request.needed > limit - in_use {
            Verdict::Full
        } else {
            Verdict::Fragmented
        };
        let Request { bytes: requested, needed } = request;
        let trim_helps = false;
        OutOfMemory {
            requested,
            needed,
            limit,
            in_use,
            reserved,
            free,
            largest_free,
            num_live,
            verdict,
            trim_helps,
        }
    }

    /// Merges a free chunk of `size` bytes that is in no bin with its free neighbours, and puts what comes of it
    /// into its bin.
    #[inline(always)]
    fn merge_with_neighbours(
        &mut self,
        mut handle: Handle,
        mut size: u64,
        prev: Option<Handle>,
        next: Option<Handle>,
    ) {
        if let Some(right) = next
            && let Chunk { id: None, size: more, .. } = *self.chunks.get(right)
        {
            self.bins.remove(&mut self.chunks, right, more);
            size += more;
            self.chunks.merge(handle, right, size);
        }
        if let Some(left) = prev
            && let Chunk { id: None, size: more, .. } = *self.chunks.get(left)
        {
            self.bins.remove(&mut self.chunks, left, more);
            size += more;
            self.chunks.merge(left, handle, size);
            handle = left;
        }
        self.bins.insert(&mut self.chunks, handle, size);
    }

    /// The last chunk of a region, found by walking: regions are joined once in a doubling.
    fn last_chunk(&self, first: Handle) -> Handle {
        self.chunks.run(first).last().map_or(first, |(handle, _)| handle)
    }
}

fn is_wholly_free(chunks: &ChunkTable, region: &Region) -> bool {
    let first = chunks.get(region.first);
    first.is_free() && first.next.is_none()
}

impl Allocation {
    /// What a request of zero bytes gets: no address, nothing to free.
    pub(crate) const NOTHING: Self = Self { address: 0, size: 0, requested: 0, id: 0 };

    /// The first multiple of `alignment` in the chunk, for an allocation that was made with it.
    #[must_use]
    pub fn aligned_address(&self, alignment: u64) -> u64 {
        align_up(self.address, alignment)
    }

    /// Bytes of the chunk from `address`, one within it, to its end.
    #[must_use]
    pub fn size_from(&self, address: u64) -> u64 {
        self.address + self.size - address
    }
}

impl Request {
    /// A request of `bytes` bytes at a multiple of `alignment`; above the granule that takes padding.
    ///
    /// None above [`MAX_BYTES`].
    pub(crate) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let padded = bytes.checked_add(alignment.saturating_sub(GRANULE))?;
        (padded <= MAX_BYTES).then(|| Self { bytes, needed: round_up(padded) })
    }
}

#[cfg(test)]
mod tests;
