//! Helpers of immutable data classes: their fields by name, and pickling.

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The class of an object and the arguments that recreate it, for every protocol of `pickle`.
pub(crate) type Reduced<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>);

/// Reduces an object whose constructor takes its fields in the order of `fields`.
pub(crate) fn reduced<'py, Class: PyTypeInfo>(fields: &Bound<'py, PyDict>) -> Reduced<'py> {
    (fields.py().get_type::<Class>(), fields.values().to_tuple())
}

/// Formats an owner for a `repr`.
pub(crate) fn quoted(owner: Option<&str>) -> String {
    owner.map_or_else(|| "None".to_owned(), |owner| format!("{owner:?}"))
}
