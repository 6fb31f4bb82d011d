//! Elastic pools: best fit over plentiful addresses, of which the pages in use have memory.
//!
//! A page is **touched** if a chunk in use has a byte of it; touched pages are committed. A hole is a free chunk; some
//! of the pages that lie wholly within it may be committed, too. Neighbours of a hole are in use, so that every other
//! page of a hole is touched.
//!
//! ```text
//! pages    |     |     |     |     |     |     |     |
//! chunks   ├in use──┼─────── hole ──────────┼─in use─┤
//!                      ├─ wholly in it ──┤
//! ```
//!
//! The number of touched pages follows from the holes, so that no event takes time for each page.

use alloc::vec::Vec;

use super::pages::PageSpan;
use super::{ChunkRequest, Tables};
use crate::chunk::Handle;
use crate::source::Grant;
use hole::{Hole, Lacking};

/// The pages of an elastic pool.
#[derive(Debug)]
pub(crate) struct Elastic {
    /// Base-2 logarithm of the page size.
    shift: u32,
    /// The page size less one byte.
    mask: u64,
    /// The number of touched pages, while each event counts them.
    touched: Option<u64>,
    /// From so many touched pages on a request takes the place that touches the fewest.
    tight_from: u64,
    /// The committed pages of the holes of the kind [`LISTED`], by the number that their chunks have.
    lists: Vec<Vec<PageSpan>>,
    /// The numbers that no chunk has.
    vacant_lists: Vec<usize>,
    /// Pages that ever received memory.
    commits: u64,
    /// The most allocations at a time, as far as seen when memory was missing.
    peak_live: u64,
    /// Whether a plan has not ended. Its chunk may share a page with what a request would get, and that page may lack
    /// memory until then, and after a failure.
    has_plan: bool,
    /// The pages that the holder of the source lock has taken out of holes, less those that it gives memory: reserved,
    /// and neither touched nor in a hole.
    in_flight: i64,
    /// Whether no page has memory, touched ones included.
    is_paused: bool,
    /// Whether it counts, has a plan, or is paused: the usual event asks once.
    needs_care: bool,
    /// The last request for which no chosen place has memory, while that is known to hold.
    lacking: Option<Lacking>,
    /// The ranges that the source lost: their pages never receive memory again.
    lost: Vec<Grant>,
}

const IS_ELASTIC: &str = "only elastic pools call functions that need pages";

impl Elastic {
    pub(crate) fn new(page_size: u64) -> Self {
        Self {
            shift: page_size.trailing_zeros(),
            mask: page_size - 1,
            touched: None,
            tight_from: u64::MAX,
            lists: Vec::new(),
            vacant_lists: Vec::new(),
            commits: 0,
            peak_live: 0,
            has_plan: false,
            in_flight: 0,
            is_paused: false,
            needs_care: false,
            lacking: None,
            lost: Vec::new(),
        }
    }

    pub(crate) fn page_size(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the number of pages that ever received memory.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// Returns the number of pages that lie wholly between two addresses.
    // Wrapping: no address is near the last one, and each check for it costs two instructions of a dozen.
    #[inline(always)]
    fn count_within(&self, start: u64, end: u64) -> u64 {
        let first = start.wrapping_add(self.mask).wrapping_shr(self.shift);
        end.wrapping_shr(self.shift).saturating_sub(first)
    }

    #[inline(always)]
    fn within(&self, start: u64, end: u64) -> PageSpan {
        let first = start.wrapping_add(self.mask).wrapping_shr(self.shift);
        PageSpan { first, end: end.wrapping_shr(self.shift).max(first) }
    }
}

impl Tables {
    /// Returns whether the source lost a range.
    #[cfg(feature = "std")]
    pub(crate) fn has_lost_ranges(&self) -> bool {
        self.elastic.as_ref().is_some_and(|pages| !pages.lost.is_empty())
    }

    /// Returns whether no page has memory.
    pub(crate) fn is_paused(&self) -> bool {
        self.elastic.as_ref().is_some_and(|pages| pages.is_paused)
    }

    fn pages(&self) -> &Elastic {
        self.elastic.as_ref().expect(IS_ELASTIC)
    }

    fn pages_mut(&mut self) -> &mut Elastic {
        self.elastic.as_mut().expect(IS_ELASTIC)
    }

    /// Returns a free chunk as a hole.
    fn hole(&self, handle: Handle) -> Hole<'_> {
        self.pages().look_into(handle, self.chunks.get(handle))
    }

    /// Puts a hole into its bin.
    fn put(&mut self, hole: Hole<'_>) {
        let (handle, size) = (hole.handle, hole.end - hole.start);
        self.chunks.get_mut(handle).requested = self.pages_mut().record(hole);
        self.bins.insert(&mut self.chunks, handle, size);
    }

    /// Takes a hole out of its bin.
    fn take_hole(&mut self, handle: Handle) -> Hole<'static> {
        let chunk = *self.chunks.get(handle);
        self.bins.remove(&mut self.chunks, handle, chunk.size);
        self.pages_mut().take(handle, &chunk)
    }
}

#[cfg(feature = "std")]
mod choosing;
mod counting;
#[cfg(feature = "std")]
mod free_plan;
mod freeing;
#[cfg(feature = "std")]
mod giving;
mod hole;
mod marks;
#[cfg(feature = "std")]
pub(crate) mod plan;
#[cfg(feature = "std")]
mod queries;
mod resizing;
mod taking;
