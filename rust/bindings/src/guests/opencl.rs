//! Buffers of OpenCL in pools: parts of a pool's regions, or buffers over a pool's host memory.
//!
//! OpenCL destroys a buffer when its last reference is gone, and then calls the function that frees the memory, on any
//! thread. No interpreter takes part in that.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use allotment::source::{ObjectTable, Objects};
use allotment_opencl::{Buffer, Context, OpenCl, OpenClError, Queue, QueueOrder, Regions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;

mod allocator;
mod shared_memory;

pub(crate) use allocator::OpenClAllocator;
pub(crate) use shared_memory::OpenClSharedMemory;

/// The buffers and queues of OpenCL that use a pool.
#[derive(Default)]
pub(crate) struct OpenClUse {
    /// The buffers that are the pool's regions, if they are.
    regions: Option<OpenClRegions>,
    /// The order of the queues that use the pool's memory.
    order: Arc<QueueOrder>,
}

/// The regions of a pool over an OpenCL context.
pub(crate) struct OpenClRegions {
    context: Context,
    buffers: ObjectTable<Arc<Buffer>>,
}

impl OpenClUse {
    pub(crate) fn new(regions: Option<OpenClRegions>) -> Self {
        Self { regions, ..Self::default() }
    }
}

/// Memory of an OpenCL context, as a source of pools: each region is a buffer.
///
/// Args:
///     library: The path of OpenCL's library, or of one that was linked with it, which made the handles.
///     context: The handle of the context.
///     queue: The handle of a queue of the context. It writes a byte into each region, for which the device then has
///         memory.
///
/// Raises:
///     RuntimeError: The library cannot be used, or OpenCL fails.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct OpenClSource {
    context: Context,
    queue: Queue,
}

#[pymethods]
impl OpenClSource {
    #[new]
    fn new(py: Python<'_>, library: &str, context: usize, queue: usize) -> PyResult<Self> {
        let retained = || {
            let opencl = OpenCl::open(library)?;
            Ok((retain_context(opencl, context)?, retain_queue(opencl, queue)?))
        };
        let (context, queue) = retained().map_err(|error: OpenClError| error.into_py_err(py))?;
        Ok(Self { context, queue })
    }

    /// The handle of the context.
    #[getter]
    fn context(&self) -> usize {
        self.context.handle().addr()
    }

    fn __repr__(&self) -> String {
        format!("OpenClSource(context={:#x})", self.context())
    }
}

impl OpenClSource {
    /// Returns a source for one pool, and the pool's regions.
    pub(crate) fn regions(&self) -> (Objects<Regions>, OpenClRegions) {
        let context = self.context.clone();
        let (source, buffers) = Objects::new(Regions::new(context.clone(), self.queue.clone()));
        (source.without_zero(), OpenClRegions { context, buffers })
    }
}

impl IntoPyErr for OpenClError {
    fn into_py_err(self, _py: Python<'_>) -> PyErr {
        PyRuntimeError::new_err(self.to_string())
    }
}

fn retain_context(opencl: OpenCl, handle: usize) -> Result<Context, OpenClError> {
    // SAFETY: callers in Python pass handles of live objects of that library.
    unsafe { Context::retain(opencl, pointer(handle)) }
}

fn retain_queue(opencl: OpenCl, handle: usize) -> Result<Queue, OpenClError> {
    // SAFETY: as above.
    unsafe { Queue::retain(opencl, pointer(handle)) }
}

fn pointer(handle: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(handle)
}
