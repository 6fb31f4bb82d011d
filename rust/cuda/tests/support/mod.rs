//! A driver of the test's own: a copy of the stand-in, with the functions that tests alone call.

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use allotment::source::Grant;
use allotment_cuda::Driver;
use libloading::Library;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const UNKNOWN: c_uint = 999;
pub(crate) const OUT_OF_MEMORY: c_uint = 2;

/// What was taken from the driver and not given back; all 0 at the end of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Outstanding {
    pub(crate) allocations: u64,
    pub(crate) ranges: u64,
    pub(crate) handles: u64,
    pub(crate) mappings: u64,
    pub(crate) contexts: u64,
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

pub(crate) struct StandIn {
    library: Library,
    path: PathBuf,
}

impl StandIn {
    /// Opens a new driver with devices of 64 MiB and a granularity of 2 MiB.
    pub(crate) fn new(devices: u64) -> Self {
        Self::with(devices, 64 * MIB, true)
    }

    pub(crate) fn with(devices: u64, memory: u64, has_virtual_memory: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Cargo builds it beside the tests, as they depend on its crate.
        let name = format!(
            "{}allotment_cuda_stand_in{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        );
        let built = std::env::current_exe().unwrap().with_file_name(&name);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{}-{number}-{name}", std::process::id()));
        std::fs::copy(&built, &path).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
        // SAFETY: the library is ours.
        let library = unsafe { Library::new(&path) }.unwrap();
        let stand_in = Self { library, path };
        let configure: unsafe extern "C" fn(u64, u64, u64, c_uint) = stand_in.function("standInConfigure");
        // SAFETY: numbers only.
        unsafe { configure(devices, memory, 2 * MIB, has_virtual_memory.into()) };
        stand_in
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub(crate) fn driver(&self) -> Driver {
        Driver::open(Some(self.path())).unwrap()
    }

    /// Lets the `nth` call from now on fail; 0 for none.
    pub(crate) fn fail_at(&self, nth: u64, status: c_uint) {
        let fail_at: unsafe extern "C" fn(u64, c_uint) = self.function("standInFailAt");
        // SAFETY: numbers only.
        unsafe { fail_at(nth, status) };
    }

    pub(crate) fn calls(&self) -> u64 {
        let calls: unsafe extern "C" fn() -> u64 = self.function("standInCalls");
        // SAFETY: no arguments.
        unsafe { calls() }
    }

    /// Returns the name of the call that failed as ordered.
    pub(crate) fn failed(&self) -> Option<String> {
        let failed: unsafe extern "C" fn() -> *const c_char = self.function("standInFailed");
        // SAFETY: no arguments.
        let name = unsafe { failed() };
        // SAFETY: a name of the library, with a 0 at its end.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned())
    }

    pub(crate) fn outstanding(&self) -> Outstanding {
        let outstanding: unsafe extern "C" fn(*mut Outstanding) = self.function("standInOutstanding");
        let mut found = Outstanding::default();
        // SAFETY: the pointer is to a local variable.
        unsafe { outstanding(&raw mut found) };
        found
    }

    /// Makes the context of a device current to this thread, as a program does that uses CUDA itself.
    pub(crate) fn enter_context(&self, device: c_int) -> *mut c_void {
        let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_uint =
            self.function("cuDevicePrimaryCtxRetain");
        let push: unsafe extern "C" fn(*mut c_void) -> c_uint = self.function("cuCtxPushCurrent_v2");
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable; the context was retained.
        unsafe {
            assert_eq!(retain(&raw mut context, device), 0);
            assert_eq!(push(context), 0);
        }
        context
    }

    pub(crate) fn current_context(&self) -> *mut c_void {
        let current: unsafe extern "C" fn(*mut *mut c_void) -> c_uint = self.function("cuCtxGetCurrent");
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        assert_eq!(unsafe { current(&raw mut context) }, 0);
        context
    }

    pub(crate) fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the types are those of the stand-in's own functions.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // The mapping of the file stays.
        std::fs::remove_file(&self.path).unwrap();
    }
}

/// Returns the memory behind a span of a stand-in's device.
pub(crate) fn bytes_at(span: Grant) -> &'static mut [u8] {
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(span.address).unwrap());
    // SAFETY: the test holds the span and makes one slice of it at a time.
    unsafe { std::slice::from_raw_parts_mut(start, usize::try_from(span.bytes).unwrap()) }
}
