//! The lock, and the late frees that come with it: whoever gets in does them, and whoever leaves looks again.

use std::sync::{MutexGuard, TryLockError};

use super::{BROKEN, Pool, State};
use crate::error::Unusable;

impl Pool {
    /// Does something under the lock.
    pub(super) fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, Unusable> {
        let mut state = self.enter()?;
        let result = work(&mut state);
        drop(state);
        self.settle();
        Ok(result)
    }

    /// Takes the lock, with no free left undone.
    pub(super) fn enter(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.same_process()?;
        loop {
            let state = self.state.lock().expect(BROKEN);
            if self.late.is_empty() {
                return Ok(state);
            }
            self.free_the_late(state);
        }
    }

    /// Takes the lock, with no free left undone, unless somebody else has it.
    pub(super) fn try_enter(&self) -> Result<Option<MutexGuard<'_, State>>, Unusable> {
        self.same_process()?;
        loop {
            let state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Poisoned(_)) => panic!("{BROKEN}"),
            };
            if self.late.is_empty() {
                return Ok(Some(state));
            }
            self.free_the_late(state);
        }
    }

    /// Does the late frees that came while the lock was held, if nobody else does.
    pub(super) fn settle(&self) {
        if !self.late.is_empty() {
            let _ = self.try_enter();
        }
    }

    #[cold]
    fn free_the_late(&self, mut state: MutexGuard<'_, State>) {
        for (address, id) in self.late.take() {
            if state.allocator.free(address, Some(id)).is_some() {
                state.frees += 1;
            }
        }
        if state.waiting > 0 {
            self.freed.notify_all();
        }
        let over = state.is_over();
        drop(state);
        if over {
            self.hand_back_last_regions();
        }
    }
}
