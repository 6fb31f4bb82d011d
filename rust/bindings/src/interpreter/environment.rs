//! Environment variables of all pools. `devices/environment/settings.py` reads those of devices.

use std::env;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::message_text::show_value;

/// Returns whether a variable is switched on: `1` is on; unset, empty or `0` is off.
///
/// # Errors
/// For any other value.
pub(crate) fn switch(py: Python<'_>, name: &str) -> PyResult<bool> {
    Ok(optional_switch(py, name)?.unwrap_or(false))
}

/// Returns a whole number; `None` if unset or empty.
///
/// # Errors
/// For any other value.
pub(crate) fn number(py: Python<'_>, name: &str) -> PyResult<Option<usize>> {
    match env::var_os(name).as_ref().map(|value| value.to_string_lossy()).as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let shown = show_value(PyString::new(py, text).as_any());
            PyValueError::new_err(format!("{name}={shown} is not a whole number of 0 or more"))
        }),
    }
}

/// Returns the state of a switch: `1` is on, `0` is off; `None` if unset or empty.
///
/// # Errors
/// For any other value.
pub(crate) fn optional_switch(py: Python<'_>, name: &str) -> PyResult<Option<bool>> {
    match env::var_os(name).as_ref().map(|value| value.to_string_lossy()).as_deref() {
        None | Some("") => Ok(None),
        Some("0") => Ok(Some(false)),
        Some("1") => Ok(Some(true)),
        Some(other) => {
            let shown = show_value(PyString::new(py, other).as_any());
            Err(PyValueError::new_err(format!("{name}={shown} is neither 0 nor 1")))
        }
    }
}
