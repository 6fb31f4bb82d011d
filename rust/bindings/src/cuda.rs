//! CUDA devices: their list, their free memory, and sources over them.

use std::env;
use std::sync::Arc;

use allotment::RegionSource;
use allotment_cuda::{CudaError, CudaMemory, CudaVirtualMemory, Driver, StreamOrder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::IntoPyErr;
use crate::error::message_text::show_value;
use crate::interpreter::detach;

/// The variable with the path of another driver than the machine's.
const DRIVER_VARIABLE: &str = "ALLOTMENT_CUDA_DRIVER";

/// How regions of device memory are made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Regions {
    /// By `cuMemAlloc`.
    Plain,
    /// By virtual memory management, each after the last.
    Mapped,
}

/// Name, bytes, compute capability, address on the PCI bus, and identifier of a device.
type DeviceFields = (String, u64, (u32, u32), String, String);

/// A source over a device, and the order of the streams that share its pool's memory.
pub(crate) type DeviceSource = (Box<dyn RegionSource>, Arc<StreamOrder>);

/// Opens a source over the device of an index.
///
/// # Errors
/// If the text is no index, there is no driver or no such device, or the driver fails.
pub(crate) fn source(py: Python<'_>, index: &str, regions: Regions) -> PyResult<DeviceSource> {
    let ordinal = index.parse::<u32>().ok().filter(|_| index.bytes().all(|digit| digit.is_ascii_digit()));
    let ordinal = ordinal.ok_or_else(|| {
        let shown = show_value(PyString::new(py, index).as_any());
        PyValueError::new_err(format!("{shown} is not the index of a CUDA device, such as 0 in 'cuda:0'"))
    })?;
    let opened = detach(py, || {
        let driver = open_driver()?;
        let source: Box<dyn RegionSource> = match regions {
            Regions::Plain => Box::new(CudaMemory::new(&driver, ordinal)?),
            Regions::Mapped => Box::new(CudaVirtualMemory::new(&driver, ordinal)?),
        };
        Ok((source, Arc::new(StreamOrder::new(&driver, ordinal)?)))
    });
    opened.map_err(|error: CudaError| error.into_py_err(py))
}

/// Return the devices that the CUDA driver lists, in its order; ``None`` if there is no driver.
///
/// Each is a tuple of name, bytes of memory, compute capability, address on the PCI bus, and identifier.
#[pyfunction]
pub(crate) fn cuda_devices(py: Python<'_>) -> PyResult<Option<Vec<DeviceFields>>> {
    match detach(py, || open_driver()?.devices()) {
        Ok(devices) => Ok(Some(
            devices
                .into_iter()
                .map(|device| {
                    let capability = device.compute_capability;
                    (device.name, device.total_memory, capability, device.pci_bus_id, device.uuid)
                })
                .collect(),
        )),
        Err(CudaError::NotFound { .. }) if driver_path().is_none() => Ok(None),
        Err(error) => Err(error.into_py_err(py)),
    }
}

/// Return free and total bytes of a CUDA device's memory; other processes count.
#[pyfunction]
pub(crate) fn cuda_memory_info(py: Python<'_>, ordinal: u32) -> PyResult<(u64, u64)> {
    detach(py, || open_driver()?.memory_info(ordinal)).map_err(|error| error.into_py_err(py))
}

/// Return the greatest and the least priority of a CUDA device's streams.
#[pyfunction]
pub(crate) fn cuda_stream_priorities(py: Python<'_>, ordinal: u32) -> PyResult<(i32, i32)> {
    detach(py, || open_driver()?.stream_priorities(ordinal)).map_err(|error| error.into_py_err(py))
}

fn open_driver() -> Result<Driver, CudaError> {
    Driver::open(driver_path().as_deref())
}

fn driver_path() -> Option<String> {
    let path = env::var_os(DRIVER_VARIABLE).filter(|path| !path.is_empty())?;
    Some(path.to_string_lossy().into_owned())
}
