//! What an elastic pool could serve, keep and release.

use alloc::vec::Vec;

use super::super::feasibility::Supply;
use super::super::pages::{Committed, PageSpan};
use super::super::{ChunkRequest, Tables};
use super::hole::{Place, largest_in};
use super::marks::{ALL, LISTED};
use crate::chunk::Handle;
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

    /// Returns the bytes of the largest request that the memory of an elastic pool serves: free pages wherever they are,
    /// and the rest of pages in use.
    ///
    /// # Cost
    /// Linear in the number of holes of a page or more; of all, if the result is less than a page.
    pub(crate) fn largest_free_in_pages(&self) -> u64 {
        if self.is_paused() { 0 } else { self.largest_in_holes(GRANULE, self.free_pages()) }
    }

    /// Returns the bytes of the largest request that would touch at most `room` pages in some hole; 0 if none.
    fn largest_in_holes(&self, alignment: u64, room: u64) -> u64 {
        let pages = self.pages();
        let mut largest = 0;
        // A hole holds no request above its own size.
        for least in [pages.page_size(), GRANULE] {
            if largest > 0 && largest >= pages.page_size() - GRANULE {
                break;
            }
            for handle in self.bins.all_from(&self.chunks, least.max(largest + GRANULE)) {
                let chunk = self.chunks.get(handle);
                if chunk.requested == ALL || pages.lost.is_empty() || !self.is_lost(chunk.address) {
                    let (span, ends_range) = ((chunk.address, chunk.end()), chunk.next.is_none());
                    largest = largest.max(largest_in(span, alignment, room, ends_range, pages));
                }
            }
        }
        largest
    }

    /// Returns the bytes of free pages that could be given back.
    pub(crate) fn releasable_in_pages(&self) -> u64 {
        self.free_pages() << self.pages().shift
    }

    /// Returns the number of pages that a request may touch anew, with the memory that the source could grant.
    pub(super) fn room_with(&self, supply: Supply) -> u64 {
        let from_source = supply.total() >> self.pages().shift;
        self.room().min(self.free_pages().saturating_add(from_source))
    }

    /// Returns whether a request would be served in an elastic pool.
    pub(crate) fn would_serve_in_pages(&self, request: ChunkRequest, supply: Supply) -> bool {
        let fewest = self.fewest_pages(request, supply.grants_addresses);
        !self.pages().is_paused && fewest.is_some_and(|(fewest, _)| fewest <= self.room_with(supply))
    }

    /// Returns the bytes of the largest request with an alignment that would be served; 0 if none.
    pub(crate) fn largest_servable_in_pages(&self, alignment: u64, supply: Supply) -> u64 {
        if self.pages().is_paused {
            return 0;
        }
        let room = self.room_with(supply);
        // A range starts with a page.
        let in_new_range = if supply.grants_addresses { room << self.pages().shift } else { 0 };
        self.largest_in_holes(alignment, room).max(in_new_range)
    }

    /// Returns the smallest limit above the current one under which a request would be served.
    pub(crate) fn smallest_limit_in_pages(&self, request: ChunkRequest, supply: Supply) -> Option<u64> {
        let pages = self.pages();
        let (fewest, _) = self.fewest_pages(request, supply.grants_addresses)?;
        let limit = self.touched().checked_add(fewest)?.checked_mul(pages.page_size())?;
        let from_source = supply.total() >> pages.shift;
        let has_memory = fewest <= self.free_pages().saturating_add(from_source);
        (!pages.is_paused && has_memory && limit > self.limit && limit <= MAX_BYTES).then_some(limit)
    }

    /// Returns the smallest number of pages that a request touches anew, and the place in a hole where it does so; without
    /// a place it is in a new range, where those are granted.
    ///
    /// # Cost
    /// Linear in the number of holes of that size.
    pub(super) fn fewest_pages(
        &self,
        request: ChunkRequest,
        grants_addresses: bool,
    ) -> Option<(u64, Option<Place>)> {
        let alone = request.rounded().div_ceil(self.pages().page_size());
        let mut fewest = grants_addresses.then_some((alone, None));
        for handle in self.bins.all_from(&self.chunks, request.rounded()) {
            for place in self.usable_places(handle, request) {
                let touched = place.pages.len();
                if fewest.is_none_or(|(least, _)| touched < least) {
                    fewest = Some((touched, Some(place)));
                }
            }
        }
        fewest
    }

    /// Returns the places in a hole that may have memory.
    fn usable_places(&self, handle: Handle, request: ChunkRequest) -> impl Iterator<Item = Place> {
        let pages = self.pages();
        let hole = self.hole(handle);
        let is_lost = self.is_lost(hole.start);
        let places = hole.places(request, self.chunks.get(handle).next.is_none(), pages);
        let usable = places
            .map(|place| place.filter(|place| !is_lost || hole.committed.count_missing(place.pages) == 0));
        usable.into_iter().flatten()
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
        let reserved = (touched + committed).saturating_add_signed(pages.in_flight) << pages.shift;
        // The source decides what memory a paused pool has.
        if if pages.is_paused { committed > 0 } else { reserved != self.counters.reserved() } {
            return Err(("reserved are the committed pages", 0));
        }
        Ok(())
    }
}
