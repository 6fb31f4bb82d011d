//! The content of blocks: zeros, and moves to another block.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::ranges::{self, PAGE};

/// Blocks from this size on are moved by the system, page by page; copying a smaller one takes less.
const MIN_MOVED: usize = 256 << 10;

/// Writes zeros to the pages of a block that may hold something else.
///
/// # Safety
/// The block is that long and has no other user.
pub(crate) unsafe fn clear(block: NonNull<u8>, bytes: usize) {
    let start = block.addr().get();
    ranges::each_written(start, bytes.next_multiple_of(PAGE), |from, length| {
        // SAFETY: a run of pages in the block, which has whole pages.
        unsafe { block.add(from - start).write_bytes(0, length) };
    });
}

/// Moves the content of one block to another. The system moves pages of large ones, which takes less than a copy, and no
/// second memory; what remains in the first block is zero then.
///
/// # Safety
/// Both blocks are that long, and neither has another user.
pub(crate) unsafe fn move_pages(from: *mut u8, to: *mut u8, bytes: usize) {
    let whole = bytes.next_multiple_of(PAGE);
    // SAFETY: the function has no preconditions.
    let system_page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if bytes >= MIN_MOVED && usize::try_from(system_page) == Ok(PAGE) {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: both are whole pages of blocks of the caller's.
        let moved = unsafe { libc::mremap(from.cast(), whole, whole, flags, to.cast::<c_void>()) };
        if moved != libc::MAP_FAILED {
            ranges::mark_zero(from.addr(), whole);
            return;
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { to.copy_from_nonoverlapping(from, bytes) };
}
