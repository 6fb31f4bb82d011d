//! Where a request goes if its best fit lacks memory, or if few pages may become touched: the comparison of holes.

use core::num::NonZeroU64;

use super::hole::{Lacking, Place, ends_of, place_in};
use super::marks::{ALL, KIND, LISTED, length_of};
use super::{ChunkRequest, Elastic, Tables};
use crate::chunk::{Chunk, Handle};
use crate::policy::elastic::CANDIDATES;
use crate::tables::pages::PageSpan;

impl Tables {
    /// Returns the hole and the place that need the least memory; `None` if no hole serves the request under the limit.
    /// If memory is short that is the place that touches the fewest pages, over all holes.
    pub(super) fn choose(&self, request: ChunkRequest, is_short: bool) -> Option<(Handle, Place)> {
        let mut search = Search::new(self, request, is_short);
        if !is_short {
            self.bins.visit_from(&self.chunks, request.rounded(), CANDIDATES, |handle| {
                if search.may_win(handle) {
                    search.compare(handle);
                }
            });
        }
        if search.best.is_none() {
            // The limit may leave too little memory for each of these: then every hole is looked at.
            for handle in self.bins.all_from(&self.chunks, request.rounded()) {
                search.compare(handle);
            }
        }
        search.best
    }

    /// Returns whether few pages may become touched any more: then the fewest are worth a search.
    pub(super) fn is_tight(&self) -> bool {
        let pages = self.pages();
        // Where nothing counts them, fewer pages are committed than that.
        pages.touched.is_some_and(|touched| touched >= pages.tight_from)
    }

    /// Puts a request into the place that is chosen for it, if the pages there have memory.
    pub(super) fn take_chosen(&mut self, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        let lacking = Some(Lacking {
            needed: request.needed,
            alignment: request.alignment,
            allocs: self.counters.allocs(),
            live: self.live.len(),
        });
        // A request comes here again on each of the slower paths.
        if self.pages().lacking == lacking {
            return None;
        }
        let (handle, place) = self.choose(request, false)?;
        let hole = self.hole(handle);
        let size = hole.end - hole.start;
        if hole.committed.count_missing(place.pages) > 0 {
            self.pages_mut().lacking = lacking;
            return None;
        }
        if !self.is_tight() {
            self.count_live();
        }
        self.bins.remove(&mut self.chunks, handle, size);
        let chunk = self.carve(handle, place);
        self.hand_over(chunk, request.bytes, chunk.size)
    }
}

/// A search for the place that needs the least memory.
struct Search<'a> {
    tables: &'a Tables,
    pages: &'a Elastic,
    request: ChunkRequest,
    /// The bytes of the chunk.
    bytes: u64,
    /// The fewest pages that lie wholly in so many bytes, wherever they are.
    fewest: u64,
    room: u64,
    is_tight: bool,
    /// Whether each end of each hole is a place: the request has no alignment, and the source lost no range.
    is_simple: bool,
    least: PlaceCosts,
    best: Option<(Handle, Place)>,
}

/// The costs of a place: the least number wins, then the least second one, then the smallest hole at the lowest address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceCosts(u64, u128, u128);

impl<'a> Search<'a> {
    fn new(tables: &'a Tables, request: ChunkRequest, is_short: bool) -> Self {
        let pages = tables.pages();
        Self {
            tables,
            pages,
            request,
            bytes: request.rounded(),
            fewest: (request.rounded() >> pages.shift).saturating_sub(1),
            room: tables.room_for(request),
            is_tight: is_short || tables.is_tight(),
            is_simple: !request.is_aligned() && pages.lost.is_empty(),
            least: PlaceCosts(u64::MAX, 0, 0),
            best: None,
        }
    }

    /// Returns false if a few numbers tell that a hole has no better place than the best one so far.
    #[inline(always)]
    fn may_win(&self, handle: Handle) -> bool {
        let PlaceCosts(ends_range, needs, hole) = self.least;
        if self.is_tight || ends_range > 0 {
            return true;
        }
        let Chunk { address, size, requested: mark, next, .. } = *self.tables.chunks.get(handle);
        let least = self.fewest;
        match mark & KIND {
            _ if next.is_none() => false,
            ALL => needs > pair(0, least) || pair(size, address) < hole,
            LISTED => true,
            _ => pair(least.saturating_sub(length_of(mark)), 0) <= needs,
        }
    }

    /// Compares the places in a hole with the best one so far.
    #[inline(never)]
    fn compare(&mut self, handle: Handle) {
        let Chunk { address, size, requested: mark, next, .. } = *self.tables.chunks.get(handle);
        let (end, ends_range) = (address.wrapping_add(size), next.is_none());
        let hole = (address, mark, self.pages.within(address, end));
        let places = if self.is_simple {
            [Some(address), Some(end.wrapping_sub(self.bytes))]
        } else {
            ends_of(address, end, self.request)
        };
        let [Some(mut start), Some(at_end)] = places else { return };
        let mut needs = self.needs(hole, start, ends_range);
        if !ends_range {
            let others = self.needs(hole, at_end, ends_range);
            if others < needs {
                (start, needs) = (at_end, others);
            }
        }
        let needs = PlaceCosts(needs.0, needs.1, pair(size, address));
        if needs < self.least {
            self.least = needs;
            self.best = Some((handle, place_in(hole.2, start, start + self.bytes, self.pages)));
        }
    }

    /// Returns what a place needs; the most if the limit, or a loss, forbids it.
    #[inline(always)]
    fn needs(
        &self,
        (address, mark, whole): (u64, u64, PageSpan),
        start: u64,
        ends_range: bool,
    ) -> (u64, u128) {
        let pages = place_in(whole, start, start.wrapping_add(self.bytes), self.pages).pages;
        let touched = pages.len();
        let missing = self.pages.count_missing(mark, whole, pages);
        if touched > self.room || !self.is_simple && missing > 0 && self.tables.is_lost(address) {
            (u64::MAX, 0)
        } else if self.is_tight {
            (touched, pair(u64::from(ends_range), missing))
        } else {
            (u64::from(ends_range), pair(missing, touched))
        }
    }
}

/// Returns a number that orders as the two numbers do, the first one before the second.
#[inline(always)]
fn pair(first: u64, second: u64) -> u128 {
    u128::from(first) << 64 | u128::from(second)
}

#[cfg(test)]
pub(super) mod tests;
