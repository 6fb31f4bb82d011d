//! The count of touched pages, which decides where a request goes from half of the limit on.
//!
//! Touched pages are committed. While fewer pages are committed than that, no event counts the touched ones, and a
//! question about their number looks at the holes.

use super::Elastic;
use crate::policy::elastic::tight_from;
use crate::tables::Tables;

impl Elastic {
    pub(super) fn set_plan(&mut self, has_plan: bool) {
        self.has_plan = has_plan;
        self.set_care();
    }

    pub(super) fn set_pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
        self.set_care();
    }

    fn set_care(&mut self) {
        self.needs_care = self.touched.is_some() || self.has_plan || self.is_paused;
    }

    /// Counts pages that become touched.
    pub(super) fn touch(&mut self, pages: u64) {
        if let Some(touched) = &mut self.touched {
            *touched += pages;
        }
    }

    /// Counts pages that were touched and are no longer.
    pub(super) fn leave(&mut self, pages: u64) {
        if let Some(touched) = &mut self.touched {
            *touched -= pages;
        }
    }
}

impl Tables {
    /// Adapts the pages to a changed limit.
    pub(in crate::tables) fn set_page_limit(&mut self) {
        let limit = self.limit;
        if let Some(pages) = &mut self.elastic {
            pages.tight_from = tight_from(pages.page_size(), limit);
            pages.lacking = None;
            self.set_counting();
        }
    }

    /// Begins or ends the count of touched pages, after a change of the limit or of the committed bytes.
    pub(super) fn set_counting(&mut self) {
        let pages = self.pages();
        let counts = self.counters.reserved() >> pages.shift >= pages.tight_from;
        if counts != pages.touched.is_some() {
            let touched = counts.then(|| self.count_touched());
            let pages = self.pages_mut();
            pages.touched = touched;
            pages.set_care();
        }
    }

    /// Returns the number of touched pages.
    pub(super) fn touched(&self) -> u64 {
        self.pages().touched.unwrap_or_else(|| self.count_touched())
    }

    /// Counts the pages that lie wholly in no hole.
    ///
    /// # Cost
    /// Linear in the number of holes of a page or more.
    fn count_touched(&self) -> u64 {
        let pages = self.pages();
        let all: u64 = self.regions.iter().map(|region| region.span.bytes >> pages.shift).sum();
        let holes = self.bins.all_from(&self.chunks, pages.page_size());
        let in_hole = |handle| {
            let chunk = self.chunks.get(handle);
            pages.count_within(chunk.address, chunk.end())
        };
        all - holes.into_iter().map(in_hole).sum::<u64>()
    }
}
