//! The devices that the driver lists, in its own order.

use std::fmt::Write as _;

use crate::context::DeviceContext;
use crate::driver::Driver;
use crate::error::CudaError;
use crate::sys::{COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, Device};

/// A device that the driver lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceDetails {
    /// The driver's index, after `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`.
    pub ordinal: u32,
    /// The card's name.
    pub name: String,
    /// Bytes of memory in all.
    pub total_memory: u64,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Address on the PCI bus, such as `0000:3b:00.0`.
    pub pci_bus_id: String,
    /// `GPU-…`, as `nvidia-smi` prints it.
    pub uuid: String,
}

impl Driver {
    /// Lists the devices. Makes no context and takes no device memory.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn devices(&self) -> Result<Vec<DeviceDetails>, CudaError> {
        (0..self.device_count()?).map(|ordinal| self.details(ordinal)).collect()
    }

    /// Returns free and total bytes of a device's memory; other processes count.
    ///
    /// # Errors
    /// If there is no such device, or the driver fails.
    ///
    /// # Cost
    /// It makes the device's primary context if the process has none: that takes a fraction of a second, and some
    /// hundred MiB of the device while it exists.
    pub fn memory_info(&self, ordinal: u32) -> Result<(u64, u64), CudaError> {
        DeviceContext::new(self, ordinal)?.with(Self::current_memory_info)
    }

    /// Returns the greatest and the least priority of a device's streams; lower numbers go first.
    ///
    /// # Errors
    /// If there is no such device, or the driver fails.
    ///
    /// # Cost
    /// As of [`Driver::memory_info`].
    pub fn stream_priorities(&self, ordinal: u32) -> Result<(i32, i32), CudaError> {
        DeviceContext::new(self, ordinal)?.with(Self::priority_range)
    }

    /// Returns the driver's handle of a device.
    pub(crate) fn find(&self, ordinal: u32) -> Result<Device, CudaError> {
        let count = self.device_count()?;
        let missing = CudaError::NoSuchDevice { ordinal, count };
        let index = i32::try_from(ordinal).ok().filter(|_| ordinal < count).ok_or(missing)?;
        self.device(index)
    }

    fn details(&self, ordinal: u32) -> Result<DeviceDetails, CudaError> {
        let device = self.find(ordinal)?;
        let attribute = |attribute| Ok(self.device_attribute(attribute, device)?.unsigned_abs());
        Ok(DeviceDetails {
            ordinal,
            name: self.device_name(device)?,
            total_memory: self.device_memory(device)?,
            compute_capability: (attribute(COMPUTE_CAPABILITY_MAJOR)?, attribute(COMPUTE_CAPABILITY_MINOR)?),
            pci_bus_id: self.device_pci_bus_id(device)?.to_lowercase(),
            uuid: written(self.device_uuid(device)?),
        })
    }
}

/// Returns an identifier in groups of 8, 4, 4, 4 and 12 hexadecimal digits.
fn written(uuid: [u8; 16]) -> String {
    let mut text = "GPU".to_owned();
    for (index, byte) in uuid.into_iter().enumerate() {
        let dash = if [0, 4, 6, 8, 10].contains(&index) { "-" } else { "" };
        write!(text, "{dash}{byte:02x}").expect("a string takes any text");
    }
    text
}
