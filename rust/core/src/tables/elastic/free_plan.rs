//! Which allocations to free so that an elastic pool serves a refused request.
//!
//! A page becomes free with the last chunk in use that has a byte of it. So a chunk frees the pages that are its alone,
//! and two neighbours also the page that they share. Three kinds of sets are looked at: chunks in a row, of which the
//! pages and the hole count; chunks anywhere, for a place that exists already; and, if neither suffices, chunks anywhere
//! for the place that needs the fewest pages once everything is free, so that a set is found whenever there is one.

use alloc::vec::Vec;

use super::super::feasibility::Supply;
use super::super::free_plan::{FreePlan, MAX_ALLOCATIONS};
use super::super::{ChunkRequest, Tables};
use super::hole::{Place, ends_of, place_in};
use crate::chunk::region::Region;
use crate::chunk::{Chunk, Handle};

/// A chunk, as far as frees are concerned.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    chunk: &'a Chunk,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Free,
    /// An allocation that a program can free.
    Freeable,
    /// Anything else: a held allocation, or a chunk of another thread's plan.
    Fixed,
}

impl Part<'_> {
    /// Returns whether it has a byte of a place.
    fn is_in(&self, place: Place) -> bool {
        self.chunk.address < place.end && place.start < self.chunk.end()
    }
}

/// The chunks of a range in a row, and sums of what comes before each.
struct Row<'a> {
    parts: Vec<Part<'a>>,
    /// The pages that lie wholly in the holes before a part.
    pages_in_holes: Vec<u64>,
    /// The bytes of freeable chunks before a part.
    used: Vec<u64>,
}

/// The hole that frees of chunks in a row make, and the pages that become free.
struct MadeHole {
    start: u64,
    end: u64,
    ends_range: bool,
    gained: u64,
}

impl<'a> Row<'a> {
    fn new(tables: &'a Tables, region: &Region) -> Self {
        // Pages of a range that the source lost receive no memory any more.
        let is_lost = tables.is_lost(region.span.address);
        let part = |(handle, chunk): (Handle, &'a Chunk)| {
            let is_freeable = tables.is_occupied(handle, chunk) && !chunk.is_held() && !is_lost;
            let kind = match (chunk.is_free(), is_freeable) {
                (true, _) => Kind::Free,
                (false, true) => Kind::Freeable,
                (false, false) => Kind::Fixed,
            };
            Part { chunk, kind }
        };
        let mut row = Self { parts: Vec::new(), pages_in_holes: Vec::new(), used: Vec::new() };
        let (mut pages_in_holes, mut used) = (0, 0);
        for part in tables.chunks.run(region.first).map(part) {
            row.pages_in_holes.push(pages_in_holes);
            row.used.push(used);
            row.parts.push(part);
            match part.kind {
                Kind::Free => {
                    pages_in_holes += tables.pages().count_within(part.chunk.address, part.chunk.end());
                }
                Kind::Freeable => used += part.chunk.size,
                Kind::Fixed => {}
            }
        }
        row.pages_in_holes.push(pages_in_holes);
        row.used.push(used);
        row
    }

    /// Returns the bytes of the freeable chunks from one to another.
    fn used(&self, first: usize, last: usize) -> u64 {
        self.used[last + 1] - self.used[first]
    }

    /// Returns the hole that frees of the chunks from one to another make, none of which is fixed.
    fn made_hole(&self, tables: &Tables, mut first: usize, mut last: usize) -> MadeHole {
        let is_free = |index: usize| self.parts.get(index).is_some_and(|part| part.kind == Kind::Free);
        if first > 0 && is_free(first - 1) {
            first -= 1;
        }
        if is_free(last + 1) {
            last += 1;
        }
        let (start, end) = (self.parts[first].chunk.address, self.parts[last].chunk.end());
        let before = self.pages_in_holes[last + 1] - self.pages_in_holes[first];
        MadeHole {
            start,
            end,
            ends_range: self.parts[last].chunk.next.is_none(),
            gained: tables.pages().count_within(start, end) - before,
        }
    }

    /// Iterates over the longest rows without a fixed chunk, as the indices of their parts.
    fn runs(&self) -> impl Iterator<Item = core::ops::Range<usize>> + '_ {
        let mut start = 0;
        let runs = self.parts.split(|part| part.kind == Kind::Fixed).map(move |run| {
            let range = start..start + run.len();
            start = range.end + 1;
            range
        });
        runs.filter(|run| !run.is_empty())
    }
}

impl MadeHole {
    /// Returns the places for a request.
    fn places(&self, tables: &Tables, request: ChunkRequest) -> impl Iterator<Item = Place> {
        let pages = tables.pages();
        let &Self { start, end, ends_range, .. } = self;
        let whole = pages.within(start, end);
        let [first, last] = ends_of(start, end, request);
        let places = [first, last.filter(|_| !ends_range)];
        let place = |start| place_in(whole, start, start + request.rounded(), pages);
        places.map(|start| start.map(place)).into_iter().flatten()
    }
}

impl Tables {
    /// Returns a set of allocations whose release lets a request be served, as small as is found; `None` if there is none.
    /// Skips allocations that a runtime holds.
    ///
    /// # Cost
    /// Linear in the number of chunks, apart from sorting.
    pub(in crate::tables) fn plan_frees_in_pages(
        &self,
        request: ChunkRequest,
        supply: Supply,
    ) -> Option<FreePlan> {
        if self.pages().is_paused {
            return None;
        }
        let room = self.room_with(supply);
        let fewest = self.fewest_pages(request, supply.grants_addresses);
        if fewest.is_some_and(|(fewest, _)| fewest <= room) {
            return None;
        }
        let rows: Vec<_> = self.regions.iter().map(|region| Row::new(self, region)).collect();
        let in_a_row = rows.iter().filter_map(|row| self.plan_in_a_row(row, request, room, fewest));
        // At most so many pages are in use with the request.
        let most = self.touched() + room;
        let scattered = fewest.and_then(|(fewest, place)| {
            let beside = if place.is_some() { 0 } else { fewest };
            scattered::plan(&rows, self.pages().shift, place, most.checked_sub(beside)?)
        });
        let is_short = |plan: &FreePlan| plan.allocations.len() <= MAX_ALLOCATIONS;
        let found = in_a_row.chain(scattered).filter(is_short);
        found.min_by_key(|plan| (plan.bytes, plan.allocations.len())).or_else(|| {
            let place = self.best_place_of_all(&rows, request)?;
            scattered::plan(&rows, self.pages().shift, Some(place), most).filter(is_short)
        })
    }

    /// Finds the chunks in a row with the fewest bytes that make room enough, for a place between them or for the one that
    /// exists elsewhere and touches so many pages anew.
    fn plan_in_a_row(
        &self,
        row: &Row<'_>,
        request: ChunkRequest,
        room: u64,
        elsewhere: Option<(u64, Option<Place>)>,
    ) -> Option<FreePlan> {
        let serves = |first, last| {
            let hole = row.made_hole(self, first, last);
            let within = hole.places(self, request).map(|place| place.pages.len());
            let elsewhere = elsewhere.map(|(pages, place)| {
                // A page that it shares with what is freed stays in use.
                let whole = self.pages().within(hole.start, hole.end);
                let shared = |place: Place| {
                    whole.common(place.all_pages(self.pages())).len() - whole.common(place.pages).len()
                };
                pages + place.map_or(0, shared)
            });
            within.chain(elsewhere).min().is_some_and(|least| least <= room + hole.gained)
        };
        let mut best: Option<(u64, usize, usize)> = None;
        for run in row.runs() {
            // More chunks never serve less: for each last chunk the shortest row that serves is looked for.
            let mut freeable = run.filter(|&index| row.parts[index].kind == Kind::Freeable);
            let lasts = freeable.clone();
            let mut first = freeable.next();
            for last in lasts {
                while let Some(from) = first
                    && from <= last
                    && serves(from, last)
                {
                    let used = row.used(from, last);
                    if best.is_none_or(|(least, ..)| used < least) {
                        best = Some((used, from, last));
                    }
                    first = freeable.next();
                }
            }
        }
        let (_, first, last) = best?;
        let freed = row.parts[first..=last].iter().filter(|part| part.kind == Kind::Freeable);
        Some(FreePlan::of(freed.map(|part| part.chunk)))
    }

    /// Returns the place that needs the fewest pages once everything is free, and of several the one with the fewest bytes
    /// in the way.
    fn best_place_of_all(&self, rows: &[Row<'_>], request: ChunkRequest) -> Option<Place> {
        let mut best: Option<((u64, u64), Place)> = None;
        for row in rows {
            for run in row.runs() {
                let hole = row.made_hole(self, run.start, run.end - 1);
                for place in hole.places(self, request) {
                    let in_the_way = row.parts[run.clone()]
                        .iter()
                        .filter(|part| part.kind == Kind::Freeable && part.is_in(place));
                    let costs = (place.pages.len(), in_the_way.map(|part| part.chunk.size).sum());
                    if best.is_none_or(|(least, _)| costs < least) {
                        best = Some((costs, place));
                    }
                }
            }
        }
        best.map(|(_, place)| place)
    }
}

mod scattered;

#[cfg(test)]
mod tests;
