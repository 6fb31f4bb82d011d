//! The content of blocks: zeros, and moves to another block.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::ranges::{self, PAGE};

/// Blocks from this size on are moved by the system, page by page; copying a smaller one takes less.
const MIN_MOVED: usize = 256 << 10;

/// Shorter blocks than this part of all bytes in use are copied, too. Each move leaves mappings of its own, 16 for each
/// block as measured, and a process has about 65,000.
const MAX_LONG_BLOCKS: u64 = 1024;

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

/// Moves the content of one block to another; `in_use` bytes are in use in all blocks. The system moves pages of large ones, which takes less than a copy, and no
/// second memory; what remains in the first block is zero then.
///
/// # Safety
/// Both blocks are that long, and neither has another user.
pub(crate) unsafe fn move_pages(from: *mut u8, to: *mut u8, bytes: usize, in_use: u64) {
    let whole = bytes.next_multiple_of(PAGE);
    // SAFETY: the function has no preconditions.
    let system_page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let is_long = bytes >= MIN_MOVED && bytes as u64 >= in_use / MAX_LONG_BLOCKS;
    if is_long && usize::try_from(system_page) == Ok(PAGE) {
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
