//! Pools: their options, their source, and their life.

use std::ptr;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use allotment::source::AddressSpace;
use allotment::{GRANULE, RegionSource, Siblings};
use allotment_host::{HostMemory, Registered};

use crate::options::{PoolOptions, copy_options, core_options, idle_trim};
use crate::pages::Pages;
use crate::source::{CSource, HostSource, Ownership, Source};
use crate::status::{Failure, Status, null, run};

/// A pool. All threads may use it at once; `allotment_pool_destroy` is the last call on it.
#[derive(Debug)]
pub struct Pool {
    pub(crate) core: Arc<allotment::Pool>,
    /// The source of the caller, if the pool is over one.
    ownership: Option<Ownership>,
    /// The pools on the same memory.
    pub(crate) siblings: OnceLock<Arc<Siblings>>,
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

/// Checks an argument for a result that the caller must take.
#[inline]
pub(crate) fn require<T>(out: *mut T, name: &str) -> Result<(), Failure> {
    if out.is_null() { Err(null(name)) } else { Ok(()) }
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

/// Creates a pool and stores it.
///
/// # Safety
/// `pool` can be written.
unsafe fn create(
    source: impl RegionSource + 'static,
    options: Checked,
    ownership: Option<Ownership>,
    pool: *mut *mut Pool,
) -> Result<(), Failure> {
    let core = Arc::new(allotment::Pool::new(source, options.core)?);
    if let Some(after) = options.idle_trim {
        core.trim_when_idle(after, || {}).map_err(|error| Failure {
            status: Status::AllotmentNoThread,
            text: format!("the system started no thread for idle_trim_seconds: {error}"),
            refusal: None,
        })?;
    }
    if let Some(ownership) = &ownership {
        ownership.set(true);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { store(pool, Box::into_raw(Box::new(Pool { core, ownership, siblings: OnceLock::new() }))) };
    Ok(())
}

/// The options of a pool, checked as far as no source is needed.
struct Checked {
    passed: PoolOptions,
    core: allotment::Options,
    idle_trim: Option<Duration>,
}

/// Checks the arguments that all pools have.
///
/// # Safety
/// As `allotment_pool_create`.
unsafe fn options_for(options: *const PoolOptions, pool: *mut *mut Pool) -> Result<Checked, Failure> {
    if pool.is_null() {
        return Err(null("pool"));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        pool.write(ptr::null_mut());
        let passed = copy_options(options)?;
        Ok(Checked { core: core_options(&passed)?, idle_trim: idle_trim(&passed)?, passed })
    }
}

/// As [`options_for`], for pools over a source of this library.
unsafe fn options_without_source(
    options: *const PoolOptions,
    pool: *mut *mut Pool,
) -> Result<Checked, Failure> {
    // SAFETY: guaranteed by the caller.
    let checked = unsafe { options_for(options, pool)? };
    let PoolOptions { pages, source_is_host_memory, headroom, .. } = checked.passed;
    let others = [
        (!pages.is_null(), "pages"),
        (source_is_host_memory != 0, "source_is_host_memory"),
        (headroom.is_some(), "headroom"),
    ];
    match others.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, option)) => Err(Failure::invalid(format!(
            "{option} is for pools over a source of yours: allotment_pool_create"
        ))),
        None => Ok(checked),
    }
}

/// Creates a pool over a source of the caller, and stores it; null on failure. The structure is copied. The pool calls
/// `destroy` of the source at its end; if this call fails, it does not, and the source stays the caller's.
///
/// # Safety
/// `options` and `source` point to such structures, and the functions in them keep their contract; `pool` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_create(
    options: *const PoolOptions,
    source: *const Source,
    pool: *mut *mut Pool,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut options = options_for(options, pool)?;
            let PoolOptions { pages, headroom, elastic, .. } = options.passed;
            if !pages.is_null() && elastic == 0 {
                return Err(Failure::invalid("pages is for elastic pools: set elastic, or leave pages null"));
            }
            let source = CSource::new(source, Pages::new(pages)?, headroom)?;
            let ownership = Some(source.ownership());
            if !options.core.guard {
                return create(source, options, ownership, pool);
            }
            if options.passed.source_is_host_memory == 0 {
                return Err(Failure::invalid(
                    "guard mode writes to the memory and reads it: set source_is_host_memory if that of this source is \
                     memory of this process",
                ));
            }
            let joins = source.joins_regions();
            options.core.joins_regions.get_or_insert(joins);
            create(Registered::new(HostSource::new(source)), options, ownership, pool)
        }
    })
}

/// Creates a pool over memory of this process, and stores it; null on failure. The memory is readable, writable, and
/// zero at first. Reserving takes address space only.
///
/// # Safety
/// `options` points to options; `pool` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_create_host(
    options: *const PoolOptions,
    pool: *mut *mut Pool,
) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| unsafe { create(HostMemory::new(), options_without_source(options, pool)?, None, pool) })
}

/// Creates a pool over made-up addresses with nothing behind them, and stores it; null on failure. Regions lie `gap`
/// bytes apart, a multiple of 256.
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
        let options = unsafe { options_without_source(options, pool)? };
        if !gap.is_multiple_of(GRANULE) {
            return Err(Failure::invalid(format!("gap {gap} is not a multiple of {GRANULE}")));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { create(AddressSpace::new(gap), options, None, pool) }
    })
}

/// Destroys a pool: its wholly free regions go back to the source. A region with a live allocation stays reserved for
/// ever, as its user may still access it. Its scopes end, and are still to be closed. Null is accepted. The pool is gone
/// also on failure, which is `ALLOTMENT_INTERNAL`.
///
/// The call waits for calls that sources of other threads are in: those of the pool's own source and, after
/// `allotment_pool_join`, those of its siblings' sources. The caller holds no lock for which such a function may wait,
/// and no function of a source calls it. In a forked child the pool of a parent releases nothing, and no function of its
/// source is called.
///
/// # Safety
/// `pool` is a pool that no thread uses now or later, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_destroy(pool: *mut Pool) -> Status {
    run(|| {
        if !pool.is_null() {
            // SAFETY: guaranteed by the caller; it came from `Box::into_raw`.
            let Pool { mut core, ownership, .. } = *unsafe { Box::from_raw(pool) };
            if core.is_inherited() {
                if let Some(ownership) = ownership {
                    ownership.set(false);
                }
                return Ok(());
            }
            // A call on a scope or on a sibling, or the thread that trims idle pools, has the pool for a moment. The
            // caller may end what its source needs once this call has returned.
            while let Err(shared) = Arc::try_unwrap(core) {
                core = shared;
                thread::yield_now();
            }
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
