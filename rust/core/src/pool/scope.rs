//! Scopes and tags: whom an allocation is for.
//!
//! Which scopes a thread is in, and what it calls its work, the thread knows; what a scope holds, its pool.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::Pool;
use super::freeing::Late;
use super::state::State;
use crate::allocator::Request;
use crate::error::Unusable;
use crate::owner::{Capped, OwnerId, ScopeId, ScopeStats};
use crate::refusal::{OutOfMemory, Verdict};

/// A scope that a thread opened, and which any thread may have closed since.
struct Opened {
    /// Number of its pool.
    pool: u64,
    owner: OwnerId,
    /// Refers to nothing once it is closed.
    open: Weak<()>,
}

impl Opened {
    fn is_open(&self) -> bool {
        self.open.strong_count() > 0
    }
}

thread_local! {
    /// The scopes that this thread opened, the innermost last. Those that are closed since do not count; they are
    /// taken out when the thread opens another.
    static SCOPES: RefCell<Vec<Opened>> = const { RefCell::new(Vec::new()) };
    /// What this thread calls what it is doing.
    static TAG: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// Names an open scope of a pool: see [`Pool::open_scope`]. Not more than a name: it has to be closed, on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    id: ScopeId,
    shared: bool,
}

/// Sets what this thread calls its work from now on, in pools with [`Options::owner_tags`](super::Options); returns
/// what it called it before.
#[expect(clippy::must_use_candidate, reason = "who ends a thread's work needs no tag of before")]
pub fn set_tag(tag: Option<Arc<str>>) -> Option<Arc<str>> {
    TAG.replace(tag)
}

/// Whether this thread calls its work anything.
#[must_use]
pub fn is_tagged() -> bool {
    // At a thread's very end it has no tag any more.
    TAG.try_with(|tag| tag.borrow().is_some()).unwrap_or(false)
}

/// A request that counts against the caps above its owner until it is served or this is gone.
pub(super) struct Charge<'a> {
    pool: &'a Pool,
    pub(super) request: Request,
}

impl Charge<'_> {
    /// The request was served, and what came of it counts now.
    pub(super) fn served(mut self) {
        self.request.owner = None;
    }
}

/// Not under the lock: it is taken here.
impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if let Some(owner) = self.request.owner
            && !self.pool.state.is_broken()
        {
            // In a forked child nobody asks for more.
            let _ = self.pool.with_state(|state| {
                state.allocator.owners.account_settled(owner, self.request.rounded());
                // Whoever was refused on account of this may have room now.
                state.changes += 1;
            });
            self.pool.freed.ring();
        }
    }
}

impl Pool {
    /// Opens a scope: from now on, what this thread allocates is noted as the scope's, inside whatever scope it is
    /// in already; `shared`, what any thread does that is in no scope of its own. `limit` caps what the scope
    /// holds, in bytes.
    ///
    /// # Errors
    /// In a forked child.
    pub fn open_scope(&self, name: &str, limit: Option<u64>, shared: bool) -> Result<Scope, Unusable> {
        let (id, open) = self.with_state(|state| {
            let parent = if shared { innermost_shared(state) } else { self.innermost(state) };
            let id = state.allocator.owners.open(name, parent, limit);
            self.change_concerns(state, |concerns| {
                concerns.scopes += 1;
                if shared {
                    concerns.shared.push(id);
                }
            });
            (id, state.allocator.owners.while_open(id))
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

    /// Closes a scope, on whichever thread; returns its last figures, none if it is not open. What it still holds goes
    /// on counting for the scopes around it. A scope that was opened inside it stays open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn close_scope(&self, scope: Scope) -> Result<Option<ScopeStats>, Unusable> {
        let closed = self.with_state(|state| self.close_in(state, scope))?;
        if closed.is_some() {
            self.freed.ring();
        }
        Ok(closed)
    }

    /// Closes an abandoned scope, without waiting and without failing.
    ///
    /// For finalisers: if the lock is taken, this is left for the next caller.
    pub fn close_scope_late(&self, scope: Scope) {
        match self.try_enter() {
            Ok(Some(mut state)) => {
                self.close_in(&mut state, scope);
                drop(state);
                self.freed.ring();
            }
            Ok(None) => self.late.push(Late::Close(scope)),
            // A child process has a copy of the scope, and caps nothing by it.
            Err(_) => return,
        }
        self.settle();
    }

    /// Closes a scope under the lock; its cap ends.
    pub(super) fn close_in(&self, state: &mut State, scope: Scope) -> Option<ScopeStats> {
        let Scope { id, shared } = scope;
        let figures = state.allocator.owners.close(id)?;
        self.change_concerns(state, |concerns| {
            concerns.scopes -= 1;
            if shared {
                concerns.shared.retain(|open| *open != id);
            }
        });
        // A request that its cap refused may have room now.
        state.changes += 1;
        Some(figures)
    }

    /// The figures of a scope; none if it is not open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn scope_stats(&self, scope: Scope) -> Result<Option<ScopeStats>, Unusable> {
        self.with_state(|state| state.allocator.owners.scope_stats(scope.id))
    }

    /// Changes the cap of an open scope, from any thread; none takes it away. What the scope holds may be above its new
    /// cap: then it gets nothing more until it is below. False if the scope is not open.
    ///
    /// # Errors
    /// In a forked child.
    pub fn set_scope_limit(&self, scope: Scope, limit: Option<u64>) -> Result<bool, Unusable> {
        let set = self.with_state(|state| {
            state.changes += 1;
            state.allocator.owners.set_limit(scope.id, limit)
        })?;
        // A request that the cap refused may have room now.
        self.freed.ring();
        Ok(set)
    }

    /// Notes a request against the caps of the scopes it is made in.
    ///
    /// # Errors
    /// The refusal, when a cap does not allow it.
    pub(super) fn charge(&self, state: &mut State, request: Request) -> Result<Charge<'_>, Box<OutOfMemory>> {
        let mut charge = Charge { pool: self, request };
        let Some(owner) = self.owner(state, request) else { return Ok(charge) };
        if let Some(capped) = state.allocator.owners.cap_broken(owner, request.rounded()) {
            let refused = *self.refusal(state, request, false);
            return Err(Box::new(OutOfMemory { verdict: Verdict::Scope, capped: Some(capped), ..refused }));
        }
        state.allocator.owners.account_pending(owner, request.rounded());
        charge.request.owner = Some(owner);
        Ok(charge)
    }

    /// The cap that a request of this thread would break now, if any.
    pub(super) fn cap_broken(&self, state: &mut State, request: Request) -> Option<Capped> {
        let owner = self.owner(state, request)?;
        state.allocator.owners.cap_broken(owner, request.rounded())
    }

    /// Whom this thread makes the request for.
    pub(super) fn owner(&self, state: &mut State, request: Request) -> Option<OwnerId> {
        if request.bytes == 0 || !state.concerns().notes_owners() {
            return None;
        }
        let scope = self.innermost(state);
        if !state.concerns().tags {
            return scope;
        }
        // At a thread's very end it has no tag any more.
        let tag = TAG.try_with(|tag| tag.borrow().clone()).ok().flatten();
        tag.map(|tag| state.allocator.owners.tag(scope, &tag)).or(scope)
    }

    /// The innermost scope that this thread is in.
    fn innermost(&self, state: &State) -> Option<OwnerId> {
        // At a thread's very end it is in no scope any more.
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
    state.concerns().shared.last().map(|scope| scope.owner)
}
