//! Memory for other runtimes in the process, the guests: each takes it through functions of C, from any of its threads.
//!
//! `memory` serves the requests of a guest from a pool, `functions` is the table through which compiled code of a guest
//! calls it, and `onnxruntime` and `tvm_ffi` are the allocators that those runtimes define. `opencl` makes buffers.

use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::pool::Pool;
use memory::Guest;

mod functions;
mod memory;
mod onnxruntime;
pub(crate) mod opencl;
pub(crate) mod stream_memory;
pub(crate) mod torch;
mod tvm_ffi;

/// Memory of a pool for a runtime of C or C++ in this process, its guest.
///
/// The guest's data can be freed at any time, so the pool lives as long as the process. In pools with ``owner_tags``
/// it has the guest's name as its owner. A request neither waits for a free nor collects garbage. In a forked child,
/// which cannot use the pool, the guest gets memory of the C library instead.
///
/// Args:
///     pool: The pool, over memory of this process.
///     name: The guest's name in owner tags and messages.
///
/// Raises:
///     ValueError: The pool's memory is not memory of this process.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct GuestMemory(&'static Guest);

#[pymethods]
impl GuestMemory {
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: &str) -> PyResult<Self> {
        let pool = pool.get();
        if !pool.is_host_memory() {
            return Err(PyValueError::new_err(format!(
                "{name} needs memory of this process: the pool must have source='host' or HostMemory",
            )));
        }
        Ok(Self(memory::guest(pool.core(), pool.admission(), name)))
    }

    /// The address of the guest, the first argument of the functions in ``functions``.
    #[getter]
    fn address(&self) -> usize {
        ptr::from_ref(self.0).expose_provenance()
    }

    /// The address of a table of C functions, which ``rust/bindings/src/guests/functions.rs`` describes.
    #[classattr]
    fn functions() -> usize {
        functions::address()
    }

    /// Make this memory the shared CPU allocator of ONNX Runtime's environment.
    ///
    /// Raises:
    ///     RuntimeError: ONNX Runtime did not pass its functions, or refuses the allocator.
    fn register_with_onnxruntime(&self) -> PyResult<()> {
        onnxruntime::register(self.0)
    }

    /// Remove the shared CPU allocator of ONNX Runtime's environment. Sessions that use it keep it.
    ///
    /// Raises:
    ///     RuntimeError: ONNX Runtime did not pass its functions, or none is registered.
    #[staticmethod]
    fn unregister_from_onnxruntime() -> PyResult<()> {
        onnxruntime::unregister()
    }

    /// The address of the allocator of tensors for tvm-ffi, a ``DLPackManagedTensorAllocator``.
    #[classattr]
    fn tvm_ffi_allocator() -> usize {
        tvm_ffi::allocator()
    }

    /// Make this memory that of ``tvm_ffi_allocator`` in this thread, or in every thread without one of its own.
    fn serve_tvm_ffi(&self, process_wide: bool) {
        if process_wide { tvm_ffi::serve_process(Some(self.0)) } else { tvm_ffi::serve_thread(Some(self.0)) }
    }

    /// Undo ``serve_tvm_ffi``.
    #[staticmethod]
    fn stop_tvm_ffi(process_wide: bool) {
        if process_wide { tvm_ffi::serve_process(None) } else { tvm_ffi::serve_thread(None) }
    }
}
