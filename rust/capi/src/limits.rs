//! Limits and growth of a pool in use.

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Status, run};

/// Stores the current limit in bytes.
///
/// # Safety
/// `pool` is a pool; `limit` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_limit(pool: *const Pool, limit: *mut u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(limit, "limit")?;
            store(limit, pool.limit()?);
        }
        Ok(())
    })
}

/// Changes the limit in bytes. It cannot be lower than the reserved bytes: that is `ALLOTMENT_INVALID_ARGUMENT`. With
/// `trim` not 0, wholly free regions are released first if that is enough, or as many free pages of an elastic pool as
/// that takes; if its source does not take them, that is `ALLOTMENT_SOURCE_FAILED`. On failure the limit stays; free
/// pages may have gone back. Stores the released bytes.
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

/// Stores whether growth is on: 1 or 0.
///
/// # Safety
/// `pool` is a pool; `growth` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_growth(pool: *const Pool, growth: *mut i32) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(growth, "growth")?;
            store(growth, i32::from(pool.growth()?));
        }
        Ok(())
    })
}

/// Turns growth on or off for later regions. Without growth the next region takes all that the limit leaves.
///
/// # Safety
/// `pool` is a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_set_growth(pool: *const Pool, growth: i32) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| Ok(unsafe { core_of(pool)? }.set_growth(growth != 0)?))
}
