//! Zeroing memory of a region without touching what nobody has touched: such pages read as zero as they are, and
//! take up no memory until they are written to.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Below this many bytes writing zeros costs less than asking which pages were touched.
const WORTH_ASKING: usize = 8 << 20;

/// A page is in memory, or was and is swapped out; see the kernel's `pagemap` document.
const TOUCHED: u64 = 0b11 << 62;

/// Pages asked for at a time; their answers fit on any stack.
const PAGES: usize = 1024;

/// Makes `bytes` bytes from `start` read as zero.
///
/// Of a long span, pages that were never written to stay untouched. Where the kernel does not say which those are,
/// all are written to.
///
/// # Safety
/// The span lies in a region of [`HostMemory`](crate::HostMemory), and nobody else uses it meanwhile.
pub unsafe fn clear(start: *mut u8, bytes: usize) {
    let page = rustix::param::page_size();
    let whole = bytes >= WORTH_ASKING && cfg!(target_os = "linux");
    let Some(map) = whole.then(|| File::open("/proc/self/pagemap").ok()).flatten() else {
        // SAFETY: the caller's promise.
        return unsafe { start.write_bytes(0, bytes) };
    };
    let first = start.addr().next_multiple_of(page) - start.addr();
    let pages = (bytes - first) / page;
    let last = first + pages * page;
    // SAFETY: both spans lie in the caller's: the parts of pages at its ends.
    unsafe {
        start.write_bytes(0, first);
        start.add(last).write_bytes(0, bytes - last);
    }
    let from = start.addr();
    let zero = |begin: usize, end: usize| {
        // SAFETY: both callers are told of pages between `first` and `last`.
        unsafe { start.add(begin - from).write_bytes(0, end - begin) };
    };
    let reached = scan::for_each_touched(&map, from + first, from + last, zero);
    // An older kernel is asked page by page.
    for_each_touched(&map, reached / page, (from + last - reached) / page, |begin, end| {
        zero(reached + begin * page, reached + end * page);
    });
}

/// Bytes of the pages of a span that were written to, as far as the kernel tells: 0 where it does not.
pub(crate) fn touched_bytes(address: u64, bytes: u64) -> u64 {
    let page = rustix::param::page_size();
    let span = (usize::try_from(address), usize::try_from(address + bytes));
    let ((Ok(start), Ok(end)), Ok(map)) = (span, File::open("/proc/self/pagemap")) else { return 0 };
    let (start, end) = (start / page * page, end.next_multiple_of(page));
    let mut touched = 0;
    let reached = scan::for_each_touched(&map, start, end, |from, to| touched += to - from);
    // An older kernel is asked page by page. What cannot be read counts as touched there, and as untouched here.
    if reached < end && map.read_exact_at(&mut [0; 8], 8 * (reached / page) as u64).is_err() {
        return touched as u64;
    }
    for_each_touched(&map, reached / page, (end - reached) / page, |from, to| touched += (to - from) * page);
    touched as u64
}

/// Calls `touched` for each run of pages that may have been written to, as counted from page `number`.
fn for_each_touched(map: &File, number: usize, pages: usize, mut touched: impl FnMut(usize, usize)) {
    let mut answers = [0; 8 * PAGES];
    // Where the run that is being read started.
    let mut run = None;
    let mut at = 0;
    while at < pages {
        let count = PAGES.min(pages - at);
        let asked = &mut answers[..8 * count];
        if map.read_exact_at(asked, 8 * (number + at) as u64).is_err() {
            break;
        }
        let (entries, _) = asked.as_chunks::<8>();
        for (index, &entry) in (at..).zip(entries) {
            if u64::from_ne_bytes(entry) & TOUCHED != 0 {
                run.get_or_insert(index);
            } else if let Some(from) = run.take() {
                touched(from, index);
            }
        }
        at += count;
    }
    // What could not be read counts as touched.
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
