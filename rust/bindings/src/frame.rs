//! The line of Python that runs on this thread: the unsafe of it, and nothing else.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::{ffi, intern};

unsafe extern "C" {
    /// POSIX: the address of a function of this process by its name, null if there is none.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_DEFAULT`: look in everything that is loaded.
#[cfg(target_os = "macos")]
const EVERYWHERE: *mut c_void = std::ptr::without_provenance_mut(-2_isize as usize);
#[cfg(not(target_os = "macos"))]
const EVERYWHERE: *mut c_void = std::ptr::null_mut();

/// Does something with the interpreter if this thread is attached to it already; it never waits for that.
pub(crate) fn if_attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    type Check = unsafe extern "C" fn() -> c_int;
    // Not in the stable ABI, and exported by every CPython that has it.
    const CHECK: &CStr = c"PyGILState_Check";
    static FOUND: OnceLock<Option<Check>> = OnceLock::new();
    let check = *FOUND.get_or_init(|| {
        // SAFETY: a name that ends with 0.
        let check = unsafe { dlsym(EVERYWHERE, CHECK.as_ptr()) };
        // SAFETY: the function has had this type since Python 3.4.
        (!check.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Check>(check) })
    });
    // SAFETY: it may be called by any thread at any time.
    if unsafe { check?() } == 0 {
        return None;
    }
    Python::try_attach(work)
}

/// The innermost frame of Python on this thread.
pub(crate) fn innermost(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: attached; a borrowed reference to a frame, or null where no Python runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// The code that a frame runs.
pub(crate) fn code<'py>(frame: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: attached; `frame` is a frame, and a frame always has a code, which comes as a new reference.
    unsafe { Bound::from_owned_ptr(frame.py(), ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) }
}

/// The file of a code.
pub(crate) fn file(code: &Bound<'_, PyAny>) -> PyResult<String> {
    code.getattr(intern!(code.py(), "co_filename"))?.extract()
}

/// The line that a frame runs, 0 if it has none.
pub(crate) fn line(frame: &Bound<'_, PyAny>) -> u32 {
    // SAFETY: attached, and `frame` is a frame.
    u32::try_from(unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) }).unwrap_or(0)
}
