//! Holes: free chunks with their pages, and the places for a request in them.

use super::Elastic;
use crate::chunk::Handle;
use crate::tables::ChunkRequest;
use crate::tables::pages::{Committed, PageSpan};
use crate::units::{GRANULE, align_up};

/// A hole that is in no bin, and its pages.
#[derive(Debug)]
pub(super) struct Hole<'a> {
    pub(super) handle: Handle,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The pages wholly within it.
    pub(super) whole: PageSpan,
    pub(super) committed: Committed<'a>,
}

/// A place for a request in a hole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The pages that become touched.
    pub(super) pages: PageSpan,
}

/// A request that no committed pages serve, and the allocations ever and now when that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lacking {
    pub(super) needed: u64,
    pub(super) alignment: u64,
    pub(super) allocs: u64,
    pub(super) live: usize,
}

impl Hole<'_> {
    /// Returns the places for a request at both ends of the hole; at its start only, if the hole ends its range: what
    /// was never used stays in one piece.
    pub(super) fn places(
        &self,
        request: ChunkRequest,
        ends_range: bool,
        elastic: &Elastic,
    ) -> [Option<Place>; 2] {
        let (bytes, alignment) = (request.rounded(), request.alignment.max(GRANULE));
        let first = align_up(self.start, alignment);
        let last = self.end.checked_sub(bytes).map(|start| start / alignment * alignment);
        let last = last.filter(|&last| first <= last);
        [last.map(|_| first), last.filter(|_| !ends_range)]
            .map(|start| start.map(|start| self.place(start, start + bytes, elastic)))
    }

    pub(super) fn place(&self, start: u64, end: u64, elastic: &Elastic) -> Place {
        let (left, right) = (elastic.within(self.start, start), elastic.within(end, self.end));
        Place { start, end, pages: between(self.whole, left, right) }
    }

    /// Returns the better of the places: fewer pages without memory, then fewer pages.
    pub(super) fn best_place(
        &self,
        request: ChunkRequest,
        ends_range: bool,
        elastic: &Elastic,
    ) -> Option<Place> {
        let places = self.places(request, ends_range, elastic).into_iter().flatten();
        places.min_by_key(|place| (self.committed.count_missing(place.pages), place.pages.len()))
    }
}

/// Returns the pages of `whole` between those of two parts at its ends.
pub(super) fn between(whole: PageSpan, left: PageSpan, right: PageSpan) -> PageSpan {
    let first = if left.is_empty() { whole.first } else { left.end };
    let end = if right.is_empty() { whole.end } else { right.first };
    PageSpan { first, end: end.max(first) }
}
