//! Frees: by address or by allocation, waiting or not, now or late.

use std::num::NonZeroU64;

use allotment_sync::Guard;

use super::Pool;
use super::scope::Scope;
use super::state::State;
use crate::allocator::Allocation;
use crate::claim::Claim;
use crate::error::FreeError;

/// What a finaliser could not do while another thread had the lock.
#[derive(Debug)]
pub(super) enum Late {
    /// Frees an allocation, by address and number.
    Free(u64, NonZeroU64),
    /// Closes a scope.
    Close(Scope),
}

impl Pool {
    /// Frees the allocation at `address`; 0 is nothing and is accepted.
    ///
    /// # Errors
    /// When no allocation starts there, or one that is held: the pool is as it was. In guard mode also for damage; it
    /// was freed then.
    #[inline(always)]
    pub fn free(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.give_back_quickly(address, Claim::ANY) {
            return Ok(());
        }
        self.free_patiently(address)
    }

    #[cold]
    #[inline(never)]
    fn free_patiently(&self, address: u64) -> Result<(), FreeError> {
        self.give_back(self.enter()?, address, Claim::ANY)
    }

    /// Frees if that takes no waiting for the lock; `None` means: take the other door.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn try_free(&self, address: u64) -> Result<Option<()>, FreeError> {
        if let Some(()) = self.give_back_quickly(address, Claim::ANY) {
            return Ok(Some(()));
        }
        self.try_enter()?.map(|state| self.give_back(state, address, Claim::ANY)).transpose()
    }

    /// Frees exactly this allocation: if the address has a new owner, that is an error.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn free_allocation(&self, allocation: &Allocation) -> Result<(), FreeError> {
        let Allocation { address, id, .. } = *allocation;
        let Some(id) = NonZeroU64::new(id) else { return self.free_nothing(address) };
        if let Some(()) = self.give_back_quickly(address, Claim::number(id)) {
            return Ok(());
        }
        self.give_back(self.enter()?, address, Claim::number(id))
    }

    /// Frees exactly this allocation if that takes no waiting for the lock; `None` means: take the other door.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn try_free_allocation(&self, allocation: &Allocation) -> Result<Option<()>, FreeError> {
        let Allocation { address, id, .. } = *allocation;
        let Some(id) = NonZeroU64::new(id) else { return self.free_nothing(address).map(Some) };
        if let Some(()) = self.give_back_quickly(address, Claim::number(id)) {
            return Ok(Some(()));
        }
        self.try_enter()?.map(|state| self.give_back(state, address, Claim::number(id))).transpose()
    }

    /// Frees an allocation that nobody uses any more, without waiting and without failing.
    ///
    /// For finalisers: if the lock is taken, the free is left for the next caller; if the allocation was
    /// freed before, or is held by then, nothing happens.
    pub fn free_late(&self, allocation: &Allocation) {
        let Some(id) = NonZeroU64::new(allocation.id) else { return };
        if let Some(()) = self.give_back_quickly(allocation.address, Claim::number(id)) {
            return;
        }
        match self.try_enter() {
            Ok(Some(state)) => self.give_back_silently(state, allocation.address, id),
            Ok(None) => {
                self.late.push(Late::Free(allocation.address, id));
                // Whoever had the lock may have looked at the queue a moment before.
                self.settle();
            }
            // A child process has a copy of the tables at best; what it does to them frees nothing.
            Err(_) => {}
        }
    }

    /// Frees what is allocated at `address`, if that is all there is to do; `None`: take the other door.
    #[inline(always)]
    pub(super) fn give_back_quickly(&self, address: u64, claim: Claim) -> Option<()> {
        self.quickly(|allocator| allocator.free(address, claim))
    }

    /// Frees an allocation without number, which is right for that of zero bytes alone.
    fn free_nothing(&self, address: u64) -> Result<(), FreeError> {
        self.same_process()?;
        if address == 0 { Ok(()) } else { Err(FreeError::NotAllocated { address }) }
    }

    pub(super) fn give_back(
        &self,
        mut state: Guard<'_, State>,
        address: u64,
        claim: Claim,
    ) -> Result<(), FreeError> {
        let freed = state.take_back(address, claim);
        let held = freed.is_none() && state.is_kept_off(address, claim);
        // Its own damage, or else what nobody could be told of before.
        let damage = freed.as_ref().and_then(|freed| freed.damage.or_else(|| state.next_damage()));
        self.after_free(state);
        self.settle();
        // No region starts at 0, so nothing is ever found there.
        match damage {
            Some(damage) => Err(FreeError::Damaged(damage)),
            None if freed.is_some() || address == 0 => Ok(()),
            None if held => Err(FreeError::Pinned { address }),
            None => Err(FreeError::NotAllocated { address }),
        }
    }

    /// Frees for somebody who cannot be told of anything; damage is kept for somebody who can.
    fn give_back_silently(&self, mut state: Guard<'_, State>, address: u64, id: NonZeroU64) {
        let freed = state.take_back(address, Claim::number(id));
        state.keep_damage(freed.and_then(|freed| freed.damage));
        self.after_free(state);
        self.settle();
    }

    /// Wakes who waits for a free, and hands the regions back if it was the last of a closed pool.
    pub(super) fn after_free(&self, state: Guard<'_, State>) {
        if state.concerns().waiting > 0 {
            self.freed.ring();
        }
        let over = state.is_over();
        drop(state);
        if over {
            self.hand_back_last_regions();
        }
    }
}
