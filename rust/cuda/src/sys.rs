//! The driver's C interface: types, constants, and the table of functions, as in NVIDIA's `cuda.h` of version 13.
//!
//! Names and layouts were compared with the bindings that `cudarc` generates from that header.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use crate::error::CudaError;

/// `CUresult`: 0 is success.
pub(crate) type Status = c_uint;
/// `CUdevice`: a device's ordinal, after the mask.
pub(crate) type Device = c_int;
/// `CUdeviceptr`: an address of device memory.
pub(crate) type Address = c_ulonglong;
/// `CUmemGenericAllocationHandle`: physical memory without an address.
pub(crate) type Handle = c_ulonglong;

/// `CUcontext`: a pointer that only the driver follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: the driver allows every thread to make a context current; nothing here follows the pointer.
unsafe impl Send for Context {}

/// `CUstream`: a pointer that only the driver follows; some small numbers are streams, too.
pub(crate) type Stream = *mut c_void;

/// `CUevent`: a pointer that only the driver follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Event(pub(crate) *mut c_void);

// SAFETY: the driver allows every thread to use an event; nothing here follows the pointer.
unsafe impl Send for Event {}

/// `CUuuid`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Uuid {
    pub(crate) bytes: [u8; 16],
}

/// `CUmemLocation`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Location {
    pub(crate) kind: c_uint,
    pub(crate) id: c_int,
}

/// `CUmemAllocationProp`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct AllocationProperties {
    pub(crate) kind: c_uint,
    pub(crate) requested_handle_types: c_uint,
    pub(crate) location: Location,
    pub(crate) win32_handle_meta_data: *mut c_void,
    pub(crate) compression_type: u8,
    pub(crate) gpu_direct_rdma_capable: u8,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 4],
}

/// `CUmemAccessDesc`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct AccessDescription {
    pub(crate) location: Location,
    pub(crate) flags: c_uint,
}

const _: () = assert!(size_of::<AllocationProperties>() == 32, "CUmemAllocationProp has 32 bytes");
const _: () = assert!(size_of::<AccessDescription>() == 12, "CUmemAccessDesc has 12 bytes");

pub(crate) const SUCCESS: Status = 0;
pub(crate) const OUT_OF_MEMORY: Status = 2;
/// The process is ending, and the driver has ended before.
pub(crate) const DEINITIALIZED: Status = 4;
pub(crate) const NOT_INITIALIZED: Status = 3;
/// The status of `cuInit` and `cuDeviceGetCount` where the driver is installed and no GPU is there or left by the mask.
pub(crate) const NO_DEVICE: Status = 100;
/// The work before an event is not done.
pub(crate) const NOT_READY: Status = 600;
pub(crate) const NOT_SUPPORTED: Status = 801;

pub(crate) const COMPUTE_CAPABILITY_MAJOR: c_uint = 75;
pub(crate) const COMPUTE_CAPABILITY_MINOR: c_uint = 76;
pub(crate) const VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: c_uint = 102;

const PINNED: c_uint = 1;
const LOCATION_DEVICE: c_uint = 1;
const READ_WRITE: c_uint = 3;
pub(crate) const GRANULARITY_MINIMUM: c_uint = 0;
/// `CU_EVENT_DISABLE_TIMING`: events that only order work are cheaper.
pub(crate) const WITHOUT_TIMING: c_uint = 2;

impl Location {
    fn of(device: Device) -> Self {
        Self { kind: LOCATION_DEVICE, id: device }
    }
}

impl AllocationProperties {
    /// Memory on a device that is not shared with other processes.
    pub(crate) fn of(device: Device) -> Self {
        Self {
            kind: PINNED,
            requested_handle_types: 0,
            location: Location::of(device),
            win32_handle_meta_data: std::ptr::null_mut(),
            compression_type: 0,
            gpu_direct_rdma_capable: 0,
            usage: 0,
            reserved: [0; 4],
        }
    }
}

impl AccessDescription {
    /// Reads and writes by a device.
    pub(crate) fn read_write(device: Device) -> Self {
        Self { location: Location::of(device), flags: READ_WRITE }
    }
}

/// Declares a table of functions, and how it is filled from a library.
macro_rules! table {
    ($(#[$about:meta])* $table:ident { $($field:ident = $symbol:literal($($argument:ty),*);)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $table {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl $table {
            /// Looks up every function.
            ///
            /// # Safety
            /// The library is a CUDA driver, and stays loaded as long as the process lives.
            ///
            /// # Errors
            /// The first symbol that is missing.
            pub(crate) unsafe fn load(library: &Library, path: &str) -> Result<Self, CudaError> {
                Ok(Self {
                    // SAFETY: the types are those of `cuda.h`; the caller vouches for the library.
                    $($field: *unsafe { library.get($symbol.as_bytes()) }.map_err(|_| {
                        CudaError::MissingSymbol { path: path.to_owned(), symbol: $symbol }
                    })?,)*
                })
            }
        }
    };
}

table! {
    /// The functions that every driver has. The suffixes are parts of the names: the bare ones are older forms.
    Functions {
        init = "cuInit"(c_uint);
        driver_version = "cuDriverGetVersion"(*mut c_int);
        error_name = "cuGetErrorName"(Status, *mut *const c_char);
        error_string = "cuGetErrorString"(Status, *mut *const c_char);
        device_count = "cuDeviceGetCount"(*mut c_int);
        device = "cuDeviceGet"(*mut Device, c_int);
        device_name = "cuDeviceGetName"(*mut c_char, c_int, Device);
        device_memory = "cuDeviceTotalMem_v2"(*mut usize, Device);
        device_uuid = "cuDeviceGetUuid_v2"(*mut Uuid, Device);
        device_pci_bus_id = "cuDeviceGetPCIBusId"(*mut c_char, c_int, Device);
        device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_uint, Device);
        retain_context = "cuDevicePrimaryCtxRetain"(*mut Context, Device);
        release_context = "cuDevicePrimaryCtxRelease_v2"(Device);
        push_context = "cuCtxPushCurrent_v2"(Context);
        pop_context = "cuCtxPopCurrent_v2"(*mut Context);
        current_context = "cuCtxGetCurrent"(*mut Context);
        synchronize = "cuCtxSynchronize"();
        priority_range = "cuCtxGetStreamPriorityRange"(*mut c_int, *mut c_int);
        memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
        allocate = "cuMemAlloc_v2"(*mut Address, usize);
        free = "cuMemFree_v2"(Address);
        copy_to_host = "cuMemcpyDtoH_v2"(*mut c_void, Address, usize);
        copy_from_host = "cuMemcpyHtoD_v2"(Address, *const c_void, usize);
        create_event = "cuEventCreate"(*mut Event, c_uint);
        destroy_event = "cuEventDestroy_v2"(Event);
        record_event = "cuEventRecord"(Event, Stream);
        query_event = "cuEventQuery"(Event);
        wait_event = "cuStreamWaitEvent"(Stream, Event, c_uint);
    }
}

table! {
    /// The function that tells streams apart whose handles are equal: drivers from CUDA 12 on have it.
    StreamIdentity {
        stream_id = "cuStreamGetId"(Stream, *mut c_ulonglong);
    }
}

table! {
    /// The functions of virtual memory management: drivers from CUDA 10.2 on have them.
    VirtualFunctions {
        reserve_addresses = "cuMemAddressReserve"(*mut Address, usize, usize, Address, c_ulonglong);
        free_addresses = "cuMemAddressFree"(Address, usize);
        create = "cuMemCreate"(*mut Handle, usize, *const AllocationProperties, c_ulonglong);
        release = "cuMemRelease"(Handle);
        map = "cuMemMap"(Address, usize, usize, Handle, c_ulonglong);
        unmap = "cuMemUnmap"(Address, usize);
        set_access = "cuMemSetAccess"(Address, usize, *const AccessDescription, usize);
        granularity = "cuMemGetAllocationGranularity"(*mut usize, *const AllocationProperties, c_uint);
    }
}
