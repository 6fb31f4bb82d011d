//! Trimming: releases free memory on request.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{Pool, Source, release_regions};
use crate::error::TrimError;

/// The smallest free chunk that a trim discards: smaller ones rarely contain a whole page.
const DISCARDED: u64 = 4096;

impl Pool {
    /// Releases all wholly free regions; returns their bytes. Discards free memory in the other regions if the source
    /// can; no request gets that memory meanwhile. Skips the discard if nothing was allocated or freed since the last
    /// one.
    ///
    /// # Errors
    /// If the pool's own source calls it, in a forked child, or if the source does not take pages of an elastic pool:
    /// what it took is gone.
    pub fn trim(&self) -> Result<u64, TrimError> {
        self.with_source(|source| self.trim_with(source))?
    }

    /// Does the same unless another thread holds the source lock; `None` means that nothing was done.
    pub(super) fn try_trim(&self) -> Result<Option<u64>, TrimError> {
        self.check_process()?;
        let source = self.source_lock.try_lock();
        source.map(|source| self.use_source(source, |source| self.trim_with(source))).transpose()
    }

    /// Gives memory back until at most `target` bytes are reserved, as far as free memory allows; returns the bytes. An
    /// elastic pool gives back as many pages as that takes, those of the longest idle holes first; another one gives back
    /// all wholly free regions.
    ///
    /// # Errors
    /// As [`Pool::trim`].
    pub fn trim_to(&self, target: u64) -> Result<u64, TrimError> {
        self.with_source(|source| {
            let reserved = self.with_settled_state(|state| state.allocator.counters.reserved());
            let reserved = reserved.map_err(TrimError::from)?;
            match reserved.saturating_sub(target) {
                0 => Ok(0),
                surplus if self.options.elastic => self.give_back_pages(source, surplus, false),
                _ => self.trim_with(source),
            }
        })?
    }

    fn trim_with(&self, source: &mut Source<'_>) -> Result<u64, TrimError> {
        if self.options.elastic {
            return self.give_back_pages(source, u64::MAX, true);
        }
        let mut state = self.lock_settled_state()?;
        let activity = state.activity()?;
        // Chunks from the quarantine became free without a free, and are full of poison.
        let touched = state.empty_quarantine() || state.discarded_at != Some(activity);
        let regions = state.allocator.take_free_regions();
        if !regions.is_empty() {
            state.allocator.history.end();
        }
        let discards = source.discards() && touched;
        let aside = if discards { state.allocator.detach_free_chunks(DISCARDED) } else { Vec::new() };
        drop(state);
        let discarded = catch_unwind(AssertUnwindSafe(|| {
            for &(_, span) in &aside {
                source.discard(span);
            }
        }));
        let mut state = self.lock_state()?;
        state.allocator.reattach_free_chunks(aside);
        if discards {
            // A free during the discard counts as activity.
            state.discarded_at = discarded.is_ok().then_some(activity);
        }
        drop(state);
        let released = release_regions(source, regions);
        discarded.unwrap_or_else(|panic| resume_unwind(panic));
        Ok(released)
    }
}
