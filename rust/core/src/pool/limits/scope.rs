//! Scopes and tags: the owner of an allocation.
//!
//! A thread stores the scopes that it is in and its tag; the pool stores the figures of each scope.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::super::Pool;
use super::super::freeing::Deferred;
use super::super::state::State;
use crate::error::Unusable;
use crate::report::out_of_memory::{OutOfMemory, Verdict};
use crate::tables::ChunkRequest;
use crate::tables::decisions::Decision;
use crate::tables::owner::{OwnerId, ScopeId, ScopeLimitReached, ScopeStats};

/// A scope that a thread opened and any thread may have closed since.
struct Opened {
    /// Number of the pool.
    pool: u64,
    owner: OwnerId,
    /// Token that is dead once the scope is closed.
    open: Weak<()>,
}

impl Opened {
    fn is_open(&self) -> bool {
        self.open.strong_count() > 0
    }
}

thread_local! {
    /// The scopes opened by this thread, the innermost last. Closed ones are skipped, and removed when the thread
    /// opens the next scope.
    static SCOPES: RefCell<Vec<Opened>> = const { RefCell::new(Vec::new()) };
    /// The tag of this thread.
    static TAG: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Identifies an open scope of a pool: see [`Pool::open_scope`]. Dropping it does not close the scope; any thread may
/// close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    id: ScopeId,
    shared: bool,
}

/// Sets the tag of this thread for pools with [`Options::owner_tags`](super::super::Options); returns the previous tag.
/// It has no effect in a thread that is about to end, after its thread-local data is gone.
#[expect(clippy::must_use_candidate, reason = "who ends a thread's work needs no tag of before")]
pub fn set_tag(tag: Option<Arc<str>>) -> Option<Arc<str>> {
    TAG.try_with(|own| own.replace(tag)).ok().flatten()
}

/// Returns the tag of this thread, if it has one.
pub(in crate::pool) fn tag_of_thread() -> Option<Arc<str>> {
    // Thread-local storage is gone at the very end of a thread.
    TAG.try_with(|tag| tag.borrow().clone()).ok().flatten()
}

/// Returns whether this thread has a tag.
#[must_use]
pub fn is_tagged() -> bool {
    // Thread-local storage is gone at the very end of a thread.
    TAG.try_with(|tag| tag.borrow().is_some()).unwrap_or(false)
}

/// A request that counts against the limits of its owner until it is served or this guard is dropped.
pub(in crate::pool) struct Charge<'a> {
    pool: &'a Pool,
    pub(in crate::pool) request: ChunkRequest,
}

impl Charge<'_> {
    /// Marks the request as served; the allocation counts instead.
    pub(in crate::pool) fn served(mut self) {
        self.request.owner = None;
    }
}

/// Takes the lock, so it must not run under the lock.
impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if let Some(owner) = self.request.owner
            && !self.pool.state.is_poisoned()
        {
            // A forked child makes no more requests.
            let _ = self.pool.with_state(|state| {
                state.allocator.owners.account_settled(owner, self.request.rounded());
                state.allocator.decisions.record(|| Decision::Settled);
                // A request that was refused because of this one may fit now.
                state.retry_reasons += 1;
            });
            self.pool.freed.notify_all();
        }
    }
}

impl Pool {
    /// Opens a scope: allocations of this thread count for it, nested inside the thread's current scope. With
    /// `shared`, it counts allocations of all threads, in scopes that they open meanwhile, too; not those of a thread
    /// in a scope that it opened before. `limit` bounds the bytes that the scope holds.
    ///
    /// # Errors
    /// In a forked child, and without `shared` in a thread that has no thread-local data any more.
    pub fn open_scope(&self, name: &str, limit: Option<u64>, shared: bool) -> Result<Scope, Unusable> {
        if !shared && SCOPES.try_with(|_| ()).is_err() {
            return Err(Unusable::ThreadEnds);
        }
        let (id, open) = self.with_state(|state| {
            let parent = if shared { innermost_shared(state) } else { self.innermost(state) };
            let id = state.allocator.owners.open(name, parent, limit);
            state.allocator.decisions.record(|| Decision::ScopeOpened(id.serial));
            self.update_slow_path(state, |slow_path| {
                slow_path.scopes += 1;
                if shared {
                    slow_path.shared.push(id);
                }
            });
            (id, state.allocator.owners.open_token(id))
        })?;
        if !shared {
            let opened = Opened { pool: self.number, owner: id.owner, open };
            SCOPES.with_borrow_mut(|scopes| {
                scopes.retain(Opened::is_open);
                scopes.push(opened);
            });
        }
        Ok(Scope { id, shared })
    }

    /// Closes a scope from any thread; returns its final figures, `None` if it is not open. Its live allocations keep
    /// counting for the enclosing scopes, and inner scopes stay open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn close_scope(&self, scope: Scope) -> Result<Option<ScopeStats>, Unusable> {
        let closed = self.with_state(|state| self.close_in(state, scope))?;
        if closed.is_some() {
            self.freed.notify_all();
        }
        Ok(closed)
    }

    /// Closes an abandoned scope without waiting and without errors.
    ///
    /// For finalisers: if the lock is taken, the next caller closes the scope.
    pub fn close_scope_deferred(&self, scope: Scope) {
        match self.try_lock_state() {
            Ok(Some(mut state)) => {
                self.close_in(&mut state, scope);
                drop(state);
                self.freed.notify_all();
            }
            Ok(None) => self.deferred.push(Deferred::Close(scope)),
            // A forked child has only a copy of the scope, without effect.
            Err(_) => return,
        }
        self.drain_deferred();
    }

    /// Closes a scope under the lock; its limit ends.
    pub(in crate::pool) fn close_in(&self, state: &mut State, scope: Scope) -> Option<ScopeStats> {
        let Scope { id, shared } = scope;
        let figures = state.allocator.owners.close(id)?;
        state.allocator.decisions.record(|| Decision::ScopeClosed(id.serial));
        self.update_slow_path(state, |slow_path| {
            slow_path.scopes -= 1;
            if shared {
                slow_path.shared.retain(|open| *open != id);
            }
        });
        // A request that its limit refused may fit now.
        state.retry_reasons += 1;
        Some(figures)
    }

    /// Returns the figures of a scope; `None` if it is not open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn scope_stats(&self, scope: Scope) -> Result<Option<ScopeStats>, Unusable> {
        self.with_state(|state| state.allocator.owners.scope_stats(scope.id))
    }

    /// Changes the limit of an open scope from any thread; `None` removes it. If the scope holds more than the new
    /// limit, it gets nothing more until it holds less. Returns false if the scope is not open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn set_scope_limit(&self, scope: Scope, limit: Option<u64>) -> Result<bool, Unusable> {
        let set = self.with_state(|state| {
            state.retry_reasons += 1;
            state.allocator.decisions.record(|| Decision::ScopeLimited(scope.id.serial));
            state.allocator.owners.set_limit(scope.id, limit)
        })?;
        // A request that the limit refused may fit now.
        self.freed.notify_all();
        Ok(set)
    }

    /// Counts a request against the limits of its scopes.
    ///
    /// # Errors
    /// The refusal, if a limit does not allow it.
    pub(in crate::pool) fn charge(
        &self,
        state: &mut State,
        request: ChunkRequest,
        tag: Option<&str>,
    ) -> Result<Charge<'_>, Box<OutOfMemory>> {
        let mut charge = Charge { pool: self, request };
        let Some(owner) = self.owner(state, request, tag) else { return Ok(charge) };
        if let Some(scope_limit) = state.allocator.owners.exceeded_limit(owner, request.rounded()) {
            let refused = *self.out_of_memory(state, request, false);
            return Err(Box::new(OutOfMemory {
                verdict: Verdict::Scope,
                scope_limit: Some(scope_limit),
                ..refused
            }));
        }
        state.allocator.owners.account_pending(owner, request.rounded());
        state.allocator.decisions.record(|| Decision::Charged);
        charge.request.owner = Some(owner);
        Ok(charge)
    }

    /// Returns the scope limit that a request of this thread would exceed now.
    pub(in crate::pool) fn exceeded_limit(
        &self,
        state: &mut State,
        request: ChunkRequest,
    ) -> Option<ScopeLimitReached> {
        let owner = self.owner(state, request, None)?;
        state.allocator.owners.exceeded_limit(owner, request.rounded())
    }

    /// Returns the owner of a request of this thread; the request's own `tag` goes before the thread's.
    pub(in crate::pool) fn owner(
        &self,
        state: &mut State,
        request: ChunkRequest,
        tag: Option<&str>,
    ) -> Option<OwnerId> {
        if request.bytes == 0 || (tag.is_none() && !state.slow_path().records_owners()) {
            return None;
        }
        let scope = self.innermost(state);
        if let Some(tag) = tag {
            return Some(state.allocator.owners.tag(scope, &tag.into()));
        }
        if !state.slow_path().tags {
            return scope;
        }
        tag_of_thread().map(|tag| state.allocator.owners.tag(scope, &tag)).or(scope)
    }

    /// Returns the innermost scope of this thread.
    fn innermost(&self, state: &State) -> Option<OwnerId> {
        // Thread-local storage is gone at the very end of a thread.
        let own = SCOPES.try_with(|scopes| {
            let scopes = scopes.borrow();
            let mut innermost = scopes.iter().rev().filter(|scope| scope.pool == self.number);
            innermost.find(|scope| scope.is_open()).map(|scope| scope.owner)
        });
        let own = own.ok().flatten();
        own.or_else(|| innermost_shared(state))
    }
}

fn innermost_shared(state: &State) -> Option<OwnerId> {
    state.slow_path().shared.last().map(|scope| scope.owner)
}
