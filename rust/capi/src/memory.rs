//! Memory that goes back to the source: trims, and elastic pools that pause.

use std::ffi::c_char;

use allotment::PausedContent;

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Failure, Status, null, run, text_argument};

/// A pause loses the content of the allocations.
pub const ALLOTMENT_KEEP_NOTHING: i32 = 0;
/// A pause copies the content of the allocations to memory of the process outside of the pool.
pub const ALLOTMENT_KEEP_IN_MEMORY: i32 = 1;
/// A pause writes the content of the allocations to a file.
pub const ALLOTMENT_KEEP_IN_FILE: i32 = 2;

/// Releases all wholly free regions, or all free pages of an elastic pool, and stores their bytes. Over memory of this
/// process, physical pages of other free memory go back to the system. If the source does not take some pages of an
/// elastic pool, that is `ALLOTMENT_SOURCE_FAILED`: what it took is gone, and the last error has its bytes.
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

/// Gives memory back until at most `target` bytes are reserved, as far as free memory allows, and stores the released
/// bytes. An elastic pool gives back as many pages as that takes, and fails as `allotment_trim` does; another one all
/// wholly free regions.
///
/// # Safety
/// `pool` is a pool; `released` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_trim_to(pool: *const Pool, target: u64, released: *mut u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(released, core_of(pool)?.trim_to(target)?) };
        Ok(())
    })
}

/// Gives all memory of an elastic pool back, that of its allocations, too, keeps the addresses, and stores the released
/// bytes. Nothing may use the allocations until `allotment_resume`. Meanwhile requests return `ALLOTMENT_PAUSED`; frees
/// and `allotment_pool_close` work. A pool that is paused already stays as it is, and 0 is stored.
///
/// `keep` says where the content of the allocations is meanwhile: `ALLOTMENT_KEEP_NOTHING`, `ALLOTMENT_KEEP_IN_MEMORY`,
/// or `ALLOTMENT_KEEP_IN_FILE` with the path of a file, which belongs to the pool until the resume; `path` is null
/// otherwise. The file is a new one that only its owner may open; it replaces a file at `path` as the last step.
///
/// On failure the pool is not paused and a file at `path` stays as it is, with one exception: if the source does not take
/// all memory and then does not return it either, or not the content, the pool is paused and keeps the content. Ask
/// `allotment_is_paused` after `ALLOTMENT_SOURCE_FAILED` and `ALLOTMENT_FILE_FAILED`. After a failure with
/// `ALLOTMENT_KEEP_NOTHING` the content of the allocations is undefined.
///
/// # Safety
/// `pool` is a pool; `path` is null or ends with a null byte; `released` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pause(
    pool: *const Pool,
    keep: i32,
    path: *const c_char,
    released: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (pool, path) = unsafe { (core_of(pool)?, text_argument(path, "path")?) };
        if let Some(path) = path.filter(|_| keep != ALLOTMENT_KEEP_IN_FILE) {
            return Err(Failure::invalid(format!(
                "path is {path:?}, but keep is {keep}: pass null, or ALLOTMENT_KEEP_IN_FILE"
            )));
        }
        let content = match keep {
            ALLOTMENT_KEEP_NOTHING => PausedContent::Discard,
            ALLOTMENT_KEEP_IN_MEMORY => PausedContent::Memory,
            ALLOTMENT_KEEP_IN_FILE => PausedContent::Path(path.ok_or_else(|| null("path"))?.into()),
            other => return Err(Failure::invalid(format!("keep {other} is not 0, 1 or 2"))),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { store(released, pool.pause(content)?) };
        Ok(())
    })
}

/// Fetches the memory of a paused pool back, at the same addresses and with the kept content, and stores its bytes.
/// Does nothing if the pool is not paused. On failure, as `ALLOTMENT_OUT_OF_MEMORY` of a source with too little memory,
/// the pool stays paused and the content is kept.
///
/// # Safety
/// `pool` is a pool; `committed` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_resume(pool: *const Pool, committed: *mut u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { store(committed, core_of(pool)?.resume()?) };
        Ok(())
    })
}

/// Stores whether a pool is paused: 1 or 0.
///
/// # Safety
/// `pool` is a pool; `paused` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_is_paused(pool: *const Pool, paused: *mut i32) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(paused, "paused")?;
            store(paused, i32::from(pool.is_paused()?));
        }
        Ok(())
    })
}
