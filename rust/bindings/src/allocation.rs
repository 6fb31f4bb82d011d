//! The `Allocation` class: an allocation that is freed with its last reference at the latest.

use std::sync::Arc;

use allotment::FreeError;
use allotment_cuda::StreamOrder;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::allocation::buffer::{Exports, Retired};
use crate::error::{IntoPyErr, InvalidFreeError};
use crate::interpreter::detach;
use crate::size::whole_number;

mod buffer;
pub(crate) mod dlpack;

/// The memory of an allocation, which its object shares with the views that other libraries have of it. The last of
/// them frees it.
pub(crate) struct Memory {
    pool: Arc<allotment::Pool>,
    inner: allotment::Allocation,
    pub(crate) address: u64,
    pub(crate) on_host: bool,
    /// The order of the streams of the device, for memory of a CUDA device.
    pub(crate) streams: Option<Arc<StreamOrder>>,
    /// Counts the buffers over the memory, and records whether it was freed.
    exports: Exports,
}

/// Memory of a pool, the result of ``Pool.allocate``.
///
/// ``free()``, the end of its ``with`` block, or its last reference frees it. Over host memory it is a writable
/// buffer of ``requested`` bytes, as in ``numpy.frombuffer(allocation)``. Over host memory and that of a CUDA device
/// it is an array of ``requested`` bytes for libraries that know DLPack, as in ``cupy.from_dlpack(allocation)``.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Allocation(Arc<Memory>);

impl Memory {
    pub(crate) fn exports(&self) -> &Exports {
        &self.exports
    }

    pub(crate) fn pool(&self) -> &allotment::Pool {
        &self.pool
    }

    pub(crate) fn inner(&self) -> &allotment::Allocation {
        &self.inner
    }

    /// Frees without waiting, unless it was freed before or a view exposes the memory.
    fn free_silently(&self) {
        if let Retired::Now = self.exports.retire() {
            self.pool.free_deferred(&self.inner);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.free_silently();
    }
}

impl Allocation {
    pub(crate) fn new(
        pool: Arc<allotment::Pool>,
        inner: allotment::Allocation,
        on_host: bool,
        streams: Option<Arc<StreamOrder>>,
    ) -> Self {
        let address = inner.address;
        Self(Arc::new(Memory { pool, inner, address, on_host, streams, exports: Exports::default() }))
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.0
    }

    fn give_back(&self, py: Python<'_>) -> PyResult<()> {
        let Memory { pool, inner, exports, .. } = &*self.0;
        let freed = match pool.try_free_allocation(inner) {
            Ok(Some(())) => Ok(()),
            // Another thread holds the lock: wait without the interpreter's lock.
            Ok(None) => detach(py, || pool.free_allocation(inner)),
            Err(error) => Err(error),
        };
        freed.map_err(|error| {
            if let FreeError::Unusable(_) = error {
                // The allocation was not freed; another process may still free it.
                exports.restore();
            }
            error.into_py_err(py)
        })
    }
}

#[pymethods]
impl Allocation {
    /// First byte, a multiple of the alignment; 0 for zero bytes.
    #[getter]
    pub(crate) fn address(&self) -> u64 {
        self.0.address
    }

    /// Bytes requested.
    #[getter]
    pub(crate) fn requested(&self) -> u64 {
        self.0.inner.requested
    }

    /// Usable bytes, from ``address`` to the end of the chunk.
    ///
    /// This is the request in whole granules of 256 bytes, or more; in guard mode it is the request.
    #[getter]
    fn size(&self) -> u64 {
        self.0.inner.size
    }

    /// Number of the allocation in its pool, from 1 on, never used again; 0 for zero bytes.
    #[getter]
    fn id(&self) -> u64 {
        self.0.inner.id
    }

    /// Free the memory.
    ///
    /// Raises:
    ///     InvalidFreeError: It was freed before.
    ///     MemoryDamageError: Guard mode found damage; the memory was freed nevertheless.
    ///     BufferError: A ``memoryview`` or an array over it is alive.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        match self.0.exports.retire() {
            Retired::Now => self.give_back(py),
            Retired::Before => {
                Err(InvalidFreeError::new_err(format!("allocation {} was freed before", self.0.inner.id)))
            }
            Retired::InUse => Err(PyBufferError::new_err(
                "a memoryview or an array over this allocation is still alive: drop it first",
            )),
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // In a forked child the end of a block frees nothing, and must not replace the exception that ends it.
        if self.0.exports.is_retired() || self.0.pool.is_inherited() {
            return Ok(());
        }
        if kind.is_none() {
            return self.free(py);
        }
        // The exception of the block matters more than a remaining array over the memory; the next call reports
        // damage.
        self.0.free_silently();
        Ok(())
    }

    fn __repr__(&self) -> String {
        let state = if self.0.exports.is_retired() { ", freed" } else { "" };
        let allotment::Allocation { requested, id, .. } = self.0.inner;
        let size = self.size();
        format!(
            "Allocation(address={:#x}, requested={requested}, size={size}, id={id}{state})",
            self.0.address
        )
    }
}

/// Converts an argument into the address to free. A number out of range was never allocated.
pub(crate) fn address_argument(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = value.py();
    whole_number(value, "address").map_err(|error| {
        if value.is_instance_of::<Allocation>() {
            return PyTypeError::new_err("an Allocation is freed by its own free(), not by its pool's");
        }
        if error.is_instance_of::<PyValueError>(py) {
            InvalidFreeError::new_err(error.value(py).to_string())
        } else {
            error
        }
    })
}
