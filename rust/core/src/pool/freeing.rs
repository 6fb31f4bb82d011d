//! Frees: by address or by allocation, blocking, non-blocking or deferred.

use std::num::NonZeroU64;

use allotment_sync::MutexGuard;

use super::Pool;
use super::limits::scope::Scope;
use super::recording::EventKind;
use super::state::State;
use crate::error::FreeError;
use crate::tables::Allocation;
use crate::tables::free_target::FreeTarget;

/// An operation of a finaliser that could not take the lock.
#[derive(Debug)]
pub(super) enum Deferred {
    /// Free the allocation at this address with this number.
    Free(u64, NonZeroU64),
    /// Close this scope.
    Close(Scope),
}

impl Pool {
    /// Frees the allocation at `address`; the address of zero bytes is accepted and does nothing.
    ///
    /// # Errors
    /// If no allocation starts there, or a held one does; the pool is unchanged. In guard mode also for damage; the
    /// allocation is freed then.
    #[inline(always)]
    pub fn free(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.free_as_owner(address, FreeTarget::ANY) {
            return Ok(());
        }
        self.free_slow(address)
    }

    // Apart from the rest, which needs many registers: with thread caches this is the usual path.
    #[cold]
    #[inline(never)]
    fn free_slow(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.free_cached(address, FreeTarget::ANY, true) {
            return Ok(());
        }
        self.free_uncached(address)
    }

    #[cold]
    #[inline(never)]
    fn free_uncached(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.free_recorded(address, FreeTarget::ANY) {
            return Ok(());
        }
        if let Some(()) = self.on_shared_path(|allocator| allocator.free(address, FreeTarget::ANY)) {
            return Ok(());
        }
        self.free_locked(self.lock_state()?, address, FreeTarget::ANY)
    }

    /// Frees without waiting for the lock; returns `None`, without any change, if another thread holds it.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn try_free(&self, address: u64) -> Result<Option<()>, FreeError> {
        if let Some(()) = self.free_fast(address, FreeTarget::ANY, false) {
            return Ok(Some(()));
        }
        self.try_lock_state()?.map(|state| self.free_locked(state, address, FreeTarget::ANY)).transpose()
    }

    /// Frees exactly this allocation; it is an error if its address belongs to another allocation by now.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn free_allocation(&self, allocation: &Allocation) -> Result<(), FreeError> {
        let Allocation { address, id, .. } = *allocation;
        let Some(id) = NonZeroU64::new(id) else { return self.free_nothing(address) };
        if let Some(()) = self.free_fast(address, FreeTarget::number(id), true) {
            return Ok(());
        }
        self.free_locked(self.lock_state()?, address, FreeTarget::number(id))
    }

    /// Frees exactly this allocation without waiting for the lock; returns `None`, without any change, if another
    /// thread holds it.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn try_free_allocation(&self, allocation: &Allocation) -> Result<Option<()>, FreeError> {
        let Allocation { address, id, .. } = *allocation;
        let Some(id) = NonZeroU64::new(id) else { return self.free_nothing(address).map(Some) };
        if let Some(()) = self.free_fast(address, FreeTarget::number(id), false) {
            return Ok(Some(()));
        }
        self.try_lock_state()?
            .map(|state| self.free_locked(state, address, FreeTarget::number(id)))
            .transpose()
    }

    /// Frees an unused allocation without waiting and without errors.
    ///
    /// For finalisers: if the lock is taken, the next caller runs the free. If the allocation was freed before, or is
    /// held by then, nothing happens.
    pub fn free_deferred(&self, allocation: &Allocation) {
        let Some(id) = NonZeroU64::new(allocation.id) else { return };
        if let Some(()) = self.free_fast(allocation.address, FreeTarget::number(id), false) {
            return;
        }
        match self.try_lock_state() {
            Ok(Some(state)) => self.free_locked_silently(state, allocation.address, id),
            Ok(None) => {
                self.deferred.push(Deferred::Free(allocation.address, id));
                // The lock holder may have checked the queue just before the push.
                self.drain_deferred();
            }
            // A forked child has only a copy of the tables; there is nothing to free.
            Err(_) => {}
        }
    }

    /// Frees the allocation at `address` on a fast path or into the cache of this thread; `None` if neither is possible
    /// or nothing matches. Without `waits` no lock is waited for.
    #[inline(always)]
    pub(super) fn free_fast(&self, address: u64, target: FreeTarget, waits: bool) -> Option<()> {
        self.free_as_owner(address, target).or_else(|| self.free_beside(address, target, waits))
    }

    /// Does the same where the fast path of pools that are not recorded is closed.
    #[inline(never)]
    fn free_beside(&self, address: u64, target: FreeTarget, waits: bool) -> Option<()> {
        self.free_cached(address, target, waits).or_else(|| self.free_recorded(address, target))
    }

    /// Frees the allocation at `address` on the fast path; `None` if that path is closed or nothing matches.
    #[inline(always)]
    fn free_as_owner(&self, address: u64, target: FreeTarget) -> Option<()> {
        self.on_fast_path(|allocator| allocator.free(address, target))
    }

    fn free_recorded(&self, address: u64, target: FreeTarget) -> Option<()> {
        self.on_recorded_path(|state| {
            state.withdraw(address);
            let (id, bytes) = state.allocator.free_and_tell(address, target)?;
            state.recordings.add(EventKind::Freed, id, bytes);
            Some(())
        })
    }

    /// Frees an allocation without a number, which is valid only for zero bytes.
    fn free_nothing(&self, address: u64) -> Result<(), FreeError> {
        self.check_process()?;
        if address == self.no_address { Ok(()) } else { Err(FreeError::NotAllocated { address }) }
    }

    pub(super) fn free_locked(
        &self,
        mut state: MutexGuard<'_, State>,
        address: u64,
        target: FreeTarget,
    ) -> Result<(), FreeError> {
        let freed = state.free_at(address, target);
        let held = freed.is_none() && state.is_blocked_by_hold(address, target);
        // Its own damage first, then the oldest unreported damage.
        let damage = freed.as_ref().and_then(|freed| freed.damage.or_else(|| state.next_damage()));
        self.finish_free(state);
        self.drain_deferred();
        // No region contains the address of zero bytes.
        match damage {
            Some(damage) => Err(FreeError::Damaged(damage)),
            None if freed.is_some() || address == self.no_address => Ok(()),
            None if held => Err(FreeError::Pinned { address }),
            None => Err(FreeError::NotAllocated { address }),
        }
    }

    /// Frees for a caller that cannot receive errors; damage is kept for the next caller that can.
    fn free_locked_silently(&self, mut state: MutexGuard<'_, State>, address: u64, id: NonZeroU64) {
        let freed = state.free_at(address, FreeTarget::number(id));
        state.defer_damage(freed.and_then(|freed| freed.damage));
        self.finish_free(state);
        self.drain_deferred();
    }

    /// Wakes waiting threads, and releases the regions after the last free of a closed pool.
    pub(super) fn finish_free(&self, state: MutexGuard<'_, State>) {
        if !state.slow_path().waiting.is_empty() {
            self.freed.notify_all();
        }
        let over = state.must_release_regions();
        drop(state);
        if over {
            self.release_last_regions();
        }
    }
}
