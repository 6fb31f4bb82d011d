//! Split policies as arguments.

use allotment::Policy;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::message_text::show_value;

/// Converts an argument into a policy.
pub(crate) fn policy_argument(name: &Bound<'_, PyAny>) -> PyResult<Policy> {
    let Ok(text) = name.cast::<PyString>() else {
        let kind = name.get_type().name()?;
        return Err(PyTypeError::new_err(format!("policy must be 'tensorflow' or 'tight', not {kind}")));
    };
    // A text with a lone surrogate is not UTF-8, so it names no policy.
    text.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        PyValueError::new_err(format!("policy {} is neither 'tensorflow' nor 'tight'", show_value(name)))
    })
}
