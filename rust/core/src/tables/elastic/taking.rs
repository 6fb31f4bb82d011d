//! Requests for pages that have memory: a hole is cut, and the pages of the request become touched.

use core::num::NonZeroU64;

use super::hole::{Hole, Place, ends_of, place_in};
use super::marks::{ALL, KIND, ONE, committed_at_start, mark_of_start};
use super::{ChunkRequest, IS_ELASTIC};
use crate::bins::free_list::FreeChunk;
use crate::chunk::{Chunk, Handle};
use crate::tables::Tables;
use crate::tables::pages::PageSpan;
use crate::units::{GRANULE, align_up};

impl Tables {
    /// Puts a request into the best fit, if the pages there have memory, else where the fewest lack it, if those have it.
    /// Returns the address and the size of the chunk.
    // The numbers are passed in registers, a request would be passed in memory.
    #[inline(never)]
    pub(in crate::tables) fn take_committed(
        &mut self,
        bytes: u64,
        needed: u64,
        alignment: u64,
    ) -> Option<(u64, NonZeroU64)> {
        if self.pages().needs_care || alignment > GRANULE {
            return self.take_with_care(bytes, needed, alignment);
        }
        let fit = self.bins.take_best_fit(&mut self.chunks, needed)?;
        if self.chunks.get(fit.handle).requested != ALL {
            return self.take_partly_committed(fit.handle, bytes, needed, alignment);
        }
        let chunk = self.carve_committed::<false>(fit, needed);
        self.hand_over(chunk, bytes, chunk.size)
    }

    #[cold]
    #[inline(never)]
    fn take_with_care(&mut self, bytes: u64, needed: u64, alignment: u64) -> Option<(u64, NonZeroU64)> {
        let pages = self.pages();
        if pages.has_plan || pages.is_paused {
            return None;
        }
        let request = ChunkRequest { alignment, ..ChunkRequest::for_chunk(bytes, needed) };
        #[cfg(feature = "std")]
        if self.is_tight() {
            return self.take_chosen(request);
        }
        let fit = self.take_fit(request)?;
        if request.is_aligned() || self.chunks.get(fit.handle).requested != ALL {
            return self.take_partly_committed(fit.handle, bytes, needed, alignment);
        }
        let chunk = self.carve_committed::<true>(fit, needed);
        self.hand_over(chunk, bytes, chunk.size)
    }

    /// Cuts `size` bytes off a hole of which all pages are committed, at the end where fewer pages become touched.
    #[inline(always)]
    fn carve_committed<const COUNTS: bool>(&mut self, fit: FreeChunk, size: u64) -> FreeChunk {
        let FreeChunk { size: whole_size, address, handle } = fit;
        let (end, rest) = (address + whole_size, whole_size - size);
        let pages = self.elastic.as_mut().expect(IS_ELASTIC);
        if COUNTS {
            pages.touch(pages.count_within(address, end));
        }
        if rest == 0 {
            return fit;
        }
        // Many holes are too short for a page.
        let (behind, before) = if whole_size > pages.mask {
            (pages.count_within(address + size, end), pages.count_within(address, address + rest))
        } else {
            (0, 0)
        };
        if before > behind && self.chunks.get(handle).next.is_some() {
            if COUNTS {
                pages.leave(before);
            }
            let piece = self.chunks.split(handle, rest, size);
            self.bins.insert(&mut self.chunks, handle, rest);
            return FreeChunk { size, address: address + rest, handle: piece };
        }
        if COUNTS {
            pages.leave(behind);
        }
        let hole = self.chunks.split(handle, size, rest);
        self.chunks.get_mut(hole).requested = ALL;
        self.bins.insert(&mut self.chunks, hole, rest);
        FreeChunk { size, address, handle }
    }

    #[inline(never)]
    fn take_partly_committed(
        &mut self,
        handle: Handle,
        bytes: u64,
        needed: u64,
        alignment: u64,
    ) -> Option<(u64, NonZeroU64)> {
        let request = ChunkRequest { alignment, ..ChunkRequest::for_chunk(bytes, needed) };
        if !request.is_aligned()
            && let Some(chunk) = self.carve_last(handle, needed)
        {
            return self.hand_over(chunk, bytes, chunk.size);
        }
        let Chunk { address, size, requested: mark, next, .. } = *self.chunks.get(handle);
        let pages = self.pages();
        let whole = pages.within(address, address + size);
        let [first, last] = ends_of(address, address + size, request);
        // With memory, and of two such places the one that touches fewer pages.
        let with_memory = |start: u64| {
            let place = place_in(whole, start, start + request.rounded(), pages);
            (pages.count_missing(mark, whole, place.pages) == 0).then_some(place)
        };
        let places = [first, last.filter(|_| next.is_some())].map(|start| start.and_then(with_memory));
        let Some(place) = places.into_iter().flatten().min_by_key(|place| place.pages.len()) else {
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
    fn carve_last(&mut self, handle: Handle, size: u64) -> Option<FreeChunk> {
        let Chunk { address, size: whole_size, requested: mark, next, .. } = *self.chunks.get(handle);
        let length = committed_at_start(mark).filter(|_| mark & KIND == ONE && next.is_none())?;
        let pages = self.pages_mut();
        let taken = ((address + size + pages.mask) >> pages.shift) - ((address + pages.mask) >> pages.shift);
        if taken > length || size == whole_size {
            return None;
        }
        pages.touch(taken);
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
    pub(super) fn carve(&mut self, handle: Handle, place: Place) -> FreeChunk {
        let chunk = *self.chunks.get(handle);
        let (start, end) = (chunk.address, chunk.end());
        let pages = self.pages_mut();
        pages.touch(place.pages.len());
        pages.lacking = None;
        // Few holes have a list: the pages of the others are one span.
        let span = pages.single_span(&chunk);
        let hole = if span.is_some() { None } else { Some(pages.take(handle, &chunk)) };
        let mut piece = handle;
        if start < place.start {
            // The front keeps the handle: it may be the first chunk of its range.
            piece = self.chunks.split(handle, place.start - start, end - place.start);
            self.put_part(span, hole.as_ref(), (handle, start, place.start));
        }
        if place.end < end {
            let rest = self.chunks.split(piece, place.end - place.start, end - place.end);
            self.put_part(span, hole.as_ref(), (rest, place.end, end));
        }
        FreeChunk { size: place.end - place.start, address: place.start, handle: piece }
    }

    /// Makes a part of a hole a hole of its own: of one in which the committed pages are a span, or of another one.
    #[inline(always)]
    fn put_part(
        &mut self,
        span: Option<PageSpan>,
        of: Option<&Hole<'_>>,
        (handle, start, end): (Handle, u64, u64),
    ) {
        let whole = self.pages().within(start, end);
        if let Some(hole) = of {
            let committed = hole.committed.clip(whole);
            self.put(Hole { handle, start, end, whole, committed });
        } else if let Some(span) = span {
            let mark = self.pages_mut().mark_of_span(span.common(whole), whole);
            self.chunks.get_mut(handle).requested = mark;
            self.bins.insert(&mut self.chunks, handle, end - start);
        }
    }
}
