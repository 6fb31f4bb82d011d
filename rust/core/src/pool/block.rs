//! Blocks: allocations that own themselves.

use std::borrow::Borrow;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::Pool;
use super::allocating::fast_request;
use crate::chunk::region::RegionId;
use crate::error::{AllocError, FreeError, ResizeError, Unusable};
use crate::request::Request;
use crate::tables::free_target::FreeTarget;
use crate::tables::{Allocation, ChunkRequest, Placed};
use crate::units::GRANULE;

/// Memory of a pool that is freed when it is dropped, with a value of the caller's in it.
///
/// `P` is how it refers to its pool: `&Pool`, as from [`Pool::block`], or `Arc<Pool>`, as from [`Pool::owned_block`].
/// `T` is what the caller stores with the memory: a buffer's usage, an element type, a handle of the driver.
///
/// ```
/// use std::sync::Arc;
///
/// use allotment::source::AddressSpace;
/// use allotment::{Block, Options, Pool, Request};
///
/// let pool = Arc::new(Pool::new(AddressSpace::new(0), Options::new(64 << 20))?);
/// let block = pool.block(Request::new(1000).align(1 << 16))?;
/// assert_eq!((block.size(), block.address() % (1 << 16)), (1024, 0));
/// assert_eq!(block.region().start() + block.offset(), block.address());
///
/// // Blocks that own a share of their pool may go anywhere.
/// struct Texture { width: u32 }
/// let texture: Block<Arc<Pool>, Texture> = pool.owned_block(4096)?.with_data(Texture { width: 32 });
/// assert_eq!(std::thread::spawn(move || texture.data().width).join().unwrap(), 32);
///
/// drop(block);
/// assert_eq!(pool.stats()?.num_live, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a block that is dropped is freed"]
pub struct Block<P: Borrow<Pool> = Arc<Pool>, T = ()> {
    held: Held<P>,
    data: T,
}

/// The memory of a block, without the caller's data.
struct Held<P: Borrow<Pool>> {
    pool: P,
    allocation: Allocation,
    region: RegionId,
}

impl<P: Borrow<Pool>> Block<P> {
    /// Allocates memory from a pool.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline(always)]
    pub fn new<'a>(pool: P, request: impl Into<Request<'a>>) -> Result<Self, AllocError> {
        let request = request.into();
        let shared = pool.borrow();
        // The values of both paths meet in registers: a block that came back whole from the slow one would be copied
        // twice.
        let (allocation, region) = match shared.allocate_placed(request) {
            Some(placed) => placed,
            None => shared.allocate_placed_slow(request)?,
        };
        Ok(Self { held: Held { pool, allocation, region }, data: () })
    }
}

impl<P: Borrow<Pool>, T> Block<P, T> {
    /// Returns the first byte, a multiple of the requested alignment.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.held.allocation.address
    }

    /// Returns the usable bytes, at least those requested.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.held.allocation.size
    }

    /// Returns the region that contains the memory.
    #[must_use]
    pub fn region(&self) -> RegionId {
        self.held.region
    }

    /// Returns the distance of the first byte from the start of its region.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.address() - self.held.region.start()
    }

    /// Returns the allocation: requested bytes and number, too.
    #[must_use]
    pub fn allocation(&self) -> &Allocation {
        &self.held.allocation
    }

    /// Returns the pool.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        self.held.pool.borrow()
    }

    /// Returns the caller's data.
    #[must_use]
    pub fn data(&self) -> &T {
        &self.data
    }

    /// Returns the caller's data, mutably.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.data
    }

    /// Replaces the caller's data.
    pub fn with_data<U>(self, data: U) -> Block<P, U> {
        Block { held: self.held, data }
    }

    /// Changes the size in place: see [`Pool::resize`].
    ///
    /// # Errors
    /// If it cannot grow that far; the block is as it was.
    pub fn resize(&mut self, bytes: u64) -> Result<(), ResizeError> {
        self.held.allocation = self.pool().resize_matching(self.address(), FreeTarget::ANY, bytes)?;
        Ok(())
    }

    /// Frees the memory and returns the caller's data. A drop does the same and reports nothing.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn free(mut self) -> Result<T, FreeError> {
        let allocation = self.held.disarm();
        self.pool().free_allocation(&allocation)?;
        Ok(self.data)
    }

    /// Gives up the ownership: the caller frees the allocation by its address.
    #[must_use = "the allocation is freed by its address"]
    pub fn into_allocation(mut self) -> (Allocation, T) {
        (self.held.disarm(), self.data)
    }
}

impl<P: Borrow<Pool>> Held<P> {
    /// Returns the allocation, which a drop then leaves alone.
    fn disarm(&mut self) -> Allocation {
        let allocation = self.allocation;
        self.allocation.id = 0;
        allocation
    }
}

impl<P: Borrow<Pool>> Drop for Held<P> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(id) = NonZeroU64::new(self.allocation.id) else { return };
        self.pool.borrow().free_of_block(self.allocation.address, id);
    }
}

impl<P: Borrow<Pool>, T: fmt::Debug> fmt::Debug for Block<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("allocation", &self.held.allocation)
            .field("region", &self.held.region)
            .field("offset", &self.offset())
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Allocates memory that is freed when the returned block is dropped.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline(always)]
    pub fn block<'a>(&self, request: impl Into<Request<'a>>) -> Result<Block<&Self>, AllocError> {
        Block::new(self, request)
    }

    /// Allocates memory that is freed when the returned block is dropped; the block keeps the pool alive.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline(always)]
    pub fn owned_block<'a>(
        self: &Arc<Self>,
        request: impl Into<Request<'a>>,
    ) -> Result<Block<Arc<Self>>, AllocError> {
        Block::new(Arc::clone(self), request)
    }

    /// Returns the region that contains `address`, and the offset of `address` in it; `None` if there is none.
    ///
    /// # Errors
    /// In a forked child.
    pub fn region_of(&self, address: u64) -> Result<Option<(RegionId, u64)>, Unusable> {
        self.with_state(|state| state.allocator.regions.locate(address))
    }

    /// Serves a request on the fast path, and returns the region, too.
    #[inline(always)]
    fn allocate_placed(&self, request: Request<'_>) -> Option<(Allocation, RegionId)> {
        let ChunkRequest { bytes, needed, .. } = fast_request(request)?;
        if request.alignment() > GRANULE {
            return None;
        }
        let Placed { address, size, id, region } =
            self.on_fast_path(|tables| tables.try_place(bytes, needed))?;
        Some((Allocation { address, size: size.get(), requested: bytes, id }, region))
    }

    /// Serves a request, and returns the region, too.
    #[cold]
    #[inline(never)]
    fn allocate_placed_slow(&self, request: Request<'_>) -> Result<(Allocation, RegionId), AllocError> {
        let allocation = self.allocate(request)?;
        match self.with_state(|state| state.allocator.regions.region_of(allocation.address)) {
            Ok(region) => Ok((allocation, region)),
            Err(unusable) => {
                if let Some(id) = NonZeroU64::new(allocation.id) {
                    self.free_dropped(allocation.address, id);
                }
                Err(unusable.into())
            }
        }
    }

    /// Frees the allocation of a block.
    // Not inline: what is left of a drop is small, and the compiler puts it where the block ends, which then need not
    // be in memory. A pair takes 3.5 % more instructions than one of `allocate` and `free`, and took 11 % more.
    #[inline(never)]
    fn free_of_block(&self, address: u64, id: NonZeroU64) {
        if self.on_fast_path(|tables| tables.free_inline(address, FreeTarget::number(id))).is_none() {
            self.free_dropped(address, id);
        }
    }

    /// Frees an allocation whose owner cannot receive errors; the next call that can reports damage.
    #[cold]
    #[inline(never)]
    fn free_dropped(&self, address: u64, id: NonZeroU64) {
        let allocation = Allocation { address, size: 0, requested: 0, id: id.get() };
        // After a panic under the lock the tables may be inconsistent.
        if !self.state.is_poisoned()
            && let Err(FreeError::Damaged(damage)) = self.free_allocation(&allocation)
        {
            self.defer_damage(damage);
        }
    }
}

#[cfg(test)]
mod tests;
