//! The functions of C that this library takes the place of.
//!
//! Each sends large requests to the pool and all others to the real allocator; blocks go back to where they came from.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::real::ALIGNMENT;
use crate::{blocks, ranges, real, resizing};

/// As the C function.
///
/// # Safety
/// Safe for every size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    if !blocks::are_large(bytes) {
        // SAFETY: any size is allowed.
        return unsafe { real::malloc(bytes) };
    }
    malloc_large(bytes)
}

// Small requests are two jumps: what needs registers is in functions of its own.
#[inline(never)]
extern "C" fn malloc_large(bytes: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    blocks::allocate(bytes, ALIGNMENT, false).unwrap_or_else(|| unsafe { real::malloc(bytes) })
}

/// As the C function.
///
/// # Safety
/// Safe for every size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(all) if blocks::are_large(all) => calloc_large(all),
        // SAFETY: any size is allowed.
        Some(_) => unsafe { real::calloc(count, bytes) },
        None => blocks::refuse_product(count, bytes),
    }
}

#[inline(never)]
extern "C" fn calloc_large(bytes: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    blocks::allocate(bytes, ALIGNMENT, true).unwrap_or_else(|| unsafe { real::calloc(1, bytes) })
}

/// As the C function.
///
/// # Safety
/// `block` is null or was returned by one of these functions and has no other user.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if !ranges::may_contain(block.addr()) {
        // SAFETY: guaranteed by the caller.
        return unsafe { real::free(block) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { free_large(block) }
}

#[inline(never)]
unsafe extern "C" fn free_large(block: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !blocks::free(block) {
            real::free(block);
        }
    }
}

/// As the C function.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if !ranges::may_contain(block.addr()) && !blocks::are_large(bytes) {
        // SAFETY: guaranteed by the caller.
        return unsafe { real::realloc(block, bytes) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { realloc_large(block, bytes) }
}

#[inline(never)]
unsafe extern "C" fn realloc_large(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if block.is_null() {
            return malloc(bytes);
        }
        if ranges::may_contain(block.addr())
            && let Some(held) = blocks::usable_size(block, "realloc")
        {
            if bytes == 0 {
                free(block);
                return ptr::null_mut();
            }
            if blocks::are_large(bytes)
                && let Some(resized) = resizing::resize(block, bytes)
            {
                return resized;
            }
            return resizing::move_out(block, held, bytes);
        }
        // For any size: the usable bytes of a small block may be as many as those of a large one.
        if blocks::are_large(bytes)
            && let Some(moved) = blocks::allocate(bytes, ALIGNMENT, false)
        {
            if !moved.is_null() {
                let held = real::usable_size(block);
                moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), held.min(bytes));
                real::free(block);
            }
            return moved;
        }
        real::realloc(block, bytes)
    }
}

/// As the C function.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: guaranteed by the caller.
        Some(all) => unsafe { realloc(block, all) },
        None => blocks::refuse_product(count, bytes),
    }
}

/// As the C function.
///
/// # Safety
/// `block` is the place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int {
    let is_valid = alignment.is_power_of_two() && alignment.is_multiple_of(size_of::<*mut c_void>());
    if is_valid
        && blocks::are_large(bytes)
        && let Some(large) = blocks::allocate(bytes, alignment, false)
    {
        if large.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { block.write(large) };
        return 0;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { real::posix_memalign(block, alignment, bytes) }
}

/// As the C function.
///
/// # Safety
/// Safe for every size and alignment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    if alignment.is_power_of_two()
        && blocks::are_large(bytes)
        && let Some(block) = blocks::allocate(bytes, alignment, false)
    {
        return block;
    }
    // SAFETY: the real function checks its arguments.
    unsafe { real::aligned_alloc(alignment, bytes) }
}

/// As the C function.
///
/// # Safety
/// Safe for every size and alignment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
    if alignment.is_power_of_two()
        && blocks::are_large(bytes)
        && let Some(block) = blocks::allocate(bytes, alignment, false)
    {
        return block;
    }
    // SAFETY: the real function checks its arguments.
    unsafe { real::memalign(alignment, bytes) }
}

/// As the C function.
///
/// # Safety
/// Safe for every size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the function has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // SAFETY: as for `memalign`.
    unsafe { memalign(usize::try_from(page).unwrap_or(ranges::PAGE), bytes) }
}

/// As the C function.
///
/// # Safety
/// Safe for every size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    // SAFETY: the function has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(ranges::PAGE);
    // SAFETY: as for `memalign`; a size that is too large is refused.
    unsafe { memalign(page, bytes.checked_next_multiple_of(page).unwrap_or(usize::MAX)) }
}

/// As the C function.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if ranges::may_contain(block.addr())
        && let Some(bytes) = blocks::usable_size(block, "malloc_usable_size")
    {
        return bytes;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { real::usable_size(block) }
}

/// As the C function: free pages of the pool give their memory back, too.
///
/// # Safety
/// Safe for every size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_trim(keep: usize) -> c_int {
    let trimmed = blocks::trim();
    // SAFETY: any size is allowed.
    let also = unsafe { real::trim(keep) };
    also.max(trimmed.into())
}

/// As the function of C23, which the C library's own would not send here.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { free(block) };
}

/// As the function of C23.
///
/// # Safety
/// As for `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _alignment: usize, _bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { free(block) };
}
