//! Resizing an allocation in place.

use super::Pool;
use crate::error::{ResizeError, Shortage};
use crate::tables::Allocation;
use crate::tables::free_target::FreeTarget;

impl Pool {
    /// Changes the allocation at `address` to `bytes` bytes without moving it, and returns it as it is then.
    ///
    /// It grows into the free memory after it. A smaller one gives its tail back, in whole granules; in guard mode
    /// the tail becomes red zone. Its alignment stays.
    ///
    /// # Errors
    /// If it cannot grow that far, with the bytes that it has and those that it could have; also if no allocation
    /// starts there, or a held one does. Nothing is changed then.
    ///
    /// ```
    /// use allotment::source::AddressSpace;
    /// use allotment::{Options, Pool, ResizeError};
    ///
    /// let pool = Pool::new(AddressSpace::new(0), Options::new(2 << 20))?;
    /// let list = pool.allocate(1 << 20)?;
    /// assert_eq!(pool.resize(list.address, 3 << 19)?.size, 3 << 19);
    /// let Err(ResizeError::NoRoom { size, possible, .. }) = pool.resize(list.address, 4 << 20) else { panic!() };
    /// assert_eq!((size, possible), (3 << 19, 2 << 20));
    /// assert_eq!(pool.resize(list.address, 1000)?.size, 1024);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resize(&self, address: u64, bytes: u64) -> Result<Allocation, ResizeError> {
        self.resize_matching(address, FreeTarget::ANY, bytes)
    }

    /// Resizes the held allocation at `address`, as [`Pool::resize`] does others.
    ///
    /// # Errors
    /// As [`Pool::resize`]; also if the allocation there is not held.
    pub(crate) fn resize_held(&self, address: u64, bytes: u64) -> Result<Allocation, ResizeError> {
        self.resize_matching(address, FreeTarget::HELD, bytes)
    }

    pub(super) fn resize_matching(
        &self,
        address: u64,
        target: FreeTarget,
        bytes: u64,
    ) -> Result<Allocation, ResizeError> {
        if bytes == 0 {
            return Err(ResizeError::ZeroBytes { address });
        }
        let mut state = self.lock_state()?;
        state.withdraw(address);
        let in_use = state.allocator.counters.in_use();
        let resized = state.resize(address, target, bytes);
        if state.allocator.counters.in_use() < in_use {
            // The tail may serve a request that was refused, and a trim may discard it.
            state.retry_reasons += 1;
            state.discarded_at = None;
        }
        let result = match resized {
            Some(Ok(size)) => {
                let id = state.number_at(address).unwrap_or(0);
                Ok(Allocation { address, size, requested: bytes, id })
            }
            Some(Err(Shortage::Neighbour { size, possible })) => {
                Err(ResizeError::NoRoom { address, bytes, size, possible })
            }
            Some(Err(Shortage::Scope { size, limit })) => {
                Err(ResizeError::ScopeLimit { address, bytes, size, limit })
            }
            None if state.is_blocked_by_hold(address, target) => Err(ResizeError::Pinned { address }),
            None => Err(ResizeError::NotAllocated { address }),
        };
        self.finish_free(state);
        self.drain_deferred();
        result
    }
}
