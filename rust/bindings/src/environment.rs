//! The environment variables that every pool obeys. Those about devices are read by `devices/settings.py`.

use std::env;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Whether a variable switches something on: `1` does; unset, empty or `0` does not.
///
/// # Errors
/// For any other value.
pub(crate) fn switch(name: &str) -> PyResult<bool> {
    match env::var_os(name).as_ref().map(|value| value.to_string_lossy()).as_deref() {
        None | Some("" | "0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(PyValueError::new_err(format!("{name}={other} is neither 0 nor 1"))),
    }
}
