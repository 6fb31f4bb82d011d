//! The one interpreter of the process that has this module, and letting go of its lock: the unsafe of it, and nothing
//! else.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

/// The number of the interpreter that a process starts with.
const MAIN: i64 = 0;

/// Number of the interpreter that imported this module, -1 before.
static OURS: AtomicI64 = AtomicI64::new(-1);

/// Takes the module for this interpreter: its classes are made once for the process, and an interpreter must not use
/// those of another.
///
/// # Errors
/// `ImportError` when another interpreter has it.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached, so there is a current interpreter.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if this < 0 {
        return Err(PyErr::fetch(py));
    }
    match OURS.compare_exchange(-1, this, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != this => Err(PyImportError::new_err(format!(
            "allotment was imported by interpreter {first} of this process, and one interpreter can have it: import \
             it in interpreter {this} of another process"
        ))),
        _ => Ok(()),
    }
}

/// Whether this is a second interpreter that the end of the process ends: a thread that lets go of the interpreter's
/// lock there never gets it back, be it for a file that is written.
pub(crate) fn ends_with_the_process(py: Python<'_>) -> bool {
    let is_finalizing = || py.import("sys")?.call_method0("is_finalizing")?.extract();
    OURS.load(Ordering::Relaxed) != MAIN && is_finalizing().unwrap_or(true)
}

/// Does something that may wait, without the interpreter's lock where that can be got back.
pub(crate) fn detach<T: Ungil>(py: Python<'_>, work: impl FnOnce() -> T + Ungil) -> T {
    if ends_with_the_process(py) { work() } else { py.detach(work) }
}
