//! What frozen copies of data have in common: their fields by name, and how `pickle` makes them again.

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// What makes an object again, under every protocol of `pickle`: its class, and the arguments for it.
pub(crate) type Reduced<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>);

/// Reduces an object whose class takes its fields, in the order of `fields`.
pub(crate) fn reduced<'py, Class: PyTypeInfo>(fields: &Bound<'py, PyDict>) -> Reduced<'py> {
    (fields.py().get_type::<Class>(), fields.values().to_tuple())
}

/// An owner as a `repr` has it.
pub(crate) fn quoted(owner: Option<&str>) -> String {
    owner.map_or_else(|| "None".to_owned(), |owner| format!("{owner:?}"))
}
