//! Owners: scopes and tags, the bytes that each holds, and scope limits.
//!
//! Owners form a tree. A scope is opened and closed and may have a limit. A tag is a leaf that is created at its
//! first use. An allocation counts for its owner and every owner above, so a limit binds the whole subtree.
//!
//! ```text
//! scope "training" ─┬─ scope "step" (limit 64 MiB) ─┬─ tag "MatMul"
//!                   └─ tag "loader.py:12"           └─ tag "Add"
//! ```
//!
//! All amounts are rounded requests, so a limit does not depend on which chunk was free.
//!
//! Longer than 300 lines: the tree of owners, its figures and its limits change together.

use crate::map::Map;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::chunk::Handle;

/// Identifies an owner; reused once the owner is closed and holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerId(NonZeroU32);

/// Identifies an open scope; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScopeId {
    pub(crate) owner: OwnerId,
    pub(crate) serial: u64,
}

/// The figures of a scope in bytes: requests rounded up to granules.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct ScopeStats {
    /// The names of the enclosing scopes and its own, as in `outer/inner`.
    pub name: String,
    /// The most bytes it may hold; `None` without a limit.
    pub limit: Option<u64>,
    /// Bytes held now, or at the close of the scope.
    pub live: u64,
    /// Allocations held at the same moment.
    pub num_live: u64,
    /// The high-water mark of the bytes held.
    pub peak: u64,
    /// Total bytes allocated in it.
    pub allocated: u64,
    /// Total bytes freed of those.
    pub freed: u64,
}

/// The scope limit that a request would exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct ScopeLimitReached {
    /// The names of the enclosing scopes and the scope's own.
    pub name: String,
    /// The limit in bytes.
    pub limit: u64,
    /// The bytes that the scope holds.
    pub live: u64,
}

/// A scope limit that a request would exceed, and the limit that would allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExceededLimit {
    /// The scope with the limit.
    pub(crate) owner: OwnerId,
    /// The smallest limit that allows the request, in bytes.
    pub(crate) wanted: u64,
    /// The difference to the current limit, in bytes.
    pub(crate) lacking: u64,
}

#[derive(Debug, Clone, Default)]
struct Owner {
    /// Serial number of an open scope, from 1; 0 otherwise.
    serial: u64,
    /// Token of an open scope; dropped when the scope is closed or the pool is dropped.
    open: Option<Arc<()>>,
    name: Arc<str>,
    parent: Option<OwnerId>,
    limit: Option<u64>,
    live: u64,
    /// Bytes of requests in progress; they count only against limits. 128 bits: several may each ask for the maximum.
    pending: u128,
    num_live: u64,
    peak: u64,
    /// Total bytes ever allocated; saturates.
    allocated: u64,
    freed: u64,
    /// References to the slot: owners below, requests in progress, and one while the scope is open or the tag is in
    /// use.
    holders: u32,
}

/// All owners of an allocator.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    slots: Vec<Owner>,
    vacant: Vec<OwnerId>,
    tags: Map<(Option<OwnerId>, Arc<str>), OwnerId>,
    /// The number of scopes ever opened.
    opened: u64,
    /// The owner of each chunk, by the index of its handle; grows on demand.
    of_chunk: Vec<Option<OwnerId>>,
    /// The number of chunks with an owner.
    owned: usize,
    /// The same, plus 1 if every free is to be looked at.
    looks: usize,
}

impl Owners {
    /// Returns whether any chunk has an owner.
    #[inline(always)]
    pub(crate) fn has_owned_chunks(&self) -> bool {
        self.owned > 0
    }

    /// Returns whether a free may concern an owner, or each is to be looked at.
    #[inline(always)]
    pub(crate) fn look_at_frees(&self) -> bool {
        self.looks > 0
    }

    /// Has every free looked at.
    pub(crate) fn look_at_every_free(&mut self) {
        self.looks = self.owned + 1;
    }

    /// Returns the owner of a chunk; `None` if it has none or is free.
    pub(crate) fn owner_of(&self, chunk: Handle) -> Option<OwnerId> {
        self.of_chunk.get(chunk.index()).copied().flatten()
    }

    /// Counts the chunks with an owner by a full scan, for checks.
    pub(crate) fn count_owned(&self) -> usize {
        self.of_chunk.iter().flatten().count()
    }

    /// Sets the owner of a chunk that has none.
    pub(crate) fn set_owner(&mut self, chunk: Handle, owner: OwnerId) {
        let index = chunk.index();
        let missing = (index + 1).saturating_sub(self.of_chunk.len());
        if missing > self.of_chunk.capacity() - self.of_chunk.len() {
            // Grows by an eighth, like the chunk table.
            self.of_chunk.reserve_exact(missing.max(self.of_chunk.len() / 8 + 16));
        }
        if missing > 0 {
            self.of_chunk.resize(index + 1, None);
        }
        self.of_chunk[index] = Some(owner);
        self.owned += 1;
        self.looks += 1;
    }

    /// Removes and returns the owner of a chunk.
    pub(crate) fn clear_owner(&mut self, chunk: Handle) -> Option<OwnerId> {
        let owner = self.of_chunk.get_mut(chunk.index())?.take()?;
        self.owned -= 1;
        self.looks -= 1;
        Some(owner)
    }

    /// Opens a scope.
    pub(crate) fn open(&mut self, name: &str, parent: Option<OwnerId>, limit: Option<u64>) -> ScopeId {
        self.opened += 1;
        let (serial, open) = (self.opened, Some(Arc::new(())));
        let scope = Owner { serial, open, name: name.into(), parent, limit, holders: 1, ..Owner::default() };
        ScopeId { owner: self.insert(scope), serial }
    }

    /// Returns a weak token that is alive while the scope is open; a thread can test it without the lock.
    pub(crate) fn open_token(&self, scope: ScopeId) -> Weak<()> {
        self.get(scope.owner).open.as_ref().map_or_else(Weak::new, Arc::downgrade)
    }

    /// Closes a scope and returns its final figures; `None` if it is not open. Its live allocations keep counting for
    /// the enclosing scopes.
    pub(crate) fn close(&mut self, scope: ScopeId) -> Option<ScopeStats> {
        let figures = self.scope_stats(scope)?;
        let owner = scope.owner;
        let mut tags = Vec::new();
        self.tags.retain(|(parent, _), tag| {
            let is_below = *parent == Some(owner);
            if is_below {
                tags.push(*tag);
            }
            !is_below
        });
        for tag in tags {
            self.drop_holder(tag);
        }
        let closed = self.get_mut(owner);
        closed.serial = 0;
        closed.open = None;
        // An inner scope may stay open, but the limit ends with its scope.
        closed.limit = None;
        self.drop_holder(owner);
        Some(figures)
    }

    /// Returns the figures of a scope; `None` if it is not open.
    pub(crate) fn scope_stats(&self, scope: ScopeId) -> Option<ScopeStats> {
        (self.get(scope.owner).serial == scope.serial).then(|| self.stats(scope.owner))
    }

    /// Returns the owner for a tag within a scope, or at the top level; creates it at first use.
    pub(crate) fn tag(&mut self, parent: Option<OwnerId>, tag: &Arc<str>) -> OwnerId {
        let key = (parent, Arc::clone(tag));
        if let Some(&found) = self.tags.get(&key) {
            return found;
        }
        let made = self.insert(Owner { name: Arc::clone(tag), parent, holders: 1, ..Owner::default() });
        self.tags.insert(key, made);
        made
    }

    /// Returns the innermost scope limit that `bytes` more would exceed.
    pub(crate) fn exceeded_limit(&self, owner: OwnerId, bytes: u64) -> Option<ScopeLimitReached> {
        self.ancestors(owner).find_map(|id| {
            let owner = self.get(id);
            let Owner { limit, live, .. } = *owner;
            let limit = limit?;
            (owner.wanted(bytes) > u128::from(limit)).then(|| ScopeLimitReached {
                name: self.path(id),
                limit,
                live,
            })
        })
    }

    /// Returns all scope limits that `bytes` more would exceed, the innermost first.
    pub(crate) fn exceeded_limits(&self, owner: OwnerId, bytes: u64) -> Vec<ExceededLimit> {
        let broken = self.ancestors(owner).filter_map(|id| {
            let wanted = self.get(id).wanted(bytes);
            let limit = self.get(id).limit?;
            let lacking = wanted.checked_sub(u128::from(limit)).filter(|&lacking| lacking > 0)?;
            // Saturates: more than 64 bits is more than any allocation.
            let saturated = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
            Some(ExceededLimit { owner: id, wanted: saturated(wanted), lacking: saturated(lacking) })
        });
        broken.collect()
    }

    /// Returns the smallest remaining room under the limits above an owner, in bytes.
    pub(crate) fn room_under_limits(&self, owner: OwnerId) -> u64 {
        let rooms = self.ancestors(owner).filter_map(|id| {
            let held = u64::try_from(self.get(id).wanted(0)).unwrap_or(u64::MAX);
            self.get(id).limit.map(|limit| limit.saturating_sub(held))
        });
        rooms.min().unwrap_or(u64::MAX)
    }

    /// Returns whether `owner` is `above` or below it.
    pub(crate) fn is_within(&self, owner: OwnerId, above: OwnerId) -> bool {
        self.ancestors(owner).any(|id| id == above)
    }

    /// Changes the limit of an open scope; returns false if it is not open.
    pub(crate) fn set_limit(&mut self, scope: ScopeId, limit: Option<u64>) -> bool {
        let open = self.get(scope.owner).serial == scope.serial;
        if open {
            self.get_mut(scope.owner).limit = limit;
        }
        open
    }

    /// Counts a request in progress against the limits.
    pub(crate) fn account_pending(&mut self, owner: OwnerId, bytes: u64) {
        self.get_mut(owner).holders += 1;
        self.for_each_ancestor(owner, |owner| owner.pending += u128::from(bytes));
    }

    /// Undoes [`Owners::account_pending`] once the request is served or refused.
    pub(crate) fn account_settled(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_ancestor(owner, |owner| owner.pending -= u128::from(bytes));
        self.drop_holder(owner);
    }

    /// Counts a new allocation of `bytes` bytes for its owner.
    pub(crate) fn account_allocate(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_ancestor(owner, |owner| {
            owner.live += bytes;
            owner.peak = owner.peak.max(owner.live);
            owner.allocated = owner.allocated.saturating_add(bytes);
            owner.num_live += 1;
        });
    }

    /// Counts a free of `bytes` bytes for its owner.
    pub(crate) fn account_free(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_ancestor(owner, |owner| {
            owner.live -= bytes;
            owner.freed = owner.freed.saturating_add(bytes);
            owner.num_live -= 1;
        });
        self.vacate_if_unused(owner);
    }

    /// Counts a changed size of an allocation for its owner.
    pub(crate) fn account_resize(&mut self, owner: OwnerId, before: u64, after: u64) {
        self.for_each_ancestor(owner, |owner| {
            owner.live = owner.live - before + after;
            owner.peak = owner.peak.max(owner.live);
            owner.allocated = owner.allocated.saturating_add(after.saturating_sub(before));
            owner.freed = owner.freed.saturating_add(before.saturating_sub(after));
        });
    }

    fn stats(&self, id: OwnerId) -> ScopeStats {
        let Owner { limit, live, num_live, peak, allocated, freed, .. } = *self.get(id);
        ScopeStats { name: self.path(id), limit, live, num_live, peak, allocated, freed }
    }

    /// Returns for each owner its own allocations and bytes, without the owners below.
    pub(crate) fn holdings(&self) -> Vec<(OwnerId, u64, u64)> {
        let mut own: Vec<_> = self.slots.iter().map(|owner| (owner.num_live, owner.live)).collect();
        for owner in &self.slots {
            if let Some(parent) = owner.parent {
                own[parent.index()].0 -= owner.num_live;
                own[parent.index()].1 -= owner.live;
            }
        }
        let named = own.into_iter().zip(1..).filter(|((count, _), _)| *count > 0);
        named.filter_map(|((count, bytes), n)| Some((OwnerId(NonZeroU32::new(n)?), count, bytes))).collect()
    }

    /// Returns the owner's name with those of the owners above it.
    pub(crate) fn path(&self, id: OwnerId) -> String {
        let mut names: Vec<&str> = self.ancestors(id).map(|id| &*self.get(id).name).collect();
        names.reverse();
        names.join("/")
    }

    fn ancestors(&self, owner: OwnerId) -> impl Iterator<Item = OwnerId> {
        core::iter::successors(Some(owner), |&id| self.get(id).parent)
    }

    fn for_each_ancestor(&mut self, owner: OwnerId, change: impl Fn(&mut Owner)) {
        let mut at = Some(owner);
        while let Some(id) = at {
            let owner = self.get_mut(id);
            change(owner);
            at = owner.parent;
        }
    }

    fn insert(&mut self, owner: Owner) -> OwnerId {
        if let Some(parent) = owner.parent {
            self.get_mut(parent).holders += 1;
        }
        if let Some(id) = self.vacant.pop() {
            *self.get_mut(id) = owner;
            return id;
        }
        self.slots.push(owner);
        let number = u32::try_from(self.slots.len()).ok().and_then(NonZeroU32::new);
        OwnerId(number.expect("fewer owners than bytes"))
    }

    /// Drops one reference to the slot.
    fn drop_holder(&mut self, owner: OwnerId) {
        self.get_mut(owner).holders -= 1;
        self.vacate_if_unused(owner);
    }

    /// Vacates unreferenced slots, from this one upwards.
    fn vacate_if_unused(&mut self, owner: OwnerId) {
        let mut at = Some(owner);
        while let Some(id) = at {
            let owner = self.get_mut(id);
            if owner.holders > 0 || owner.num_live > 0 {
                return;
            }
            at = owner.parent;
            *owner = Owner::default();
            self.vacant.push(id);
            if let Some(parent) = at {
                self.get_mut(parent).holders -= 1;
            }
        }
    }

    fn get(&self, id: OwnerId) -> &Owner {
        &self.slots[id.index()]
    }

    fn get_mut(&mut self, id: OwnerId) -> &mut Owner {
        &mut self.slots[id.index()]
    }
}

impl Owner {
    /// Returns the bytes held after `bytes` more, with the requests in progress.
    fn wanted(&self, bytes: u64) -> u128 {
        u128::from(self.live) + self.pending + u128::from(bytes)
    }
}

impl OwnerId {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests;
