//! Regions of virtual memory management: physical memory mapped into reserved addresses, each region after the last.

use std::collections::BTreeMap;
use std::sync::Arc;

use allotment::source::{Gauge, Grant, PageSource, RegionSource, ReserveError};

use crate::addresses::AddressRange;
use crate::context::DeviceContext;
use crate::driver::{Driver, VirtualMemory};
use crate::error::{CudaError, refusal};
use crate::free_memory::FreeMemory;
use crate::pages::MappedPages;
use crate::sys::VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
use crate::teardown::{Step, Teardown};

/// Grants regions of device memory that start where others end, so that a pool joins them: it grows in place.
///
/// ```text
/// reserved addresses, as many as the device has bytes
///   ├── region 1 ──┼── region 2 ──┼ unmapped ┼── region 3 ──┼ not mapped yet …
/// ```
///
/// The driver maps multiples of its granularity, 2 MiB on most devices; a grant has the requested length, so that a
/// pool's limit binds exactly, and the next one follows at once if that is such a multiple. An allocation may lie across
/// two regions: such memory cannot be registered for RDMA or exported as one handle, and `cuIpcGetMemHandle` does not
/// work on any of it. A dropped source unmaps everything: nothing may use its memory then.
#[derive(Debug)]
pub struct CudaVirtualMemory {
    pub(crate) context: Arc<DeviceContext>,
    pub(crate) granularity: u64,
    /// Addresses to reserve at once.
    range_bytes: u64,
    ranges: Vec<AddressRange>,
    /// Address to length of each grant; what is mapped is the next multiple of the granularity.
    grants: BTreeMap<u64, u64>,
    /// Spans whose addresses become free when nothing is mapped there any more.
    leaving: Vec<Grant>,
    pub(crate) pages: MappedPages,
    pub(crate) teardown: Teardown,
}

impl CudaVirtualMemory {
    /// Creates a source over a device, by the driver's index. Makes no context, takes no device memory and reserves no
    /// addresses.
    ///
    /// # Errors
    /// If there is no such device, device or driver have no virtual memory management, or the driver fails.
    pub fn new(driver: &Driver, ordinal: u32) -> Result<Self, CudaError> {
        let context = Arc::new(DeviceContext::new(driver, ordinal)?);
        let device = context.device;
        let supported = driver.device_attribute(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device)? != 0;
        let memory = virtual_memory(driver, ordinal)?;
        if !supported {
            return Err(CudaError::NoVirtualMemory { ordinal });
        }
        let granularity = (memory.granularity(device)? as u64).max(allotment::GRANULE);
        let range_bytes = driver.device_memory(device)?.next_multiple_of(granularity);
        Ok(Self {
            context,
            granularity,
            range_bytes,
            ranges: Vec::new(),
            grants: BTreeMap::new(),
            leaving: Vec::new(),
            pages: MappedPages::default(),
            teardown: Teardown::default(),
        })
    }

    /// Returns the unit of addresses and mapped lengths, in bytes.
    #[must_use]
    pub fn granularity(&self) -> u64 {
        self.granularity
    }

    /// Returns the span that is mapped for a grant.
    fn mapped(&self, grant: Grant) -> Grant {
        Grant { bytes: grant.bytes.next_multiple_of(self.granularity), ..grant }
    }

    fn map(&mut self, span: Grant) -> Result<(), CudaError> {
        let length = length(span.bytes);
        let DeviceContext { device, ordinal, .. } = *self.context;
        let (mut created, mut is_mapped) = (None, false);
        let result = self.context.with(|driver| {
            let memory = virtual_memory(driver, ordinal)?;
            let handle = memory.create(length, device)?;
            created = Some(handle);
            memory.map(span.address, length, handle)?;
            is_mapped = true;
            // From here on the mapping alone keeps the memory.
            memory.release(handle)?;
            created = None;
            memory.set_access(span.address, length, device)
        });
        if result.is_err() {
            if is_mapped {
                self.teardown.push(Step::Unmap(span));
            }
            if let Some(handle) = created {
                self.teardown.push(Step::Release(handle));
            }
        }
        result
    }

    /// Takes free addresses, and reserves more if no range has room.
    fn take_addresses(&mut self, bytes: u64) -> Result<Grant, CudaError> {
        if let Some(span) = self.ranges.iter_mut().find_map(|range| range.take(bytes)) {
            return Ok(span);
        }
        let mut range = Grant { address: 0, bytes: self.range_bytes.max(bytes) };
        let mut is_reserved = false;
        let result = self.context.with(|driver| {
            let memory = virtual_memory(driver, self.context.ordinal)?;
            range.address = memory.reserve_addresses(length(range.bytes), 0)?;
            is_reserved = true;
            Ok(())
        });
        if result.is_err() && is_reserved {
            self.teardown.push(Step::FreeAddresses(range));
            self.teardown.run(&self.context);
        }
        result?;
        let span = Grant { address: range.address, bytes };
        self.ranges.push(AddressRange::new(range, span));
        Ok(span)
    }

    /// Gives back what is to be given back.
    ///
    /// # Errors
    /// If that fails, or did so before and no call has reported it.
    pub(crate) fn settle(&mut self) -> Result<(), ReserveError> {
        self.tear_down();
        self.teardown.report().map_err(refusal)
    }

    /// Gives back what is to be given back, and frees the addresses of what is unmapped.
    pub(crate) fn tear_down(&mut self) {
        self.teardown.run(&self.context);
        let Self { leaving, ranges, teardown, .. } = self;
        leaving.retain(|&span| {
            let is_mapped = teardown.is_pending(Step::Unmap(span));
            if !is_mapped && let Some(range) = ranges.iter_mut().find(|range| range.contains(span)) {
                range.give_back(span);
            }
            is_mapped
        });
    }
}

impl RegionSource for CudaVirtualMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.settle()?;
        let mapped_bytes = bytes.checked_next_multiple_of(self.granularity);
        let mapped_bytes =
            mapped_bytes.filter(|_| alignment <= self.granularity).ok_or(ReserveError::Declined)?;
        let span = self.take_addresses(mapped_bytes).map_err(refusal)?;
        let mapped = self.map(span);
        if mapped.is_err() {
            self.leaving.push(span);
            self.tear_down();
        }
        mapped.map_err(refusal)?;
        let grant = Grant { bytes, ..span };
        self.grants.insert(grant.address, grant.bytes);
        Ok(grant)
    }

    /// Unmaps a region, which frees its memory, after waiting for the device. A failure is reported by the next request,
    /// and the call is tried again then.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it.
    fn release(&mut self, region: Grant) {
        let mut address = region.address;
        while address < region.end() {
            let bytes = self.grants.remove(&address).filter(|bytes| address + bytes <= region.end());
            let bytes = bytes.unwrap_or_else(|| panic!("{region:?} was not granted by this source"));
            let span = self.mapped(Grant { address, bytes });
            self.teardown.push(Step::Unmap(span));
            self.leaving.push(span);
            address += bytes;
        }
        self.tear_down();
    }

    fn joins_regions(&self) -> bool {
        true
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(FreeMemory::new(&self.context)))
    }
}

impl Drop for CudaVirtualMemory {
    fn drop(&mut self) {
        for (address, bytes) in std::mem::take(&mut self.grants) {
            self.teardown.push(Step::Unmap(self.mapped(Grant { address, bytes })));
        }
        self.pages.give_back(&mut self.teardown);
        for range in self.ranges.drain(..) {
            self.teardown.push(Step::FreeAddresses(range.span));
        }
        // Twice, for a failure that passes.
        self.teardown.run(&self.context);
        self.teardown.run(&self.context);
    }
}

pub(crate) fn virtual_memory(driver: &Driver, ordinal: u32) -> Result<VirtualMemory<'_>, CudaError> {
    driver.virtual_memory().ok_or(CudaError::NoVirtualMemory { ordinal })
}

pub(crate) fn length(bytes: u64) -> usize {
    // Longer than any memory, for the driver to refuse.
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
