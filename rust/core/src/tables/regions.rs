//! Regions: planned, adopted, and removed when they are wholly free.

use alloc::vec::Vec;

use super::{ChunkRequest, Tables};
use crate::chunk::region::{Place, Region};
use crate::chunk::{ChunkTable, Handle};
use crate::error::GrantFault;
use crate::policy::growth::Plan;
use crate::source::Grant;
use crate::tables::decisions::Decision;
use crate::units::{GRANULE, MAX_BYTES};

impl Tables {
    /// Plans one round of growth; returns `None` if the limit leaves no room for the request.
    pub(crate) fn plan(&mut self, request: ChunkRequest) -> Option<Plan> {
        let plan = self.growth.plan(request.needed, self.counters.reserved(), self.limit)?;
        self.decisions.record(|| Decision::Planned(request.needed));
        Some(plan)
    }

    /// Returns the reason why a grant cannot become a region, if there is one.
    pub(crate) fn grant_fault(&self, grant: Grant) -> Option<GrantFault> {
        if !grant.address.is_multiple_of(GRANULE) || !grant.bytes.is_multiple_of(GRANULE) {
            return Some(GrantFault::Misaligned);
        }
        let end = grant.address.checked_add(grant.bytes);
        if (grant.address == 0 && !self.is_zero_based) || end.is_none_or(|end| end > MAX_BYTES) {
            return Some(GrantFault::OutOfRange);
        }
        if self.regions.place(grant).is_none() {
            return Some(GrantFault::Overlap);
        }
        // Within a region it would not be handed back: its address belongs to that one.
        (grant.bytes == 0).then_some(GrantFault::Empty)
    }

    /// Turns a valid grant into a new region, or joins it to the region it touches, and adds the free chunk.
    pub(crate) fn adopt(&mut self, grant: Grant, plan: &Plan) {
        self.growth.granted(plan);
        if plan.is_arena() {
            self.place_arena(grant);
        }
        self.decisions.record(|| Decision::Adopted(grant));
        self.counters.account_reserve(grant.bytes);
        let chunk = self.chunks.insert(grant.address, grant.bytes);
        match self.regions.place(grant) {
            // The arena of a plan stays apart, so that no other chunk begins in it and ends behind it.
            Some(Place::After(index))
                if self.joins_regions && !plan.is_arena() && !self.is_arena(self.regions.get(index).span) =>
            {
                let last = self.last_chunk(self.regions.get(index).first);
                self.chunks.link(last, chunk);
                self.regions.lengthen(index, grant.bytes);
            }
            Some(Place::After(index)) => self.regions.insert(index + 1, Region { span: grant, first: chunk }),
            Some(Place::Between(index)) => self.regions.insert(index, Region { span: grant, first: chunk }),
            None => unreachable!("`grant_fault` found no overlap under the same lock"),
        }
        let prev = self.chunks.get(chunk).prev;
        self.merge_with_neighbours(chunk, grant.bytes, prev, None);
    }

    /// Removes all wholly free regions and returns their spans in address order, for release to the source.
    pub(crate) fn take_free_regions(&mut self) -> Vec<Grant> {
        self.decisions.record(|| Decision::RegionsRemoved);
        let chunks = &self.chunks;
        let gone = self.regions.take(|region| is_wholly_free(chunks, region));
        for region in &gone {
            self.bins.remove(&mut self.chunks, region.first, region.span.bytes);
            self.chunks.remove(region.first);
            self.counters.account_release(region.span.bytes);
        }
        let gone: Vec<_> = gone.into_iter().map(|region| region.span).collect();
        self.lose_arena(&gone);
        gone
    }

    /// Returns the bytes in wholly free regions.
    ///
    /// # Cost
    /// Linear in the number of regions.
    pub(crate) fn releasable(&self) -> u64 {
        #[cfg(feature = "std")]
        if self.elastic.is_some() {
            return self.releasable_in_pages();
        }
        let free = self.regions.iter().filter(|region| is_wholly_free(&self.chunks, region));
        free.map(|region| region.span.bytes).sum()
    }

    /// Returns whether releasing all wholly free regions would leave room for `needed` bytes under the limit.
    pub(crate) fn release_would_help(&self, needed: u64) -> bool {
        let releasable = self.releasable();
        releasable > 0 && needed <= self.limit - self.counters.reserved() + releasable
    }

    /// Returns the last chunk of a region by a linear walk; joins are rare, as regions double.
    fn last_chunk(&self, first: Handle) -> Handle {
        self.chunks.run(first).last().map_or(first, |(handle, _)| handle)
    }
}

fn is_wholly_free(chunks: &ChunkTable, region: &Region) -> bool {
    let first = chunks.get(region.first);
    first.is_free() && first.next.is_none()
}
