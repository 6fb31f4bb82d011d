//! Held allocations: a runtime frees them by its own rules, or a buffer exposes their memory.
//!
//! No other call frees a held allocation. Other code may know only its address, and a stray free would hit the next
//! allocation there.

use super::state::State;
use super::{AllocationAttempt, Pool};
use crate::error::{AllocError, FreeError};
use crate::request::Request;
use crate::tables::free_target::FreeTarget;
use crate::tables::{Allocation, ChunkRequest};

impl Pool {
    /// Allocates memory as a held allocation, which only [`Pool::free_held`] frees.
    ///
    /// Calls `retry` before each refusal, as [`Pool::allocate_with_retry`] does.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline]
    pub(crate) fn allocate_held<'a>(
        &self,
        request: impl Into<Request<'a>>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        let request = request.into();
        if let Some(allocation) = self.allocate_fast(request, true) {
            return Ok(allocation);
        }
        self.allocate_held_slow(request, retry)
    }

    #[cold]
    #[inline(never)]
    fn allocate_held_slow(
        &self,
        wanted: Request<'_>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.allocate_beside(wanted, true, true) {
            return Ok(allocation);
        }
        self.serve_with_retry(wanted, ChunkRequest { held: true, ..self.request(wanted)? }, retry)
    }

    /// Frees the held allocation at `address`; 0 is accepted and does nothing.
    ///
    /// # Errors
    /// If no held allocation starts there; the pool is unchanged. In guard mode also for damage; the allocation is
    /// freed then.
    #[inline]
    pub(crate) fn free_held(&self, address: u64) -> Result<(), FreeError> {
        if let Some(()) = self.free_fast(address, FreeTarget::HELD, true) {
            return Ok(());
        }
        self.free_locked(self.lock_state()?, address, FreeTarget::HELD)
    }

    /// Returns whether a held allocation starts at `address`.
    ///
    /// # Errors
    /// In a forked child.
    pub(crate) fn is_held(&self, address: u64) -> Result<bool, FreeError> {
        Ok(self.with_state(|state| {
            state.withdraw(address);
            state.is_blocked_by_hold(address, FreeTarget::ANY)
        })?)
    }

    /// Holds an allocation while a buffer exposes its memory: frees by address and by number fail.
    ///
    /// # Errors
    /// If the allocation is not live.
    pub(crate) fn pin(&self, allocation: &Allocation) -> Result<(), FreeError> {
        let address = allocation.address;
        let pinned = self.with_state(|state| state.set_held(allocation, true))?;
        if pinned || address == self.no_address { Ok(()) } else { Err(FreeError::NotAllocated { address }) }
    }

    /// Undoes [`Pool::pin`].
    pub(crate) fn unpin(&self, allocation: &Allocation) {
        // In a forked child the pins are a copy without effect.
        let _ = self.with_state(|state| state.set_held(allocation, false));
    }
}

impl State {
    /// Returns whether a free fails only because the allocation at the caller's `address` is held.
    pub(super) fn is_blocked_by_hold(&self, address: u64, target: FreeTarget) -> bool {
        self.chunk_start(address).is_some_and(|start| self.allocator.is_blocked_by_hold(start, target))
    }

    /// Sets or clears the held state of an allocation; returns whether the allocation is live.
    fn set_held(&mut self, allocation: &Allocation, held: bool) -> bool {
        self.withdraw(allocation.address);
        let Some(start) = self.chunk_start(allocation.address) else { return false };
        let live = self.allocator.chunk_at(start).is_some_and(|chunk| chunk.number() == allocation.id);
        if live {
            self.allocator.set_held(start, held);
        }
        live
    }
}

#[cfg(test)]
mod tests;
