//! Host memory as a region source.
//!
//! A region is one private, anonymous mapping. Reserving takes address space only: a page of physical memory
//! appears when something is first written to it, and reads as zero until then. Releasing unmaps.

use std::ffi::c_void;
use std::sync::Arc;

use allotment::source::{Grant, Refusal, RegionSource};
use allotment::{Gauge, Headroom, MemoryGuard};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

mod clear;
mod guard;
mod machine;
mod out;
mod regions;
mod watch;

pub use clear::clear;
use guard::HostGuard;
pub use machine::Machine;
use out::Out;
pub use regions::end_of_region;
pub use watch::{MachineFull, Watch};

/// Regions this long or longer start at a multiple of it, so that the system can back them with huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// For regions this long or longer the system is asked to do so. The first region of a growing pool is shorter: a
/// pool with little in it takes up little.
const WORTH_HUGE_PAGES: usize = 2 * HUGE_PAGE;

/// Grants regions of readable and writable host memory.
///
/// Regions are never joined: each goes back alone as soon as it is wholly free. A source that is dropped
/// leaves what is still out mapped, because somebody may still be using it.
#[derive(Debug, Default)]
pub struct HostMemory {
    out: Arc<Out>,
}

impl HostMemory {
    /// A source with nothing out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl RegionSource for HostMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        let length = usize::try_from(bytes).map_err(|_| Refusal::Declined)?;
        let alignment = usize::try_from(alignment).map_err(|_| Refusal::Declined)?;
        let alignment = if length >= HUGE_PAGE { alignment.max(HUGE_PAGE) } else { alignment };
        let start = map(length, alignment).ok_or(Refusal::Declined)?;
        if length >= WORTH_HUGE_PAGES {
            ask_for_huge_pages(start, length);
        }
        let grant = Grant { address: start as u64, bytes };
        regions::note(grant.address, grant.end());
        self.out.insert(grant);
        Ok(grant)
    }

    /// # Panics
    /// When the region is not one that this source granted and has not taken back: unmapping it could take
    /// memory from somebody else.
    fn release(&mut self, region: Grant) {
        for grant in self.out.remove(region) {
            regions::forget(grant.address);
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

    /// # Panics
    /// When the span is not all within grants that are out: its pages could be somebody else's.
    fn discard(&mut self, span: Grant) {
        self.out.with(span, || discard(span));
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        addresses_are_plenty().then(|| Arc::new(AddressesOfProcess) as _)
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(HostGuard::new(&self.out)))
    }
}

/// A mapping of so many bytes finds its addresses in every process of 64 bits; a longer one may, too.
const ADDRESSES: u64 = 1 << 46;

/// Reserving takes addresses and no memory, so there is always room for another region.
#[derive(Debug)]
struct AddressesOfProcess;

impl Gauge for AddressesOfProcess {
    fn headroom(&self) -> Headroom {
        Headroom { sure: ADDRESSES, most: u64::MAX, grants_released: true, is_sequential: false }
    }
}

/// Whether the system lets a process map as many addresses as it likes: no limit of the process, and no strict
/// accounting of memory.
fn addresses_are_plenty() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let overcommit = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    limit.is_none() && overcommit.is_ok_and(|mode| mode.trim() != "2")
}

/// Maps `length` bytes at a multiple of `alignment`; whatever is mapped in front and behind goes back.
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

/// Lets the system have the whole pages of a span, which then read as zero.
#[cfg(target_os = "linux")]
fn discard(span: Grant) {
    let page = rustix::param::page_size();
    let (Ok(start), Ok(end)) = (usize::try_from(span.address), usize::try_from(span.end())) else { return };
    let (start, end) = (start.next_multiple_of(page), end / page * page);
    if start < end {
        let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the pages lie in a mapping of ours, and the caller says that nobody needs what is in them.
        let discarded = unsafe { rustix::mm::madvise(pages, end - start, rustix::mm::Advice::LinuxDontNeed) };
        debug_assert!(discarded.is_ok(), "pages of our own can be discarded");
    }
}

#[cfg(not(target_os = "linux"))]
fn discard(_span: Grant) {}

/// Asks for huge pages: a first touch then costs a quarter. A system that has none says so, and nothing is lost.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: usize, length: usize) {
    let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller has just mapped these pages, and what is in them stays as it is.
    let _ = unsafe { rustix::mm::madvise(pages, length, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_start: usize, _length: usize) {}

/// Unmaps the pages from `start` up to `end`; both lie in a mapping of ours, `start` at a page's start.
fn unmap(start: usize, end: usize) {
    if start < end {
        let pages: *mut c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: both callers pass pages of a mapping that `map` made, which nobody holds (slack) or holds
        // any more (a released region).
        let unmapped = unsafe { munmap(pages, end - start) };
        debug_assert!(unmapped.is_ok(), "pages of our own can be unmapped");
    }
}

#[cfg(test)]
mod tests;
