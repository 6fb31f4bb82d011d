//! Sizes as arguments: whole numbers, or texts such as `"3MiB"`.

use allotment::{Bytes, MAX_BYTES, SizeError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::error::message_text::show_value;

/// Converts an argument into a number of bytes; `what` names the argument in errors.
pub(crate) fn size_argument(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    // The usual case first.
    if value.is_exact_instance_of::<PyInt>() {
        return value.extract().map_err(|_| out_of_range(value, what, MAX_BYTES));
    }
    let Ok(text) = value.cast::<PyString>() else {
        return whole(value, what, "a whole number of bytes or a text such as '3MiB'", MAX_BYTES);
    };
    // A text with a lone surrogate is not UTF-8, so it is not a size.
    let size = text.to_str().map_or(Err(SizeError::Unreadable), allotment::parse_size);
    size.map_err(|error| PyValueError::new_err(format!("{what} {}: {error}", show_value(text))))
}

/// Converts an argument into a whole number without a unit: an address, an alignment.
pub(crate) fn whole_number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    whole(value, what, "a whole number", MAX_BYTES)
}

/// Converts an argument into a whole number that is no size: any of 64 bits.
pub(crate) fn number_argument(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    whole(value, what, "a whole number", u64::MAX)
}

/// `most` is for the text of the error alone.
fn whole(value: &Bound<'_, PyAny>, what: &str, wanted: &str, most: u64) -> PyResult<u64> {
    if value.is_exact_instance_of::<PyInt>() {
        return value.extract().map_err(|_| out_of_range(value, what, most));
    }
    let py = value.py();
    let not_a_number = || -> PyResult<u64> {
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!("{what} must be {wanted}, not {kind}: {}", show_value(value))))
    };
    // `True` is an integer in Python, but an error here.
    if value.is_instance_of::<PyBool>() {
        return not_a_number();
    }
    match py.import("operator")?.call_method1("index", (value,)) {
        Ok(number) => number.extract().map_err(|_| out_of_range(&number, what, most)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => not_a_number(),
        // An exception of the object's own `__index__`.
        Err(error) => Err(error),
    }
}

fn out_of_range(value: &Bound<'_, PyAny>, what: &str, most: u64) -> PyErr {
    PyValueError::new_err(format!("{what} must be between 0 and {most}, not {}", show_value(value)))
}

/// Return the bytes of a size such as ``4096``, ``"512KiB"``, ``"1.5GiB"`` or ``"2gb"``.
///
/// The results of ``format_size`` are sizes, too.
///
/// Raises:
///     ValueError: The value is not a size, is negative, or is above 2**63 - 256.
///     TypeError: The value is neither a whole number nor a text.
#[pyfunction]
#[pyo3(signature = (size, /))]
pub(crate) fn parse_size(size: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bytes = size_argument(size, "size")?;
    if bytes > MAX_BYTES { Err(out_of_range(size, "size", MAX_BYTES)) } else { Ok(bytes) }
}

/// Return a size as text for people: ``24 MiB``, ``1.51 GiB``, ``300 B``.
#[pyfunction]
#[pyo3(signature = (nbytes, /))]
pub(crate) fn format_size(nbytes: u64) -> String {
    Bytes(nbytes).to_string()
}
