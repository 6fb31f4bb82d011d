//! Host memory as a region source.
//!
//! A region is one private, anonymous mapping. Reserving takes only address space: physical memory is used from the
//! first write to a page, which reads as zero until then. Releasing unmaps.

use std::ffi::c_void;
use std::sync::Arc;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{Gauge, Headroom, MemoryGuard};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

mod admission;
mod clear;
#[cfg(feature = "allocator-api2")]
mod collections;
mod grants;
mod guard;
mod machine_memory;
mod regions;

pub use admission::{AdmissionControl, MachineOutOfMemory};
pub use clear::clear;
#[cfg(feature = "allocator-api2")]
pub use collections::PoolAllocator;
use grants::Grants;
use guard::HostGuard;
pub use machine_memory::MachineMemory;
pub use regions::end_of_region;

/// Regions of at least this size are aligned to it, so that the system can back them with huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// Regions of at least this size request huge pages. The first region of a growing pool is smaller, so that a nearly
/// empty pool uses little memory.
const MIN_HUGE_PAGES: usize = 2 * HUGE_PAGE;

/// Grants regions of readable and writable host memory.
///
/// Regions are never joined: each is released as soon as it is wholly free. A dropped source leaves live grants
/// mapped, because they may still be in use.
#[derive(Debug, Default)]
pub struct HostMemory {
    grants: Arc<Grants>,
}

impl HostMemory {
    /// Creates a source without grants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl RegionSource for HostMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let length = usize::try_from(bytes).map_err(|_| ReserveError::Declined)?;
        let alignment = usize::try_from(alignment).map_err(|_| ReserveError::Declined)?;
        let alignment = if length >= HUGE_PAGE { alignment.max(HUGE_PAGE) } else { alignment };
        let start = map(length, alignment).ok_or(ReserveError::Declined)?;
        if length >= MIN_HUGE_PAGES {
            ask_for_huge_pages(start, length);
        }
        let grant = Grant { address: start as u64, bytes };
        regions::register(grant.address, grant.end());
        self.grants.insert(grant);
        Ok(grant)
    }

    /// Unmaps a region.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it: unmapping could hit other memory.
    fn release(&mut self, region: Grant) {
        for grant in self.grants.remove(region) {
            regions::unregister(grant.address);
            // Both numbers were a `usize` when they were granted.
            if let (Ok(address), Ok(length)) = (usize::try_from(grant.address), usize::try_from(grant.bytes))
            {
                unmap(address, address + length);
            }
        }
    }

    fn discards(&self) -> bool {
        true
    }

    /// Discards the content of a span.
    ///
    /// # Panics
    /// If the span is not covered by live grants: its pages could belong to other code.
    fn discard(&mut self, span: Grant) {
        self.grants.with(span, || discard(span));
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        has_unlimited_addresses().then(|| Arc::new(ProcessAddresses) as _)
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(HostGuard::new(&self.grants)))
    }
}

/// A mapping of this size finds addresses in every 64-bit process; a larger one may, too.
const GUARANTEED_ADDRESSES: u64 = 1 << 46;

/// The gauge: reserving takes only addresses, so there is always room for another region.
#[derive(Debug)]
struct ProcessAddresses;

impl Gauge for ProcessAddresses {
    fn headroom(&self) -> Headroom {
        Headroom {
            guaranteed: GUARANTEED_ADDRESSES,
            maximum: u64::MAX,
            grants_released: true,
            is_sequential: false,
        }
    }
}

/// Returns whether the process may map any number of addresses: no resource limit and no strict overcommit
/// accounting.
fn has_unlimited_addresses() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let overcommit = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    limit.is_none() && overcommit.is_ok_and(|mode| mode.trim() != "2")
}

/// Maps `length` bytes at a multiple of `alignment`; unmaps the surplus before and after.
fn map(length: usize, alignment: usize) -> Option<usize> {
    let page = rustix::param::page_size();
    let length = length.checked_next_multiple_of(page)?;
    let slack = alignment.saturating_sub(page);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the system picks the address, so no existing mapping is replaced.
    let start = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            length.checked_add(slack)?,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )
    };
    let start = start.ok()?.expose_provenance();
    let aligned = start.next_multiple_of(alignment);
    unmap(start, aligned);
    unmap(aligned + length, start + length + slack);
    Some(aligned)
}

/// Releases the whole pages of a span to the system; they then read as zero.
#[cfg(target_os = "linux")]
fn discard(span: Grant) {
    let page = rustix::param::page_size();
    let (Ok(start), Ok(end)) = (usize::try_from(span.address), usize::try_from(span.end())) else { return };
    let (start, end) = (start.next_multiple_of(page), end / page * page);
    if start < end {
        let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the pages lie in a mapping of this source, and the caller no longer needs their content.
        let discarded = unsafe { rustix::mm::madvise(pages, end - start, rustix::mm::Advice::LinuxDontNeed) };
        debug_assert!(discarded.is_ok(), "pages of our own can be discarded");
    }
}

#[cfg(not(target_os = "linux"))]
fn discard(_span: Grant) {}

/// Requests huge pages, which quarter the cost of a first write. A refusal is harmless.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: usize, length: usize) {
    let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller has just mapped these pages, and their content does not change.
    let _ = unsafe { rustix::mm::madvise(pages, length, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_start: usize, _length: usize) {}

/// Unmaps the pages from `start` up to `end`; both lie in a mapping of this source, `start` at a page's start.
fn unmap(start: usize, end: usize) {
    if start < end {
        let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: both callers pass pages of a mapping that `map` made: unused surplus, or a released region.
        let unmapped = unsafe { munmap(pages, end - start) };
        debug_assert!(unmapped.is_ok(), "pages of our own can be unmapped");
    }
}

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(test)]
mod tests;
