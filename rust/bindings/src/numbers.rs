//! Columns of whole numbers, which Python passes as buffers.

use pyo3::buffer::{Element as _, PyBuffer, PyUntypedBuffer};
use pyo3::prelude::*;

/// A buffer of 64-bit whole numbers. One without numbers may be at any address, as those of empty arrays are.
pub(crate) struct Numbers(Option<PyBuffer<i64>>);

impl<'py> FromPyObject<'_, 'py> for Numbers {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&value)?;
        let is_empty = buffer.item_count() == 0
            && buffer.item_size() == size_of::<i64>()
            && i64::is_compatible_format(buffer.format());
        Ok(Self(if is_empty { None } else { Some(buffer.into_typed()?) }))
    }
}

impl Numbers {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |buffer| buffer.item_count())
    }

    pub(crate) fn to_vec(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        self.0.as_ref().map_or(Ok(Vec::new()), |buffer| buffer.to_vec(py))
    }

    /// Writes as many numbers as there are into the buffer.
    ///
    /// # Errors
    /// If it is read-only, or has another length.
    pub(crate) fn write(&self, py: Python<'_>, numbers: &[i64]) -> PyResult<()> {
        self.0.as_ref().map_or(Ok(()), |buffer| buffer.copy_from_slice(py, numbers))
    }
}
