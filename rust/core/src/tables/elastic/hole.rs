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

impl Place {
    /// Returns all pages that it has a byte of.
    #[cfg(feature = "std")]
    pub(super) fn all_pages(&self, elastic: &Elastic) -> PageSpan {
        PageSpan { first: self.start >> elastic.shift, end: (self.end + elastic.mask) >> elastic.shift }
    }
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
        let [first, last] = ends_of(self.start, self.end, request);
        [first, last.filter(|_| !ends_range)]
            .map(|start| start.map(|start| self.place(start, start + request.rounded(), elastic)))
    }

    pub(super) fn place(&self, start: u64, end: u64, elastic: &Elastic) -> Place {
        place_in(self.whole, start, end, elastic)
    }
}

/// Returns where a request starts at the start of a hole and at its end; `None` if the hole is too short.
#[inline(always)]
pub(super) fn ends_of(start: u64, end: u64, request: ChunkRequest) -> [Option<u64>; 2] {
    let alignment = request.alignment.max(GRANULE);
    let first = align_up(start, alignment);
    let last = end.checked_sub(request.rounded()).map(|start| start & !(alignment - 1));
    let last = last.filter(|&last| first <= last);
    [last.map(|_| first), last]
}

/// Returns the bytes of the largest request that touches at most `room` pages at one end of a hole; at its start only,
/// if it ends its range.
pub(super) fn largest_in(
    (start, end): (u64, u64),
    alignment: u64,
    room: u64,
    ends_range: bool,
    elastic: &Elastic,
) -> u64 {
    let whole = elastic.within(start, end);
    let alignment = alignment.max(GRANULE);
    let first = align_up(start, alignment);
    // The first page that it may not touch, and the first one that it may touch at the end.
    let after = whole.first.max(first >> elastic.shift).saturating_add(room);
    let from = whole.end.saturating_sub(room);
    let at_start = if after < whole.end { after << elastic.shift } else { end };
    let last = if from > whole.first { align_up(from << elastic.shift, alignment) } else { first };
    let at_end = if ends_range { 0 } else { end.saturating_sub(last) };
    at_start.saturating_sub(first).max(at_end)
}

/// Returns the place between two addresses of a hole with the pages `whole`.
#[inline(always)]
pub(super) fn place_in(whole: PageSpan, start: u64, end: u64, elastic: &Elastic) -> Place {
    // The other pages lie wholly before it or behind it.
    let first = whole.first.max(start.wrapping_shr(elastic.shift));
    let after = whole.end.min(end.wrapping_add(elastic.mask).wrapping_shr(elastic.shift));
    Place { start, end, pages: PageSpan { first, end: after.max(first) } }
}

/// Returns the pages of `whole` between those of two parts at its ends.
pub(super) fn between(whole: PageSpan, left: PageSpan, right: PageSpan) -> PageSpan {
    let first = if left.is_empty() { whole.first } else { left.end };
    let end = if right.is_empty() { whole.end } else { right.first };
    PageSpan { first, end: end.max(first) }
}
