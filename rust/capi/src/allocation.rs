//! Allocations: made, freed, resized.

use std::ffi::c_char;

use allotment::Request;

use crate::pool::{Pool, core_of, store};
use crate::status::{Failure, Status, run, text_argument};

/// An allocation. For zero bytes all fields are 0, and a free of it does nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Allocation {
    /// The first byte, a multiple of 256 and of the alignment.
    pub address: u64,
    /// The usable bytes, at least those requested.
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

/// Allocates at least `bytes` bytes at a multiple of 256.
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
        unsafe { store(allocation, core_of(pool)?.allocate(bytes)?.into()) };
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
        unsafe { store(allocation, core_of(pool)?.allocate(request)?.into()) };
        Ok(())
    })
}

/// Allocates like `allotment_allocate_aligned`, under a tag that reports name; null for the thread's own.
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
            if let Some(tag) = text_argument(tag, "tag")? {
                request = request.tag(tag);
            }
            store(allocation, core_of(pool)?.allocate(request)?.into());
        }
        Ok(())
    })
}

/// Allocates without growth and without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if that is not enough.
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
        let Some(served) = pool.try_allocate(Request::new(bytes).align(alignment))? else {
            let text = format!("{bytes} bytes are not free now without growth or a wait");
            return Err(Failure { status: Status::AllotmentNotNow, text, refusal: None });
        };
        // SAFETY: guaranteed by the caller.
        unsafe { store(allocation, served.into()) };
        Ok(())
    })
}

/// Frees the allocation at `address`. The address of zero bytes does nothing.
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
        let Allocation { address, size, requested, id } =
            *allocation.ok_or_else(|| crate::status::null("allocation"))?;
        Ok(pool.free_allocation(&allotment::Allocation { address, size, requested, id })?)
    })
}

/// Changes the allocation at `address` to `bytes` bytes without moving it: grows into the free memory after it, or
/// gives its tail back. Stores it as it is then; `ALLOTMENT_NO_ROOM` if it cannot grow that far.
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
