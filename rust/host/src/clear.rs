//! Zeroes memory of a region without touching unwritten pages: they already read as zero and use no physical memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::regions::is_of_other_allocator;

/// Below this many bytes, writing zeros costs less than a query of the written pages.
const MIN_SCANNED: usize = 8 << 20;

/// The page is in memory or swapped out; see the kernel's `pagemap` document.
const TOUCHED: u64 = 0b11 << 62;

/// The number of pages per query; the buffer fits on any stack.
const PAGES_PER_READ: usize = 1024;

/// Zeroes `bytes` bytes from `start`.
///
/// In a long span, unwritten pages stay untouched. If the kernel does not report them, or the memory is another
/// allocator's, all pages are written.
///
/// # Safety
/// The span lies in a region of [`HostMemory`](crate::HostMemory) or of a [`Registered`](crate::Registered) source, and
/// has no other user meanwhile.
pub unsafe fn clear(start: *mut u8, bytes: usize) {
    let page = rustix::param::page_size();
    let may_skip = bytes >= MIN_SCANNED
        && cfg!(target_os = "linux")
        && !is_of_other_allocator(start.expose_provenance() as u64);
    let Some(map) = may_skip.then(|| File::open("/proc/self/pagemap").ok()).flatten() else {
        // SAFETY: guaranteed by the caller.
        return unsafe { start.write_bytes(0, bytes) };
    };
    let first = start.addr().next_multiple_of(page) - start.addr();
    let pages = (bytes - first) / page;
    let last = first + pages * page;
    // SAFETY: both spans lie in the caller's: the partial pages at its ends.
    unsafe {
        start.write_bytes(0, first);
        start.add(last).write_bytes(0, bytes - last);
    }
    let from = start.addr();
    let zero = |begin: usize, end: usize| {
        // SAFETY: both callers pass pages between `first` and `last`.
        unsafe { start.add(begin - from).write_bytes(0, end - begin) };
    };
    let reached = scan::for_each_touched(&map, from + first, from + last, zero);
    // Older kernels are queried page by page.
    for_each_touched(&map, reached / page, (from + last - reached) / page, |begin, end| {
        zero(reached + begin * page, reached + end * page);
    });
}

/// Returns the bytes of written pages in a span; 0 if the kernel does not report them.
pub(crate) fn touched_bytes(address: u64, bytes: u64) -> u64 {
    let page = rustix::param::page_size();
    let span = (usize::try_from(address), usize::try_from(address + bytes));
    let ((Ok(start), Ok(end)), Ok(map)) = (span, File::open("/proc/self/pagemap")) else { return 0 };
    let (start, end) = (start / page * page, end.next_multiple_of(page));
    let mut touched = 0;
    let reached = scan::for_each_touched(&map, start, end, |from, to| touched += to - from);
    // Older kernels are queried page by page. Unreadable pages count as written there, and as unwritten here.
    if reached < end && map.read_exact_at(&mut [0; 8], 8 * (reached / page) as u64).is_err() {
        return touched as u64;
    }
    for_each_touched(&map, reached / page, (end - reached) / page, |from, to| touched += (to - from) * page);
    touched as u64
}

/// Calls `touched` for each run of pages that may have been written, counted from page `number`.
fn for_each_touched(map: &File, number: usize, pages: usize, mut touched: impl FnMut(usize, usize)) {
    let mut answers = [0; 8 * PAGES_PER_READ];
    // The start of the current run.
    let mut run = None;
    let mut at = 0;
    while at < pages {
        let count = PAGES_PER_READ.min(pages - at);
        let buffer = &mut answers[..8 * count];
        if map.read_exact_at(buffer, 8 * (number + at) as u64).is_err() {
            break;
        }
        let (entries, _) = buffer.as_chunks::<8>();
        for (index, &entry) in (at..).zip(entries) {
            if u64::from_ne_bytes(entry) & TOUCHED != 0 {
                run.get_or_insert(index);
            } else if let Some(from) = run.take() {
                touched(from, index);
            }
        }
        at += count;
    }
    // Unreadable pages count as written.
    let rest = if at < pages { Some(run.unwrap_or(at)) } else { run };
    if let Some(from) = rest {
        touched(from, pages);
    }
}

#[cfg(target_os = "linux")]
mod scan;
#[cfg(not(target_os = "linux"))]
mod scan {
    pub(super) fn for_each_touched(
        _: &super::File,
        start: usize,
        _: usize,
        _: impl FnMut(usize, usize),
    ) -> usize {
        start
    }
}
#[cfg(test)]
mod tests;
