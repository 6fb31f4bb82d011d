//! Allocations that are held: a runtime frees them by its own rules, or a buffer shows their memory.
//!
//! Until then no other call frees them, as the address may be all that others know of them, and the next owner of the
//! address would pay for it.

use super::state::State;
use super::{Pool, Refused};
use crate::allocator::{Allocation, Request};
use crate::claim::Claim;
use crate::error::{AllocError, FreeError};
use crate::units::GRANULE;

impl Pool {
    /// Allocates at least `bytes` bytes for a runtime that holds them: [`Pool::free_held`] alone frees them.
    ///
    /// Asks `again` before it refuses, as [`Pool::allocate_or`] does.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline]
    pub fn allocate_held(
        &self,
        bytes: u64,
        again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.serve_quickly(bytes, GRANULE, true) {
            return Ok(allocation);
        }
        self.allocate_held_slowly(bytes, again)
    }

    #[cold]
    #[inline(never)]
    fn allocate_held_slowly(
        &self,
        bytes: u64,
        again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        let request = Request { held: true, ..self.request(bytes, GRANULE)? };
        self.serve_or(request, GRANULE, again)
    }

    /// Frees the allocation at `address` for the runtime that holds it; 0 is nothing and is accepted.
    ///
    /// # Errors
    /// When no allocation that is held starts there: the pool is as it was. In guard mode also for damage; it was freed
    /// then.
    #[inline]
    pub fn free_held(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.give_back_quickly(address, Claim::HELD) {
            return Ok(());
        }
        self.give_back(self.enter()?, address, Claim::HELD)
    }

    /// Whether an allocation that is held starts at `address`.
    ///
    /// # Errors
    /// In a forked child.
    pub fn is_held(&self, address: u64) -> Result<bool, FreeError> {
        Ok(self.with_state(|state| state.is_kept_off(address, Claim::ANY))?)
    }

    /// Holds an allocation while a buffer shows its memory: it is freed neither by address nor by number.
    ///
    /// # Errors
    /// When the allocation is not live any more.
    pub fn pin(&self, allocation: &Allocation) -> Result<(), FreeError> {
        let address = allocation.address;
        let pinned = self.with_state(|state| state.set_held(allocation, true))?;
        if pinned || address == 0 { Ok(()) } else { Err(FreeError::NotAllocated { address }) }
    }

    /// Takes a pin back.
    pub fn unpin(&self, allocation: &Allocation) {
        // In a forked child the pins are a copy without effect.
        let _ = self.with_state(|state| state.set_held(allocation, false));
    }
}

impl State {
    /// Whether a free is refused because the allocation that its caller has at `address` is held.
    pub(super) fn is_kept_off(&self, address: u64, claim: Claim) -> bool {
        self.start_of(address).is_some_and(|start| self.allocator.is_kept_off(start, claim))
    }

    /// Holds an allocation, or lets go of it; says whether it is live.
    fn set_held(&mut self, allocation: &Allocation, held: bool) -> bool {
        let Some(start) = self.start_of(allocation.address) else { return false };
        let live = self.allocator.chunk_at(start).is_some_and(|chunk| chunk.number() == allocation.id);
        if live {
            self.allocator.set_held(start, held);
        }
        live
    }
}

#[cfg(test)]
mod tests;
