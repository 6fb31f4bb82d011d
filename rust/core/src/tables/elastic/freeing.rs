//! Frees: a chunk becomes a hole, and its pages keep their memory.

use super::super::Tables;
use super::super::pages::{Committed, PageSpan};
use super::IS_ELASTIC;
use super::hole::{Hole, between};
use super::marks::{ALL, LENGTH_BITS, committed_at_start, mark_of_start};
use crate::chunk::{Chunk, Handle};

impl Tables {
    /// Frees a chunk that has left the live table.
    #[inline(always)]
    pub(crate) fn free_in_pages(&mut self, mut handle: Handle) {
        let Chunk { address, mut size, prev, next, .. } = self.take_over(handle);
        if self.pages().needs_care {
            return self.free_with_care(handle, address, size, prev, next);
        }
        // As in other pools, while all pages of the neighbours have memory.
        if let Some(right) = next
            && let Chunk { id: None, size: more, requested: mark, .. } = *self.chunks.get(right)
        {
            if mark != ALL {
                return self.free_with_care(handle, address, size, prev, next);
            }
            self.bins.remove(&mut self.chunks, right, more);
            size += more;
            self.chunks.merge(handle, right, size);
        }
        if let Some(left) = prev
            && let Chunk { id: None, size: more, requested: mark, .. } = *self.chunks.get(left)
        {
            if mark != ALL {
                return self.merge_pages(handle, prev, None, &[]);
            }
            self.bins.remove(&mut self.chunks, left, more);
            size += more;
            self.chunks.merge(left, handle, size);
            handle = left;
        }
        self.chunks.get_mut(handle).requested = ALL;
        self.bins.insert(&mut self.chunks, handle, size);
    }

    #[inline(never)]
    fn free_with_care(
        &mut self,
        handle: Handle,
        address: u64,
        size: u64,
        prev: Option<Handle>,
        next: Option<Handle>,
    ) {
        if !self.merge_committed(handle, (address, address + size), prev, next) {
            self.merge_pages(handle, prev, next, &[]);
        }
    }

    /// Merges a free chunk, which is in no bin, with its free neighbours, if all pages of the left one are committed, and
    /// of the right one all or the first ones; returns false, without any change, if not.
    #[inline(always)]
    fn merge_committed(
        &mut self,
        mut handle: Handle,
        (mut start, mut end): (u64, u64),
        prev: Option<Handle>,
        next: Option<Handle>,
    ) -> bool {
        let (mut left, mut right) = (None, None);
        // The pages with memory at the start of the right one, if not all have some.
        let mut at_start = None;
        if let Some(next) = next
            && let Chunk { id: None, size, requested, .. } = *self.chunks.get(next)
        {
            if requested != ALL {
                at_start = committed_at_start(requested);
                // With more pages than a chunk can say the generic way keeps a list.
                if at_start.is_none() || self.committed_pages() >> LENGTH_BITS > 0 {
                    return false;
                }
            }
            right = Some((next, size));
        }
        if let Some(prev) = prev
            && let Chunk { id: None, size, requested, .. } = *self.chunks.get(prev)
        {
            if requested != ALL {
                return false;
            }
            left = Some((prev, size));
        }
        let pages = self.elastic.as_mut().expect(IS_ELASTIC);
        if pages.is_paused {
            return false;
        }
        let middle = (start, end);
        if let Some((right, size)) = right {
            end += size;
            self.bins.remove(&mut self.chunks, right, size);
            self.chunks.merge(handle, right, end - start);
        }
        if let Some((left, size)) = left {
            start -= size;
            self.bins.remove(&mut self.chunks, left, size);
            self.chunks.merge(left, handle, end - start);
            handle = left;
        }
        if let Some(touched) = pages.touched {
            let in_holes = pages.count_within(start, middle.0) + pages.count_within(middle.1, end);
            pages.touched = Some(touched + in_holes - pages.count_within(start, end));
        }
        let mut mark = ALL;
        if let Some(length) = at_start {
            // The pages before those of the right one have memory.
            let missing = pages.count_within(middle.1, end) - length;
            mark = mark_of_start(pages.count_within(start, end) - missing);
            pages.lacking = None;
        }
        self.chunks.get_mut(handle).requested = mark;
        self.bins.insert(&mut self.chunks, handle, end - start);
        true
    }

    /// Returns the number of pages that have memory.
    fn committed_pages(&self) -> u64 {
        self.counters.reserved() >> self.pages().shift
    }

    /// Merges a free chunk that is in no bin with its free neighbours. Its own pages are committed, except for those that
    /// lack memory.
    #[inline(never)]
    pub(crate) fn merge_pages(
        &mut self,
        mut handle: Handle,
        prev: Option<Handle>,
        next: Option<Handle>,
        lacking: &[PageSpan],
    ) {
        let Chunk { address: mut start, .. } = *self.chunks.get(handle);
        let mut end = self.chunks.get(handle).end();
        let no_pages = |at| PageSpan { first: at, end: at };
        let (mut left, mut right) = ((no_pages(0), Committed::All), (no_pages(0), Committed::All));
        if let Some(next) = next
            && self.chunks.get(next).is_free()
        {
            let hole = self.take_hole(next);
            end = hole.end;
            self.chunks.merge(handle, next, end - start);
            right = (hole.whole, hole.committed);
        }
        if let Some(prev) = prev
            && self.chunks.get(prev).is_free()
        {
            let hole = self.take_hole(prev);
            start = hole.start;
            self.chunks.merge(prev, handle, end - start);
            handle = prev;
            left = (hole.whole, hole.committed);
        }
        let pages = self.pages_mut();
        let whole = pages.within(start, end);
        let middle = between(whole, left.0, right.0);
        pages.leave(middle.len());
        let own = if pages.is_paused {
            Committed::None
        } else if lacking.is_empty() {
            Committed::All
        } else {
            Committed::of(middle, Committed::of(middle, lacking.iter().copied()).missing(middle))
        };
        let spans = left.1.spans(left.0).chain(own.spans(middle)).chain(right.1.spans(right.0));
        let committed = Committed::of(whole, spans);
        self.put(Hole { handle, start, end, whole, committed });
    }
}
