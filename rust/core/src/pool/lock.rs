//! Taking the lock, and running deferred operations: a thread runs them after it takes the lock and checks again
//! after it releases it.

use allotment_sync::{LockError, MutexGuard};

use super::freeing::Deferred;
use super::state::State;
use super::{Pool, STATE_IS_SOUND};
use crate::error::Unusable;
use crate::tables::Tables;
use crate::tables::decisions::Decision;
use crate::tables::free_target::FreeTarget;

impl Pool {
    /// Runs `work` under the lock.
    #[inline]
    pub(super) fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, Unusable> {
        let mut state = self.lock_state()?;
        let result = work(&mut state);
        drop(state);
        self.drain_deferred();
        Ok(result)
    }

    /// Runs `work` under the lock, with nothing lent to thread caches.
    pub(super) fn with_settled_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, Unusable> {
        self.with_state(|state| state.settle().map(|()| work(state)))?
    }

    /// Runs `work` on the allocator on the fast path: if this thread owns the lock and no slow-path reason exists.
    /// `None` means that nothing was changed.
    #[inline(always)]
    pub(super) fn on_fast_path<T>(&self, work: impl FnOnce(&mut Tables) -> Option<T>) -> Option<T> {
        let result = self.state.try_with_as_owner(|state| {
            if self.deferred.is_idle() { work(&mut state.allocator) } else { None }
        });
        if result.is_some() && !self.deferred.is_empty_after_owner_unlock() {
            self.drain_after_fast_path();
        }
        result
    }

    /// Does the same on the fast path of a pool that is recorded: `work` records what it does.
    #[inline(always)]
    pub(super) fn on_recorded_path<T>(&self, work: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
        if !self.deferred.is_idle_and_observed() {
            return None;
        }
        let result = self
            .state
            .try_with_as_owner(|state| if self.deferred.is_idle_and_observed() { work(state) } else { None });
        if result.is_some() && !self.deferred.is_empty_after_owner_unlock() {
            self.drain_deferred();
        }
        result
    }

    /// Runs `work` on the allocator under the lock that threads share, if no slow-path reason exists. `None` means that
    /// nothing was changed.
    pub(super) fn on_shared_path<T>(&self, work: impl FnOnce(&mut Tables) -> Option<T>) -> Option<T> {
        self.check_process().ok()?;
        let result = self.state.with(|state| {
            if !self.deferred.is_idle() {
                return None;
            }
            state.record_lock(Decision::Locked);
            work(&mut state.allocator)
        });
        self.drain_deferred();
        result.ok().flatten()
    }

    /// Takes the lock after all deferred operations have run.
    pub(super) fn lock_state(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.check_process()?;
        let mut state = usable(self.state.lock())?;
        while !self.deferred.is_empty() {
            self.run_deferred(state);
            state = usable(self.state.lock())?;
        }
        state.record_lock(Decision::Locked);
        Ok(state)
    }

    /// Does the same, and settles the thread caches.
    pub(super) fn lock_settled_state(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.lock_state_if(State::settle)
    }

    /// Takes the lock of a pool that is not closed.
    pub(super) fn lock_open_state(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.lock_state_if(|state| state.open())
    }

    /// Takes the lock of a pool that is not closed, and settles the thread caches.
    pub(super) fn lock_open_settled_state(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.lock_state_if(|state| state.open().and_then(|()| state.settle()))
    }

    /// Takes the lock, and releases it again if `condition` is an error.
    fn lock_state_if(
        &self,
        condition: impl FnOnce(&mut State) -> Result<(), Unusable>,
    ) -> Result<MutexGuard<'_, State>, Unusable> {
        let mut state = self.lock_state()?;
        if let Err(error) = condition(&mut state) {
            drop(state);
            self.drain_deferred();
            return Err(error);
        }
        Ok(state)
    }

    /// Takes the lock after all deferred operations have run, unless another thread holds it.
    pub(super) fn try_lock_state(&self) -> Result<Option<MutexGuard<'_, State>>, Unusable> {
        self.check_process()?;
        let mut state = usable(self.state.try_lock())?;
        while !self.deferred.is_empty()
            && let Some(taken) = state
        {
            self.run_deferred(taken);
            state = usable(self.state.try_lock())?;
        }
        if let Some(state) = &mut state {
            state.record_lock(Decision::Locked);
        }
        Ok(state)
    }

    /// Runs operations that were deferred while the lock was held, unless another thread does. Running them holds the
    /// lock again, so the check repeats.
    #[inline]
    pub(super) fn drain_deferred(&self) {
        while !self.deferred.is_empty() {
            if !matches!(self.try_lock_state(), Ok(Some(_))) {
                return;
            }
        }
    }

    /// Does the same. Not inline: the fast path needs no registers for it.
    #[cold]
    #[inline(never)]
    fn drain_after_fast_path(&self) {
        self.drain_deferred();
    }

    #[cold]
    fn run_deferred(&self, mut state: MutexGuard<'_, State>) {
        state.record_lock(Decision::RunsDeferred);
        self.deferred.run_all(|operation| match operation {
            Deferred::Free(address, id) => {
                // No effect if the allocation was freed before or is held.
                let freed = state.free_at(address, FreeTarget::number(id));
                state.defer_damage(freed.and_then(|freed| freed.damage));
            }
            Deferred::Close(scope) => drop(self.close_in(&mut state, scope)),
        });
        self.finish_free(state);
    }
}

/// Returns what was taken, unless the lock stays with its owner.
///
/// # Panics
/// If a thread panicked while it held the lock.
pub(super) fn usable<T>(taken: Result<T, LockError>) -> Result<T, Unusable> {
    taken.map_err(|error| match error {
        LockError::BarrierForbidden => Unusable::BarrierForbidden,
        LockError::Poisoned => panic!("{STATE_IS_SOUND}"),
    })
}
