//! Who holds what: scopes and tags, and the bytes of each.
//!
//! Owners form a tree. A scope is opened and closed, and may have a cap; a tag is a leaf, made when it is first
//! named. What an owner holds counts for every owner above it, so a cap binds all that is below.
//!
//! ```text
//! scope "training" ─┬─ scope "step" (cap 64 MiB) ─┬─ tag "MatMul"
//!                   └─ tag "loader.py:12"         └─ tag "Add"
//! ```
//!
//! All amounts are requests in whole granules: what a cap allows does not depend on which chunk was free.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use crate::chunk::Handle;

/// Names an owner; used again once it is closed and holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnerId(NonZeroU32);

/// Names an open scope, and no other one ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScopeId {
    pub(crate) owner: OwnerId,
    serial: u64,
}

/// What a scope holds and has done, in bytes: requests in whole granules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeStats {
    /// Its own name and those of the scopes around it, as in `outer/inner`.
    pub name: String,
    /// The most it may hold; none, if it has no cap.
    pub limit: Option<u64>,
    /// Held now, or when the scope was closed.
    pub live: u64,
    /// Allocations held, at the same moment.
    pub num_live: u64,
    /// The most that was held at once.
    pub peak: u64,
    /// Ever allocated in it.
    pub allocated: u64,
    /// Given back of that.
    pub freed: u64,
}

/// A cap that a request would have broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    /// The scope's name, with those around it.
    pub name: String,
    /// The most it may hold, in bytes.
    pub limit: u64,
    /// What it holds, in bytes.
    pub live: u64,
}

/// A cap that a request would break, and what would mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokenCap {
    /// Whose cap it is.
    pub(crate) owner: OwnerId,
    /// The smallest limit that allows the request, in bytes.
    pub(crate) wanted: u64,
    /// By how much the limit is too low, in bytes.
    pub(crate) lacking: u64,
}

#[derive(Debug, Clone, Default)]
struct Owner {
    /// Of an open scope: its number, counted from 1. Else 0.
    serial: u64,
    /// Of an open scope: gone when it is closed, or the pool is dropped.
    open: Option<Arc<()>>,
    name: Arc<str>,
    parent: Option<OwnerId>,
    limit: Option<u64>,
    live: u64,
    /// Of requests that are being served: they count against caps, and nowhere else. Several may ask for more than
    /// there is of anything.
    pending: u128,
    num_live: u64,
    peak: u64,
    /// Ever, and so up to the largest number there is.
    allocated: u64,
    freed: u64,
    /// Owners below, requests being served, and whether it is an open scope or a tag of one: who needs the slot.
    holders: u32,
}

/// All owners of an allocator.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    slots: Vec<Owner>,
    vacant: Vec<OwnerId>,
    tags: HashMap<(Option<OwnerId>, Arc<str>), OwnerId>,
    /// Scopes ever opened.
    opened: u64,
    /// Whose allocation is in each chunk, by the index of its handle, as far as any is somebody's.
    of_chunk: Vec<Option<OwnerId>>,
    /// Chunks that are somebody's.
    owned: usize,
}

impl Owners {
    /// Whether any chunk is somebody's.
    #[inline(always)]
    pub(crate) fn own_any(&self) -> bool {
        self.owned > 0
    }

    /// Whose allocation is in a chunk, if that is noted; a free chunk is nobody's.
    pub(crate) fn of(&self, chunk: Handle) -> Option<OwnerId> {
        self.of_chunk.get(chunk.index()).copied().flatten()
    }

    /// How many chunks are somebody's, counted anew.
    pub(crate) fn count_owned(&self) -> usize {
        self.of_chunk.iter().flatten().count()
    }

    /// Notes whose allocation is in a chunk that was nobody's.
    pub(crate) fn give(&mut self, chunk: Handle, owner: OwnerId) {
        let index = chunk.index();
        let missing = (index + 1).saturating_sub(self.of_chunk.len());
        if missing > self.of_chunk.capacity() - self.of_chunk.len() {
            // By an eighth, like the table of chunks.
            self.of_chunk.reserve_exact(missing.max(self.of_chunk.len() / 8 + 16));
        }
        if missing > 0 {
            self.of_chunk.resize(index + 1, None);
        }
        self.of_chunk[index] = Some(owner);
        self.owned += 1;
    }

    /// Makes a chunk nobody's; returns whose it was.
    pub(crate) fn take(&mut self, chunk: Handle) -> Option<OwnerId> {
        let owner = self.of_chunk.get_mut(chunk.index())?.take()?;
        self.owned -= 1;
        Some(owner)
    }

    /// Opens a scope.
    pub(crate) fn open(&mut self, name: &str, parent: Option<OwnerId>, limit: Option<u64>) -> ScopeId {
        self.opened += 1;
        let (serial, open) = (self.opened, Some(Arc::new(())));
        let scope = Owner { serial, open, name: name.into(), parent, limit, holders: 1, ..Owner::default() };
        ScopeId { owner: self.insert(scope), serial }
    }

    /// Tells without the lock whether a scope is open: what it refers to is there for so long.
    pub(crate) fn while_open(&self, scope: ScopeId) -> Weak<()> {
        self.get(scope.owner).open.as_ref().map_or_else(Weak::new, Arc::downgrade)
    }

    /// Closes a scope; returns its last figures, none if it is not open. What it still holds goes on counting for
    /// the scopes around it.
    pub(crate) fn close(&mut self, scope: ScopeId) -> Option<ScopeStats> {
        let figures = self.scope_stats(scope)?;
        let owner = scope.owner;
        let tags: Vec<_> = self.tags.extract_if(|(parent, _), _| *parent == Some(owner)).collect();
        for (_, tag) in tags {
            self.let_go(tag);
        }
        let closed = self.get_mut(owner);
        closed.serial = 0;
        closed.open = None;
        // A scope inside it may stay open; the cap ends with the scope.
        closed.limit = None;
        self.let_go(owner);
        Some(figures)
    }

    /// The figures of a scope, none if it is not open.
    pub(crate) fn scope_stats(&self, scope: ScopeId) -> Option<ScopeStats> {
        (self.get(scope.owner).serial == scope.serial).then(|| self.stats(scope.owner))
    }

    /// The owner for what is allocated under a tag in a scope, or outside of any.
    pub(crate) fn tag(&mut self, parent: Option<OwnerId>, tag: &Arc<str>) -> OwnerId {
        let key = (parent, Arc::clone(tag));
        if let Some(&found) = self.tags.get(&key) {
            return found;
        }
        let made = self.insert(Owner { name: Arc::clone(tag), parent, holders: 1, ..Owner::default() });
        self.tags.insert(key, made);
        made
    }

    /// The cap that `bytes` more would break, if any: the innermost.
    pub(crate) fn cap_broken(&self, owner: OwnerId, bytes: u64) -> Option<Capped> {
        self.upwards(owner).find_map(|id| {
            let owner = self.get(id);
            let Owner { limit, live, .. } = *owner;
            let limit = limit?;
            (owner.wanted(bytes) > u128::from(limit)).then(|| Capped { name: self.path(id), limit, live })
        })
    }

    /// All caps that `bytes` more would break, the innermost first, each with what it lacks.
    pub(crate) fn caps_broken(&self, owner: OwnerId, bytes: u64) -> Vec<BrokenCap> {
        let broken = self.upwards(owner).filter_map(|id| {
            let wanted = self.get(id).wanted(bytes);
            let limit = self.get(id).limit?;
            let lacking = wanted.checked_sub(u128::from(limit)).filter(|&lacking| lacking > 0)?;
            // More than can be counted is more than anything that is held.
            let saturated = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
            Some(BrokenCap { owner: id, wanted: saturated(wanted), lacking: saturated(lacking) })
        });
        broken.collect()
    }

    /// The most that the caps above an owner leave, in bytes.
    pub(crate) fn room_under_caps(&self, owner: OwnerId) -> u64 {
        let rooms = self.upwards(owner).filter_map(|id| {
            let held = u64::try_from(self.get(id).wanted(0)).unwrap_or(u64::MAX);
            self.get(id).limit.map(|limit| limit.saturating_sub(held))
        });
        rooms.min().unwrap_or(u64::MAX)
    }

    /// Whether `owner` is `above`, or below it.
    pub(crate) fn is_within(&self, owner: OwnerId, above: OwnerId) -> bool {
        self.upwards(owner).any(|id| id == above)
    }

    /// Changes the cap of an open scope; false if it is not open.
    pub(crate) fn set_limit(&mut self, scope: ScopeId, limit: Option<u64>) -> bool {
        let open = self.get(scope.owner).serial == scope.serial;
        if open {
            self.get_mut(scope.owner).limit = limit;
        }
        open
    }

    /// Counts a request against the caps while it is being served.
    pub(crate) fn account_pending(&mut self, owner: OwnerId, bytes: u64) {
        self.get_mut(owner).holders += 1;
        self.for_each_upwards(owner, |owner| owner.pending += u128::from(bytes));
    }

    /// Takes back [`Owners::account_pending`]: the request was served or refused.
    pub(crate) fn account_settled(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_upwards(owner, |owner| owner.pending -= u128::from(bytes));
        self.let_go(owner);
    }

    /// An allocation of `bytes` bytes is the owner's.
    pub(crate) fn account_allocate(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_upwards(owner, |owner| {
            owner.live += bytes;
            owner.peak = owner.peak.max(owner.live);
            owner.allocated = owner.allocated.saturating_add(bytes);
            owner.num_live += 1;
        });
    }

    /// An allocation of the owner's is gone.
    pub(crate) fn account_free(&mut self, owner: OwnerId, bytes: u64) {
        self.for_each_upwards(owner, |owner| {
            owner.live -= bytes;
            owner.freed = owner.freed.saturating_add(bytes);
            owner.num_live -= 1;
        });
        self.vacate_if_done(owner);
    }

    /// An allocation of the owner's became another size.
    pub(crate) fn account_resize(&mut self, owner: OwnerId, before: u64, after: u64) {
        self.for_each_upwards(owner, |owner| {
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

    /// What each owner holds itself, without the owners below it: name, allocations, bytes.
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

    /// The owner's name, after those of the owners above it.
    pub(crate) fn path(&self, id: OwnerId) -> String {
        let mut names: Vec<&str> = self.upwards(id).map(|id| &*self.get(id).name).collect();
        names.reverse();
        names.join("/")
    }

    fn upwards(&self, owner: OwnerId) -> impl Iterator<Item = OwnerId> {
        std::iter::successors(Some(owner), |&id| self.get(id).parent)
    }

    fn for_each_upwards(&mut self, owner: OwnerId, change: impl Fn(&mut Owner)) {
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

    /// One holder less.
    fn let_go(&mut self, owner: OwnerId) {
        self.get_mut(owner).holders -= 1;
        self.vacate_if_done(owner);
    }

    /// Vacates the slots that nobody needs any more, from this one upwards.
    fn vacate_if_done(&mut self, owner: OwnerId) {
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
    /// What it would hold with `bytes` more, and with the requests that are being served.
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
