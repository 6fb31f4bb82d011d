//! Pools: their life, and their limits.

use std::sync::Arc;

use allotment::source::AddressSpace;
use allotment::{GRANULE, RegionSource};
use allotment_host::HostMemory;

use crate::options::{PoolOptions, core_options};
use crate::source::{CSource, Source};
use crate::status::{Failure, Status, null, run};

/// A pool. All threads may use it at once; `allotment_pool_destroy` is the last call of all.
#[derive(Debug)]
pub struct Pool {
    pub(crate) core: Arc<allotment::Pool>,
}

/// Returns the core of a pool argument.
///
/// # Safety
/// `pool` is null or a pool that is not destroyed.
#[inline]
pub(crate) unsafe fn core_of<'a>(pool: *const Pool) -> Result<&'a Arc<allotment::Pool>, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe { pool.as_ref() }.map(|pool| &pool.core).ok_or_else(|| null("pool"))
}

/// Stores a result, unless the caller does not want it.
///
/// # Safety
/// `out` is null or points to writable memory for a `T`.
#[inline]
pub(crate) unsafe fn store<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: guaranteed by the caller; what was there needs no drop.
        unsafe { out.write(value) };
    }
}

fn create(
    source: impl RegionSource + 'static,
    options: allotment::Options,
    pool: *mut *mut Pool,
) -> Result<(), Failure> {
    let core = Arc::new(allotment::Pool::new(source, options)?);
    // SAFETY: `create_with` checked the pointer, and the caller guarantees that it can be written.
    unsafe { store(pool, Box::into_raw(Box::new(Pool { core }))) };
    Ok(())
}

/// Checks the arguments that all pools have.
///
/// # Safety
/// As `allotment_pool_create`.
unsafe fn options_for(
    options: *const PoolOptions,
    pool: *mut *mut Pool,
) -> Result<allotment::Options, Failure> {
    if pool.is_null() {
        return Err(null("pool"));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        pool.write(std::ptr::null_mut());
        core_options(options)
    }
}

/// Creates a pool over a source of the caller. The structure is copied. The pool calls `destroy` of the source at its
/// end; if this call fails, it does not, and the source stays the caller's.
///
/// # Safety
/// `options` and `source` point to such structures, whose functions keep their contract; `pool` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_create(
    options: *const PoolOptions,
    source: *const Source,
    pool: *mut *mut Pool,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (options, source) = unsafe { (options_for(options, pool)?, CSource::new(source)?) };
        let checked = allotment::Pool::new(AddressSpace::new(0), options.clone().guard(false));
        let guard = if options.guard { Some(allotment::OptionsError::NotGuardable) } else { None };
        if let Some(refused) = checked.err().or(guard) {
            source.keep();
            return Err(refused.into());
        }
        create(source, options, pool)
    })
}

/// Creates a pool over memory of this process: readable, writable, zero at first. Reserving takes address space only.
///
/// # Safety
/// `options` points to options; `pool` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_create_host(
    options: *const PoolOptions,
    pool: *mut *mut Pool,
) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| create(HostMemory::new(), unsafe { options_for(options, pool)? }, pool))
}

/// Creates a pool over made-up addresses with nothing behind them. Regions lie `gap` bytes apart, a multiple of 256.
///
/// # Safety
/// `options` points to options; `pool` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_create_address_space(
    options: *const PoolOptions,
    gap: u64,
    pool: *mut *mut Pool,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let options = unsafe { options_for(options, pool)? };
        if !gap.is_multiple_of(GRANULE) {
            return Err(Failure::invalid(format!("gap {gap} is not a multiple of {GRANULE}")));
        }
        create(AddressSpace::new(gap), options, pool)
    })
}

/// Destroys a pool: its wholly free regions go back to the source. A region with a live allocation stays reserved for
/// ever, as its user may still access it. Open scopes end. Null is accepted.
///
/// # Safety
/// `pool` is a pool that no thread uses now or later, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_destroy(pool: *mut Pool) -> Status {
    run(|| {
        if !pool.is_null() {
            // SAFETY: guaranteed by the caller; it came from `Box::into_raw`.
            drop(unsafe { Box::from_raw(pool) });
        }
        Ok(())
    })
}

/// Closes a pool: it refuses new requests, and releases its regions once the last allocation is freed.
///
/// # Safety
/// `pool` is a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_close(pool: *const Pool) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| Ok(unsafe { core_of(pool)? }.close()?))
}

/// Releases all wholly free regions and stores their bytes. Over memory of this process, physical pages of other free
/// memory go back to the system.
///
/// # Safety
/// `pool` is a pool; `released` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_trim(pool: *const Pool, released: *mut u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(released, core_of(pool)?.trim()?) };
        Ok(())
    })
}

/// Stores the current limit in bytes.
///
/// # Safety
/// `pool` is a pool; `limit` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_limit(pool: *const Pool, limit: *mut u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(limit, core_of(pool)?.limit()?) };
        Ok(())
    })
}

/// Changes the limit in bytes; with `trim` not 0, wholly free regions are released first if that is enough. Stores the
/// released bytes.
///
/// # Safety
/// `pool` is a pool; `released` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_set_limit(
    pool: *const Pool,
    limit: u64,
    trim: i32,
    released: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(released, core_of(pool)?.set_limit(limit, trim != 0, "allotment_set_limit")?) };
        Ok(())
    })
}

/// Turns growth on or off for later regions.
///
/// # Safety
/// `pool` is a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_set_growth(pool: *const Pool, growth: i32) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| Ok(unsafe { core_of(pool)? }.set_growth(growth != 0)?))
}
