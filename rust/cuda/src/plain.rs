//! Regions of `cuMemAlloc`.

use std::collections::BTreeSet;
use std::sync::Arc;

use allotment::source::{Gauge, Grant, RegionSource, ReserveError};

use crate::context::DeviceContext;
use crate::driver::Driver;
use crate::error::{CudaError, refusal};
use crate::free_memory::FreeMemory;
use crate::teardown::{Step, Teardown};

/// Grants regions of device memory by `cuMemAlloc`, each of exactly the requested length.
///
/// They are never joined, and each can be exported by `cuIpcGetMemHandle` and registered for RDMA as a whole.
/// `cuMemFree` waits for the device. A dropped source frees everything: nothing may use its memory then.
#[derive(Debug)]
pub struct CudaMemory {
    context: Arc<DeviceContext>,
    grants: BTreeSet<Grant>,
    teardown: Teardown,
}

impl CudaMemory {
    /// Creates a source over a device, by the driver's index. Makes no context and takes no device memory.
    ///
    /// # Errors
    /// If there is no such device, or the driver fails.
    pub fn new(driver: &Driver, ordinal: u32) -> Result<Self, CudaError> {
        let context = Arc::new(DeviceContext::new(driver, ordinal)?);
        Ok(Self { context, grants: BTreeSet::new(), teardown: Teardown::default() })
    }

    fn allocate(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let length = usize::try_from(bytes).map_err(|_| ReserveError::Declined)?;
        let mut granted = None;
        let result = self.context.with(|driver| {
            granted = Some(Grant { address: driver.allocate(length)?, bytes });
            Ok(())
        });
        match granted {
            Some(grant) if result.is_ok() && grant.address.is_multiple_of(alignment) => {
                self.grants.insert(grant);
                return Ok(grant);
            }
            // Also where the caller's context could not be restored.
            Some(grant) => {
                self.teardown.push(Step::Free(grant.address));
                self.teardown.run(&self.context);
            }
            None => {}
        }
        result.map_err(refusal)?;
        // The driver aligns to 256 bytes or more, which is what pools ask for.
        Err(ReserveError::Declined)
    }
}

impl RegionSource for CudaMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.teardown.run(&self.context);
        self.teardown.report().map_err(refusal)?;
        self.allocate(bytes, alignment)
    }

    /// Frees a region. A failure is reported by the next request, and the call is tried again then.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it.
    fn release(&mut self, region: Grant) {
        let mut address = region.address;
        while address < region.end() {
            let grant = self.grants.range(Grant { address, bytes: 0 }..).next().copied();
            let grant = grant.filter(|grant| grant.address == address && grant.end() <= region.end());
            let grant = grant.unwrap_or_else(|| panic!("{region:?} was not granted by this source"));
            self.grants.remove(&grant);
            self.teardown.push(Step::Free(grant.address));
            address = grant.end();
        }
        self.teardown.run(&self.context);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(FreeMemory::new(&self.context)))
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        for grant in std::mem::take(&mut self.grants) {
            self.teardown.push(Step::Free(grant.address));
        }
        // Twice, for a failure that passes.
        self.teardown.run(&self.context);
        self.teardown.run(&self.context);
    }
}
