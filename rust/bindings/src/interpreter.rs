//! The interpreter that owns this module, and releasing its lock: only the unsafe code for it.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

pub(crate) mod environment;
pub(crate) mod fork;
pub(crate) mod frame;
pub(crate) mod garbage;

/// The number of the main interpreter.
const MAIN: i64 = 0;

/// Number of the interpreter that imported this module, -1 before the import.
static CLAIMED_BY: AtomicI64 = AtomicI64::new(-1);

/// Claims the module for this interpreter: its classes exist once per process and must not be shared between
/// interpreters.
///
/// # Errors
/// `ImportError` if another interpreter has claimed it.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached, so there is a current interpreter.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if this < 0 {
        return Err(PyErr::fetch(py));
    }
    match CLAIMED_BY.compare_exchange(-1, this, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != this => Err(PyImportError::new_err(format!(
            "allotment was imported by interpreter {first} of this process, and one interpreter can have it: import \
             it in interpreter {this} of another process"
        ))),
        _ => Ok(()),
    }
}

/// Returns whether this is a subinterpreter at the end of the process: a thread that releases its lock there never
/// gets it back, not even for file output.
pub(crate) fn ends_with_the_process(py: Python<'_>) -> bool {
    let is_finalizing = || py.import("sys")?.call_method0("is_finalizing")?.extract();
    CLAIMED_BY.load(Ordering::Relaxed) != MAIN && is_finalizing().unwrap_or(true)
}

/// Runs `work`, which may wait, without the interpreter's lock if that can be reacquired.
pub(crate) fn detach<T: Ungil>(py: Python<'_>, work: impl FnOnce() -> T + Ungil) -> T {
    if ends_with_the_process(py) { work() } else { py.detach(work) }
}
