//! Elastic pools: memory for the pages of a request, taken from free pages or from the source.

use execution::{Executed, execute};

use super::lock::usable;
use super::{AllocationAttempt, Pool, Source};
use crate::error::{AllocError, GrantFault, TrimError, Unusable};
use crate::policy::elastic::fewer_pages;
use crate::source::{Grant, PageSource, ReserveError, SourceFailure};
use crate::tables::decisions::Decision;
use crate::tables::{Allocation, ChunkRequest, PagePlan, Planned};

/// The next attempt to serve a request, after a refusal by the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// Memory from the source where the policy wants it.
    Ordinary,
    /// Memory of free pages first.
    SparesSource,
    /// The same, after the source made free what it could.
    AfterRecycling,
}

impl Pool {
    /// Attempts a request that no committed pages serve.
    pub(super) fn attempt_in_pages(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
    ) -> Result<Result<Allocation, AllocationAttempt>, AllocError> {
        let mut attempt = Attempt::Ordinary;
        let mut source_refused = false;
        let mut has_range = false;
        loop {
            let mut state = self.lock_open_state()?;
            match state.allocator.plan_pages(request, attempt != Attempt::Ordinary) {
                Planned::Served(allocation) => return Ok(Ok(allocation)),
                Planned::Freeing => break,
                Planned::Addresses(wanted, least) => {
                    drop(state);
                    // A new range serves the request. If it does not, another one would not either.
                    if has_range || !self.reserve_addresses(source, request, wanted, least)? {
                        source_refused = true;
                        break;
                    }
                    has_range = true;
                }
                Planned::Pages(plan) => {
                    let shift = state.allocator.page_shift();
                    drop(state);
                    let executed = execute(pages_of(source), &plan, shift);
                    match self.end_plan(&plan, executed)? {
                        Ok(allocation) => return Ok(Ok(allocation)),
                        Err(ReserveError::Failed(failure)) => {
                            return Err(self.source_failed(request, failure)?);
                        }
                        Err(ReserveError::Declined) => self.note_decline(plan.new_pages() << shift)?,
                    }
                    attempt = match attempt {
                        Attempt::Ordinary => Attempt::SparesSource,
                        Attempt::SparesSource if self.recycle(source, request)? => Attempt::AfterRecycling,
                        Attempt::SparesSource | Attempt::AfterRecycling => {
                            source_refused = true;
                            break;
                        }
                    };
                }
            }
        }
        let mut state = self.lock_open_state()?;
        // A free since the last check is served here or wakes the waiting thread; none is missed.
        if let Some(allocation) = state.allocator.try_allocate(request) {
            return Ok(Ok(allocation));
        }
        let out_of_memory = self.out_of_memory(&state, request, source_refused);
        let progress = state.progress();
        Ok(Err(AllocationAttempt { out_of_memory, progress, possible: None }))
    }

    /// Ends a plan after the calls to the source.
    fn end_plan(
        &self,
        plan: &PagePlan,
        executed: Executed,
    ) -> Result<Result<Allocation, ReserveError>, AllocError> {
        let Executed { received, kept, committed, error } = executed;
        let mut state = self.lock_state()?;
        let open = state.open();
        if error.is_none()
            && open.is_ok()
            && let Some(allocation) = state.allocator.complete(plan, committed)
        {
            // Pages that only moved say nothing about what the source has.
            if committed > 0 {
                state.source_declined = false;
                state.source_declined_guaranteed = false;
            }
            return Ok(Ok(allocation));
        }
        state.allocator.cancel(plan, &received, kept);
        open?;
        Ok(Err(error.unwrap_or(ReserveError::Declined)))
    }

    /// Notes that the source declined to commit so many bytes.
    fn note_decline(&self, bytes: u64) -> Result<(), Unusable> {
        let promised = self.gauge.as_ref().is_some_and(|gauge| bytes <= gauge.headroom().guaranteed);
        let mut state = self.lock_state()?;
        state.source_declined = true;
        state.source_declined_guaranteed = promised;
        Ok(())
    }

    fn source_failed(&self, request: ChunkRequest, failure: SourceFailure) -> Result<AllocError, Unusable> {
        let mut state = self.lock_state()?;
        state.allocator.decisions.record(|| Decision::Refused);
        let refused = self.out_of_memory(&state, request, true);
        Ok(AllocError::SourceFailed { failure, refused })
    }

    /// Reserves a range of addresses; without growth also the memory of the whole limit, at the first request, or as much
    /// of it as the source has, if that serves the request. Returns false if the source declined every size.
    fn reserve_addresses(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
        wanted: u64,
        least: u64,
    ) -> Result<bool, AllocError> {
        let (page_size, at_once) = self.with_state(|state| {
            let tables = &state.allocator;
            let limit = tables.limit >> tables.page_shift();
            let is_first = !tables.grows() && tables.regions.len() == 0;
            (1 << tables.page_shift(), if is_first { limit } else { 0 })
        })?;
        let pages = pages_of(source);
        let mut bytes = wanted;
        let range = loop {
            match pages.reserve_addresses(bytes, page_size) {
                Ok(range) => break range,
                Err(ReserveError::Declined) if bytes > least => {
                    bytes = (bytes / 2).next_multiple_of(page_size).max(least);
                }
                Err(ReserveError::Declined) => {
                    self.lock_state()?.addresses_declined = true;
                    return Ok(false);
                }
                Err(ReserveError::Failed(failure)) => return Err(self.source_failed(request, failure)?),
            }
        };
        if let Some(fault) = self.with_state(|state| state.allocator.range_fault(range, least))? {
            // An overlapping range is not released: its addresses belong to a range in use.
            if fault != GrantFault::Overlap {
                pages.release_addresses(range);
            }
            return Err(AllocError::BadGrant { grant: range, fault });
        }
        // What the source surely lacks it is not asked for.
        let has = self.gauge.as_ref().map_or(u64::MAX, |gauge| gauge.headroom().maximum);
        let most = at_once.min(range.bytes.min(has) / page_size);
        match commit_first(pages, range, page_size, most, request.rounded().div_ceil(page_size)) {
            Ok(committed) => {
                let mut state = self.lock_state()?;
                // A source that declined more has no more for another range.
                state.addresses_declined = bytes < wanted;
                state.allocator.adopt_range(range, committed);
            }
            Err(failure) => {
                pages.release_addresses(range);
                return Err(self.source_failed(request, failure)?);
            }
        }
        Ok(true)
    }

    /// Lets the source make decommitted memory free; returns whether a commit may succeed now.
    fn recycle(&self, source: &mut Source<'_>, request: ChunkRequest) -> Result<bool, AllocError> {
        let ranges: Vec<Grant> =
            self.with_state(|state| state.allocator.regions.iter().map(|region| region.span).collect())?;
        let mut helps = false;
        for range in ranges {
            match pages_of(source).recycle(range) {
                Ok(more) => helps |= more,
                Err(failure) => {
                    self.with_state(|state| state.allocator.lose(range))?;
                    return Err(self.source_failed(request, failure)?);
                }
            }
        }
        Ok(helps)
    }

    /// Gives the memory of up to `most` bytes of free pages back, in whole pages; with `ranges` also the addresses of
    /// ranges without chunks in use. Returns the bytes.
    ///
    /// # Errors
    /// The first failure of the source, after it was asked for all of them.
    pub(super) fn give_back_pages(
        &self,
        source: &mut Source<'_>,
        most: u64,
        ranges: bool,
    ) -> Result<u64, TrimError> {
        let mut state = self.lock_state()?;
        let shift = state.allocator.page_shift();
        // Of a paused pool that is what its source did not take.
        let is_paused = state.allocator.is_paused();
        let free = if is_paused {
            state.take_kept_free_pages()
        } else {
            state.allocator.take_free_pages(most.div_ceil(1 << shift))
        };
        drop(state);
        let mut given = 0;
        let mut kept = Vec::new();
        let mut failure = None;
        for span in free {
            match pages_of(source).decommit(span.addresses(shift)) {
                Ok(()) => given += span.len(),
                // It stays committed, and a later call tries again.
                Err(error) => {
                    failure.get_or_insert(error);
                    kept.push(span);
                }
            }
        }
        let mut state = self.lock_state()?;
        state.allocator.count_decommits(given);
        let stays = if is_paused {
            state.keep_pages(kept)
        } else {
            state.allocator.return_free_pages(kept);
            false
        };
        let gone = if ranges && !stays { state.allocator.take_free_ranges() } else { Vec::new() };
        if given > 0 {
            state.retry_reasons += 1;
        }
        drop(state);
        for range in gone {
            pages_of(source).release_addresses(range);
        }
        let released = given << shift;
        failure.map_or(Ok(released), |failure| Err(TrimError::SourceFailed { failure, released }))
    }

    /// Gives everything back that a closed pool without allocations has; returns false if something stays.
    pub(super) fn give_back_last_pages(&self, source: &mut Source<'_>) -> bool {
        let _ = self.give_back_pages(source, u64::MAX, true);
        usable(self.state.lock()).is_ok_and(|state| !state.must_release_regions())
    }
}

/// Commits `count` pages at the start of a range, or as many as the source grants of fewer and fewer, but not fewer than
/// `least`. Returns their number, 0 if it declined all of them.
fn commit_first(
    pages: &mut dyn PageSource,
    range: Grant,
    page_size: u64,
    mut count: u64,
    least: u64,
) -> Result<u64, SourceFailure> {
    while count >= least.max(1) {
        match pages.commit(Grant { bytes: count * page_size, ..range }) {
            Ok(()) => return Ok(count),
            Err(ReserveError::Declined) => count = fewer_pages(count),
            Err(ReserveError::Failed(failure)) => return Err(failure),
        }
    }
    Ok(0)
}

/// Returns the source's pages: an elastic pool has a source with pages.
pub(super) fn pages_of<'a>(source: &'a mut Source<'_>) -> &'a mut dyn PageSource {
    source.pages().expect("the source had pages when the pool was made, and that is constant")
}

mod content_file;
mod execution;
pub(super) mod paused_content;
mod paused_memory;
pub(super) mod pausing;
