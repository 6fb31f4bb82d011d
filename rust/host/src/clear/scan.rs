//! Queries the kernel for the pages of a span that are in memory or swapped out, many per call (Linux 6.7 and newer).

use std::ffi::c_void;
use std::fs::File;

use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The number of spans that one call returns.
const SPANS_PER_CALL: usize = 64;

/// Categories of pages, as in the kernel's `linux/fs.h`.
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// The kernel's `pm_scan_arg`.
#[repr(C)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    /// Output: the address that the kernel reached.
    walk_end: u64,
    spans: u64,
    spans_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<ScanArgument>() == 96);

/// The kernel's `page_region`: a half-open range of addresses.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Span {
    start: u64,
    end: u64,
    categories: u64,
}

/// Calls `touched` for each span of whole pages between `start` and `end` that may have been written; returns the
/// address that the kernel reached, which is below `end` if the kernel does not support the query.
pub(super) fn for_each_touched(
    map: &File,
    start: usize,
    end: usize,
    mut touched: impl FnMut(usize, usize),
) -> usize {
    let mut spans = [Span::default(); SPANS_PER_CALL];
    let mut at = start;
    // The reported addresses lie between two `usize` values.
    let number = |address: u64| usize::try_from(address).unwrap_or(end);
    while at < end {
        let mut argument = ScanArgument {
            size: size_of::<ScanArgument>() as u64,
            flags: 0,
            start: at as u64,
            end: end as u64,
            walk_end: 0,
            spans: spans.as_mut_ptr().expose_provenance() as u64,
            spans_len: SPANS_PER_CALL as u64,
            max_pages: 0,
            // Pages that were only read map the kernel's shared zero page.
            category_inverted: ZERO,
            category_mask: ZERO,
            category_anyof_mask: PRESENT | SWAPPED,
            return_mask: PRESENT,
        };
        // SAFETY: the argument is the kernel's own structure, and its buffer holds as many spans as it says.
        let count = unsafe { ioctl(map, PageScan(&mut argument)) };
        let Ok(count) = count else { break };
        for span in &spans[..count.min(SPANS_PER_CALL)] {
            touched(number(span.start), number(span.end));
        }
        let reached = number(argument.walk_end);
        if reached <= at {
            break;
        }
        at = reached;
    }
    at.min(end)
}

/// The scan request; the caller reads its output fields afterwards.
struct PageScan<'a>(&'a mut ScanArgument);

// SAFETY: the kernel reads and writes a `pm_scan_arg`, and at most as many spans as its buffer holds.
unsafe impl Ioctl for PageScan<'_> {
    type Output = usize;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<ScanArgument>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> io::Result<usize> {
        usize::try_from(output).map_err(|_| io::Errno::OVERFLOW)
    }
}
