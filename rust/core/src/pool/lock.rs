//! The lock, and the late frees that come with it: whoever gets in does them, and whoever leaves looks again.

use allotment_sync::Guard;

use super::freeing::Late;
use super::state::State;
use super::{BROKEN, Pool};
use crate::allocator::Allocator;
use crate::claim::Claim;
use crate::error::Unusable;

impl Pool {
    /// Does something under the lock.
    #[inline]
    pub(super) fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, Unusable> {
        let mut state = self.enter()?;
        let result = work(&mut state);
        drop(state);
        self.settle();
        Ok(result)
    }

    /// Does something in the tables if this thread has had the pool to itself and there is nothing else to think
    /// of. `None`: nothing was done, take the other door.
    #[inline(always)]
    pub(super) fn quickly<T>(&self, work: impl FnOnce(&mut Allocator) -> Option<T>) -> Option<T> {
        let result = self
            .state
            .work_as_owner(|state| if self.late.is_bare() { work(&mut state.allocator) } else { None });
        if result.is_some() && !self.late.is_empty_to_owner() {
            self.settle();
        }
        result
    }

    /// Takes the lock, with no free left undone.
    pub(super) fn enter(&self) -> Result<Guard<'_, State>, Unusable> {
        self.same_process()?;
        let mut state = self.state.lock().expect(BROKEN);
        while !self.late.is_empty() {
            self.free_the_late(state);
            state = self.state.lock().expect(BROKEN);
        }
        Ok(state)
    }

    /// Takes the lock of a pool that is not closed.
    pub(super) fn enter_open(&self) -> Result<Guard<'_, State>, Unusable> {
        let state = self.enter()?;
        if let Err(closed) = state.open() {
            drop(state);
            self.settle();
            return Err(closed);
        }
        Ok(state)
    }

    /// Takes the lock, with no free left undone, unless somebody else has it.
    pub(super) fn try_enter(&self) -> Result<Option<Guard<'_, State>>, Unusable> {
        self.same_process()?;
        let mut state = self.state.try_lock().expect(BROKEN);
        while !self.late.is_empty()
            && let Some(taken) = state
        {
            self.free_the_late(taken);
            state = self.state.try_lock().expect(BROKEN);
        }
        Ok(state)
    }

    /// Does the late frees that came while the lock was held, if nobody else does. Doing them holds the lock again: so
    /// it looks once more after that, as whoever leaves.
    #[inline]
    pub(super) fn settle(&self) {
        while !self.late.is_empty() {
            if !matches!(self.try_enter(), Ok(Some(_))) {
                return;
            }
        }
    }

    #[cold]
    fn free_the_late(&self, mut state: Guard<'_, State>) {
        for late in self.late.take() {
            match late {
                Late::Free(address, id) => {
                    // One that was freed before is not there any more; one that is held stays.
                    let freed = state.take_back(address, Claim::number(id));
                    state.keep_damage(freed.and_then(|freed| freed.damage));
                }
                Late::Close(scope) => drop(self.close_in(&mut state, scope)),
            }
        }
        self.after_free(state);
    }
}
