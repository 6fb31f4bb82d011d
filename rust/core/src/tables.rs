//! The tables of an allocator: best-fit allocation, merging on every free, and region bookkeeping.
//!
//! They work on `&mut self` and never call a source. Their owner calls the source and passes each grant to
//! [`Tables::adopt`].
//!
//! Longer than 300 lines: the path of an allocation and that of a free, which are read and measured as one.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::num::NonZeroU64;

use crate::bins::Bins;
use crate::bins::free_list::FreeChunk;
use crate::chunk::live::LiveTable;
use crate::chunk::region::{RegionId, Regions};
use crate::chunk::{Chunk, ChunkTable, Handle};
use crate::policy::SplitRule;
use crate::policy::growth::Growth;
use crate::report::history::{self, History};
use crate::stats::{CacheFigures, Counters, Stats};
use crate::tables::decisions::{Decision, Decisions};
use crate::tables::free_target::{FreeTarget, HELD};
use crate::tables::owner::{OwnerId, Owners};
use crate::units::{GRANULE, round_up};

pub(crate) use elastic::Elastic;
#[cfg(feature = "std")]
pub(crate) use elastic::plan::{PagePlan, Planned};
#[cfg(feature = "std")]
pub(crate) use feasibility::Supply;
use following::Follower;
#[cfg(feature = "std")]
pub(crate) use free_plan::FreePlan;
pub(crate) use request::ChunkRequest;
pub(crate) use resizing::Tail;

/// The chunk of a block, as the block records it.
pub(crate) struct Placed {
    pub(crate) address: u64,
    pub(crate) size: NonZeroU64,
    pub(crate) id: u64,
    pub(crate) region: RegionId,
}

/// A served request: address, chunk size, requested size and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// First byte: a multiple of the granule and of the requested alignment. For a request of zero bytes 0, or
    /// `u64::MAX` if the source grants addresses from 0 on.
    pub address: u64,
    /// Size of the chunk in bytes: the request rounded up to granules, or more where the split rule kept the chunk
    /// whole.
    pub size: u64,
    /// Requested size in bytes.
    pub requested: u64,
    /// Number of the allocation: counts up from 1 within the pool and is never reused; 0 for zero bytes.
    pub id: u64,
}

/// The most bytes an allocator may reserve, and the setting that defines the limit.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) set_by: Arc<str>,
}

/// The chunks, bins, regions, owners and counters of one pool.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) chunks: ChunkTable,
    pub(crate) bins: Bins,
    pub(crate) live: LiveTable,
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    pub(crate) owners: Owners,
    pub(crate) history: History,
    pub(crate) decisions: Decisions,
    /// The pages of an elastic pool; `None` in others.
    pub(crate) elastic: Option<Elastic>,
    /// The plan that the pool follows; `None` in others.
    following: Option<Box<Follower>>,
    /// Chunks in quarantine: neither in use nor free.
    pub(crate) quarantined: BTreeSet<Handle>,
    /// Size of the largest free chunk that is temporarily detached from the bins; 0 if none is.
    largest_detached: u64,
    growth: Growth,
    pub(crate) limit: u64,
    limit_set_by: Arc<str>,
    split_rule: SplitRule,
    split_threshold: u64,
    joins_regions: bool,
    /// Requests with a larger alignment are no plain ones: 0 in elastic pools and those with a plan, where none is.
    largest_plain_alignment: u64,
    /// Whether a region may start at address 0.
    pub(crate) is_zero_based: bool,
}

impl Tables {
    /// Creates an allocator without regions.
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
            decisions: Decisions::default(),
            elastic: None,
            following: None,
            quarantined: BTreeSet::new(),
            largest_detached: 0,
            growth: Growth::new(limit, growth),
            limit,
            limit_set_by,
            split_rule,
            split_threshold: split_rule.threshold(limit),
            joins_regions,
            largest_plain_alignment: GRANULE,
            is_zero_based: false,
        }
    }

    /// Changes limit and growth for future growth. The reserved bytes must not exceed the new limit.
    pub(crate) fn change(&mut self, limit: Limit, growth: bool) {
        self.history.end();
        self.growth.change(limit.bytes, growth);
        self.decisions.record(|| Decision::Changed { limit: limit.bytes, growth });
        self.split_threshold = self.split_rule.threshold(limit.bytes);
        Limit { bytes: self.limit, set_by: self.limit_set_by } = limit;
        self.set_page_limit();
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

    /// Serves a request from a free chunk: takes the best fit and splits it if the split rule says so.
    ///
    /// Returns `None`, without any change, if no free chunk fits.
    #[inline]
    pub(crate) fn try_allocate(&mut self, request: ChunkRequest) -> Option<Allocation> {
        // `take` returns two integers in registers; reading the freshly written chunk back would stall.
        let taken = if request.alignment > self.largest_plain_alignment {
            self.take_specially(request.bytes, request.needed, request.alignment)?
        } else {
            self.take(request.bytes, request.needed)?
        };
        Some(self.allocation(request, taken))
    }

    /// Serves a request of `bytes` bytes in a chunk of at least `needed` bytes, at any granule, inside its caller; returns
    /// its region, too.
    #[inline(always)]
    pub(crate) fn try_place(&mut self, bytes: u64, needed: u64) -> Option<Placed> {
        let (address, size) = if GRANULE > self.largest_plain_alignment {
            self.take_specially(bytes, needed, GRANULE)?
        } else {
            self.take(bytes, needed)?
        };
        Some(Placed { address, size, id: self.counters.allocs(), region: self.regions.region_of(address) })
    }

    /// Takes an aligned chunk, one with pages, or a planned one.
    // The numbers are passed in registers, a request would be passed in memory.
    #[inline(never)]
    fn take_specially(&mut self, bytes: u64, needed: u64, alignment: u64) -> Option<(u64, NonZeroU64)> {
        if self.elastic.is_some() {
            self.take_committed(bytes, needed, alignment)
        } else {
            self.take_elsewhere(bytes, needed, alignment)
        }
    }

    #[inline(never)]
    fn take_elsewhere(&mut self, bytes: u64, needed: u64, alignment: u64) -> Option<(u64, NonZeroU64)> {
        let request = ChunkRequest { alignment, ..ChunkRequest::for_chunk(bytes, needed) };
        if self.following.is_some() { self.take_planned(request) } else { self.take_aligned(request) }
    }

    /// Makes the tables those of an elastic pool.
    pub(crate) fn set_elastic(&mut self, elastic: Elastic) {
        self.elastic = Some(elastic);
        self.set_page_limit();
        self.largest_plain_alignment = 0;
        self.owners.look_at_every_free();
    }

    /// Returns the allocation of a request in the chunk that was taken for it.
    #[inline(always)]
    fn allocation(&mut self, request: ChunkRequest, (address, size): (u64, NonZeroU64)) -> Allocation {
        if request.held {
            self.set_held(address, true);
        }
        if let Some(owner) = request.owner {
            self.set_owner(owner, address, request);
        }
        Allocation { address, size: size.get(), requested: request.bytes, id: self.counters.allocs() }
    }

    /// Puts a request of `bytes` bytes into a free chunk of at least `needed` bytes; returns the chunk's address and
    /// its size.
    fn take(&mut self, bytes: u64, needed: u64) -> Option<(u64, NonZeroU64)> {
        let chunk = self.bins.take_best_fit(&mut self.chunks, needed)?;
        self.occupy(chunk, bytes, needed)
    }

    /// Puts a request into a chunk that is in no bin, split if the split rule says so.
    #[inline(always)]
    fn occupy(&mut self, chunk: FreeChunk, bytes: u64, needed: u64) -> Option<(u64, NonZeroU64)> {
        let FreeChunk { mut size, address, handle } = chunk;
        let rest = size - needed;
        if rest >= needed.min(self.split_threshold) {
            size = needed;
            let new = self.chunks.split(handle, size, rest);
            self.bins.insert(&mut self.chunks, new, rest);
        }
        self.hand_over(FreeChunk { size, address, handle }, bytes, needed)
    }

    /// Makes a chunk that is in no bin the one of a request.
    #[inline(always)]
    fn hand_over(&mut self, chunk: FreeChunk, bytes: u64, needed: u64) -> Option<(u64, NonZeroU64)> {
        let FreeChunk { size, address, handle } = chunk;
        let id = self.counters.account_allocate(bytes, size);
        self.decisions.record(|| Decision::Allocated(id));
        if id <= history::MAX_ALLOCATIONS + 1 {
            self.history.allocated(id, needed);
        }
        let link = self.live.push(&mut self.chunks, handle, address);
        let chunk = self.chunks.get_mut(handle);
        chunk.requested = bytes;
        chunk.id = NonZeroU64::new(id);
        chunk.link = link;
        NonZeroU64::new(size).map(|size| (address, size))
    }

    /// Frees the chunk at `address` and merges it with its free neighbours.
    ///
    /// Returns `None`, without any change, if no chunk in use starts there or `target` does not match it.
    #[inline(always)]
    pub(crate) fn free(&mut self, address: u64, target: FreeTarget) -> Option<()> {
        // Two functions, of which each saves its registers once.
        if self.owners.look_at_frees() {
            self.find_and_free_specially(address, target)
        } else {
            self.find_and_free(address, target)
        }
    }

    #[inline(never)]
    fn find_and_free(&mut self, address: u64, target: FreeTarget) -> Option<()> {
        let handle = self.live.remove(&mut self.chunks, address, target)?;
        self.free_chunk(handle);
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn find_and_free_specially(&mut self, address: u64, target: FreeTarget) -> Option<()> {
        let handle = self.live.remove(&mut self.chunks, address, target)?;
        self.free_specially(handle);
        Some(())
    }

    /// Does the same inside its caller, which then saves registers once.
    #[inline(always)]
    pub(crate) fn free_inline(&mut self, address: u64, target: FreeTarget) -> Option<()> {
        let handle = self.live.remove(&mut self.chunks, address, target)?;
        self.free_removed(handle);
        Some(())
    }

    /// Does the same, and returns the number and the requested bytes of the allocation.
    pub(crate) fn free_and_tell(&mut self, address: u64, target: FreeTarget) -> Option<(u64, u64)> {
        let handle = self.live.remove(&mut self.chunks, address, target)?;
        let chunk = self.chunks.get(handle);
        let told = (chunk.number(), chunk.requested);
        self.free_removed(handle);
        Some(told)
    }

    /// Frees a chunk that has left the live table.
    #[inline(always)]
    fn free_removed(&mut self, handle: Handle) {
        // A separate cold path: a call in the middle would spill registers on the fast path.
        if self.owners.look_at_frees() {
            self.free_removed_specially(handle);
        } else {
            self.free_chunk(handle);
        }
    }

    #[cold]
    #[inline(never)]
    fn free_removed_specially(&mut self, handle: Handle) {
        self.free_specially(handle);
    }

    /// Turns a chunk that has left the live table into a free chunk.
    #[inline(always)]
    fn free_chunk(&mut self, handle: Handle) {
        let Chunk { size, prev, next, .. } = self.take_over(handle);
        self.merge_with_neighbours(handle, size, prev, next);
    }

    /// Takes a chunk out of use; it is in no bin. Returns it as it was.
    #[inline(always)]
    fn take_over(&mut self, handle: Handle) -> Chunk {
        let chunk = self.chunks.get_mut(handle);
        let former = *chunk;
        let Chunk { size, requested, id, .. } = former;
        chunk.id = None;
        self.decisions.record(|| Decision::Freed(id.map_or(0, |id| id.get() & !HELD)));
        if self.counters.allocs() <= history::MAX_ALLOCATIONS {
            self.history.freed(id);
        }
        self.counters.account_free(requested, size);
        former
    }

    /// Frees a chunk that may have an owner, or pages, or a place in a plan.
    #[inline(always)]
    fn free_specially(&mut self, handle: Handle) {
        if self.owners.has_owned_chunks() {
            self.clear_owner(handle);
        }
        // A pool with a plan is not elastic.
        if self.elastic.is_some() {
            self.free_in_pages(handle);
        } else {
            self.unfollow(handle);
            self.free_chunk(handle);
        }
    }

    /// Removes the owner of a chunk that is about to become free.
    #[inline(never)]
    fn clear_owner(&mut self, handle: Handle) {
        if let Some(owner) = self.owners.clear_owner(handle) {
            self.owners.account_free(owner, round_up(self.chunks.get(handle).requested));
        }
    }

    /// Records the owner of a new allocation.
    #[cold]
    fn set_owner(&mut self, owner: OwnerId, address: u64, request: ChunkRequest) {
        if let Some(handle) = self.live.find(&self.chunks, address) {
            self.owners.set_owner(handle, owner);
            self.owners.account_allocate(owner, request.rounded());
            self.owners.account_settled(owner, request.rounded());
        }
    }

    /// Returns the number of frees so far.
    pub(crate) fn frees(&self) -> u64 {
        self.counters.allocs() - self.live.len() as u64
    }

    /// Returns the counters; nothing is lent.
    pub(crate) fn stats(&self) -> Stats {
        self.stats_with(&CacheFigures::default())
    }

    /// Returns the counters, with the figures of the caches that chunks are lent to.
    pub(crate) fn stats_with(&self, caches: &CacheFigures) -> Stats {
        let Self { limit, live, regions, .. } = self;
        let stats = self.counters.stats(*limit, self.largest_free(), live.len(), regions.len(), caches);
        let num_commits = self.elastic.as_ref().map_or(0, Elastic::commits);
        Stats { num_commits, num_planned: self.planned(), ..stats }
    }

    /// Merges a free chunk of `size` bytes that is in no bin with its free neighbours and puts the result into its
    /// bin.
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
}

impl Allocation {
    /// The allocation of a zero-byte request: no address, nothing to free.
    pub(crate) const fn nothing(address: u64) -> Self {
        Self { address, size: 0, requested: 0, id: 0 }
    }
}

mod aligning;
pub(crate) mod check;
pub(crate) mod decisions;
mod elastic;
#[cfg(feature = "std")]
mod feasibility;
mod following;
#[cfg(feature = "std")]
mod free_plan;
pub(crate) mod free_target;
mod holding;
mod lending;
mod out_of_memory;
pub(crate) mod owner;
pub(crate) mod pages;
mod quarantine;
mod regions;
mod request;
mod resizing;
#[cfg(test)]
mod tests;
