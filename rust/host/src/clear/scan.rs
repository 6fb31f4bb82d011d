//! Asking the kernel which pages of a span are in memory or swapped out, in one call for many (Linux 6.7 and newer).

use std::ffi::c_void;
use std::fs::File;

use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// Spans that are told at a time.
const SPANS: usize = 64;

/// Categories of pages, as in the kernel's `linux/fs.h`.
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// The kernel's `pm_scan_arg`.
#[repr(C)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    /// Answer: how far the kernel came.
    walk_end: u64,
    spans: u64,
    spans_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<Question>() == 96);

/// The kernel's `page_region`: from its first byte to the first after it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Span {
    start: u64,
    end: u64,
    categories: u64,
}

/// Calls `touched` for each span of whole pages from `start` up to `end` that may have been written to; returns how far
/// the kernel told. That is not all the way where it does not know the question.
pub(super) fn for_each_touched(
    map: &File,
    start: usize,
    end: usize,
    mut touched: impl FnMut(usize, usize),
) -> usize {
    let mut spans = [Span::default(); SPANS];
    let mut at = start;
    // What the kernel tells of lies between two numbers that are a `usize`.
    let number = |address: u64| usize::try_from(address).unwrap_or(end);
    while at < end {
        let mut question = Question {
            size: size_of::<Question>() as u64,
            flags: 0,
            start: at as u64,
            end: end as u64,
            walk_end: 0,
            spans: spans.as_mut_ptr().expose_provenance() as u64,
            spans_len: SPANS as u64,
            max_pages: 0,
            // Pages that were only read are all the kernel's one page of zeros.
            category_inverted: ZERO,
            category_mask: ZERO,
            category_anyof_mask: PRESENT | SWAPPED,
            return_mask: PRESENT,
        };
        // SAFETY: the question is the kernel's own structure, and there is room for as many spans as it says.
        let told = unsafe { ioctl(map, Borrowed(&mut question)) };
        let Ok(told) = told else { break };
        for span in &spans[..told.min(SPANS)] {
            touched(number(span.start), number(span.end));
        }
        let reached = number(question.walk_end);
        if reached <= at {
            break;
        }
        at = reached;
    }
    at.min(end)
}

/// A question whose answer is looked at afterwards.
struct Borrowed<'a>(&'a mut Question);

// SAFETY: the kernel reads and writes a `pm_scan_arg`, and as many spans as it says there is room for.
unsafe impl Ioctl for Borrowed<'_> {
    type Output = usize;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Question>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> io::Result<usize> {
        usize::try_from(out).map_err(|_| io::Errno::OVERFLOW)
    }
}
