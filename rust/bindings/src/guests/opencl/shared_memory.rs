//! Memory that the host and the devices of an OpenCL context share, as a source of several pools.

use std::sync::Arc;

use allotment::source::{Cap, Capped};
use allotment::{MAX_BYTES, Siblings};
use allotment_host::Registered;
use allotment_opencl::{Context, OpenCl, OpenClError, SharedMemory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::retain_context;
use crate::error::IntoPyErr;
use crate::size::size_argument;

/// Memory of a fixed size that the host and the devices of an OpenCL context share, for several pools.
///
/// It is fine-grained shared virtual memory: addresses of its pools are memory of this process, and kernels take them
/// by ``clSetKernelArgSVMPointer``.
///
/// Args:
///     library: As for ``OpenClSource``.
///     context: The handle of the context.
///     capacity: The most bytes that pools may reserve from it together: a number, or a text such as ``"8GiB"``.
///     within_machine: As for ``HostMemory``: for devices that are the machine's CPU.
///
/// Raises:
///     ValueError: ``capacity`` is out of range.
///     RuntimeError: The library cannot be used, OpenCL fails or is older than 2.0, or a device of the context has no
///         such memory.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct OpenClSharedMemory {
    context: Context,
    cap: Arc<Cap>,
    /// The pools over it.
    siblings: Arc<Siblings>,
    within_machine: bool,
}

#[pymethods]
impl OpenClSharedMemory {
    #[new]
    #[pyo3(signature = (library, context, capacity, *, within_machine = false))]
    fn new(
        py: Python<'_>,
        library: &str,
        context: usize,
        capacity: &Bound<'_, PyAny>,
        within_machine: bool,
    ) -> PyResult<Self> {
        let bytes = size_argument(capacity, "capacity")?;
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(PyValueError::new_err(format!(
                "capacity {bytes} is not between 1 and {MAX_BYTES} bytes"
            )));
        }
        let checked = || {
            let context = retain_context(OpenCl::open(library)?, context)?;
            SharedMemory::new(context.clone())?;
            Ok(context)
        };
        let context = checked().map_err(|error: OpenClError| error.into_py_err(py))?;
        Ok(Self { context, cap: Cap::new(bytes), siblings: Arc::default(), within_machine })
    }

    /// The handle of the context.
    #[getter]
    fn context(&self) -> usize {
        self.context.handle().addr()
    }

    /// The most bytes that pools may reserve from it together.
    #[getter]
    fn capacity(&self) -> u64 {
        self.cap.bytes()
    }

    /// Bytes that all pools have reserved from it now.
    #[getter]
    fn used(&self) -> u64 {
        self.cap.used()
    }

    fn __repr__(&self) -> String {
        let (context, capacity, used) = (self.context(), self.capacity(), self.used());
        format!("OpenClSharedMemory(context={context:#x}, capacity={capacity}, used={used})")
    }
}

impl OpenClSharedMemory {
    /// Returns a source for one pool.
    pub(crate) fn source(&self, py: Python<'_>) -> PyResult<Capped<Registered<SharedMemory>>> {
        let memory = SharedMemory::new(self.context.clone()).map_err(|error| error.into_py_err(py))?;
        Ok(Capped::new(Registered::new(memory), Arc::clone(&self.cap)))
    }

    pub(crate) fn siblings(&self) -> &Arc<Siblings> {
        &self.siblings
    }

    pub(crate) fn is_within_machine(&self) -> bool {
        self.within_machine
    }
}
