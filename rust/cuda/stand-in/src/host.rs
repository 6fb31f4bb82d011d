//! The host memory behind the devices' addresses.

use std::ffi::c_void;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// A mapping of this process; unmapped on drop.
#[derive(Debug)]
pub(crate) struct HostSpan {
    start: usize,
    bytes: usize,
}

impl HostSpan {
    /// Maps memory that can be used.
    pub(crate) fn with_access(bytes: usize) -> Option<Self> {
        Self::new(bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Maps addresses that cannot be used.
    pub(crate) fn without_access(bytes: usize) -> Option<Self> {
        Self::new(bytes, ProtFlags::empty())
    }

    pub(crate) fn start(&self) -> u64 {
        self.start as u64
    }

    fn new(bytes: usize, access: ProtFlags) -> Option<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the system picks the address.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) };
        Some(Self { start: start.ok()?.expose_provenance(), bytes })
    }
}

impl Drop for HostSpan {
    fn drop(&mut self) {
        // SAFETY: the mapping is this span's own.
        let unmapped = unsafe { munmap(pointer(self.start), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own can be unmapped");
    }
}

/// Allows reads and writes of a part of a span.
///
/// # Safety
/// The part lies within a live span.
pub(crate) unsafe fn allow_access(start: usize, bytes: usize) -> bool {
    // SAFETY: the caller vouches for the span.
    unsafe { mprotect(pointer(start), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }.is_ok()
}

/// Drops the content of a part of a span, and access to it.
///
/// # Safety
/// The part lies within a live span, and nothing uses it.
pub(crate) unsafe fn drop_content(start: usize, bytes: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the caller vouches for the span.
    unsafe { mmap_anonymous(pointer(start), bytes, ProtFlags::empty(), flags) }.is_ok()
}

/// Copies the content of a part of a span to another, which reads as zero.
///
/// # Safety
/// Both lie within live spans and allow access, and they do not overlap.
pub(crate) unsafe fn copy(from: usize, to: usize, bytes: usize) {
    const BLOCK: usize = 4096;
    for offset in (0..bytes).step_by(BLOCK) {
        let length = BLOCK.min(bytes - offset);
        // SAFETY: the caller vouches for both.
        let (from, to) = unsafe {
            let from = std::slice::from_raw_parts(pointer(from + offset).cast::<u8>(), length);
            (from, std::slice::from_raw_parts_mut(pointer(to + offset).cast::<u8>(), length))
        };
        // Zeros need no copy, which would take memory.
        if *from != [0; BLOCK][..length] {
            to.copy_from_slice(from);
        }
    }
}

pub(crate) fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}
