//! What is known of the addresses of the pool: the size of the block that starts at a page, and which pages may hold
//! something other than zeros.
//!
//! Every block starts at a page and takes whole pages, so both are tables with an entry for each page. The tables are
//! mappings: entries of addresses that were never used take no memory. All blocks are found without a lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a page here, which may be fewer than the system's.
pub(crate) const PAGE: usize = 4096;

/// The most ranges of a pool. It has one unless it uses up four times its limit in addresses.
const MAX_RANGES: usize = 64;

static RANGES: [Range; MAX_RANGES] = [const { Range::new() }; MAX_RANGES];

/// The first address of all ranges, and the bytes up to the last one. Addresses of other allocators may be between.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static EXTENT: AtomicUsize = AtomicUsize::new(0);

/// A range of addresses of the pool.
struct Range {
    /// 0 in a vacant entry.
    start: AtomicUsize,
    bytes: AtomicUsize,
    blocks: AtomicPtr<Block>,
    /// A bit for each page: whether it may hold something other than zeros.
    written: AtomicPtr<AtomicU64>,
}

/// A block that is in use, at the page where it starts.
pub(crate) struct Block {
    /// Bytes that the program asked for; 0 if no block starts here.
    bytes: AtomicUsize,
    id: AtomicU64,
}

impl Block {
    /// Notes that a block starts here.
    pub(crate) fn set(&self, bytes: usize, id: u64) {
        self.id.store(id, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Release);
    }

    /// Returns the bytes that the program asked for; 0 if no block starts here.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns the number of the allocation.
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Notes that the block ends, and returns its bytes; 0 if no block starts here. Of two calls for one block, which is
    /// a fault of the program, one gets 0.
    pub(crate) fn take(&self) -> usize {
        self.bytes.swap(0, Ordering::AcqRel)
    }
}

/// Returns whether an address may be one of the pool's: quickly, and without a look at the ranges.
#[inline(always)]
pub(crate) fn may_contain(address: usize) -> bool {
    // In this order: see `widen`.
    address.wrapping_sub(FIRST.load(Ordering::Acquire)) < EXTENT.load(Ordering::Relaxed)
}

/// Returns the entry of the page at an address; `None` if the address is not in a range. An address within a page is at
/// no block's start.
pub(crate) fn block_at(address: usize) -> Option<&'static Block> {
    static NONE: Block = Block { bytes: AtomicUsize::new(0), id: AtomicU64::new(0) };
    let (range, offset) = Range::around(address)?;
    if !address.is_multiple_of(PAGE) {
        return Some(&NONE);
    }
    // SAFETY: the table has an entry for each page of the range, and stays mapped.
    Some(unsafe { &*range.blocks.load(Ordering::Acquire).add(offset / PAGE) })
}

/// Makes the tables of a new range; returns false if there is no room for them.
pub(crate) fn add(start: usize, bytes: usize) -> bool {
    let Some(range) = RANGES.iter().find(|range| range.start.load(Ordering::Acquire) == 0) else {
        return false;
    };
    let pages = bytes.div_ceil(PAGE);
    let blocks = map(pages * size_of::<Block>());
    let written = map(pages.div_ceil(64) * 8);
    if blocks.is_null() || written.is_null() {
        unmap(blocks, pages * size_of::<Block>());
        unmap(written, pages.div_ceil(64) * 8);
        return false;
    }
    range.blocks.store(blocks.cast(), Ordering::Relaxed);
    range.written.store(written.cast(), Ordering::Relaxed);
    range.bytes.store(bytes, Ordering::Relaxed);
    range.start.store(start, Ordering::Release);
    widen(start, bytes);
    true
}

/// Forgets a range in which there is no block.
pub(crate) fn remove(start: usize) {
    let Some(range) = RANGES.iter().find(|range| range.start.load(Ordering::Acquire) == start) else {
        return;
    };
    let pages = range.bytes.load(Ordering::Relaxed).div_ceil(PAGE);
    range.start.store(0, Ordering::Release);
    // Another thread that frees an address of a stranger may still look at the tables, so that they stay mapped; but
    // their memory goes.
    discard(range.blocks.load(Ordering::Relaxed).cast(), pages * size_of::<Block>());
    discard(range.written.load(Ordering::Relaxed).cast(), pages.div_ceil(64) * 8);
}

/// Widens the extent by a range; it never becomes narrower.
fn widen(start: usize, bytes: usize) {
    let (first, extent) = (FIRST.load(Ordering::Relaxed), EXTENT.load(Ordering::Relaxed));
    let is_first = extent == 0;
    let new_first = if is_first { start } else { first.min(start) };
    let new_end = if is_first { start + bytes } else { (first + extent).max(start + bytes) };
    // The extent first, so that no address that was in it is outside meanwhile.
    if is_first {
        FIRST.store(new_first, Ordering::Release);
        EXTENT.store(new_end - new_first, Ordering::Release);
    } else {
        EXTENT.store(new_end - new_first, Ordering::Release);
        FIRST.store(new_first, Ordering::Release);
    }
}

/// Notes that a program may write to all pages of a span.
pub(crate) fn mark_written(start: usize, bytes: usize) {
    each_word(start, bytes, |word, mask, _| {
        if word.load(Ordering::Relaxed) & mask != mask {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    });
}

/// Notes that all pages of a span are zero: they gave their memory back.
pub(crate) fn mark_zero(start: usize, bytes: usize) {
    each_word(start, bytes, |word, mask, _| {
        if word.load(Ordering::Relaxed) & mask != 0 {
            word.fetch_and(!mask, Ordering::Relaxed);
        }
    });
}

/// Calls `zero` with the start and the length of each run of pages in a span that may hold something other than zeros.
pub(crate) fn each_written(start: usize, bytes: usize, mut zero: impl FnMut(usize, usize)) {
    let mut run: Option<(usize, usize)> = None;
    each_word(start, bytes, |word, mask, first_page| {
        let mut bits = word.load(Ordering::Relaxed) & mask;
        while bits != 0 {
            let low = bits.trailing_zeros();
            let count = (bits >> low).trailing_ones();
            let from = first_page + low as usize * PAGE;
            let length = count as usize * PAGE;
            run = match run {
                Some((begin, so_far)) if begin + so_far == from => Some((begin, so_far + length)),
                earlier => {
                    if let Some((begin, so_far)) = earlier {
                        zero(begin, so_far);
                    }
                    Some((from, length))
                }
            };
            bits = if count + low >= 64 { 0 } else { bits & (u64::MAX << (low + count)) };
        }
    });
    if let Some((begin, length)) = run {
        zero(begin, length);
    }
}

/// Calls `work` with each word of the table of written pages, the mask of the pages of a span, and the address of the
/// word's first page. The span starts at a page and lies in one range.
fn each_word(start: usize, bytes: usize, mut work: impl FnMut(&AtomicU64, u64, usize)) {
    let Some((range, offset)) = Range::around(start) else { return };
    let table = range.written.load(Ordering::Acquire);
    let range_start = start - offset;
    let (mut page, end) = (offset / PAGE, (offset + bytes).div_ceil(PAGE));
    while page < end {
        let (index, bit) = (page / 64, page % 64);
        let count = (64 - bit).min(end - page);
        let mask = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
        // SAFETY: the table has a bit for each page of the range, and stays mapped.
        work(unsafe { &*table.add(index) }, mask, range_start + index * 64 * PAGE);
        page += count;
    }
}

impl Range {
    const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            blocks: AtomicPtr::new(ptr::null_mut()),
            written: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the range that contains an address, and the address's offset in it.
    fn around(address: usize) -> Option<(&'static Self, usize)> {
        RANGES.iter().find_map(|range| {
            let start = range.start.load(Ordering::Acquire);
            let offset = address.wrapping_sub(start);
            (start != 0 && offset < range.bytes.load(Ordering::Relaxed)).then_some((range, offset))
        })
    }
}

/// Maps zeroed memory for a table; null if there is no room.
fn map(bytes: usize) -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the system picks the address, so no existing mapping is replaced.
    let table =
        unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if table == libc::MAP_FAILED { ptr::null_mut() } else { table }
}

fn unmap(table: *mut libc::c_void, bytes: usize) {
    if !table.is_null() {
        // SAFETY: `map` made it, and it has no user yet.
        unsafe { libc::munmap(table, bytes) };
    }
}

fn discard(table: *mut libc::c_void, bytes: usize) {
    // SAFETY: `map` made it, and zeros say that there is no block and that nothing was written.
    unsafe { libc::madvise(table, bytes, libc::MADV_DONTNEED) };
}
