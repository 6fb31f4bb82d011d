//! Regions of shared virtual memory, which the host and the devices of a context use at the same addresses.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{Gauge, Headroom};
use allotment_host::HostAccessible;

use crate::error::OpenClError;
use crate::handles::Context;
use crate::sys::{self, SvmFunctions};

/// Grants regions of `clSVMAlloc` with `CL_MEM_SVM_FINE_GRAIN_BUFFER`.
///
/// The host reads and writes them by their addresses, and kernels take these addresses by `clSetKernelArgSVMPointer`,
/// also those inside of a region. What one side writes, the other one sees when a command begins and when it is known
/// to be complete. A region is no longer than the shortest `CL_DEVICE_MAX_MEM_ALLOC_SIZE` of the context's devices.
///
/// A dropped source leaves live grants allocated. OpenCL does not wait at the end of a region for commands that use it:
/// the program frees memory when these are complete.
#[derive(Debug)]
pub struct SharedMemory {
    context: Context,
    functions: &'static SvmFunctions,
    longest: u64,
    /// What OpenCL allocated, by the address of the grant in it.
    allocated: BTreeMap<u64, usize>,
}

impl SharedMemory {
    /// Creates a source over memory of a context.
    ///
    /// # Errors
    /// If OpenCL is older than 2.0 or fails, or a device of the context has no fine-grained shared virtual memory.
    pub fn new(context: Context) -> Result<Self, OpenClError> {
        let opencl = context.opencl();
        opencl.check_process()?;
        let functions = opencl.svm()?;
        let mut longest = u64::MAX;
        // SAFETY: the context is retained.
        for device in unsafe { opencl.devices(context.handle()) }? {
            // SAFETY: the device is one of the context's; the answer is a `cl_bitfield`.
            let capabilities = match unsafe { opencl.device_info(device, sys::SVM_CAPABILITIES) } {
                // Devices of OpenCL 1 do not know the question.
                Err(OpenClError::Call { code: sys::INVALID_VALUE, .. }) => 0,
                answer => answer?,
            };
            if capabilities & sys::SVM_FINE_GRAINED == 0 {
                return Err(OpenClError::NoSharedMemory { capabilities });
            }
            // SAFETY: as above; the answer is a `cl_ulong`.
            longest = longest.min(unsafe { opencl.device_info(device, sys::LONGEST_ALLOCATION) }?);
        }
        Ok(Self { context, functions, longest, allocated: BTreeMap::new() })
    }
}

impl RegionSource for SharedMemory {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let failed = |error| ReserveError::Failed(Arc::new(error));
        self.context.opencl().check_process().map_err(failed)?;
        // OpenCL need not align to more than its longest type, of 128 bytes, so that a region is cut out.
        let length = bytes.checked_add(alignment).filter(|&length| length <= self.longest);
        let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(ReserveError::Declined)?;
        let flags = sys::READ_WRITE | sys::FINE_GRAINED;
        // SAFETY: the context is retained.
        let start = unsafe { (self.functions.allocate)(self.context.handle(), flags, length, 0) };
        if start.is_null() {
            return Err(ReserveError::Declined);
        }
        let start = start.expose_provenance();
        let grant = Grant { address: (start as u64).next_multiple_of(alignment), bytes };
        self.allocated.insert(grant.address, start);
        Ok(grant)
    }

    /// Frees a region, which no command uses. In a forked child it stays: its parent has it.
    ///
    /// # Panics
    /// If this source did not grant the region or has already released it.
    fn release(&mut self, region: Grant) {
        let start = self.allocated.remove(&region.address);
        let start = start.unwrap_or_else(|| panic!("{region:?} was not granted by this source"));
        if self.context.opencl().check_process().is_ok() {
            // SAFETY: the context is retained, and the memory was allocated in it and not freed.
            unsafe { (self.functions.free)(self.context.handle(), ptr::with_exposed_provenance_mut(start)) };
        }
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(LongestRegion(self.longest)))
    }
}

// SAFETY: fine-grained memory is memory of this process that all its threads may read and write, from `clSVMAlloc` to
// `clSVMFree`, which only `release` calls. Grants are cut out of one allocation each.
unsafe impl HostAccessible for SharedMemory {}

/// The gauge: OpenCL tells how long a region may be, and not how much memory there is.
#[derive(Debug)]
struct LongestRegion(u64);

impl Gauge for LongestRegion {
    fn headroom(&self) -> Headroom {
        Headroom { maximum: self.0, ..Headroom::UNKNOWN }
    }
}
