//! What only bindings to other languages need of a pool: hidden in the documentation, and outside the promise of
//! versions.
//!
//! **Held allocations.** A runtime with its own rules frees them, or a buffer exposes their memory. No other call frees a
//! held allocation.

use crate::error::{AllocError, FreeError, ResizeError, Unusable};
use crate::guard::Damage;
use crate::pool::{AllocationAttempt, Pool};
use crate::request::Request;
use crate::tables::Allocation;

pub use crate::pool::is_tagged;

/// The operations of a [`Pool`] for bindings.
pub trait PoolForBindings {
    /// Allocates memory as a held allocation, which only [`free_held`](Self::free_held) frees.
    ///
    /// Calls `retry` before each refusal, as [`Pool::allocate_with_retry`] does.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    fn allocate_held<'a>(
        &self,
        request: impl Into<Request<'a>>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError>;

    /// Frees the held allocation at `address`; 0 is accepted and does nothing.
    ///
    /// # Errors
    /// If no held allocation starts there; the pool is unchanged. In guard mode also for damage; the allocation is
    /// freed then.
    fn free_held(&self, address: u64) -> Result<(), FreeError>;

    /// Changes a held allocation to `bytes` bytes without moving it, as [`Pool::resize`] does with others.
    ///
    /// # Errors
    /// As [`Pool::resize`]; also if the allocation is not held.
    fn resize_held(&self, address: u64, bytes: u64) -> Result<Allocation, ResizeError>;

    /// Returns whether a held allocation starts at `address`.
    ///
    /// # Errors
    /// In a forked child.
    fn is_held(&self, address: u64) -> Result<bool, FreeError>;

    /// Holds an allocation while a buffer exposes its memory: frees by address and by number fail.
    ///
    /// # Errors
    /// If the allocation is not live.
    fn pin(&self, allocation: &Allocation) -> Result<(), FreeError>;

    /// Undoes [`pin`](Self::pin).
    fn unpin(&self, allocation: &Allocation);

    /// Returns whether the fast path is open: no thread waits, no scope is open, no guard mode or owner tags, not
    /// closed. The answer may be stale.
    fn is_fast_path_open(&self) -> bool;

    /// Counts and records a refusal of `bytes` bytes that the caller decided without asking the pool.
    ///
    /// # Errors
    /// In a forked child.
    fn account_refusal(&self, bytes: u64) -> Result<(), Unusable>;

    /// Leaves a damage for the next call that can report one.
    fn defer_damage(&self, damage: Damage);

    /// Returns a number that each allocation and each free changes.
    ///
    /// # Errors
    /// In a forked child.
    fn activity(&self) -> Result<u64, Unusable>;
}

impl PoolForBindings for Pool {
    #[inline]
    fn allocate_held<'a>(
        &self,
        request: impl Into<Request<'a>>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        Self::allocate_held(self, request, retry)
    }

    #[inline]
    fn free_held(&self, address: u64) -> Result<(), FreeError> {
        Self::free_held(self, address)
    }

    fn resize_held(&self, address: u64, bytes: u64) -> Result<Allocation, ResizeError> {
        Self::resize_held(self, address, bytes)
    }

    fn is_held(&self, address: u64) -> Result<bool, FreeError> {
        Self::is_held(self, address)
    }

    fn pin(&self, allocation: &Allocation) -> Result<(), FreeError> {
        Self::pin(self, allocation)
    }

    fn unpin(&self, allocation: &Allocation) {
        Self::unpin(self, allocation);
    }

    #[inline]
    fn is_fast_path_open(&self) -> bool {
        Self::is_fast_path_open(self)
    }

    fn account_refusal(&self, bytes: u64) -> Result<(), Unusable> {
        Self::account_refusal(self, bytes)
    }

    fn defer_damage(&self, damage: Damage) {
        Self::defer_damage(self, damage);
    }

    fn activity(&self) -> Result<u64, Unusable> {
        Self::activity(self)
    }
}
