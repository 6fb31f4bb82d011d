//! Allocations as arrays of bytes for other libraries: DLPack, and `__cuda_array_interface__`.
//!
//! Layouts as in `dlpack.h` of version 1.1. The specifications: <https://dmlc.github.io/dlpack/latest/> and
//! <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::allocation::buffer::{abandon, claim};
use crate::allocation::{Allocation, Memory};
use crate::error::IntoPyErr;
use abi::{BYTE, CPU, CUDA, Device, Tensor};

pub(crate) mod abi;

/// `DLManagedTensor`, for consumers without versions.
#[repr(C)]
struct Unversioned {
    tensor: Tensor,
    context: *mut View,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut View,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

const _: () = assert!(size_of::<Unversioned>() == 64, "DLManagedTensor has 64 bytes");
const _: () = assert!(size_of::<Versioned>() == 80, "DLManagedTensorVersioned has 80 bytes");

/// A consumer's view of an allocation, with what the consumer's struct points to.
struct View {
    memory: Arc<Memory>,
    /// The stream whose work may use the memory when the view ends; `None` if it is not known.
    stream: Option<u64>,
    shape: [i64; 1],
    strides: [i64; 1],
}

impl View {
    fn new(memory: &Arc<Memory>, stream: Option<u64>) -> PyResult<Box<Self>> {
        let length = i64::try_from(memory.inner().requested)?;
        claim(memory)?;
        Ok(Box::new(Self { memory: Arc::clone(memory), stream, shape: [length], strides: [1] }))
    }

    /// Describes the memory; the pointers are valid as long as the view.
    fn tensor(&mut self, device: Device) -> Tensor {
        let address = usize::try_from(self.memory.address).unwrap_or(0);
        Tensor {
            data: ptr::with_exposed_provenance_mut(address),
            device,
            ndim: 1,
            dtype: BYTE,
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

/// Any thread may end a view, without the interpreter.
impl Drop for View {
    fn drop(&mut self) {
        if let Some(streams) = &self.memory.streams {
            streams.before_free(self.stream);
        }
        abandon(&self.memory);
    }
}

/// A struct of DLPack's in a capsule.
trait Managed: Sized {
    /// The capsule's name until a consumer takes the struct.
    const NAME: &'static CStr;

    fn new(context: *mut View, tensor: Tensor) -> Self;
    fn context(&self) -> *mut View;
}

impl Managed for Unversioned {
    const NAME: &'static CStr = c"dltensor";

    fn new(context: *mut View, tensor: Tensor) -> Self {
        Self { tensor, context, deleter: Some(delete::<Self>) }
    }

    fn context(&self) -> *mut View {
        self.context
    }
}

impl Managed for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn new(context: *mut View, tensor: Tensor) -> Self {
        Self { major: 1, minor: 1, context, deleter: Some(delete::<Self>), flags: 0, tensor }
    }

    fn context(&self) -> *mut View {
        self.context
    }
}

/// Ends a consumer's use of the memory; null is accepted and does nothing.
///
/// # Safety
/// The consumer owns the struct and does not use it afterwards.
unsafe extern "C" fn delete<M: Managed>(managed: *mut M) {
    if managed.is_null() {
        return;
    }
    // A panic must not unwind into C.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: both were boxed by `capsule`, and the consumer hands them over once.
        unsafe { drop(Box::from_raw(Box::from_raw(managed).context())) };
    }));
}

/// Ends a capsule whose struct no consumer has taken.
///
/// # Safety
/// Called by the interpreter with a capsule of `capsule`.
unsafe extern "C" fn end_capsule<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes a capsule; a consumer that took the struct has changed the name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
            delete::<M>(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast());
        }
    }
}

fn capsule<M: Managed>(py: Python<'_>, mut view: Box<View>, device: Device) -> PyResult<Bound<'_, PyAny>> {
    let tensor = view.tensor(device);
    let managed = Box::into_raw(Box::new(M::new(Box::into_raw(view), tensor)));
    // SAFETY: this thread is attached; the name is static, and the destructor is that of the struct.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(end_capsule::<M>));
        if capsule.is_null() {
            delete(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

#[pymethods]
impl Allocation {
    /// Return the memory as a DLPack capsule: a one-dimensional array of ``requested`` unsigned bytes.
    ///
    /// The memory stays until the consumer is done with it: ``free()`` is a ``BufferError`` meanwhile. Memory of a CUDA
    /// device is freed behind the work of the stream that the consumer has named.
    ///
    /// Args:
    ///     stream: The consumer's stream, for memory of a CUDA device: ``None`` or 1 is the legacy default stream, 2
    ///         the default stream of the thread, -1 means that the consumer waits by itself; else the stream's handle.
    ///     max_version: The newest version of DLPack that the consumer knows; ``None``: one without versions.
    ///     dl_device: The device that the consumer wants it on; only the memory's own.
    ///     copy: ``True`` is an error: an allocation does not copy itself.
    ///
    /// Raises:
    ///     BufferError: The allocation was freed, its pool's addresses are of no device that DLPack knows, or a copy
    ///         or another device was asked for.
    ///     ValueError: The stream is not one of the device.
    ///     RuntimeError: The driver failed.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory();
        let device = device(memory)?;
        if copy == Some(true) {
            return Err(PyBufferError::new_err(
                "copy=True: an allocation does not copy itself; copy what it gives",
            ));
        }
        if let Some((kind, index)) = dl_device.filter(|&(kind, index)| Device { kind, index } != device) {
            let Device { kind: own_kind, index: own_index } = device;
            return Err(PyBufferError::new_err(format!(
                "dl_device=({kind}, {index}): the memory is on ({own_kind}, {own_index}), and an allocation does not \
                 copy itself"
            )));
        }
        let stream = stream_argument(memory, stream)?;
        let view = View::new(memory, stream)?;
        if let Some(streams) = &memory.streams
            && stream.is_some()
        {
            streams.before_use(stream).map_err(|error| error.into_py_err(py))?;
        }
        if max_version.is_some_and(|(major, _)| major >= 1) {
            capsule::<Versioned>(py, view, device)
        } else {
            capsule::<Unversioned>(py, view, device)
        }
    }

    /// Return DLPack's type and index of the memory's device: ``(1, 0)`` for the host, ``(2, n)`` for CUDA device n.
    ///
    /// Raises:
    ///     BufferError: The pool's addresses are of no device that DLPack knows.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        device(self.memory()).map(|Device { kind, index }| (kind, index))
    }

    /// The memory of a CUDA device as an array of ``requested`` bytes, for CuPy, Numba, PyTorch and others.
    ///
    /// The consumer keeps the allocation alive; it does not prevent ``free()``, as DLPack does.
    ///
    /// Raises:
    ///     AttributeError: The memory is not that of a CUDA device.
    ///     BufferError: The allocation was freed.
    ///     RuntimeError: The driver failed.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.memory();
        let Some(streams) = &memory.streams else {
            return Err(PyAttributeError::new_err(
                "__cuda_array_interface__: the memory is not that of a CUDA device",
            ));
        };
        if memory.exports().is_retired() {
            return Err(PyBufferError::new_err("this allocation was freed"));
        }
        streams.before_use(Some(0)).map_err(|error| error.into_py_err(py))?;
        let interface = PyDict::new(py);
        interface.set_item("shape", (memory.inner().requested,))?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("data", (memory.address, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        // The legacy default stream.
        interface.set_item("stream", 1)?;
        Ok(interface)
    }
}

fn device(memory: &Memory) -> PyResult<Device> {
    if memory.on_host {
        return Ok(Device { kind: CPU, index: 0 });
    }
    let ordinal = memory.streams.as_ref().map(|streams| streams.ordinal());
    let ordinal = ordinal.ok_or_else(|| {
        PyBufferError::new_err(
            "this pool's addresses are of no device that DLPack knows: source='host' and 'cuda:0' have one",
        )
    })?;
    Ok(Device { kind: CUDA, index: i32::try_from(ordinal)? })
}

/// Converts DLPack's number of a stream into its handle; `None` if the consumer waits by itself.
fn stream_argument(memory: &Memory, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let Some(stream) = stream else { return Ok(Some(0)) };
    if memory.streams.is_none() {
        return Err(PyBufferError::new_err("stream: host memory has no streams, so it must be None"));
    }
    let number: i64 = stream
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("stream must be a whole number, not {stream}")))?;
    match number {
        -1 => Ok(None),
        0 => Err(PyValueError::new_err(
            "stream=0 is ambiguous, and DLPack forbids it: 1 is the legacy default stream, 2 that of the thread",
        )),
        _ => u64::try_from(number)
            .map(Some)
            .map_err(|_| PyValueError::new_err(format!("stream={number} is no stream"))),
    }
}
