//! Changes of a block's size: where it is, by a move to another place, or out of the pool.
//!
//! While a block moves, the pool has two: the old and the new one. If that is above the limit, and the new one alone is not,
//! the thread has the pool for itself, raises the limit, moves the content, and restores the limit. The process has at most
//! 4 MiB more memory meanwhile, because the old block gives its memory back piece by piece.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering;

use allotment::AllocError;

use crate::blocks::{self, Blocks, LIMIT_SET_BY, misuse, set_block, whole_pages};
use crate::entry::{Alone, Inside, is_inside};
use crate::journal::Event;
use crate::ranges::{self, PAGE};
use crate::statistics::{self, Figure};
use crate::{content, real};

/// Changes the size of a block of the pool to that of a large block; `None` if it is not the pool's, or if it must be
/// moved out of it. A null pointer if that is refused; the block is unchanged then.
///
/// # Safety
/// As for `realloc`: the block has no other user.
pub(crate) unsafe fn resize(block: *mut c_void, bytes: usize) -> Option<*mut c_void> {
    let entry = ranges::block_at(block.addr())?;
    let blocks = blocks::get()?;
    if entry.bytes() == 0 {
        misuse("realloc", block);
    }
    let forks = is_inside();
    let in_place = {
        let _inside = Inside::enter();
        catch_unwind(AssertUnwindSafe(|| blocks.resize_in_place(block, entry, bytes))).unwrap_or(false)
    };
    if in_place {
        return Some(block);
    }
    if forks {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let moved = unsafe { blocks.resize_by_move(block, entry, bytes) };
    if moved.is_null() {
        blocks::set_errno(libc::ENOMEM);
    }
    Some(moved)
}

/// Copies a block into memory of the real allocator, and frees it: for a block that is not large any more.
///
/// # Safety
/// As for `realloc`: the block has no other user.
pub(crate) unsafe fn move_out(block: *mut c_void, held: usize, bytes: usize) -> *mut c_void {
    // SAFETY: guaranteed by the caller; the new memory has no other user.
    unsafe {
        let moved = real::malloc(bytes);
        if !moved.is_null() {
            moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), held.min(bytes));
            blocks::free(block);
        }
        moved
    }
}

impl Blocks {
    /// Resizes a block where it is; returns false, without a change, if that is not possible.
    fn resize_in_place(&self, block: *mut c_void, entry: &ranges::Block, bytes: usize) -> bool {
        let Some(whole) = bytes.checked_next_multiple_of(PAGE) else { return false };
        let (before, id) = (entry.bytes(), entry.id());
        let held = before.next_multiple_of(PAGE);
        if whole != held && self.pool.resize(block.addr() as u64, whole as u64).is_err() {
            return false;
        }
        if whole > held {
            ranges::mark_written(block.addr() + held, whole - held);
        }
        self.record(Event::Freed, id, before);
        entry.set(bytes, id);
        self.record(Event::Allocated, id, bytes);
        self.held.fetch_add((whole as u64).wrapping_sub(held as u64), Ordering::Relaxed);
        let live = statistics::add(Figure::Live, (bytes as u64).wrapping_sub(before as u64));
        statistics::raise(Figure::PeakLive, live);
        if whole < held {
            self.give_back();
        }
        true
    }

    /// Resizes a block by a move to another place; returns a null pointer, without a change, if that is refused.
    ///
    /// # Safety
    /// The block has no other user.
    unsafe fn resize_by_move(&self, block: *mut c_void, entry: &ranges::Block, bytes: usize) -> *mut c_void {
        let error = {
            let _inside = Inside::enter();
            let took = catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: guaranteed by the caller.
                self.take(bytes, 1)
                    .map(|allocation| unsafe { self.replace(block, entry, &allocation, bytes) })
            }));
            match took {
                Ok(Ok(moved)) => return moved,
                Ok(Err(error)) if !self.fits_alone(entry.bytes(), bytes) => {
                    self.refuse(error, bytes);
                    return ptr::null_mut();
                }
                Ok(Err(error)) => error,
                Err(_panic) => return ptr::null_mut(),
            }
        };
        let _alone = Alone::enter();
        // SAFETY: guaranteed by the caller.
        let moved =
            catch_unwind(AssertUnwindSafe(|| unsafe { self.replace_alone(block, entry, bytes, error) }));
        moved.unwrap_or(ptr::null_mut())
    }

    /// Returns whether a block of `bytes` bytes in place of one of `held` bytes is within the limit.
    fn fits_alone(&self, held: usize, bytes: usize) -> bool {
        let Some(whole) = bytes.checked_next_multiple_of(PAGE) else { return false };
        let others = self.held.load(Ordering::Relaxed).saturating_sub(whole_pages(held));
        others.saturating_add(whole as u64) <= self.limit
    }

    /// Replaces a block under a raised limit. No other thread is inside the pool.
    ///
    /// # Safety
    /// The block has no other user.
    unsafe fn replace_alone(
        &self,
        block: *mut c_void,
        entry: &ranges::Block,
        bytes: usize,
        error: AllocError,
    ) -> *mut c_void {
        let pages = self.pool.options().page_size.unwrap_or(2 << 20);
        // A block shares the pages at its ends with others.
        let raised = self.limit + whole_pages(entry.bytes()) + 2 * pages;
        let took = match self.pool.set_limit(raised, false, LIMIT_SET_BY) {
            Ok(_) => self.take(bytes, 1).ok(),
            Err(_) => None,
        };
        let moved = match took {
            // SAFETY: guaranteed by the caller.
            Some(allocation) => unsafe { self.replace(block, entry, &allocation, bytes) },
            None => ptr::null_mut(),
        };
        self.restore_limit();
        if moved.is_null() {
            self.refuse(error, bytes);
        }
        moved
    }

    /// Moves the content of a block to an allocation, which is the block from now on.
    ///
    /// # Safety
    /// The block has no other user.
    unsafe fn replace(
        &self,
        block: *mut c_void,
        entry: &ranges::Block,
        allocation: &allotment::Allocation,
        bytes: usize,
    ) -> *mut c_void {
        let held = entry.bytes();
        // Before the new block is known: the journal may begin here.
        self.record(Event::Freed, entry.id(), held);
        entry.take();
        let moved = set_block(allocation, bytes).as_ptr();
        self.record(Event::Allocated, allocation.id, bytes);
        ranges::mark_written(moved.addr(), bytes);
        // SAFETY: both are at least that long; the caller's has no other user, and the new one is not known yet.
        unsafe { content::move_content(block.cast(), moved, held.min(bytes)) };
        let freed = self.pool.free(block.addr() as u64);
        debug_assert!(freed.is_ok(), "a block of the pool");
        self.held.fetch_add(whole_pages(bytes).wrapping_sub(whole_pages(held)), Ordering::Relaxed);
        let live = statistics::add(Figure::Live, (bytes as u64).wrapping_sub(held as u64));
        statistics::raise(Figure::PeakLive, live);
        statistics::add(Figure::Blocks, 1);
        self.give_back();
        moved.cast()
    }

    /// Sets the pool's limit to what it should be, or as near as the pages in use allow; later frees try again.
    pub(crate) fn restore_limit(&self) {
        let _ = self.pool.trim_to(self.limit);
        let is_above = self.pool.set_limit(self.limit, false, LIMIT_SET_BY).is_err();
        if is_above && let Ok(stats) = self.pool.stats() {
            let _ = self.pool.set_limit(stats.reserved.max(self.limit), false, LIMIT_SET_BY);
        }
        self.is_above_limit.store(is_above, Ordering::Relaxed);
    }
}
