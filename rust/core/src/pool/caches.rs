//! Thread caches: small chunks that a thread keeps for its next requests, and serves and frees without the lock.
//!
//! The allocator **lends** chunks of a size class in batches, under the lock. To it a lent chunk is in use; where it is
//! is known here alone: **kept** in the magazine of a thread, or with a caller. The callers' allocations are in a table
//! that every thread reads without a lock, so that any thread frees them, into its own cache.
//!
//! ```text
//! free chunk ── lend, a batch ──→ kept by a thread ←── take, put ──→ allocation in the table
//!      ↑                             │                                    │
//!      ├──────── give back ──────────┘            settle, withdraw        ↓
//!      └──────── free ───────────────────────────────────────────── chunk in use
//! ```
//!
//! **Settling** ends all of this at once, under the lock: kept chunks become free and allocations become those of the
//! allocator, which then knows everything. Whatever looks at all chunks or refuses a request settles first. The next
//! batch is lent under the lock, so that the state stays settled until the lock is released. A free through the lock
//! **withdraws** the one allocation that it is about.
//!
//! A thread uses its cache under the cache's own mutex. The lock comes before it, and a thread that settles takes all.
//! While there is a reason for the slow path the caches are unused: it is set before the caches are settled.

use std::num::NonZeroU64;
use std::sync::Arc;

use allotment_sync::{EntryTable, MutexGuard, ThreadSlots};

use super::Pool;
use super::state::State;
use crate::request::Request;
use crate::tables::Allocation;
use crate::tables::decisions::Decision;
use crate::tables::free_target::FreeTarget;
use crate::units::GRANULE;
use cache::{Cache, Put};
use size_class::SizeClass;

mod cache;
mod settling;
mod size_class;

/// The numbers of allocations that a cache gets at a time.
const NUMBERS: u64 = 1 << 12;

/// The caches of the threads of one pool, and the allocations that were served from them.
#[derive(Debug, Default)]
pub(super) struct Caches {
    threads: Arc<ThreadSlots<Cache>>,
    allocations: EntryTable,
}

impl Pool {
    /// Serves a request from the cache of this thread, which may get a batch of chunks for it. `None` means that nothing
    /// was changed: there are no caches, or the request is not one for them, or no free chunk fits.
    ///
    /// Without `waits` the lock is not waited for.
    #[inline(always)]
    pub(super) fn allocate_cached(&self, wanted: Request<'_>, held: bool, waits: bool) -> Option<Allocation> {
        let caches = self.caches.as_deref()?;
        if !wanted.is_plain() || wanted.alignment() > GRANULE {
            return None;
        }
        let bytes = wanted.bytes();
        let class = SizeClass::of(bytes)?;
        let requested = u32::try_from(bytes).ok()?;
        let (address, id) = match self.take_kept(caches, class, requested, held) {
            Some(served) => served,
            None => self.take_lent(caches, class, requested, held, waits)?,
        };
        Some(Allocation { address: address.get(), size: class.bytes(), requested: bytes, id })
    }

    /// Takes a chunk that the cache of this thread keeps; returns its address, never 0, and the number of the
    /// allocation: two integers, which registers hold.
    #[inline(always)]
    fn take_kept(
        &self,
        caches: &Caches,
        class: SizeClass,
        bytes: u32,
        held: bool,
    ) -> Option<(NonZeroU64, u64)> {
        caches.threads.mine()?.try_with_as_owner(|cache| {
            // A thread that closes the fast path empties this cache, unless the system forbids to take it from here.
            if self.deferred.is_idle() { cache.take(class, bytes, held, &caches.allocations) } else { None }
        })
    }

    /// Takes a chunk from the cache of this thread, which another thread may have locked, or from a batch.
    #[cold]
    #[inline(never)]
    fn take_lent(
        &self,
        caches: &Caches,
        class: SizeClass,
        bytes: u32,
        held: bool,
        waits: bool,
    ) -> Option<(NonZeroU64, u64)> {
        if !self.deferred.is_idle() {
            return None;
        }
        let take = |cache: &mut Cache| cache.take(class, bytes, held, &caches.allocations);
        if let Some(served) = self.with_unowned_cache(caches, take).flatten() {
            return Some(served);
        }
        let lend = |state: &mut State, cache: &mut Cache| {
            state.fill(cache, class, &caches.allocations);
            take(cache)
        };
        self.with_state_and_cache(caches, waits, lend)?
    }

    /// Frees an allocation that was served from a cache, into the cache of this thread. `None` means that nothing was
    /// changed: the allocation is none of those, or the target does not match it.
    ///
    /// Without `waits` the lock is not waited for.
    #[inline(always)]
    pub(super) fn free_cached(&self, address: u64, target: FreeTarget, waits: bool) -> Option<()> {
        let caches = self.caches.as_deref()?;
        let put = |cache: &mut Cache| {
            // As in `take_kept`.
            self.deferred.is_idle().then(|| cache.put(address, target, &caches.allocations))
        };
        match caches.threads.mine().and_then(|mine| mine.try_with_as_owner(put)) {
            Some(Put::Done) => Some(()),
            Some(Put::Missed) => None,
            Some(Put::Full(_)) | None => self.free_lent(caches, address, target, waits),
        }
    }

    /// Does the same if another thread may have locked the cache of this one, or if a batch is to be given back.
    #[cold]
    #[inline(never)]
    fn free_lent(&self, caches: &Caches, address: u64, target: FreeTarget, waits: bool) -> Option<()> {
        if !self.deferred.is_idle() {
            return None;
        }
        let put = |cache: &mut Cache| cache.put(address, target, &caches.allocations);
        let done = match self.with_unowned_cache(caches, put) {
            Some(done) => done,
            // A thread that only frees shall return chunks in batches, too.
            None if caches.threads.mine().is_none() => {
                self.with_state_and_cache(caches, waits, |_, cache| put(cache)).unwrap_or(Put::Missed)
            }
            None => Put::Missed,
        };
        let done = match done {
            Put::Full(class) => {
                let give_back = |state: &mut State, cache: &mut Cache| {
                    state.take_back(cache, class, class.batch(), &caches.allocations);
                    put(cache)
                };
                self.with_state_and_cache(caches, waits, give_back)?
            }
            done => done,
        };
        (done == Put::Done).then_some(())
    }

    /// Runs `work` with the cache of this thread; `None` if it has none, if another thread settles, or if there is a
    /// reason for the slow path.
    #[inline(always)]
    fn with_unowned_cache<T>(&self, caches: &Caches, work: impl FnOnce(&mut Cache) -> T) -> Option<T> {
        let mut cache: MutexGuard<'_, Cache> = caches.threads.mine()?.try_lock().ok()??;
        // As in `take_kept`.
        self.deferred.is_idle().then(|| work(&mut cache))
    }

    /// Runs `work` with the lock and the cache of this thread, which claims one. `None` means that nothing was changed:
    /// there is a reason for the slow path, or no cache for this thread.
    #[cold]
    fn with_state_and_cache<T>(
        &self,
        caches: &Caches,
        waits: bool,
        work: impl FnOnce(&mut State, &mut Cache) -> T,
    ) -> Option<T> {
        self.check_process().ok()?;
        if caches.threads.mine().is_none() && !caches.threads.may_claim() {
            return None;
        }
        let mut state = if waits { self.state.lock().ok()? } else { self.state.try_lock().ok()?? };
        // Claimed under the lock: a thread that settles has locked every cache.
        let cache = if self.deferred.is_idle() { caches.threads.claim() } else { None };
        let result = cache.and_then(|cache| {
            let mut cache = cache.lock().ok()?;
            state.record_lock(Decision::Locked);
            cache.record_lock(&mut state.allocator.decisions);
            Some(work(&mut state, &mut cache))
        });
        drop(state);
        self.drain_deferred();
        result
    }
}

#[cfg(test)]
mod tests;
