//! Private, anonymous mappings of this process: made, discarded, protected, unmapped. All spans lie in mappings of one
//! source.

use std::ffi::c_void;
use std::ptr;

use allotment::source::Grant;
use rustix::io;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Spans of at least this size are aligned to it, so that the system can back them with huge pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The accesses that a new mapping allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Nothing,
    ReadAndWrite,
}

/// Maps `length` bytes at a multiple of `alignment`; unmaps the surplus before and after.
pub(crate) fn map(length: usize, alignment: usize, access: Access) -> Option<usize> {
    let page = rustix::param::page_size();
    let length = length.checked_next_multiple_of(page)?;
    let slack = alignment.saturating_sub(page);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let protection = match access {
        Access::Nothing => ProtFlags::empty(),
        Access::ReadAndWrite => ProtFlags::READ | ProtFlags::WRITE,
    };
    // SAFETY: the system picks the address, so no existing mapping is replaced.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), length.checked_add(slack)?, protection, flags) };
    let start = start.ok()?.expose_provenance();
    let aligned = start.next_multiple_of(alignment);
    unmap(start, aligned);
    unmap(aligned + length, start + length + slack);
    Some(aligned)
}

/// Unmaps the pages from `start` up to `end`; both lie in a mapping of this source, `start` at a page's start.
pub(crate) fn unmap(start: usize, end: usize) {
    if start < end {
        // SAFETY: the callers pass pages of a mapping that `map` made: unused surplus, or what is released.
        let unmapped = unsafe { munmap(pages(start), end - start) };
        debug_assert!(unmapped.is_ok(), "pages of our own can be unmapped");
    }
}

/// Unmaps what `map` made.
pub(crate) fn unmap_all(span: Grant) {
    if let Some((start, length)) = numbers(span) {
        unmap(start, start + length);
    }
}

/// Releases the memory of the whole pages of a span; they then read as zero.
#[cfg(target_os = "linux")]
pub(crate) fn discard(span: Grant) -> io::Result<()> {
    let page = rustix::param::page_size();
    let Some((start, length)) = numbers(span) else { return Err(io::Errno::OVERFLOW) };
    let (start, end) = (start.next_multiple_of(page), (start + length) / page * page);
    if start < end {
        // SAFETY: the pages lie in a mapping of this source, and the caller no longer needs their content.
        unsafe { rustix::mm::madvise(pages(start), end - start, rustix::mm::Advice::LinuxDontNeed) }?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn discard(_span: Grant) -> io::Result<()> {
    Ok(())
}

/// Requests huge pages, which quarter the cost of a first write, or refuses them. Without support it has no effect.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge_pages(start: usize, length: usize, wanted: bool) {
    use rustix::mm::Advice;
    let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: the caller has mapped these pages, and their content does not change.
    let _ = unsafe { rustix::mm::madvise(pages(start), length, advice) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge_pages(_start: usize, _length: usize, _wanted: bool) {}

/// Makes pages readable and writable; the system then accounts for their memory.
pub(crate) fn allow_access(span: Grant) -> io::Result<()> {
    let (start, length) = numbers(span).ok_or(io::Errno::OVERFLOW)?;
    // SAFETY: the pages lie in a mapping of this source, and have no user yet.
    unsafe { mprotect(pages(start), length, MprotectFlags::READ | MprotectFlags::WRITE) }
}

/// Replaces pages by pages without access and memory, for which the system does not account.
pub(crate) fn replace_by_nothing(span: Grant) -> io::Result<()> {
    let (start, length) = numbers(span).ok_or(io::Errno::OVERFLOW)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the pages lie in a mapping of this source, and the caller no longer uses them.
    unsafe { mmap_anonymous(pages(start), length, ProtFlags::empty(), flags) }?;
    Ok(())
}

/// Returns address and length as numbers of this process; a mapping has such numbers.
pub(crate) fn numbers(span: Grant) -> Option<(usize, usize)> {
    Some((usize::try_from(span.address).ok()?, usize::try_from(span.bytes).ok()?))
}

pub(crate) fn pages(start: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(start)
}
