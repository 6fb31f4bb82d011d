//! The memory of this library itself.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use crate::real::{ALIGNMENT, calloc, free, malloc, posix_memalign, realloc};

/// The allocator of this library itself: its tables never come from its own pool.
pub(crate) struct RealAllocator;

// SAFETY: the C functions keep the promises of the trait: alignment, sizes, and null on failure.
unsafe impl GlobalAlloc for RealAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size is allowed; the alignment is a power of two.
        unsafe {
            if layout.align() <= ALIGNMENT {
                malloc(layout.size()).cast()
            } else {
                let mut block = ptr::null_mut();
                if posix_memalign(&raw mut block, layout.align(), layout.size()) == 0 {
                    block.cast()
                } else {
                    ptr::null_mut()
                }
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if layout.align() <= ALIGNMENT {
                return calloc(1, layout.size()).cast();
            }
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block comes from one of the functions above.
        unsafe { free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above; the C function keeps an alignment of 16 only.
        unsafe {
            if layout.align() <= ALIGNMENT {
                return realloc(block.cast(), bytes).cast();
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}
