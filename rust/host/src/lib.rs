//! Host memory as a region source.
//!
//! A region is one private, anonymous mapping. Reserving takes only address space: physical memory is used from the
//! first write to a page, which reads as zero until then. Releasing unmaps.

use std::sync::Arc;

use allotment::source::{Grant, PageSource, RegionSource, ReserveError};
use allotment::{Gauge, Headroom, MemoryGuard};

mod accessible;
mod admission;
mod clear;
#[cfg(feature = "allocator-api2")]
mod collections;
mod grants;
mod guard;
mod machine_memory;
mod mapping;
mod pages;
mod regions;
mod registered;
#[cfg(target_os = "linux")]
mod userfault;
#[cfg(not(target_os = "linux"))]
#[path = "no_userfault.rs"]
mod userfault;

pub use accessible::HostAccessible;
pub use admission::{AdmissionControl, MachineOutOfMemory};
pub use clear::clear;
#[cfg(feature = "allocator-api2")]
pub use collections::PoolAllocator;
use grants::Grants;
use guard::HostGuard;
pub use machine_memory::MachineMemory;
use mapping::{Access, HUGE_PAGE};
use pages::{CommitMethod, PageRanges};
use regions::Origin;
pub use regions::end_of_region;
pub use registered::Registered;

/// Regions of at least this size request huge pages. The first region of a growing pool is smaller, so that a nearly
/// empty pool uses little memory.
const MIN_HUGE_PAGES: usize = 2 * HUGE_PAGE;

/// Grants regions of readable and writable host memory.
///
/// Regions are never joined: each is released as soon as it is wholly free. A dropped source leaves live grants and
/// ranges with committed pages mapped, because they may still be in use.
#[derive(Debug, Default)]
pub struct HostMemory {
    /// Regions, and ranges of pages.
    grants: Arc<Grants>,
    pages: PageRanges,
}

impl HostMemory {
    /// Creates a source without grants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with_method(method: CommitMethod) -> Self {
        Self { grants: Arc::default(), pages: PageRanges::with_method(method) }
    }
}

impl RegionSource for HostMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let length = usize::try_from(bytes).map_err(|_| ReserveError::Declined)?;
        let alignment = usize::try_from(alignment).map_err(|_| ReserveError::Declined)?;
        let alignment = if length >= HUGE_PAGE { alignment.max(HUGE_PAGE) } else { alignment };
        let start = mapping::map(length, alignment, Access::ReadAndWrite).ok_or(ReserveError::Declined)?;
        if length >= MIN_HUGE_PAGES {
            mapping::advise_huge_pages(start, length, true);
        }
        let grant = Grant { address: start as u64, bytes };
        regions::register(grant.address, grant.end(), Origin::Mapping);
        self.grants.insert(grant);
        Ok(grant)
    }

    /// Unmaps a region.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it: unmapping could hit other memory.
    fn release(&mut self, region: Grant) {
        assert!(
            !self.pages.contains(region.address),
            "{region:?} was not granted by this source as a region"
        );
        for grant in self.grants.remove(region) {
            regions::unregister(grant.address);
            mapping::unmap_all(grant);
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
        let discarded = self.grants.with(span, || mapping::discard(span));
        debug_assert!(discarded.is_ok(), "pages of our own can be discarded");
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        has_unlimited_addresses().then(|| Arc::new(ProcessAddresses) as _)
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(HostGuard::new(&self.grants)))
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        for range in self.pages.empty() {
            self.release_addresses(range);
        }
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
    limit.is_none() && overcommit_mode().is_some_and(|mode| mode != STRICT_OVERCOMMIT)
}

/// The mode in which the system promises no more memory than it has.
const STRICT_OVERCOMMIT: &str = "2";

/// Returns whether writable addresses count as memory that is promised.
fn strict_overcommit() -> bool {
    overcommit_mode().is_some_and(|mode| mode == STRICT_OVERCOMMIT)
}

/// Returns the system's mode of overcommit, if it tells.
fn overcommit_mode() -> Option<String> {
    let mode = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?;
    Some(mode.trim().to_owned())
}

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(test)]
mod tests;
