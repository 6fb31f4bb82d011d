//! The allocator: best fit among free chunks, merge on every free, regions adopted and given up.
//!
//! It works on `&mut self` and calls no source. A pool asks the source and hands the answer in here.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::bins::Bins;
use crate::chunk::{Chunk, ChunkTable, Handle};
use crate::claim::Claim;
use crate::error::GrantFault;
use crate::free_list::FreeChunk;
use crate::growth::{Growth, Plan};
use crate::history::{self, History};
use crate::live::LiveTable;
use crate::owner::{OwnerId, Owners};
use crate::policy::SplitRule;
use crate::region::{Place, Region, Regions};
use crate::source::Grant;
use crate::stats::{Counters, Stats};
use crate::units::{GRANULE, MAX_BYTES, align_up, round_up};

pub(crate) use outlook::Supply;
pub(crate) use request::Request;
pub(crate) use vacate::Vacated;

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

/// The most an allocator may reserve, in bytes, and who said so.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) set_by: Arc<str>,
}

/// Chunks, bins, regions and counters of one pool.
#[derive(Debug)]
pub(crate) struct Allocator {
    pub(crate) chunks: ChunkTable,
    pub(crate) bins: Bins,
    pub(crate) live: LiveTable,
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    pub(crate) owners: Owners,
    pub(crate) history: History,
    /// Chunks in quarantine: held by no allocation, and not free yet.
    pub(crate) quarantined: BTreeSet<Handle>,
    /// Size of the largest free chunk that is set aside for a moment, 0 if none is.
    aside: u64,
    growth: Growth,
    pub(crate) limit: u64,
    limit_set_by: Arc<str>,
    split_rule: SplitRule,
    split_threshold: u64,
    joins_regions: bool,
}

impl Allocator {
    /// An allocator without regions.
    pub(crate) fn new(limit: Limit, growth: bool, split_rule: SplitRule, joins_regions: bool) -> Self {
        let Limit { bytes: limit, set_by: limit_set_by } = limit;
        Self {
            chunks: ChunkTable::default(),
            bins: Bins::default(),
            live: LiveTable::default(),
            regions: Regions::default(),
            counters: Counters::default(),
            owners: Owners::default(),
            history: History::default(),
            quarantined: BTreeSet::new(),
            aside: 0,
            growth: Growth::new(limit, growth),
            limit,
            limit_set_by,
            split_rule,
            split_threshold: split_rule.threshold(limit),
            joins_regions,
        }
    }

    /// Changes limit and growth from here on; what is reserved is at most the limit.
    pub(crate) fn change(&mut self, limit: Limit, growth: bool) {
        self.history.end();
        self.growth.change(limit.bytes, growth);
        self.split_threshold = self.split_rule.threshold(limit.bytes);
        Limit { bytes: self.limit, set_by: self.limit_set_by } = limit;
    }

    pub(crate) fn limit(&self) -> Limit {
        Limit { bytes: self.limit, set_by: Arc::clone(&self.limit_set_by) }
    }

    pub(crate) fn joins_regions(&self) -> bool {
        self.joins_regions
    }

    pub(crate) fn grows(&self) -> bool {
        self.growth.is_on()
    }

    /// Serves a request from what is held: the best fit, split if the rest is worth keeping.
    ///
    /// None when no free chunk fits. Nothing changed then.
    #[inline]
    pub(crate) fn try_allocate(&mut self, request: Request) -> Option<Allocation> {
        // Two numbers come back in registers. What has just been written would be slow to read again.
        let (address, size) = self.take(request.bytes, request.needed)?;
        let address = address.get();
        if request.held {
            self.set_held(address, true);
        }
        if let Some(owner) = request.owner {
            self.give_to(owner, address, request);
        }
        Some(Allocation { address, size, requested: request.bytes, id: self.counters.allocs() })
    }

    /// Puts a request of `bytes` bytes into a chunk of `needed` bytes or more; returns its address, which is never 0,
    /// and its size.
    fn take(&mut self, bytes: u64, needed: u64) -> Option<(NonZeroU64, u64)> {
        let FreeChunk { mut size, address, handle } = self.bins.take_best_fit(&mut self.chunks, needed)?;
        let rest = size - needed;
        if rest >= needed.min(self.split_threshold) {
            size = needed;
            let new = self.chunks.split(handle, size, rest);
            self.bins.insert(&mut self.chunks, new, rest);
        }
        let id = self.counters.account_allocate(bytes, size);
        if id <= history::LONGEST + 1 {
            self.history.allocated(id, needed);
        }
        let link = self.live.push(&mut self.chunks, handle, address);
        let chunk = self.chunks.get_mut(handle);
        chunk.requested = bytes;
        chunk.id = NonZeroU64::new(id);
        chunk.link = link;
        NonZeroU64::new(address).map(|address| (address, size))
    }

    /// Takes back the chunk at `address` and merges it with its free neighbours.
    ///
    /// # Errors
    /// When no chunk in use starts there, or the claim is not good for it. Nothing changed.
    pub(crate) fn free(&mut self, address: u64, claim: Claim) -> Option<()> {
        let handle = self.live.remove(&mut self.chunks, address, claim)?;
        // A way of its own while anybody owns anything: a call in between would cost all others their registers.
        if self.owners.own_any() {
            self.free_owned(handle);
        } else {
            self.free_chunk(handle);
        }
        Some(())
    }

    /// Makes a chunk that is in the live table no more a free one.
    #[inline(always)]
    fn free_chunk(&mut self, handle: Handle) {
        let chunk = self.chunks.get_mut(handle);
        let Chunk { size, requested, prev, next, id, .. } = *chunk;
        chunk.id = None;
        if self.counters.allocs() <= history::LONGEST {
            self.history.freed(id);
        }
        self.counters.account_free(requested, size);
        self.merge_with_neighbours(handle, size, prev, next);
    }

    #[cold]
    #[inline(never)]
    fn free_owned(&mut self, handle: Handle) {
        self.disown(handle);
        self.free_chunk(handle);
    }

    /// Makes a chunk that is about to be free nobody's.
    fn disown(&mut self, handle: Handle) {
        if let Some(owner) = self.owners.take(handle) {
            self.owners.account_free(owner, round_up(self.chunks.get(handle).requested));
        }
    }

    /// Changes what was asked for at `address`, if the chunk holds that and no cap is broken; returns the bytes that
    /// may be used there.
    pub(crate) fn resize_in_place(&mut self, address: u64, bytes: u64) -> Option<u64> {
        let handle = self.live.find(&self.chunks, address)?;
        // Whether it fits depends on how large the chunk is, which other settings change.
        self.history.end();
        let chunk = self.chunks.get_mut(handle);
        if bytes > chunk.size {
            return Some(chunk.size);
        }
        if let Some(owner) = self.owners.of(handle) {
            let (before, after) = (round_up(chunk.requested), round_up(bytes));
            if self.owners.cap_broken(owner, after.saturating_sub(before)).is_some() {
                return Some(before);
            }
            self.owners.account_resize(owner, before, after);
        }
        self.counters.account_resize(chunk.requested, bytes);
        chunk.requested = bytes;
        Some(chunk.size)
    }

    /// Notes whose a new allocation is.
    #[cold]
    fn give_to(&mut self, owner: OwnerId, address: u64, request: Request) {
        if let Some(handle) = self.live.find(&self.chunks, address) {
            self.owners.give(handle, owner);
            self.owners.account_allocate(owner, request.rounded());
            self.owners.account_settled(owner, request.rounded());
        }
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

    pub(crate) fn stats(&self) -> Stats {
        self.counters.stats(self.limit, self.largest_free(), self.live.len(), self.regions.len())
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

mod holding;
mod outlook;
mod quarantine;
mod refusal;
mod request;
#[cfg(test)]
mod tests;
mod vacate;
