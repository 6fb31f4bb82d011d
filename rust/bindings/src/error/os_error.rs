//! Errors of the operating system as Python has them: with its number, its own text, and the file.

use std::io;
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Returns the exception of a failed call of the operating system; `OSError` chooses its class by the number.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, path: Option<PathBuf>) -> PyErr {
    let Some(number) = error.raw_os_error() else { return PyOSError::new_err(error.to_string()) };
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,))?.extract::<String>());
    let text = text.unwrap_or_else(|_| error.to_string());
    PyOSError::new_err((number, text, path.map(PathBuf::into_os_string)))
}
