//! The opened driver: each function of the table as a method that returns a `Result`, and never in a forked child.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::Library;

use crate::error::CudaError;
use crate::sys::{self, Address, Context, Device, Functions, Status, StreamIdentity, Uuid, VirtualFunctions};

mod copies;
mod streams;
mod virtual_memory;

pub(crate) use virtual_memory::VirtualMemory;

/// The driver's library on Linux. `libcuda.so` without a number is a link or a stub of the development kit.
pub const DRIVER_LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// The process that initialized a driver; 0 if none did.
static INITIALIZED_BY: AtomicU32 = AtomicU32::new(0);

/// The CUDA driver of this process. Clones share it.
///
/// Nothing is closed at the end: a driver that was initialized has threads of its own.
#[derive(Debug, Clone)]
pub struct Driver(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    functions: Functions,
    /// `None` if the driver is too old for them.
    virtual_functions: Option<VirtualFunctions>,
    /// `None` if the driver is too old for it.
    stream_identity: Option<StreamIdentity>,
    process: u32,
}

impl Driver {
    /// Opens and initializes the driver: `library`, a path or a name for the system's search, or [`DRIVER_LIBRARY`].
    ///
    /// # Errors
    /// If there is no such library, it is no CUDA driver, or it cannot be initialized; also in a child of a process that
    /// had initialized one.
    pub fn open(library: Option<&str>) -> Result<Self, CudaError> {
        let process = process::id();
        check_process(INITIALIZED_BY.load(Ordering::Acquire), process)?;
        let path = library.unwrap_or(DRIVER_LIBRARY);
        // SAFETY: the library is the machine's driver, or one that the user names to stand in for it.
        let opened = unsafe { Library::new(path) };
        let opened = opened
            .map_err(|error| CudaError::NotFound { path: path.to_owned(), reason: system_text(&error) })?;
        // SAFETY: as above; the library is never unloaded, see below.
        let functions = unsafe { Functions::load(&opened, path) }?;
        // SAFETY: as above.
        let virtual_functions = unsafe { VirtualFunctions::load(&opened, path) }.ok();
        // SAFETY: as above.
        let stream_identity = unsafe { StreamIdentity::load(&opened, path) }.ok();
        std::mem::forget(opened);
        let driver = Self(Arc::new(Opened { functions, virtual_functions, stream_identity, process }));
        // Before the call, during which another thread may fork.
        let before = INITIALIZED_BY.swap(process, Ordering::AcqRel);
        // SAFETY: 0 is the only accepted argument.
        let initialized = driver.call("cuInit", || unsafe { (functions.init)(0) });
        if initialized.is_err() {
            INITIALIZED_BY.store(before, Ordering::Release);
        }
        match initialized {
            // A machine with the driver and without a GPU: it lists no device.
            Err(CudaError::Call { code: sys::NO_DEVICE, .. }) | Ok(()) => Ok(driver),
            Err(error) => Err(error),
        }
    }

    /// Returns the version of CUDA that the driver supports, major and minor.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn version(&self) -> Result<(u32, u32), CudaError> {
        let mut version: c_int = 0;
        let Functions { driver_version, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDriverGetVersion", || unsafe { driver_version(&raw mut version) })?;
        let version = version.unsigned_abs();
        Ok((version / 1000, version % 1000 / 10))
    }

    /// Returns an error in a process that was forked from the one that opened the driver.
    pub(crate) fn check_process(&self) -> Result<(), CudaError> {
        check_process(self.0.process, process::id())
    }

    /// Returns the number of devices, after `CUDA_VISIBLE_DEVICES`.
    pub(crate) fn device_count(&self) -> Result<u32, CudaError> {
        let mut count: c_int = 0;
        let Functions { device_count, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        match self.call("cuDeviceGetCount", || unsafe { device_count(&raw mut count) }) {
            // `cuInit` has answered this where there is no device, and left the driver uninitialized.
            Err(CudaError::Call { code: sys::NO_DEVICE | sys::NOT_INITIALIZED, .. }) => Ok(0),
            Err(error) => Err(error),
            Ok(()) => Ok(count.unsigned_abs()),
        }
    }

    pub(crate) fn device(&self, ordinal: c_int) -> Result<Device, CudaError> {
        let mut found: Device = 0;
        let Functions { device, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDeviceGet", || unsafe { device(&raw mut found, ordinal) })?;
        Ok(found)
    }

    pub(crate) fn device_name(&self, device: Device) -> Result<String, CudaError> {
        let Functions { device_name, .. } = self.0.functions;
        // SAFETY: `text` passes a buffer and its length.
        self.text("cuDeviceGetName", |text, length| unsafe { device_name(text, length, device) })
    }

    pub(crate) fn device_pci_bus_id(&self, device: Device) -> Result<String, CudaError> {
        let Functions { device_pci_bus_id, .. } = self.0.functions;
        // SAFETY: `text` passes a buffer and its length.
        self.text("cuDeviceGetPCIBusId", |text, length| unsafe { device_pci_bus_id(text, length, device) })
    }

    pub(crate) fn device_memory(&self, device: Device) -> Result<u64, CudaError> {
        let mut bytes = 0_usize;
        let Functions { device_memory, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDeviceTotalMem_v2", || unsafe { device_memory(&raw mut bytes, device) })?;
        Ok(bytes as u64)
    }

    pub(crate) fn device_uuid(&self, device: Device) -> Result<[u8; 16], CudaError> {
        let mut uuid = Uuid::default();
        let Functions { device_uuid, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDeviceGetUuid_v2", || unsafe { device_uuid(&raw mut uuid, device) })?;
        Ok(uuid.bytes)
    }

    pub(crate) fn device_attribute(&self, attribute: c_uint, device: Device) -> Result<c_int, CudaError> {
        let mut value: c_int = 0;
        let Functions { device_attribute, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDeviceGetAttribute", || unsafe { device_attribute(&raw mut value, attribute, device) })?;
        Ok(value)
    }

    pub(crate) fn retain_context(&self, device: Device) -> Result<Context, CudaError> {
        let mut context = Context(std::ptr::null_mut());
        let Functions { retain_context, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuDevicePrimaryCtxRetain", || unsafe { retain_context(&raw mut context, device) })?;
        Ok(context)
    }

    pub(crate) fn release_context(&self, device: Device) -> Result<(), CudaError> {
        let Functions { release_context, .. } = self.0.functions;
        // SAFETY: numbers only.
        self.call("cuDevicePrimaryCtxRelease_v2", || unsafe { release_context(device) })
    }

    pub(crate) fn push_context(&self, context: Context) -> Result<(), CudaError> {
        let Functions { push_context, .. } = self.0.functions;
        // SAFETY: the caller has retained the context.
        self.call("cuCtxPushCurrent_v2", || unsafe { push_context(context) })
    }

    pub(crate) fn pop_context(&self) -> Result<(), CudaError> {
        let mut popped = Context(std::ptr::null_mut());
        let Functions { pop_context, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuCtxPopCurrent_v2", || unsafe { pop_context(&raw mut popped) })
    }

    pub(crate) fn current_context(&self) -> Result<Context, CudaError> {
        let mut current = Context(std::ptr::null_mut());
        let Functions { current_context, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuCtxGetCurrent", || unsafe { current_context(&raw mut current) })?;
        Ok(current)
    }

    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        let Functions { synchronize, .. } = self.0.functions;
        // SAFETY: no arguments.
        self.call("cuCtxSynchronize", || unsafe { synchronize() })
    }

    /// Returns the greatest and the least stream priority of the current context.
    pub(crate) fn priority_range(&self) -> Result<(i32, i32), CudaError> {
        let (mut least, mut greatest): (c_int, c_int) = (0, 0);
        let Functions { priority_range, .. } = self.0.functions;
        // SAFETY: the pointers are to local variables.
        self.call("cuCtxGetStreamPriorityRange", || unsafe {
            priority_range(&raw mut least, &raw mut greatest)
        })?;
        Ok((greatest, least))
    }

    /// Returns free and total bytes of the current context's device.
    pub(crate) fn current_memory_info(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0_usize, 0_usize);
        let Functions { memory_info, .. } = self.0.functions;
        // SAFETY: the pointers are to local variables.
        self.call("cuMemGetInfo_v2", || unsafe { memory_info(&raw mut free, &raw mut total) })?;
        Ok((free as u64, total as u64))
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<Address, CudaError> {
        let mut address: Address = 0;
        let Functions { allocate, .. } = self.0.functions;
        // SAFETY: the pointer is to a local variable.
        self.call("cuMemAlloc_v2", || unsafe { allocate(&raw mut address, bytes) })?;
        Ok(address)
    }

    pub(crate) fn free(&self, address: Address) -> Result<(), CudaError> {
        let Functions { free, .. } = self.0.functions;
        // SAFETY: the caller owns the memory at the address.
        self.call("cuMemFree_v2", || unsafe { free(address) })
    }

    /// Returns the functions of virtual memory management, if the driver has them.
    pub(crate) fn virtual_memory(&self) -> Option<VirtualMemory<'_>> {
        self.0.virtual_functions.map(|functions| VirtualMemory::new(self, functions))
    }

    /// Calls a function of the driver, unless this process is a forked child.
    fn call(&self, name: &'static str, function: impl FnOnce() -> Status) -> Result<(), CudaError> {
        self.check_process()?;
        match function() {
            sys::SUCCESS => Ok(()),
            status => Err(self.describe(name, status)),
        }
    }

    /// Calls a function that writes a text into a buffer.
    fn text(
        &self,
        name: &'static str,
        function: impl FnOnce(*mut c_char, c_int) -> Status,
    ) -> Result<String, CudaError> {
        const LENGTH: u8 = 255;
        // One byte more, which stays 0.
        let mut text = [0_u8; LENGTH as usize + 1];
        self.call(name, || function(text.as_mut_ptr().cast(), c_int::from(LENGTH)))?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Ok(text.to_string_lossy().trim().to_owned())
    }

    fn describe(&self, call: &'static str, code: Status) -> CudaError {
        let Functions { error_name, error_string, .. } = self.0.functions;
        let look_up = |function: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the pointer is to a local variable.
            let known = unsafe { function(code, &raw mut text) } == sys::SUCCESS && !text.is_null();
            // SAFETY: the driver's texts are constants that end with a 0.
            known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = look_up(error_name).unwrap_or_else(|| "an unknown error".to_owned());
        let text = look_up(error_string).unwrap_or_else(|| "the driver has no text for it".to_owned());
        CudaError::Call { call, code, name, text }
    }
}

fn check_process(initialized_by: u32, process: u32) -> Result<(), CudaError> {
    if initialized_by == 0 || initialized_by == process { Ok(()) } else { Err(CudaError::Forked) }
}

/// Returns the system's words about a library that was not opened.
fn system_text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
