//! Requests whose pages lack memory: where to put them, and which free pages to take.
//!
//! A plan detaches the chunk and the free pages that it takes, so that no other request gets them while the source
//! works. It ends with [`Tables::complete`] or [`Tables::cancel`].

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::super::pages::{PageSpan, count, difference};
use super::super::{Allocation, ChunkRequest, Tables};
use crate::bins::free_list::FreeChunk;
use crate::chunk::{Chunk, Handle};
use crate::policy::elastic::{most_committed, range_bytes};
use crate::source::Grant;

/// The changes of pages that serve a request which no committed pages serve.
#[derive(Debug)]
pub(crate) enum Planned {
    /// Nothing: it is served.
    Served(Allocation),
    /// Memory for pages.
    Pages(PagePlan),
    /// A range of addresses: the wanted bytes, and the fewest that serve it.
    Addresses(u64, u64),
    /// Other chunks must be freed: the pages in use and its own are above the limit.
    Freeing,
}

/// The memory of a request: which pages receive some, and from where.
#[derive(Debug, Clone)]
pub(crate) struct PagePlan {
    request: ChunkRequest,
    chunk: FreeChunk,
    /// The pages that receive memory.
    pub(crate) missing: Vec<PageSpan>,
    /// The free pages that give theirs. Where they are fewer, memory is committed.
    pub(crate) free: Vec<PageSpan>,
    /// The ranges that the source lost: their pages receive no memory.
    lost: Vec<Grant>,
}

impl PagePlan {
    /// Returns the number of pages that receive memory from the source.
    pub(crate) fn new_pages(&self) -> u64 {
        count(&self.missing).saturating_sub(count(&self.free))
    }

    /// Returns whether free pages that gave their memory could have it back.
    pub(crate) fn may_return(&self, span: Grant) -> bool {
        !self.lost.iter().any(|lost| lost.address <= span.address && span.address < lost.end())
    }
}

impl Tables {
    /// Plans a request that no committed pages serve. The caller may call the source until the plan has ended.
    ///
    /// With `spares_source` the request touches the fewest pages, and free pages give their memory even where more might be
    /// committed.
    pub(crate) fn plan_pages(&mut self, request: ChunkRequest, spares_source: bool) -> Planned {
        if let Some(allocation) = self.try_allocate(request) {
            return Planned::Served(allocation);
        }
        let Some((handle, place)) = self.choose(request, spares_source) else {
            if self.fits_limit(request) {
                let (wanted, least) = range_bytes(self.pages().page_size(), self.limit, request.needed);
                return Planned::Addresses(wanted, least);
            }
            return Planned::Freeing;
        };
        let hole = self.hole(handle);
        let missing = hole.committed.missing(place.pages);
        let size = hole.end - hole.start;
        self.bins.remove(&mut self.chunks, handle, size);
        let chunk = self.carve(handle, place);
        self.detach(chunk.handle);
        self.pages_mut().set_plan(true);
        let wanted = count(&missing);
        self.pages_mut().in_flight -= wanted.cast_signed();
        let commitable = if spares_source { 0 } else { self.commitable(request, wanted) };
        let lacking = wanted.saturating_sub(commitable);
        let free = self.take_free_pages(lacking);
        let lost = self.pages().lost.clone();
        Planned::Pages(PagePlan { request, chunk, missing, free, lost })
    }

    /// Returns whether the source lost the addresses of a hole.
    pub(crate) fn is_lost(&self, address: u64) -> bool {
        self.pages().lost.iter().any(|lost| lost.address <= address && address < lost.end())
    }

    /// Records that the source lost the addresses of a range.
    pub(crate) fn lose(&mut self, range: Grant) {
        self.pages_mut().lost.push(range);
    }

    /// Returns the number of pages that may become touched under the limit.
    pub(super) fn room(&self) -> u64 {
        (self.limit >> self.pages().shift).saturating_sub(self.touched())
    }

    /// Returns the same, or a smaller number that is enough for a request wherever it is placed.
    pub(super) fn room_for(&self, request: ChunkRequest) -> u64 {
        let pages = self.pages();
        // Touched pages are committed.
        let least = (self.limit.saturating_sub(self.counters.reserved())) >> pages.shift;
        // A place has a part of a page at each end.
        let is_enough = !pages.is_paused && (request.rounded() >> pages.shift) + 2 <= least;
        if is_enough { least } else { self.room() }
    }

    /// Returns whether a new range of addresses would serve the request under the limit.
    fn fits_limit(&self, request: ChunkRequest) -> bool {
        request.rounded().div_ceil(self.pages().page_size()) <= self.room()
    }

    /// Returns how many pages may be committed for a request, which touches its pages already, in place of free ones;
    /// `wanted` of its pages lack memory.
    fn commitable(&mut self, request: ChunkRequest, wanted: u64) -> u64 {
        let requested = self.counters.peak_requested().max(self.counters.requested() + request.bytes);
        self.count_live();
        let pages = self.pages();
        let committed = self.counters.reserved() >> pages.shift;
        let most =
            |touched| most_committed(pages.page_size(), touched, requested, pages.peak_live, self.limit);
        // All touched pages but those that lack memory are committed. Often that is enough to know.
        let least = most(0);
        let most = if committed + wanted <= least { least } else { most(self.touched()) };
        most.saturating_sub(committed)
    }

    /// Notes how many allocations there are with one that the best fit has no memory for.
    pub(super) fn count_live(&mut self) {
        let live = self.live.len() as u64 + 1;
        let pages = self.pages_mut();
        pages.peak_live = pages.peak_live.max(live);
    }

    /// Keeps a free chunk, which is in no bin, from every request.
    fn detach(&mut self, handle: Handle) {
        let chunk = self.chunks.get_mut(handle);
        chunk.id = Some(NonZeroU64::MAX);
        chunk.requested = 0;
        self.quarantined.insert(handle);
    }

    fn attach(&mut self, handle: Handle) {
        self.quarantined.remove(&handle);
        self.chunks.get_mut(handle).id = None;
    }

    /// Ends a plan of which all pages have memory, `committed` of them anew: serves the request.
    pub(crate) fn complete(&mut self, plan: &PagePlan, committed: u64) -> Option<Allocation> {
        self.attach(plan.chunk.handle);
        self.pages_mut().set_plan(false);
        self.pages_mut().in_flight = 0;
        self.count_commits(committed, count(&plan.missing));
        let taken = self.hand_over(plan.chunk, plan.request.bytes, plan.chunk.size)?;
        Some(self.allocation(plan.request, taken))
    }

    /// Ends a plan that failed: its chunk is free. Of the pages that lacked memory `received` have some, of those that
    /// were to give theirs `kept` do.
    pub(crate) fn cancel(&mut self, plan: &PagePlan, received: &[PageSpan], kept: Vec<PageSpan>) {
        let handle = plan.chunk.handle;
        let before = count(&plan.free);
        let now = count(received) + count(&kept);
        self.attach(handle);
        self.pages_mut().set_plan(false);
        self.count_commits(now.saturating_sub(before), count(received));
        self.count_decommits(before.saturating_sub(now));
        let Chunk { prev, next, .. } = *self.chunks.get(handle);
        let lacking = difference(&plan.missing, received);
        self.merge_pages(handle, prev, next, &lacking);
        self.return_free_pages(kept);
    }

    /// Counts pages that received memory, `new` of them from the source.
    pub(super) fn count_commits(&mut self, new: u64, received: u64) {
        let pages = self.pages_mut();
        pages.commits += received;
        let bytes = new << pages.shift;
        self.counters.account_commit(bytes);
        self.set_counting();
    }

    /// Counts pages as without memory, and none as in flight any more.
    pub(crate) fn count_decommits(&mut self, pages: u64) {
        self.pages_mut().in_flight = 0;
        let bytes = pages << self.pages().shift;
        self.counters.account_release(bytes);
        self.set_counting();
    }

    /// Sets whether requests and frees find no memory. All holes must be without any when it begins.
    pub(crate) fn set_paused(&mut self, is_paused: bool) {
        self.pages_mut().set_pause(is_paused);
    }

    /// Counts `pages` pages as committed, and no other; of these `received` have received memory.
    pub(crate) fn recount(&mut self, pages: u64, received: u64) {
        let before = self.counters.reserved() >> self.pages().shift;
        self.count_commits(pages.saturating_sub(before), received);
        self.count_decommits(before.saturating_sub(pages));
    }

    /// Returns the base-2 logarithm of the page size.
    pub(crate) fn page_shift(&self) -> u32 {
        self.pages().shift
    }
}
