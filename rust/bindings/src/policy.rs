//! Split policies as arguments: by name.

use allotment::Policy;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The policy that an argument names.
pub(crate) fn policy_argument(name: &Bound<'_, PyAny>) -> PyResult<Policy> {
    let Ok(text) = name.cast::<PyString>() else {
        let kind = name.get_type().name()?;
        return Err(PyTypeError::new_err(format!("policy must be 'tensorflow' or 'tight', not {kind}")));
    };
    text.to_str()?.parse().map_err(|error: allotment::PolicyError| PyValueError::new_err(error.to_string()))
}
