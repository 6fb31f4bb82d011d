//! Collections in pools of host memory, through the crate `allocator-api2`.

use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator};
use allotment::bindings::PoolForBindings as _;
use allotment::{LimitError, Options, OptionsError, Pool, Request, Snapshot, Stats, TrimError, Unusable};

use crate::{HostAccessible, HostMemory};

/// An allocator of collections over a pool of its own, of memory of the host; clones share the pool.
///
/// The pool itself is not public: a free of an address would end memory that a collection uses.
///
/// ```
/// use allocator_api2::vec::Vec;
/// use allotment::Options;
/// use allotment_host::PoolAllocator;
///
/// let memory = PoolAllocator::new(Options::new(1 << 20))?;
/// let mut list = Vec::new_in(memory.clone());
/// list.extend(0..1000_u64);
/// assert_eq!(memory.stats()?.num_live, 1);
/// assert!(list.try_reserve(1 << 20).is_err(), "more than the pool's limit");
/// drop(list);
/// assert_eq!(memory.stats()?.num_live, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PoolAllocator(Arc<Pool>);

impl PoolAllocator {
    /// Creates an allocator over a new pool.
    ///
    /// # Errors
    /// If an option is out of range.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::over(HostMemory::new(), options)
    }

    /// Creates an allocator over a new pool with memory of `source`.
    ///
    /// # Errors
    /// If an option is out of range, or if guard mode is requested and the source has no guard.
    pub fn over(source: impl HostAccessible + 'static, options: Options) -> Result<Self, OptionsError> {
        Ok(Self(Arc::new(Pool::new(source, options)?)))
    }

    /// Returns the pool's counters.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stats(&self) -> Result<Stats, Unusable> {
        self.0.stats()
    }

    /// Returns a copy of all regions and chunks.
    ///
    /// # Errors
    /// In a forked child.
    pub fn snapshot(&self) -> Result<Snapshot, Unusable> {
        self.0.snapshot()
    }

    /// Releases free memory: see [`Pool::trim`].
    ///
    /// # Errors
    /// In a forked child.
    pub fn trim(&self) -> Result<u64, TrimError> {
        self.0.trim()
    }

    /// Changes the limit in bytes: see [`Pool::set_limit`].
    ///
    /// # Errors
    /// If the limit is out of range or below what stays reserved.
    pub fn set_limit(&self, limit: u64, trim: bool) -> Result<u64, LimitError> {
        self.0.set_limit(limit, trim, "set_limit")
    }

    /// Resizes a block in place; `None` if it must move.
    fn resize(&self, block: NonNull<u8>, new: Layout) -> Option<NonNull<[u8]>> {
        let address = block.as_ptr().expose_provenance();
        if new.size() == 0 || !address.is_multiple_of(new.align()) {
            return None;
        }
        let resized = self.0.resize(address as u64, new.size() as u64).ok()?;
        Some(slice(block, resized.size))
    }

    /// Moves the first `bytes` bytes of a block to a new one.
    ///
    /// # Safety
    /// `block` is a block of this allocator for `old`, of at least `bytes` bytes; so is the new one.
    unsafe fn move_block(
        &self,
        block: NonNull<u8>,
        (old, new): (Layout, Layout),
        bytes: usize,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = self.allocate(new)?;
        // SAFETY: guaranteed by the caller; the new block is another one.
        unsafe {
            moved.cast::<u8>().copy_from_nonoverlapping(block, bytes);
            self.deallocate(block, old);
        }
        Ok(moved)
    }
}

/// Returns a block of a pool's memory.
fn slice(start: NonNull<u8>, size: u64) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(start, usize::try_from(size).unwrap_or(0))
}

// SAFETY: a block is an allocation of a pool over a source of accessible memory, which no other code can free: the pool is private, and
// lives as long as any clone. A resize keeps its address and its content.
unsafe impl Allocator for PoolAllocator {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            let nothing = NonNull::new(ptr::without_provenance_mut(layout.align())).ok_or(AllocError)?;
            return Ok(slice(nothing, 0));
        }
        let request = Request::new(layout.size() as u64).align(layout.align() as u64);
        let served = self.0.allocate(request).map_err(|_| AllocError)?;
        let address = usize::try_from(served.address).map_err(|_| AllocError)?;
        let start = NonNull::new(ptr::with_exposed_provenance_mut(address)).ok_or(AllocError)?;
        Ok(slice(start, served.size))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            // A forked child frees nothing, and guard mode reports damage by the guard at the end of the pool.
            match self.0.free(block.as_ptr().expose_provenance() as u64) {
                Err(allotment::FreeError::Damaged(damage)) => self.0.defer_damage(damage),
                freed => debug_assert!(freed.is_ok() || self.0.is_inherited(), "{freed:?}"),
            }
        }
    }

    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let in_place = if old.size() == 0 { None } else { self.resize(block, new) };
        // SAFETY: the caller guarantees the block and that the new layout is at least as large.
        in_place.map_or_else(|| unsafe { self.move_block(block, (old, new), old.size()) }, Ok)
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let in_place = if old.size() == 0 { None } else { self.resize(block, new) };
        // SAFETY: the caller guarantees the block and that the new layout is at most as large.
        in_place.map_or_else(|| unsafe { self.move_block(block, (old, new), new.size()) }, Ok)
    }
}
