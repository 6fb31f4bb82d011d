//! The state that the lock guards.

use std::sync::Arc;

use super::Pool;
use super::caches::Caches;
use super::elastic::paused_content::Paused;
use super::guarding::Guarded;
use super::recording::Recordings;
use super::wait::Waiting;
use crate::error::Unusable;
use crate::source::Grant;
use crate::stats::Stats;
use crate::tables::Tables;
use crate::tables::decisions::Decision;
use crate::tables::owner::ScopeId;

/// The tables of a pool and the conditions that its calls must check.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, by name")]
pub(super) struct State {
    pub(super) allocator: Tables,
    /// Red zones and quarantine; `None` outside of guard mode.
    pub(super) guarded: Option<Guarded>,
    slow_path: SlowPathReasons,
    /// The logs that receive the pool's events.
    pub(super) recordings: Recordings,
    /// The caches that chunks are lent to.
    pub(super) caches: Option<Arc<Caches>>,
    /// Whether anything was lent since the caches were settled.
    pub(super) has_lent: bool,
    /// The number of changes that justify a retry: of limits, scopes and pending requests.
    pub(super) retry_reasons: u64,
    /// Whether the source declined the last request.
    pub(super) source_declined: bool,
    /// Whether the source declined a request that its gauge had guaranteed.
    pub(super) source_declined_guaranteed: bool,
    /// Whether the source of an elastic pool declined addresses when it was last asked for some, all of them or a part.
    pub(super) addresses_declined: bool,
    /// The activity at which a trim had discarded all free memory; `None` before the first trim and after a failed
    /// one.
    pub(super) discarded_at: Option<u64>,
    /// The content that a paused pool keeps.
    pub(super) paused: Option<Paused>,
}

/// The conditions under which the fast path must not be used.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a reason of its own, by name")]
pub(super) struct SlowPathReasons {
    /// The pool refuses new requests, and the last free releases the regions.
    pub(super) closed: bool,
    /// The requests that wait for a free.
    pub(super) waiting: Waiting,
    /// The number of open scopes, of single threads or shared.
    pub(super) scopes: usize,
    /// The open shared scopes, the innermost last.
    pub(super) shared: Vec<ScopeId>,
    /// Whether allocations are recorded under the tag of their thread.
    pub(super) tags: bool,
    /// Whether a log receives the pool's events, which the fast path of recorded pools does, too.
    pub(super) recorded: bool,
    /// Whether guard mode is on: every operation accesses the memory. Never changes.
    guarded: bool,
    /// Whether the pool is paused: none of its pages has memory.
    pub(super) paused: bool,
}

impl SlowPathReasons {
    pub(super) fn any(&self) -> bool {
        self.guarded || self.closed || self.paused || !self.waiting.is_empty() || self.records_owners()
    }

    /// Returns whether an allocation may have an owner.
    pub(super) fn records_owners(&self) -> bool {
        self.scopes > 0 || self.tags
    }
}

impl Pool {
    /// Changes the slow-path reasons, and closes or opens the fast path accordingly. The only way to change them.
    pub(super) fn update_slow_path<T>(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut SlowPathReasons) -> T,
    ) -> T {
        let result = change(&mut state.slow_path);
        let (closes, recorded) = (state.slow_path.any(), state.slow_path.recorded);
        self.deferred.set_slow_path(closes);
        self.deferred.set_observed(recorded);
        if closes || recorded {
            // Threads that use their cache afterwards see that the fast path is closed. If a cache cannot be taken from
            // its thread, a call that needs what it keeps says so.
            let _ = state.settle();
        }
        result
    }
}

impl State {
    pub(super) fn new(
        mut allocator: Tables,
        guarded: Option<Guarded>,
        tags: bool,
        number: u64,
        caches: Option<Arc<Caches>>,
    ) -> Self {
        if caches.is_some() {
            // A second run would be served by caches, too.
            allocator.history.end();
        }
        if allocator.elastic.is_some() {
            // A second run would have pages, too.
            allocator.history.end();
        }
        let slow_path = SlowPathReasons { tags, guarded: guarded.is_some(), ..SlowPathReasons::default() };
        Self {
            allocator,
            guarded,
            slow_path,
            recordings: Recordings::new(number),
            caches,
            has_lent: false,
            retry_reasons: 0,
            source_declined: false,
            source_declined_guaranteed: false,
            addresses_declined: false,
            discarded_at: None,
            paused: None,
        }
    }

    pub(super) fn slow_path(&self) -> &SlowPathReasons {
        &self.slow_path
    }

    /// Returns a counter of events that justify a retry of a refused request.
    pub(super) fn progress(&self) -> u64 {
        self.allocator.frees() + self.retry_reasons
    }

    /// Returns the number of allocations and frees.
    ///
    /// # Errors
    /// As [`State::settle`].
    pub(super) fn activity(&mut self) -> Result<u64, Unusable> {
        let Stats { num_allocs, num_live, .. } = self.stats()?;
        Ok(num_allocs + (num_allocs - num_live))
    }

    /// Returns an error if the pool is closed.
    pub(super) fn open(&self) -> Result<(), Unusable> {
        if self.slow_path.closed {
            Err(Unusable::Closed)
        } else if self.paused.is_some() || self.allocator.is_paused() {
            Err(Unusable::Paused)
        } else {
            Ok(())
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.slow_path.closed
    }

    /// Returns whether the pool is closed, without allocations, and still has regions.
    pub(super) fn must_release_regions(&self) -> bool {
        self.slow_path.closed && self.allocator.live.len() == 0 && self.allocator.regions.len() > 0
    }

    /// Removes and returns all regions of a closed pool without allocations; empty otherwise.
    pub(super) fn take_last_regions(&mut self) -> Vec<Grant> {
        if !self.must_release_regions() {
            return Vec::new();
        }
        self.allocator.decisions.record(|| Decision::Emptied);
        self.allocator.take_free_regions()
    }
}
