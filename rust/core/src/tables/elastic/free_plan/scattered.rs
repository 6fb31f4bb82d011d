//! Frees of chunks that lie anywhere, where one page costs the fewest bytes first.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::RangeInclusive;

use super::{Kind, Part, Place, Row};
use crate::chunk::Chunk;
use crate::tables::free_plan::FreePlan;

/// Returns allocations whose release leaves at most `most` pages in use with those of a place, if there is one. What is in
/// the place is among them. `None` if there is no such set.
pub(super) fn plan(rows: &[Row<'_>], shift: u32, place: Option<Place>, most: u64) -> Option<FreePlan> {
    let is_in_place = |part: &Part<'_>| place.is_some_and(|place| part.is_in(place));
    let mut pages = UsedPages { shift, ..UsedPages::default() };
    let mut in_place = Vec::new();
    let mut place_to_add = place;
    for part in rows.iter().flat_map(|row| &row.parts).filter(|part| part.kind != Kind::Free) {
        if is_in_place(part) {
            in_place.push(part.chunk);
            continue;
        }
        let freeable = (part.kind == Kind::Freeable).then_some(part.chunk);
        if let Some(place) = place_to_add.take_if(|place| place.start < part.chunk.address) {
            pages.push(None, place.start, place.end);
        }
        pages.push(freeable, part.chunk.address, part.chunk.end());
    }
    if let Some(place) = place_to_add {
        pages.push(None, place.start, place.end);
    }
    let mut freed = Vec::new();
    for group in pages.cheapest_first() {
        if pages.in_use <= most {
            break;
        }
        freed.extend(group.filter(|&index| pages.free(index)));
    }
    if pages.in_use > most {
        return None;
    }
    // What turns out to be unnecessary stays, the largest first.
    freed.sort_unstable_by_key(|&index| Reverse(pages.size(index)));
    for index in freed {
        pages.keep(index);
        if pages.in_use > most {
            pages.free(index);
        }
    }
    let freed = pages.chunks.iter().filter(|used| used.is_freed).filter_map(|used| used.freeable);
    Some(FreePlan::of(in_place.into_iter().chain(freed)))
}

/// A chunk in use, or the place of the request.
struct Used<'a> {
    /// The chunk, if it can be freed.
    freeable: Option<&'a Chunk>,
    /// The pages that it alone touches.
    own: u64,
    /// The numbers of its first and its last page among the shared ones; of its only page the first.
    shared: [Option<usize>; 2],
    is_freed: bool,
}

/// A page that several chunks in a row touch.
struct SharedPage {
    first: usize,
    last: usize,
    /// How many of them are not freed.
    left: usize,
}

/// The pages in use, while chunks are freed in any order.
#[derive(Default)]
struct UsedPages<'a> {
    shift: u32,
    /// In address order.
    chunks: Vec<Used<'a>>,
    shared: Vec<SharedPage>,
    in_use: u64,
    /// The last page so far, and its number among the shared ones.
    last_page: Option<(u64, Option<usize>)>,
}

impl<'a> UsedPages<'a> {
    /// Adds the next chunk in address order.
    fn push(&mut self, freeable: Option<&'a Chunk>, start: u64, end: u64) {
        let (first, last) = (start >> self.shift, (end - 1) >> self.shift);
        let index = self.chunks.len();
        let pages = last - first + 1;
        let mut used = Used { freeable, own: pages, shared: [None; 2], is_freed: false };
        self.in_use += pages;
        let mut shared = None;
        if let Some((page, with_others)) = self.last_page
            && page == first
        {
            let number = with_others.unwrap_or_else(|| {
                self.shared.push(SharedPage { first: index - 1, last: index, left: 1 });
                let before = &mut self.chunks[index - 1];
                before.own -= 1;
                before.shared[1] = Some(self.shared.len() - 1);
                self.shared.len() - 1
            });
            let page = &mut self.shared[number];
            page.last = index;
            page.left += 1;
            used.own -= 1;
            used.shared[0] = Some(number);
            self.in_use -= 1;
            shared = Some(number).filter(|_| first == last);
        }
        self.last_page = Some((last, shared));
        self.chunks.push(used);
    }

    fn size(&self, index: usize) -> u64 {
        self.chunks[index].freeable.map_or(0, |chunk| chunk.size)
    }

    /// Returns the chunks that make pages free together, those first that give the most pages for their bytes.
    fn cheapest_first(&self) -> Vec<RangeInclusive<usize>> {
        let alone = (0..self.chunks.len()).filter(|&index| self.chunks[index].own > 0);
        let together = self.shared.iter().map(|page| (1, page.first..=page.last));
        let mut groups: Vec<_> = alone
            .map(|index| (0, index..=index))
            .chain(together)
            .filter(|(_, group)| self.chunks[group.clone()].iter().all(|used| used.freeable.is_some()))
            .map(|(shared, group)| {
                let pages = shared + self.chunks[group.clone()].iter().map(|used| used.own).sum::<u64>();
                let bytes: u64 = group.clone().map(|index| self.size(index)).sum();
                (u128::from(bytes), u128::from(pages), group)
            })
            .collect();
        groups.sort_by(|(bytes, pages, _), (other_bytes, other_pages, _)| {
            (bytes * other_pages).cmp(&(other_bytes * pages)).then(other_pages.cmp(pages))
        });
        groups.into_iter().map(|(.., group)| group).collect()
    }

    /// Frees a chunk; returns false if it was freed before.
    fn free(&mut self, index: usize) -> bool {
        let used = &mut self.chunks[index];
        if used.is_freed {
            return false;
        }
        used.is_freed = true;
        self.in_use -= used.own;
        for number in used.shared.into_iter().flatten() {
            let page = &mut self.shared[number];
            page.left -= 1;
            self.in_use -= u64::from(page.left == 0);
        }
        true
    }

    /// Takes a free back.
    fn keep(&mut self, index: usize) {
        let used = &mut self.chunks[index];
        used.is_freed = false;
        self.in_use += used.own;
        for number in used.shared.into_iter().flatten() {
            let page = &mut self.shared[number];
            self.in_use += u64::from(page.left == 0);
            page.left += 1;
        }
    }
}
