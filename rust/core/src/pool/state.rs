//! What the lock guards.

use super::Pool;
use super::guarding::Guarded;
use crate::allocator::Allocator;
use crate::error::Unusable;
use crate::owner::ScopeId;
use crate::source::Grant;

/// The tables, and what a free has to think of besides.
#[derive(Debug)]
pub(super) struct State {
    pub(super) allocator: Allocator,
    /// In guard mode: red zones and quarantine.
    pub(super) guarded: Option<Guarded>,
    concerns: Concerns,
    /// Changes of the limit so far.
    pub(super) changes: u64,
    /// The source declined a request, and has granted none since.
    pub(super) source_declined: bool,
    /// That was a request that its gauge promised.
    pub(super) source_broke_promise: bool,
    /// The activity at which a trim had discarded all that was free; none since a discard failed, or before the first.
    pub(super) discarded_at: Option<u64>,
}

/// What a free may have to think of.
#[derive(Debug, Default)]
pub(super) struct Concerns {
    /// No more requests are taken, and the last free hands the regions back.
    pub(super) closed: bool,
    /// Threads asleep until the next free.
    pub(super) waiting: usize,
    /// Scopes that are open, of one thread or of all.
    pub(super) scopes: usize,
    /// The open scopes that count for every thread, the innermost last.
    pub(super) shared: Vec<ScopeId>,
    /// Whether allocations are noted under the tag of their thread.
    pub(super) tags: bool,
    /// In guard mode nothing is done without a look at the memory. Never changes.
    guarded: bool,
}

impl Concerns {
    pub(super) fn any(&self) -> bool {
        self.guarded || self.closed || self.waiting > 0 || self.notes_owners()
    }

    /// Whether an allocation may have an owner.
    pub(super) fn notes_owners(&self) -> bool {
        self.scopes > 0 || self.tags
    }
}

impl Pool {
    /// Changes the concerns: the one way to do so. While there are any, a notice keeps the quick door shut.
    pub(super) fn change_concerns<T>(&self, state: &mut State, change: impl FnOnce(&mut Concerns) -> T) -> T {
        let result = change(&mut state.concerns);
        self.late.set_notice(state.concerns.any());
        result
    }
}

impl State {
    pub(super) fn new(allocator: Allocator, guarded: Option<Guarded>, tags: bool) -> Self {
        let concerns = Concerns { tags, guarded: guarded.is_some(), ..Concerns::default() };
        Self {
            allocator,
            guarded,
            concerns,
            changes: 0,
            source_declined: false,
            source_broke_promise: false,
            discarded_at: None,
        }
    }

    pub(super) fn concerns(&self) -> &Concerns {
        &self.concerns
    }

    /// Counts what may be a reason to try a refused request again.
    pub(super) fn progress(&self) -> u64 {
        self.allocator.frees() + self.changes
    }

    /// Counts allocations and frees.
    pub(super) fn activity(&self) -> u64 {
        self.allocator.counters.allocs() + self.allocator.frees()
    }

    /// Says so if no more requests are taken.
    pub(super) fn open(&self) -> Result<(), Unusable> {
        if self.concerns.closed { Err(Unusable::Closed) } else { Ok(()) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.concerns.closed
    }

    /// Whether it is closed and without allocations, and still holds regions.
    pub(super) fn is_over(&self) -> bool {
        self.concerns.closed && self.allocator.live.len() == 0 && self.allocator.regions.len() > 0
    }

    /// All regions of a closed pool without allocations, taken out; none otherwise.
    pub(super) fn last_regions(&mut self) -> Vec<Grant> {
        if self.is_over() { self.allocator.give_up_free_regions() } else { Vec::new() }
    }
}
