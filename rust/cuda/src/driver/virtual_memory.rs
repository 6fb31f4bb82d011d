//! The functions of virtual memory management as methods.

use super::Driver;
use crate::error::CudaError;
use crate::sys::{self, AccessDescription, Address, AllocationProperties, Device, Handle, VirtualFunctions};

/// The functions of virtual memory management.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtualMemory<'a> {
    driver: &'a Driver,
    functions: VirtualFunctions,
}

impl<'a> VirtualMemory<'a> {
    pub(super) fn new(driver: &'a Driver, functions: VirtualFunctions) -> Self {
        Self { driver, functions }
    }
}

impl VirtualMemory<'_> {
    /// Returns the unit of sizes and addresses.
    pub(crate) fn granularity(&self, device: Device) -> Result<usize, CudaError> {
        let properties = AllocationProperties::of(device);
        let mut bytes = 0_usize;
        // SAFETY: the pointers are to local variables.
        self.driver.call("cuMemGetAllocationGranularity", || unsafe {
            (self.functions.granularity)(&raw mut bytes, &raw const properties, sys::GRANULARITY_MINIMUM)
        })?;
        Ok(bytes)
    }

    /// Reserves addresses at a multiple of `alignment`, a power of two, or of the driver's own unit with 0.
    pub(crate) fn reserve_addresses(&self, bytes: usize, alignment: usize) -> Result<Address, CudaError> {
        let mut start: Address = 0;
        // SAFETY: the pointer is to a local variable; the driver chooses the addresses.
        self.driver.call("cuMemAddressReserve", || unsafe {
            (self.functions.reserve_addresses)(&raw mut start, bytes, alignment, 0, 0)
        })?;
        Ok(start)
    }

    pub(crate) fn free_addresses(&self, start: Address, bytes: usize) -> Result<(), CudaError> {
        // SAFETY: the caller has reserved the addresses, and nothing is mapped there.
        self.driver.call("cuMemAddressFree", || unsafe { (self.functions.free_addresses)(start, bytes) })
    }

    pub(crate) fn create(&self, bytes: usize, device: Device) -> Result<Handle, CudaError> {
        let properties = AllocationProperties::of(device);
        let mut handle: Handle = 0;
        // SAFETY: the pointers are to local variables.
        self.driver.call("cuMemCreate", || unsafe {
            (self.functions.create)(&raw mut handle, bytes, &raw const properties, 0)
        })?;
        Ok(handle)
    }

    pub(crate) fn release(&self, handle: Handle) -> Result<(), CudaError> {
        // SAFETY: the caller owns the handle.
        self.driver.call("cuMemRelease", || unsafe { (self.functions.release)(handle) })
    }

    pub(crate) fn map(&self, start: Address, bytes: usize, handle: Handle) -> Result<(), CudaError> {
        // SAFETY: the caller has reserved the addresses, nothing is mapped there, and the handle has this length.
        self.driver.call("cuMemMap", || unsafe { (self.functions.map)(start, bytes, 0, handle, 0) })
    }

    pub(crate) fn unmap(&self, start: Address, bytes: usize) -> Result<(), CudaError> {
        // SAFETY: the caller has mapped this span, and no longer uses it.
        self.driver.call("cuMemUnmap", || unsafe { (self.functions.unmap)(start, bytes) })
    }

    /// Waits for the device.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        self.driver.synchronize()
    }

    pub(crate) fn set_access(&self, start: Address, bytes: usize, device: Device) -> Result<(), CudaError> {
        let access = AccessDescription::read_write(device);
        // SAFETY: the caller has mapped this span; the pointer is to one local description.
        self.driver.call("cuMemSetAccess", || unsafe {
            (self.functions.set_access)(start, bytes, &raw const access, 1)
        })
    }
}
