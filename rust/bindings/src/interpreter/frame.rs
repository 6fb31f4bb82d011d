//! Access to the Python frame of this thread: only the unsafe code for it.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::{ffi, intern};

unsafe extern "C" {
    /// POSIX: returns the address of a symbol of this process, null if there is none.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_DEFAULT`: search all loaded objects.
#[cfg(target_os = "macos")]
const RTLD_DEFAULT: *mut c_void = std::ptr::without_provenance_mut(-2_isize as usize);
#[cfg(not(target_os = "macos"))]
const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();

/// Runs `work` with the interpreter if this thread is already attached to it; never waits to attach.
pub(crate) fn if_attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    type Check = unsafe extern "C" fn() -> c_int;
    // Not in the stable ABI, but exported by every CPython that supports it.
    const CHECK: &CStr = c"PyGILState_Check";
    static FOUND: OnceLock<Option<Check>> = OnceLock::new();
    let check = *FOUND.get_or_init(|| {
        // SAFETY: the name is null-terminated.
        let check = unsafe { dlsym(RTLD_DEFAULT, CHECK.as_ptr()) };
        // SAFETY: the function has had this type since Python 3.4.
        (!check.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Check>(check) })
    });
    // SAFETY: any thread may call it at any time.
    if unsafe { check?() } == 0 {
        return None;
    }
    Python::try_attach(work)
}

/// Returns the innermost Python frame of this thread.
pub(crate) fn innermost(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: attached; returns a borrowed reference to a frame, or null if no Python code runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// Returns the code object of a frame.
pub(crate) fn code<'py>(frame: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: attached; `frame` is a frame, which always has a code object, returned as a new reference.
    unsafe { Bound::from_owned_ptr(frame.py(), ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) }
}

/// Returns the file name of a code object.
pub(crate) fn file(code: &Bound<'_, PyAny>) -> PyResult<String> {
    code.getattr(intern!(code.py(), "co_filename"))?.extract()
}

/// Returns the current line of a frame, 0 if it has none.
pub(crate) fn line(frame: &Bound<'_, PyAny>) -> u32 {
    // SAFETY: attached, and `frame` is a frame.
    u32::try_from(unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) }).unwrap_or(0)
}
