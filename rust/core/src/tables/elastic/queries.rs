//! What an elastic pool could serve, keep and release.

use alloc::vec::Vec;

use super::super::feasibility::Supply;
use super::super::pages::{Committed, PageSpan};
use super::super::{ChunkRequest, Tables};
use super::marks::LISTED;
use crate::chunk::Chunk;
use crate::units::{GRANULE, MAX_BYTES};

impl Tables {
    /// Returns the free pages that have memory.
    pub(crate) fn free_pages(&self) -> u64 {
        let pages = self.pages();
        if pages.is_paused {
            0
        } else {
            (self.counters.reserved() >> pages.shift).saturating_sub(self.touched())
        }
    }

    /// Returns the bytes that a request could get at once in an elastic pool: free pages serve it wherever they are.
    pub(crate) fn largest_free_in_pages(&self) -> u64 {
        (self.free_pages() << self.pages().shift).min(self.bins.largest(&self.chunks))
    }

    /// Returns the bytes of free pages that could be given back.
    pub(crate) fn releasable_in_pages(&self) -> u64 {
        self.free_pages() << self.pages().shift
    }

    /// Returns whether a request for a chunk of `needed` bytes would be served in an elastic pool.
    pub(crate) fn would_serve_in_pages(&self, needed: u64, supply: Supply) -> bool {
        let pages = self.pages();
        let from_source = supply.total() >> pages.shift;
        let room = self.room().min(self.free_pages().saturating_add(from_source));
        !pages.is_paused && self.fewest_pages(needed) <= room
    }

    /// Returns the size of the largest chunk that a request could get, in bytes.
    pub(crate) fn largest_servable_in_pages(&self, supply: Supply) -> u64 {
        // The number of pages that a request touches never falls with its size.
        let (mut served, mut refused) = (0, self.limit / GRANULE + 1);
        while refused - served > 1 {
            let middle = served + (refused - served) / 2;
            if self.would_serve_in_pages(middle * GRANULE, supply) {
                served = middle;
            } else {
                refused = middle;
            }
        }
        served * GRANULE
    }

    /// Returns the smallest limit above the current one under which a chunk of `needed` bytes would be served.
    pub(crate) fn smallest_limit_in_pages(&self, needed: u64, supply: Supply) -> Option<u64> {
        let pages = self.pages();
        let fewest = self.fewest_pages(needed);
        let limit = self.touched().checked_add(fewest)?.checked_mul(pages.page_size())?;
        let from_source = supply.total() >> pages.shift;
        let has_memory = fewest <= self.free_pages().saturating_add(from_source);
        (!pages.is_paused && has_memory && limit > self.limit && limit <= MAX_BYTES).then_some(limit)
    }

    /// Returns the smallest number of pages that a request for a chunk of `needed` bytes touches, over all holes and a new
    /// range.
    ///
    /// # Cost
    /// Linear in the number of holes of that size.
    fn fewest_pages(&self, needed: u64) -> u64 {
        let pages = self.pages();
        let request = ChunkRequest::for_chunk(needed, needed);
        let mut fewest = needed.div_ceil(pages.page_size());
        for handle in self.bins.all_from(&self.chunks, needed) {
            let hole = self.hole(handle);
            let is_lost = self.is_lost(hole.start);
            let places =
                hole.places(request, self.chunks.get(handle).next.is_none(), pages).into_iter().flatten();
            let usable = places.filter(|place| !is_lost || hole.committed.count_missing(place.pages) == 0);
            let least = usable.map(|place| place.pages.len()).min();
            fewest = fewest.min(least.unwrap_or(u64::MAX));
        }
        fewest
    }

    /// Returns how many more free pages would let a request for a chunk of `needed` bytes be served; `None` if it is
    /// served, or if free pages do not help.
    pub(crate) fn lacking_pages(&self, needed: u64, supply: Supply) -> Option<u64> {
        let pages = self.pages();
        let wanted = needed.div_ceil(pages.page_size());
        let from_source = supply.total() >> pages.shift;
        let room = self.room().min(self.free_pages().saturating_add(from_source));
        let helps = !pages.is_paused && wanted <= self.limit >> pages.shift;
        wanted.checked_sub(room).filter(|&lacking| helps && lacking > 0)
    }

    /// Returns the number of pages that lie wholly within a chunk.
    pub(crate) fn pages_within(&self, chunk: &Chunk) -> u64 {
        PageSpan::within(chunk.address, chunk.end(), self.pages().shift).len()
    }

    /// Returns the bytes of the pages that a paused pool takes when it resumes; 0 for other pools.
    pub(crate) fn bytes_to_resume(&self) -> u64 {
        if !self.is_paused() {
            return 0;
        }
        self.touched_pages().iter().map(|pages| pages.len() << self.pages().shift).sum()
    }

    /// Returns the touched pages, in order.
    pub(crate) fn touched_pages(&self) -> Vec<PageSpan> {
        let shift = self.pages().shift;
        let mut touched: Vec<PageSpan> = Vec::new();
        for region in self.regions.iter() {
            let mut at = region.span.address >> shift;
            let mut add = |first, end| {
                if first < end {
                    touched.push(PageSpan { first, end });
                }
            };
            for (_, chunk) in self.chunks.run(region.first).filter(|(_, chunk)| chunk.is_free()) {
                let whole = PageSpan::within(chunk.address, chunk.end(), shift);
                if !whole.is_empty() {
                    add(at, whole.first);
                    at = whole.end;
                }
            }
            add(at, region.span.end() >> shift);
        }
        touched
    }

    /// Returns the first violated rule of the pages, with an address.
    pub(crate) fn check_pages(&self) -> Result<(), (&'static str, u64)> {
        let pages = self.pages();
        let (mut touched, mut committed, mut listed) = (0, 0, 0);
        for region in self.regions.iter() {
            touched += region.span.bytes >> pages.shift;
            for (handle, chunk) in self.chunks.run(region.first).filter(|(_, chunk)| chunk.is_free()) {
                let hole = pages.look_into(handle, chunk);
                touched -= hole.whole.len();
                let spans: Vec<_> = hole.committed.spans(hole.whole).collect();
                committed += super::super::pages::count(&spans);
                listed += usize::from(chunk.requested & LISTED == LISTED);
                let within = |span: &PageSpan| hole.whole.first <= span.first && span.end <= hole.whole.end;
                if !spans.iter().all(within)
                    || Committed::of(hole.whole, spans.iter().copied()) != hole.committed
                {
                    return Err(("a hole knows its committed pages", chunk.address));
                }
            }
        }
        if touched != self.touched() {
            return Err(("the touched pages are those of no hole", 0));
        }
        if pages.touched.is_some() != (self.counters.reserved() >> pages.shift >= pages.tight_from) {
            return Err(("touched pages are counted where their number decides", 0));
        }
        if listed + pages.vacant_lists.len() != pages.lists.len() {
            return Err(("each list of spans belongs to one hole", 0));
        }
        let reserved = (touched + committed) << pages.shift;
        // The source decides what memory a paused pool has.
        if if pages.is_paused { committed > 0 } else { reserved != self.counters.reserved() } {
            return Err(("reserved are the committed pages", 0));
        }
        Ok(())
    }
}
