//! OpenCL's C interface: types, constants, and the table of functions, as in Khronos's `cl.h` of version 3.0.

use std::ffi::c_void;

use libloading::Library;

use crate::error::OpenClError;

/// `cl_int`: 0 is success.
pub(crate) type Status = i32;
/// A pointer that only OpenCL follows: `cl_context`, `cl_command_queue`, `cl_mem`, `cl_event`.
pub(crate) type Handle = *mut c_void;
/// The function that OpenCL calls when a buffer is destroyed.
pub(crate) type Destroyed = unsafe extern "C" fn(buffer: Handle, data: *mut c_void);

/// `cl_buffer_region`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Part {
    pub(crate) origin: usize,
    pub(crate) size: usize,
}

pub(crate) const SUCCESS: Status = 0;
/// `CL_INVALID_VALUE`.
pub(crate) const INVALID_VALUE: Status = -30;
/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`, `CL_OUT_OF_RESOURCES`, `CL_OUT_OF_HOST_MEMORY`, `CL_INVALID_BUFFER_SIZE`: the
/// last one where a buffer would be longer than the device allows.
pub(crate) const OUT_OF_MEMORY: [Status; 4] = [-4, -5, -6, -61];

/// `CL_MEM_READ_WRITE`.
pub(crate) const READ_WRITE: u64 = 1;
/// `CL_MEM_USE_HOST_PTR`.
pub(crate) const USE_HOST_PTR: u64 = 1 << 3;
/// `CL_BUFFER_CREATE_TYPE_REGION`.
pub(crate) const PART: u32 = 0x1220;
/// `CL_MEM_SVM_FINE_GRAIN_BUFFER`.
pub(crate) const FINE_GRAINED: u64 = 1 << 10;
/// `CL_CONTEXT_DEVICES`.
pub(crate) const CONTEXT_DEVICES: u32 = 0x1081;
/// `CL_DEVICE_MAX_MEM_ALLOC_SIZE`.
pub(crate) const LONGEST_ALLOCATION: u32 = 0x1010;
/// `CL_DEVICE_SVM_CAPABILITIES`.
pub(crate) const SVM_CAPABILITIES: u32 = 0x1053;
/// `CL_DEVICE_SVM_FINE_GRAIN_BUFFER`.
pub(crate) const SVM_FINE_GRAINED: u64 = 1 << 1;
/// `CL_QUEUE_CONTEXT`.
pub(crate) const QUEUE_CONTEXT: u32 = 0x1090;
/// `CL_QUEUE_PROPERTIES`.
pub(crate) const QUEUE_PROPERTIES: u32 = 0x1093;
/// `CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE`.
pub(crate) const OUT_OF_ORDER: u64 = 1;

/// Returns the name of an error in `cl.h`, of those that the functions below return.
pub(crate) fn name_of(code: Status) -> &'static str {
    match code {
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -13 => "CL_MISALIGNED_SUB_BUFFER_OFFSET",
        -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
        -30 => "CL_INVALID_VALUE",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -37 => "CL_INVALID_HOST_PTR",
        -38 => "CL_INVALID_MEM_OBJECT",
        -57 => "CL_INVALID_EVENT_WAIT_LIST",
        -58 => "CL_INVALID_EVENT",
        -59 => "CL_INVALID_OPERATION",
        -61 => "CL_INVALID_BUFFER_SIZE",
        _ => "an error of the driver",
    }
}

/// Declares a table of functions of a version of OpenCL, and how it is filled from a library.
macro_rules! table {
    (
        $(#[$documentation:meta])*
        $name:ident, $version:literal;
        $($field:ident = $symbol:literal($($argument:ty),*) -> $result:ty;)*
    ) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $name {
            /// Looks up every function, in the library and in those that it needs.
            ///
            /// # Safety
            /// The library is OpenCL or needs it, and stays loaded as long as the process lives.
            ///
            /// # Errors
            /// The first symbol that is missing.
            pub(crate) unsafe fn load(library: &Library, path: &str) -> Result<Self, OpenClError> {
                Ok(Self {
                    // SAFETY: the types are those of `cl.h`; the caller vouches for the library.
                    $($field: *unsafe { library.get($symbol.as_bytes()) }.map_err(|_| {
                        OpenClError::MissingSymbol {
                            path: path.to_owned(), symbol: $symbol, version: $version
                        }
                    })?,)*
                })
            }
        }
    };
}

table! {
    /// The functions that every OpenCL from 1.2 on has.
    Functions, "1.2";
    context_info = "clGetContextInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Status;
    device_info = "clGetDeviceInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Status;
    retain_context = "clRetainContext"(Handle) -> Status;
    release_context = "clReleaseContext"(Handle) -> Status;
    retain_queue = "clRetainCommandQueue"(Handle) -> Status;
    release_queue = "clReleaseCommandQueue"(Handle) -> Status;
    queue_info = "clGetCommandQueueInfo"(Handle, u32, usize, *mut c_void, *mut usize) -> Status;
    create_buffer = "clCreateBuffer"(Handle, u64, usize, *mut c_void, *mut Status) -> Handle;
    create_part = "clCreateSubBuffer"(Handle, u64, u32, *const Part, *mut Status) -> Handle;
    release_buffer = "clReleaseMemObject"(Handle) -> Status;
    on_destruction = "clSetMemObjectDestructorCallback"(Handle, Destroyed, *mut c_void) -> Status;
    write = "clEnqueueWriteBuffer"(
        Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> Status;
    marker = "clEnqueueMarkerWithWaitList"(Handle, u32, *const Handle, *mut Handle) -> Status;
    barrier = "clEnqueueBarrierWithWaitList"(Handle, u32, *const Handle, *mut Handle) -> Status;
    release_event = "clReleaseEvent"(Handle) -> Status;
    flush = "clFlush"(Handle) -> Status;
    finish = "clFinish"(Handle) -> Status;
}

table! {
    /// The functions of shared virtual memory, which OpenCL has from 2.0 on.
    SvmFunctions, "2.0";
    allocate = "clSVMAlloc"(Handle, u64, usize, u32) -> *mut c_void;
    free = "clSVMFree"(Handle, *mut c_void) -> ();
}
