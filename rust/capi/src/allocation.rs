//! Allocations: made, freed, resized.

use std::ffi::c_char;

use allotment::{Request, Unusable};

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Failure, Status, null, run, text_argument};

/// An allocation. A request of zero bytes is served with size, requested bytes and number 0 and an address of no
/// memory: 0, or `UINT64_MAX` over a source that starts at 0. A free of it does nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Allocation {
    /// The first byte, a multiple of 256 and of the alignment; the argument of a free.
    pub address: u64,
    /// The usable bytes, at least those requested: multiples of 256, or in guard mode the requested bytes alone.
    pub size: u64,
    /// The requested bytes.
    pub requested: u64,
    /// The number of the allocation in its pool, from 1 on, never used again.
    pub id: u64,
}

impl From<allotment::Allocation> for Allocation {
    fn from(allocation: allotment::Allocation) -> Self {
        let allotment::Allocation { address, size, requested, id, .. } = allocation;
        Self { address, size, requested, id }
    }
}

/// Allocates at least `bytes` bytes at a multiple of 256, and stores the allocation. On failure, as in all functions
/// that allocate, nothing is stored.
///
/// # Safety
/// `pool` is a pool; `allocation` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_allocate(
    pool: *const Pool,
    bytes: u64,
    allocation: *mut Allocation,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(allocation, "allocation")?;
            store(allocation, pool.allocate(bytes)?.into());
        }
        Ok(())
    })
}

/// Allocates at least `bytes` bytes at a multiple of `alignment`: any power of two that a region can hold.
///
/// # Safety
/// `pool` is a pool; `allocation` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_allocate_aligned(
    pool: *const Pool,
    bytes: u64,
    alignment: u64,
    allocation: *mut Allocation,
) -> Status {
    run(|| {
        let request = Request::new(bytes).align(alignment);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(allocation, "allocation")?;
            store(allocation, pool.allocate(request)?.into());
        }
        Ok(())
    })
}

/// Allocates like `allotment_allocate_aligned`, under a tag that reports name, in every pool; null for the thread's
/// own. Copied.
///
/// # Safety
/// `pool` is a pool; `tag` is null or ends with a null byte; `allocation` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_allocate_tagged(
    pool: *const Pool,
    bytes: u64,
    alignment: u64,
    tag: *const c_char,
    allocation: *mut Allocation,
) -> Status {
    run(|| {
        let mut request = Request::new(bytes).align(alignment);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(allocation, "allocation")?;
            if let Some(tag) = text_argument(tag, "tag")? {
                request = request.tag(tag);
            }
            store(allocation, pool.allocate(request)?.into());
        }
        Ok(())
    })
}

/// Allocates without growth and without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if that is not enough,
/// or if an older request waits for memory and could have what is free.
///
/// # Safety
/// `pool` is a pool; `allocation` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_try_allocate(
    pool: *const Pool,
    bytes: u64,
    alignment: u64,
    allocation: *mut Allocation,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let pool = unsafe { core_of(pool)? };
        require(allocation, "allocation")?;
        let Some(served) = pool.try_allocate(Request::new(bytes).align(alignment))? else {
            let text = format!("{bytes} bytes are not free now without growth or a wait");
            return Err(Failure { status: Status::AllotmentNotNow, text, refusal: None });
        };
        // SAFETY: guaranteed by the caller.
        unsafe { store(allocation, served.into()) };
        Ok(())
    })
}

/// Frees the allocation at `address`, from any thread. The address of zero bytes does nothing.
///
/// # Safety
/// `pool` is a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_free(pool: *const Pool, address: u64) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| Ok(unsafe { core_of(pool)? }.free(address)?))
}

/// Frees exactly this allocation: an error if its address is another allocation's by now.
///
/// # Safety
/// `pool` is a pool; `allocation` points to an allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_free_allocation(
    pool: *const Pool,
    allocation: *const Allocation,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (pool, allocation) = unsafe { (core_of(pool)?, allocation.as_ref()) };
        let allocation = allocation.ok_or_else(|| null("allocation"))?;
        Ok(pool.free_allocation(&core_allocation(*allocation))?)
    })
}

/// Frees exactly this allocation without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if another thread holds
/// it.
///
/// # Safety
/// `pool` is a pool; `allocation` points to an allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_try_free(pool: *const Pool, allocation: *const Allocation) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (pool, allocation) = unsafe { (core_of(pool)?, allocation.as_ref()) };
        let allocation = allocation.ok_or_else(|| null("allocation"))?;
        pool.try_free_allocation(&core_allocation(*allocation))?.ok_or_else(|| {
            let text = "another thread uses the pool: free again, or use allotment_free_deferred".to_owned();
            Failure { status: Status::AllotmentNotNow, text, refusal: None }
        })
    })
}

/// Frees exactly this allocation without waiting: if another thread holds the pool's lock, the next call on the pool
/// frees it. For finalisers, and code that must not wait. An allocation that was freed before is no error.
///
/// # Safety
/// `pool` is a pool; `allocation` points to an allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_free_deferred(pool: *const Pool, allocation: *const Allocation) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (pool, allocation) = unsafe { (core_of(pool)?, allocation.as_ref()) };
        let allocation = allocation.ok_or_else(|| null("allocation"))?;
        if pool.is_inherited() {
            return Err(Unusable::Forked.into());
        }
        pool.free_deferred(&core_allocation(*allocation));
        Ok(())
    })
}

fn core_allocation(allocation: Allocation) -> allotment::Allocation {
    let Allocation { address, size, requested, id } = allocation;
    allotment::Allocation { address, size, requested, id }
}

/// Changes the allocation at `address` to `bytes` bytes, at least 1, without moving it: grows into the free memory
/// after it, or gives its tail back. Stores it as it is then, under the same number. `ALLOTMENT_NO_ROOM` if it cannot
/// grow that far, or a limit of a scope forbids it: it is as it was, and nothing is stored.
///
/// # Safety
/// `pool` is a pool; `allocation` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_resize(
    pool: *const Pool,
    address: u64,
    bytes: u64,
    allocation: *mut Allocation,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(allocation, core_of(pool)?.resize(address, bytes)?.into()) };
        Ok(())
    })
}

/// Stores the start of the region that contains `address`, and the distance of `address` from it.
/// `ALLOTMENT_NOT_ALLOCATED` if no region of the pool does.
///
/// # Safety
/// `pool` is a pool; `region` and `offset` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_region_of(
    pool: *const Pool,
    address: u64,
    region: *mut u64,
    offset: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { core_of(pool)? }.region_of(address)?;
        let Some((id, distance)) = found else {
            let text = format!("address {address:#x} is in no region of this pool");
            return Err(Failure { status: Status::AllotmentNotAllocated, text, refusal: None });
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            store(region, id.start());
            store(offset, distance);
        }
        Ok(())
    })
}

/// Sets the tag of this thread, under which pools with `owner_tags` record its allocations; null for none. Copied.
/// Without effect in a destructor at the very end of a thread.
///
/// # Safety
/// `tag` is null or ends with a null byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_set_tag(tag: *const c_char) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let tag = unsafe { text_argument(tag, "tag")? };
        allotment::set_tag(tag.map(Into::into));
        Ok(())
    })
}
