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
use core::num::NonZeroU64;

use super::pages::PageSpan;
use super::{ChunkRequest, Tables};
use crate::bins::free_list::FreeChunk;
use crate::chunk::{Chunk, Handle};
use crate::policy::elastic::tight_from;
use crate::source::Grant;
use crate::units::{GRANULE, align_up};
use hole::{Hole, Lacking, Place};
use marks::{ALL, KIND, ONE, committed_at_start, mark_of_start};

/// The pages of an elastic pool.
#[derive(Debug)]
pub(crate) struct Elastic {
    /// Base-2 logarithm of the page size.
    shift: u32,
    /// The page size less one byte.
    mask: u64,
    /// The number of touched pages.
    touched: u64,
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
    /// Whether no page has memory, touched ones included.
    is_paused: bool,
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
            touched: 0,
            tight_from: u64::MAX,
            lists: Vec::new(),
            vacant_lists: Vec::new(),
            commits: 0,
            peak_live: 0,
            has_plan: false,
            is_paused: false,
            lacking: None,
            lost: Vec::new(),
        }
    }

    pub(crate) fn page_size(&self) -> u64 {
        1 << self.shift
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.tight_from = tight_from(self.page_size(), limit);
        self.lacking = None;
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

    fn within(&self, start: u64, end: u64) -> PageSpan {
        PageSpan::within(start, end, self.shift)
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

    fn ends_range(&self, handle: Handle) -> bool {
        self.chunks.get(handle).next.is_none()
    }

    /// Puts a request into the best fit, if the pages there have memory, else where the fewest lack it, if those have it.
    /// Returns the address and the size of the chunk.
    #[inline(always)]
    pub(super) fn take_committed(&mut self, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        let pages = self.pages();
        if pages.has_plan || pages.is_paused {
            return None;
        }
        if pages.touched >= pages.tight_from || request.is_aligned() {
            return self.take_with_care(request);
        }
        let fit = self.bins.take_best_fit(&mut self.chunks, request.needed)?;
        if self.chunks.get(fit.handle).requested == ALL {
            let chunk = self.carve_committed(fit, request.needed);
            return self.hand_over(chunk, request.bytes, chunk.size);
        }
        self.take_partly_committed(fit, request)
    }

    #[cold]
    #[inline(never)]
    fn take_with_care(&mut self, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        #[cfg(feature = "std")]
        if self.is_tight() {
            return self.take_chosen(request);
        }
        let fit = self.take_fit(request)?;
        self.take_partly_committed(fit, request)
    }

    /// Cuts `size` bytes off a hole of which all pages are committed, at the end where fewer pages become touched.
    #[inline(always)]
    fn carve_committed(&mut self, fit: FreeChunk, size: u64) -> FreeChunk {
        let FreeChunk { size: whole_size, address, handle } = fit;
        let (end, rest) = (address + whole_size, whole_size - size);
        let pages = self.elastic.as_mut().expect(IS_ELASTIC);
        let whole = pages.count_within(address, end);
        if rest == 0 {
            pages.touched += whole;
            return fit;
        }
        let (behind, before) =
            (pages.count_within(address + size, end), pages.count_within(address, address + rest));
        if before > behind && self.chunks.get(handle).next.is_some() {
            pages.touched += whole - before;
            let piece = self.chunks.split(handle, rest, size);
            self.bins.insert(&mut self.chunks, handle, rest);
            return FreeChunk { size, address: address + rest, handle: piece };
        }
        pages.touched += whole - behind;
        let hole = self.chunks.split(handle, size, rest);
        self.chunks.get_mut(hole).requested = ALL;
        self.bins.insert(&mut self.chunks, hole, rest);
        FreeChunk { size, address, handle }
    }

    #[inline(never)]
    fn take_partly_committed(&mut self, fit: FreeChunk, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        let FreeChunk { handle, size, .. } = fit;
        if !request.is_aligned()
            && let Some(chunk) = self.carve_last(fit, request.needed)
        {
            return self.hand_over(chunk, request.bytes, chunk.size);
        }
        let hole = self.hole(handle);
        let place = hole
            .best_place(request, self.ends_range(handle), self.pages())
            .filter(|place| hole.committed.count_missing(place.pages) == 0);
        let Some(place) = place else {
            self.bins.insert(&mut self.chunks, handle, size);
            #[cfg(feature = "std")]
            return self.take_chosen(request);
            #[cfg(not(feature = "std"))]
            return None;
        };
        let chunk = self.carve(handle, place);
        self.hand_over(chunk, request.bytes, chunk.size)
    }

    /// Cuts `size` bytes off the start of a hole that ends its range and has memory in its first pages, which is where
    /// programs grow. Returns `None`, without any change, if it is another hole or if it lacks the memory.
    fn carve_last(&mut self, fit: FreeChunk, size: u64) -> Option<FreeChunk> {
        let FreeChunk { size: whole_size, address, handle } = fit;
        let Chunk { requested: mark, next, .. } = *self.chunks.get(handle);
        let length = committed_at_start(mark).filter(|_| mark & KIND == ONE && next.is_none())?;
        let pages = self.pages_mut();
        let taken = ((address + size + pages.mask) >> pages.shift) - ((address + pages.mask) >> pages.shift);
        if taken > length || size == whole_size {
            return None;
        }
        pages.touched += taken;
        let rest = self.chunks.split(handle, size, whole_size - size);
        self.chunks.get_mut(rest).requested = mark_of_start(length - taken);
        self.bins.insert(&mut self.chunks, rest, whole_size - size);
        Some(FreeChunk { size, address, handle })
    }

    /// Takes the best fit out of its bin: for the size alone if it holds an aligned piece, else for the size and its
    /// padding.
    #[inline]
    fn take_fit(&mut self, request: ChunkRequest) -> Option<FreeChunk> {
        if !request.is_aligned() {
            return self.bins.take_best_fit(&mut self.chunks, request.needed);
        }
        let tight = self.bins.take_best_fit(&mut self.chunks, request.rounded())?;
        let start = align_up(tight.address, request.alignment.max(GRANULE));
        if start + request.rounded() <= tight.address + tight.size {
            return Some(tight);
        }
        self.bins.insert(&mut self.chunks, tight.handle, tight.size);
        self.bins.take_best_fit(&mut self.chunks, request.needed)
    }

    /// Cuts a place out of a hole that is in no bin; the pages there become touched. What remains becomes free.
    fn carve(&mut self, handle: Handle, place: Place) -> FreeChunk {
        let chunk = *self.chunks.get(handle);
        let pages = self.pages_mut();
        let hole = pages.take(handle, &chunk);
        pages.touched += place.pages.len();
        let mut piece = handle;
        if hole.start < place.start {
            // The front keeps the handle: it may be the first chunk of its range.
            piece = self.chunks.split(handle, place.start - hole.start, hole.end - place.start);
            self.put_part(&hole, handle, hole.start, place.start);
        }
        if place.end < hole.end {
            let rest = self.chunks.split(piece, place.end - place.start, hole.end - place.end);
            self.put_part(&hole, rest, place.end, hole.end);
        }
        FreeChunk { size: place.end - place.start, address: place.start, handle: piece }
    }

    /// Makes a part of a hole a hole of its own.
    fn put_part(&mut self, of: &Hole<'_>, handle: Handle, start: u64, end: u64) {
        let whole = self.pages().within(start, end);
        let committed = of.committed.clip(whole);
        self.put(Hole { handle, start, end, whole, committed });
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
