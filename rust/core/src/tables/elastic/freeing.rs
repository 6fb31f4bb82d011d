//! Frees: a chunk becomes a hole, and its pages keep their memory.

use super::super::Tables;
use super::super::pages::{Committed, PageSpan};
use super::hole::{Hole, between};
use super::{ALL, IS_ELASTIC};
use crate::chunk::{Chunk, Handle};

impl Tables {
    /// Frees a chunk that has left the live table.
    pub(crate) fn free_in_pages(&mut self, handle: Handle) {
        let Chunk { address, size, prev, next, .. } = self.take_over(handle);
        if !self.merge_committed(handle, (address, address + size), prev, next) {
            self.merge_pages(handle, prev, next, &[]);
        }
    }

    /// Merges a free chunk, which is in no bin, with its free neighbours, if all of their pages are committed; returns
    /// false, without any change, if not.
    #[inline]
    fn merge_committed(
        &mut self,
        mut handle: Handle,
        (mut start, mut end): (u64, u64),
        prev: Option<Handle>,
        next: Option<Handle>,
    ) -> bool {
        let chunks = &self.chunks;
        let hole =
            |at: Option<Handle>| at.map(|at| (at, *chunks.get(at))).filter(|(_, chunk)| chunk.is_free());
        let (left, right) = (hole(prev), hole(next));
        let is_whole =
            |hole: &Option<(Handle, Chunk)>| hole.is_none_or(|(_, chunk)| chunk.requested & 3 == ALL);
        let pages = self.elastic.as_mut().expect(IS_ELASTIC);
        if pages.is_paused || !is_whole(&left) || !is_whole(&right) {
            return false;
        }
        let mut in_holes = 0;
        if let Some((right, Chunk { size, .. })) = right {
            in_holes += pages.count_within(end, end + size);
            end += size;
            self.bins.remove(&mut self.chunks, right, size);
            self.chunks.merge(handle, right, end - start);
        }
        if let Some((left, Chunk { size, .. })) = left {
            in_holes += pages.count_within(start - size, start);
            start -= size;
            self.bins.remove(&mut self.chunks, left, size);
            self.chunks.merge(left, handle, end - start);
            handle = left;
        }
        pages.touched -= pages.count_within(start, end) - in_holes;
        self.chunks.get_mut(handle).requested = self.counters.allocs() << 2 | ALL;
        self.bins.insert(&mut self.chunks, handle, end - start);
        true
    }

    /// Merges a free chunk that is in no bin with its free neighbours. Its own pages are committed, except for those that
    /// lack memory.
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
        let used_at = self.counters.allocs();
        let pages = self.pages_mut();
        let whole = pages.within(start, end);
        let middle = between(whole, left.0, right.0);
        pages.touched -= middle.len();
        let are_all = left.1 == Committed::All && right.1 == Committed::All;
        let committed = if are_all && lacking.is_empty() && !pages.is_paused {
            Committed::All
        } else {
            let mut spans = left.1.spans(left.0);
            if !pages.is_paused {
                spans.extend(Committed::of(middle, lacking.iter().copied()).missing(middle));
            }
            spans.extend(right.1.spans(right.0));
            Committed::of(whole, spans)
        };
        self.put(Hole { handle, start, end, whole, committed, used_at });
    }
}
