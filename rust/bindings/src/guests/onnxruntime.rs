//! The shared CPU allocator of ONNX Runtime's environment.
//!
//! ONNX Runtime hands its C API to libraries of custom operators: this module is loaded as one, without any operator. An
//! allocator reports a refusal as a C++ exception, which ONNX Runtime turns into its status `FAIL`; a null pointer would
//! end the process. The exception is thrown by a function of the C++ library, through frames without destructors.
//!
//! Slots and structures are of `onnxruntime_c_api.h`, whose binary interface only ever grows.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use allotment_sync::PerProcess;
use libloading::os::unix::Library;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::memory::{Guest, last_refusal};

/// The version of the API: that of ONNX Runtime 1.23. In older versions the environment of the Python module cannot be
/// reached.
const API_VERSION: u32 = 23;
/// The version of the structure `OrtAllocator`, which has no optional function yet.
const ALLOCATOR_VERSION: u32 = 20;

const GET_ERROR_MESSAGE: usize = 2;
const CREATE_ENV: usize = 3;
const CREATE_MEMORY_INFO: usize = 68;
const RELEASE_STATUS: usize = 93;
const REGISTER_ALLOCATOR: usize = 176;
const UNREGISTER_ALLOCATOR: usize = 177;

const LOGGING_LEVEL_WARNING: c_int = 2;
const DEVICE_ALLOCATOR: c_int = 0;
const MEMORY_TYPE_DEFAULT: c_int = 0;

/// The alignment of ONNX Runtime's own CPU allocator is 64 bytes or less.
const ALIGNMENT: usize = 64;

/// A function of the table; each slot has a type of its own.
type Slot = *const c_void;
type Status = *mut c_void;
type Throw = unsafe extern "C-unwind" fn(*const c_char) -> !;

/// `OrtApiBase`.
#[repr(C)]
pub(crate) struct ApiBase {
    get_api: unsafe extern "C" fn(u32) -> *const Slot,
    get_version: unsafe extern "C" fn() -> *const c_char,
}

/// `OrtAllocator` up to `reserve`, and what its functions need.
#[repr(C)]
struct Allocator {
    version: u32,
    alloc: unsafe extern "C-unwind" fn(*mut Allocator, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut Allocator, *mut c_void),
    info: unsafe extern "C" fn(*const Allocator) -> *const c_void,
    reserve: unsafe extern "C-unwind" fn(*mut Allocator, usize) -> *mut c_void,
    guest: &'static Guest,
    memory_info: *const c_void,
    throw: Throw,
}

/// ONNX Runtime's functions and objects, which live as long as the process.
struct Runtime {
    api: Api,
    env: *mut c_void,
    memory_info: *const c_void,
    throw: Throw,
    /// One for each guest that was registered. Never freed: sessions keep them.
    allocators: Vec<&'static Allocator>,
}

// SAFETY: any thread may use ONNX Runtime's functions and objects.
unsafe impl Send for Runtime {}
// SAFETY: as above; an allocator is never changed.
unsafe impl Sync for Allocator {}

/// The functions that `RegisterCustomOps` received, or the reason why they cannot be used.
enum Found {
    NotYet,
    Runtime(Runtime),
    Unusable(String),
}

/// Per process: a thread that a forked child does not have may hold the lock.
static FOUND: PerProcess<Mutex<Found>> =
    PerProcess::new(Mutex::new(Found::NotYet), || Mutex::new(Found::NotYet));

fn found() -> MutexGuard<'static, Found> {
    FOUND.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Found {
    fn runtime(&mut self) -> PyResult<&mut Runtime> {
        match self {
            Self::Runtime(runtime) => Ok(runtime),
            Self::NotYet => {
                Err(PyRuntimeError::new_err("ONNX Runtime did not pass its functions to allotment"))
            }
            Self::Unusable(reason) => Err(PyRuntimeError::new_err(reason.clone())),
        }
    }
}

/// The entry point of a library of custom operators: keeps the API that ONNX Runtime hands to it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RegisterCustomOps(_options: *mut c_void, base: *const ApiBase) -> Status {
    let mut found = found();
    if !matches!(*found, Found::Runtime(_)) {
        // SAFETY: ONNX Runtime passes its table of functions.
        *found = unsafe { Runtime::open(&*base) }.map_or_else(Found::Unusable, Found::Runtime);
    }
    ptr::null_mut()
}

/// Makes a guest the shared CPU allocator of the environment.
///
/// # Errors
/// If ONNX Runtime has not called `RegisterCustomOps`, or refuses the allocator.
pub(super) fn register(guest: &'static Guest) -> PyResult<()> {
    let mut found = found();
    let runtime = found.runtime()?;
    let allocator = ptr::from_ref(runtime.allocator(guest));
    // SAFETY: the slot's type as in the header; the environment and the allocator live as long as the process.
    let status = unsafe {
        let register: unsafe extern "C" fn(*mut c_void, *const Allocator) -> Status =
            runtime.api.function(REGISTER_ALLOCATOR);
        register(runtime.env, allocator)
    };
    runtime.api.check(status).map_err(PyRuntimeError::new_err)
}

/// Removes the shared CPU allocator of the environment.
///
/// # Errors
/// If there is none.
pub(super) fn unregister() -> PyResult<()> {
    let mut found = found();
    let runtime = found.runtime()?;
    // SAFETY: the slot's type as in the header; both objects live as long as the process.
    let status = unsafe {
        let unregister: unsafe extern "C" fn(*mut c_void, *const c_void) -> Status =
            runtime.api.function(UNREGISTER_ALLOCATOR);
        unregister(runtime.env, runtime.memory_info)
    };
    runtime.api.check(status).map_err(PyRuntimeError::new_err)
}

impl Runtime {
    /// Finds what is needed.
    ///
    /// # Errors
    /// If the version is too old, or the C++ library is another one.
    unsafe fn open(base: &ApiBase) -> Result<Self, String> {
        // SAFETY: functions of the table, and slots of the types in the header.
        unsafe {
            let version = CStr::from_ptr((base.get_version)()).to_string_lossy();
            let throw = find_throw().map_err(|error| {
                format!("ONNX Runtime {version} with another C++ library than libstdc++ cannot use a pool: {error}")
            })?;
            let api = Api::new((base.get_api)(API_VERSION))
                .ok_or_else(|| format!("ONNX Runtime {version} cannot use a pool: 1.23 or newer can"))?;
            let create_env: unsafe extern "C" fn(c_int, *const c_char, *mut *mut c_void) -> Status =
                api.function(CREATE_ENV);
            let create_memory_info: unsafe extern "C" fn(
                *const c_char,
                c_int,
                c_int,
                c_int,
                *mut *const c_void,
            ) -> Status = api.function(CREATE_MEMORY_INFO);
            // There is one environment in a process: this is a reference to it.
            let (mut env, mut memory_info) = (ptr::null_mut(), ptr::null());
            api.check(create_env(LOGGING_LEVEL_WARNING, c"allotment".as_ptr(), &raw mut env))?;
            let status = create_memory_info(
                c"Cpu".as_ptr(),
                DEVICE_ALLOCATOR,
                0,
                MEMORY_TYPE_DEFAULT,
                &raw mut memory_info,
            );
            api.check(status)?;
            Ok(Self { api, env, memory_info, throw, allocators: Vec::new() })
        }
    }

    /// Returns the allocator of a guest; creates it at the first call.
    fn allocator(&mut self, guest: &'static Guest) -> &'static Allocator {
        if let Some(known) = self.allocators.iter().find(|allocator| ptr::eq(allocator.guest, guest)) {
            return known;
        }
        let allocator: &'static Allocator = Box::leak(Box::new(Allocator {
            version: ALLOCATOR_VERSION,
            alloc,
            free,
            info,
            reserve: alloc,
            guest,
            memory_info: self.memory_info,
            throw: self.throw,
        }));
        self.allocators.push(allocator);
        allocator
    }
}

/// `OrtApi`: a table of functions.
struct Api(ptr::NonNull<Slot>);

impl Api {
    fn new(table: *const Slot) -> Option<Self> {
        ptr::NonNull::new(table.cast_mut()).map(Self)
    }

    /// Returns the function in a slot.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the slot's function.
    unsafe fn function<F: Copy>(&self, slot: usize) -> F {
        // SAFETY: guaranteed by the caller; all slots used here are older than that version.
        unsafe { self.0.add(slot).cast::<F>().read() }
    }

    /// Turns a status into an error with its text, and releases it.
    fn check(&self, status: Status) -> Result<(), String> {
        if status.is_null() {
            return Ok(());
        }
        // SAFETY: slots of the types in the header; the status is an error that only this function has.
        unsafe {
            let message: unsafe extern "C" fn(Status) -> *const c_char = self.function(GET_ERROR_MESSAGE);
            let release: unsafe extern "C" fn(Status) = self.function(RELEASE_STATUS);
            let text = CStr::from_ptr(message(status)).to_string_lossy().into_owned();
            release(status);
            Err(format!("ONNX Runtime: {text}"))
        }
    }
}

/// Returns the function of the C++ library that throws a `std::runtime_error`.
///
/// # Errors
/// If there is no such library.
fn find_throw() -> Result<Throw, libloading::Error> {
    // SAFETY: the library is loaded already, or runs no code that depends on this process. It is never closed.
    unsafe {
        let library = std::mem::ManuallyDrop::new(Library::new("libstdc++.so.6")?);
        library.get::<Throw>(c"_ZSt21__throw_runtime_errorPKc").map(|throw| *throw)
    }
}

/// Allocates, or throws a C++ exception with the pool's report.
///
/// # Safety
/// `allocator` is one of [`Runtime::allocator`]. The caller is C++.
unsafe extern "C-unwind" fn alloc(allocator: *mut Allocator, bytes: usize) -> *mut c_void {
    // SAFETY: guaranteed by the caller. Nothing here has a destructor that the exception would skip.
    unsafe {
        let data = (*allocator).guest.allocate(bytes, ALIGNMENT);
        if data.is_null() {
            ((*allocator).throw)(last_refusal());
        }
        data
    }
}

unsafe extern "C" fn free(allocator: *mut Allocator, data: *mut c_void) {
    // SAFETY: ONNX Runtime passes the allocator's own data, once.
    unsafe { (*allocator).guest.free(data) };
}

unsafe extern "C" fn info(allocator: *const Allocator) -> *const c_void {
    // SAFETY: ONNX Runtime passes an allocator that was registered.
    unsafe { (*allocator).memory_info }
}
