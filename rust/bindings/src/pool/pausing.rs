//! Methods of `Pool` that give memory back and fetch it again.

use std::path::PathBuf;

use allotment::{PauseError, PausedContent};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::Pool;
use crate::error::IntoPyErr;
use crate::error::os_error::os_error;
use crate::guard;
use crate::interpreter::detach;
use crate::size::size_argument;

#[pymethods]
impl Pool {
    /// Give free memory back to the source, and return its bytes.
    ///
    /// These are all wholly free regions, or all free pages of an elastic pool.
    ///
    /// Args:
    ///     target: Stop when at most this many bytes are reserved: bytes, or a text such as ``"1GiB"``. ``None``
    ///         (default): 0. A pool that is not elastic gives back all wholly free regions if it has more than that.
    ///
    /// Raises:
    ///     MemoryDamageError: Guard mode found damage in freed memory; the regions went back nevertheless.
    ///     RuntimeError: The source did not take some pages of an elastic pool. What it took is gone.
    #[pyo3(signature = (*, target = None))]
    fn trim(&self, py: Python<'_>, target: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let target = target.map(|bytes| size_argument(bytes, "target")).transpose()?;
        let released = detach(py, || match target {
            Some(bytes) => self.flushed().trim_to(bytes),
            None => self.flushed().trim(),
        });
        let released = released.map_err(|error| error.into_py_err(py))?;
        guard::raise_damage(py, &self.core)?;
        Ok(released)
    }

    /// Give all memory of an elastic pool back, allocations included, and return its bytes. The addresses stay.
    ///
    /// Nothing may use the allocations until ``resume()``. Meanwhile requests are refused with ``RuntimeError``; frees
    /// and ``close()`` work. Pausing again does nothing and returns 0.
    ///
    /// Args:
    ///     keep: What happens to the content of the allocations. ``"host"`` (default): it is copied to memory of the
    ///         process outside of the pool. A path: it is written to a new file that only its owner may open, which
    ///         belongs to the pool until ``resume()`` and replaces a file at the path as the last step. ``None``: it
    ///         is lost, and may be after an error, too.
    ///
    /// Raises:
    ///     ValueError: The pool is not elastic, or is closed.
    ///     OSError: The file could not be written, or could not be read back as it is a device such as ``/dev/null``.
    ///         The pool is not paused, and a file at the path is as it was.
    ///     MemoryError: The process has no memory for the content. The pool is not paused.
    ///     RuntimeError: The source failed. The pool is not paused, unless the source did not return what it had taken:
    ///         then ``paused`` is true and the content is kept.
    #[pyo3(signature = (*, keep = Some(PathBuf::from("host"))), text_signature = "($self, *, keep='host')")]
    fn pause(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = path_argument)] keep: Option<PathBuf>,
    ) -> PyResult<u64> {
        let content = match keep {
            None => PausedContent::Discard,
            Some(path) if path.as_os_str() == "host" => PausedContent::Memory,
            Some(path) => PausedContent::Path(path),
        };
        let paused = detach(py, || self.flushed().pause(content));
        paused.map_err(|error| error.into_py_err(py))
    }

    /// Fetch the memory of a paused pool back, at the same addresses and with the kept content; return its bytes.
    ///
    /// Does nothing if the pool is not paused.
    ///
    /// Raises:
    ///     MemoryError: The source has too little memory. The pool stays paused, and the content is kept.
    ///     OSError: The content could not be read back. The pool stays paused.
    ///     RuntimeError: The source failed. The pool stays paused.
    fn resume(&self, py: Python<'_>) -> PyResult<u64> {
        detach(py, || self.flushed().resume()).map_err(|error| error.into_py_err(py))
    }

    /// Whether the pool is paused.
    #[getter]
    fn paused(&self, py: Python<'_>) -> PyResult<bool> {
        detach(py, || self.core.is_paused()).map_err(|error| error.into_py_err(py))
    }
}

impl IntoPyErr for PauseError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let text = self.to_string();
        match self {
            Self::NotElastic => PyValueError::new_err(
                "pool.pause() needs an elastic pool: this one was made without elastic=True",
            ),
            Self::Content { error, .. } => match error.raw_os_error() {
                Some(number) => PyOSError::new_err((number, text)),
                None => PyOSError::new_err(text),
            },
            // The text names the path; an error of the system has it as an attribute.
            Self::File { error, .. } if error.raw_os_error().is_none() => PyOSError::new_err(text),
            Self::File { path, error } => os_error(py, &error, Some(path)),
            Self::NoMemory { .. } | Self::NoMemoryForContent { .. } => {
                pyo3::exceptions::PyMemoryError::new_err(text)
            }
            Self::Unusable(unusable) => unusable.into_py_err(py),
            _ => PyRuntimeError::new_err(text),
        }
    }
}

/// Converts a path as the functions of Python do: a text, bytes, or an object that has one of them.
fn path_argument(value: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if value.is_none() {
        return Ok(None);
    }
    value.py().import("os")?.call_method1("fsdecode", (value,))?.extract().map(Some)
}
