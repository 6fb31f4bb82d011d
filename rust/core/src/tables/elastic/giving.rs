//! Free pages: taken for others or for the source, and returned; ranges of addresses.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use super::super::Tables;
use super::super::pages::{Committed, PageSpan, count};
use super::hole::Hole;
use crate::chunk::Handle;
use crate::chunk::region::{Place as RegionPlace, Region};
use crate::error::GrantFault;
use crate::source::Grant;

impl Tables {
    /// Takes up to `most` committed pages out of holes, those of the largest ones first; they count as reserved
    /// until [`Tables::count_decommits`].
    pub(crate) fn take_free_pages(&mut self, most: u64) -> Vec<PageSpan> {
        let mut taken = Vec::new();
        let mut missing = most;
        if missing == 0 {
            return taken;
        }
        let mut holes: Vec<(u64, u64, Handle)> = Vec::new();
        for handle in self.bins.all_from(&self.chunks, self.pages().page_size()) {
            let hole = self.hole(handle);
            if !hole.whole.is_empty() && hole.committed != Committed::None {
                holes.push((hole.whole.len(), hole.start, handle));
            }
        }
        // The largest first: few calls, and small holes are the ones that programs use again.
        let order = |&(pages, start, _): &(u64, u64, Handle)| (Reverse(pages), start);
        // Each has a page: as many holes as pages suffice, and often that is few of many.
        if let Ok(enough) = usize::try_from(missing)
            && enough < holes.len()
        {
            holes.select_nth_unstable_by_key(enough, order);
            holes.truncate(enough);
        }
        holes.sort_unstable_by_key(order);
        for (_, _, handle) in holes {
            let chunk = *self.chunks.get(handle);
            let mut hole = self.pages_mut().take(handle, &chunk);
            let spans = hole.committed.take(hole.whole, missing);
            missing -= count(&spans);
            taken.extend(spans);
            self.mark(hole);
            if missing == 0 {
                break;
            }
        }
        self.pages_mut().in_flight += count(&taken).cast_signed();
        taken
    }

    /// Returns pages that were taken to the holes that they lie in.
    ///
    /// # Cost
    /// Linear in the number of chunks.
    pub(crate) fn return_free_pages(&mut self, mut spans: Vec<PageSpan>) {
        spans.sort_unstable();
        let shift = self.pages().shift;
        let mut found: Vec<(Handle, Range<usize>)> = Vec::new();
        for region in self.regions.iter() {
            let mut at = spans.partition_point(|span| span.addresses(shift).address < region.span.address);
            for (handle, chunk) in self.chunks.run(region.first) {
                let first = at;
                while spans.get(at).is_some_and(|span| span.addresses(shift).address < chunk.end()) {
                    at += 1;
                }
                if first < at {
                    debug_assert!(chunk.is_free(), "pages without memory are in no chunk in use");
                    found.push((handle, first..at));
                }
                if at == spans.len() {
                    break;
                }
            }
        }
        for (handle, added) in found {
            let chunk = *self.chunks.get(handle);
            let mut hole = self.pages_mut().take(handle, &chunk);
            hole.committed.add(hole.whole, &spans[added]);
            self.mark(hole);
        }
    }

    /// Records the pages of a hole that stays in its bin.
    fn mark(&mut self, hole: Hole<'_>) {
        let handle = hole.handle;
        let requested = self.pages_mut().record(hole);
        self.chunks.get_mut(handle).requested = requested;
    }

    /// Returns why a range of addresses cannot be added.
    pub(crate) fn range_fault(&self, range: Grant, needed: u64) -> Option<GrantFault> {
        let page_size = self.pages().page_size();
        if !range.address.is_multiple_of(page_size) || !range.bytes.is_multiple_of(page_size) {
            return Some(GrantFault::NoPages { page_size });
        }
        if range.bytes < needed {
            return Some(GrantFault::TooShort { needed });
        }
        self.grant_fault(range)
    }

    /// Adds a range of addresses that has no [fault](Self::range_fault); `committed` of its pages, from the first on, have memory.
    pub(crate) fn adopt_range(&mut self, range: Grant, committed: u64) {
        let handle = self.chunks.insert(range.address, range.bytes);
        let place = match self.regions.place(range) {
            Some(RegionPlace::After(index)) => index + 1,
            Some(RegionPlace::Between(index)) => index,
            None => unreachable!(
                "`range_fault` found no overlap, and only the holder of the source lock adds ranges"
            ),
        };
        self.regions.insert(place, Region { span: range, first: handle });
        let shift = self.pages().shift;
        let whole = PageSpan::within(range.address, range.end(), shift);
        let first = PageSpan { first: whole.first, end: whole.first + committed };
        let with_memory = Committed::of(whole, [first]);
        self.put(Hole { handle, start: range.address, end: range.end(), whole, committed: with_memory });
        self.counters.account_reserve(0);
        self.count_commits(committed, committed);
    }

    /// Removes the ranges without chunks in use. None of their pages has memory.
    pub(crate) fn take_free_ranges(&mut self) -> Vec<Grant> {
        let Self { chunks, elastic, .. } = self;
        let Some(pages) = elastic else { return Vec::new() };
        let gone = self.regions.take(|region| {
            let first = chunks.get(region.first);
            first.is_free()
                && first.next.is_none()
                && pages.look_into(region.first, first).committed == Committed::None
        });
        for region in &gone {
            self.bins.remove(&mut self.chunks, region.first, region.span.bytes);
            self.chunks.remove(region.first);
        }
        gone.into_iter().map(|region| region.span).collect()
    }
}
