//! The content of blocks: zeros, and moves to another block.

use std::ptr::NonNull;

use crate::ranges::{self, PAGE};

/// Blocks from this size on give their memory back while they are copied, in pieces of half of it: a shorter copy needs
/// little memory.
const MIN_PIECEWISE: usize = 4 << 20;
const PIECE: usize = MIN_PIECEWISE / 2;

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

/// Moves the content of one block to another. What remains in the first one is undefined: a long block gives the memory of
/// each piece back once it is copied, so that the process never has all of it twice.
///
/// The content is copied, although `mremap` could move the pages. A move to a given address (`MREMAP_FIXED`) first unmaps
/// what is there, and fails afterwards if the source is several mappings (Linux before 6.17) or there are too many of them.
/// The destination is a hole then, which another thread may fill with a mapping of its own.
///
/// # Safety
/// Both blocks are that long, and neither has another user.
pub(crate) unsafe fn move_content(from: *mut u8, to: *mut u8, bytes: usize) {
    // SAFETY: the function has no preconditions.
    let system_page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if bytes < MIN_PIECEWISE || usize::try_from(system_page) != Ok(PAGE) {
        // SAFETY: guaranteed by the caller.
        return unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }
    let mut done = 0;
    while done < bytes {
        // Up to a multiple of the piece in addresses, so that no huge page is given back in parts.
        let end = ((from.addr() + done + 1).next_multiple_of(PIECE) - from.addr()).min(bytes);
        // SAFETY: guaranteed by the caller. The pages are the first block's, which has whole ones, and were copied.
        unsafe {
            let piece = from.add(done);
            to.add(done).copy_from_nonoverlapping(piece, end - done);
            let whole = (end - done).next_multiple_of(PAGE);
            if libc::madvise(piece.cast(), whole, libc::MADV_DONTNEED) == 0 {
                ranges::mark_zero(piece.addr(), whole);
            }
        }
        done = end;
    }
}
