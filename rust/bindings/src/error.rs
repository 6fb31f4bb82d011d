//! Exception classes, and the conversion of the core's errors into exceptions.

use std::fmt;
use std::sync::Arc;

use allotment::{
    AllocError, Damage, FreeError, LimitError, MAX_WAIT, OptionsError, OutOfMemory, SourceFailure, TrimError,
    Unusable,
};
use allotment_cuda::CudaError;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyBufferError, PyException, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::report::advice::advice_of;
use crate::report::explanation;

pub(crate) mod admission;
pub(crate) mod message_text;
pub(crate) mod os_error;

pyo3::create_exception!(
    allotment,
    OutOfMemoryError,
    PyMemoryError,
    r#"A pool refused a request: no free chunk fits, and its limit or its source has no more.

All figures are of the moment of the refusal. ``str()`` of the error is a report of at most 25 lines.

Attributes:
    requested (int): Bytes of the request.
    limit (int): The most bytes that the pool may reserve.
    limit_set_by (str): The setting that decided the limit.
    live_requested (int): Bytes requested by the allocations that are live.
    in_use (int): Bytes of the chunks in use.
    internal_fragmentation (int): Bytes lost inside chunks, ``in_use - live_requested``.
    reserved (int): Bytes of all regions.
    free (int): Free bytes in the regions, ``reserved - in_use``.
    largest_free (int): Bytes of the largest free chunk, 0 if there is none; in an elastic pool of the largest
        request that its memory serves.
    num_live (int): Number of live allocations.
    verdict (str): The reason. ``"full"``: the bytes in use and the request together exceed the limit.
        ``"fragmented"``: enough is free, in pieces that are too small. ``"slack"``: enough would be free
        without the bytes lost inside chunks. ``"limit"``: the request alone exceeds the limit. ``"source"``:
        the limit allows the request, the source refused it. ``"scope"``: the limit of a scope does not allow
        it.
    scope (str | None): The scope whose limit does not allow the request, after the scopes around it; ``None``
        for other verdicts.
    advice (tuple[Advice, ...]): Changes that make the request succeed, the most useful first.
    suggestion (str): The advice in one sentence; empty if there is none.
    by_size (tuple[SizeGroup, ...]): The allocations that take most, grouped by size, the largest first; at most
        four.
    by_owner (tuple[OwnerGroup, ...]): The owners that hold most, the largest first; at most four, and empty in
        a pool without ``owner_tags``.
    splitter (Splitter | None): The allocation between the largest free chunks, if there is one."#
);
pyo3::create_exception!(
    allotment,
    InvalidFreeError,
    PyValueError,
    "An address is not the start of a live allocation: it was freed before, or never handed out.

The pool is unharmed."
);

pyo3::create_exception!(
    allotment,
    MemoryDamageError,
    PyRuntimeError,
    r#"A program wrote before an allocation, past its end, or into it after its free. Only guard mode finds this.

Attributes:
    place (str): ``"before"``, ``"behind"`` or ``"freed"``.
    address (int): First byte of the allocation.
    requested (int): Bytes that were requested.
    id (int): Number of the allocation.
    offset (int): Distance of the first damaged byte from ``address``, negative before it."#
);

/// An exception raised by a source written in Python, wrapped for the core.
#[derive(Debug)]
pub(crate) struct PythonError(PyErr);

impl PythonError {
    pub(crate) fn failure(error: PyErr) -> SourceFailure {
        Arc::new(Self(error))
    }
}

impl fmt::Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for PythonError {}

/// Converts an error of the core into the exception that fits Python's conventions.
pub(crate) trait IntoPyErr {
    fn into_py_err(self, py: Python<'_>) -> PyErr;
}

impl IntoPyErr for CudaError {
    fn into_py_err(self, _py: Python<'_>) -> PyErr {
        let text = self.to_string();
        match self {
            Self::NoSuchDevice { .. } | Self::NoVirtualMemory { .. } => PyValueError::new_err(text),
            _ => PyRuntimeError::new_err(text),
        }
    }
}

impl IntoPyErr for AllocError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let text = self.to_string();
        match self {
            Self::OutOfMemory(refused) => out_of_memory(py, text, &refused),
            Self::SourceFailed { failure, refused } => source_failed(py, text, &failure, &refused),
            Self::TooLarge { .. } | Self::BadAlignment { .. } => PyValueError::new_err(text),
            Self::Damaged(damage) => damage.into_py_err(py),
            Self::Unusable(unusable) => unusable.into_py_err(py),
            // An invalid grant is a fault of the source, not of the caller.
            _ => PyRuntimeError::new_err(text),
        }
    }
}

impl IntoPyErr for FreeError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Unusable(unusable) => unusable.into_py_err(py),
            Self::Damaged(damage) => damage.into_py_err(py),
            Self::Pinned { address } => PyBufferError::new_err(format!(
                "the allocation at address {address:#x} has a buffer or an array over it: drop that first"
            )),
            _ => InvalidFreeError::new_err(self.to_string()),
        }
    }
}

impl IntoPyErr for Damage {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let error = new_error::<MemoryDamageError>(py, self.to_string());
        let Self { place, address, requested, id, offset } = self;
        let value = error.value(py);
        let set = value
            .setattr("place", place.as_str())
            .and_then(|()| value.setattr("address", address))
            .and_then(|()| value.setattr("requested", requested))
            .and_then(|()| value.setattr("id", id))
            .and_then(|()| value.setattr("offset", offset));
        match set {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }
}

impl IntoPyErr for Unusable {
    fn into_py_err(self, _py: Python<'_>) -> PyErr {
        match self {
            // As for a closed file.
            Self::Closed => PyValueError::new_err(self.to_string()),
            Self::Forked => PyRuntimeError::new_err(format!("{self}, or start the child with spawn")),
            _ => PyRuntimeError::new_err(self.to_string()),
        }
    }
}

impl IntoPyErr for LimitError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Unusable(unusable) => unusable.into_py_err(py),
            Self::SourceFailed { .. } => PyRuntimeError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoPyErr for TrimError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Unusable(unusable) => unusable.into_py_err(py),
            _ => PyRuntimeError::new_err(self.to_string()),
        }
    }
}

impl IntoPyErr for OptionsError {
    fn into_py_err(self, _py: Python<'_>) -> PyErr {
        PyValueError::new_err(match self {
            Self::Wait { wait } => {
                format!("wait_seconds {} is not between 0 and {}", wait.as_secs_f64(), MAX_WAIT.as_secs())
            }
            _ => self.to_string(),
        })
    }
}

/// Creates an exception object eagerly. A lazy exception would release the interpreter's lock when its value is read,
/// which an ending interpreter never gets back.
fn new_error<T: PyTypeInfo>(py: Python<'_>, text: String) -> PyErr {
    match py.get_type::<T>().call1((text,)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

fn out_of_memory(py: Python<'_>, text: String, refused: &OutOfMemory) -> PyErr {
    let error = new_error::<OutOfMemoryError>(py, text);
    let figures = [
        ("requested", refused.requested),
        ("limit", refused.limit),
        ("live_requested", refused.live_requested),
        ("in_use", refused.in_use),
        ("internal_fragmentation", refused.internal_fragmentation),
        ("reserved", refused.reserved),
        ("free", refused.free),
        ("largest_free", refused.largest_free),
        ("num_live", refused.num_live),
    ];
    let value = error.value(py);
    let set = || {
        figures.iter().try_for_each(|&(name, figure)| value.setattr(name, figure))?;
        let details = refused.details.as_deref();
        value.setattr("verdict", refused.verdict.as_str())?;
        value.setattr("limit_set_by", &*refused.limit_set_by)?;
        value.setattr("scope", refused.scope_limit.as_ref().map(|capped| &capped.name))?;
        value.setattr("advice", advice_of(py, &refused.advice)?)?;
        value.setattr("suggestion", refused.suggestion())?;
        value.setattr("by_size", explanation::by_size(py, details)?)?;
        value.setattr("by_owner", explanation::by_owner(py, details)?)?;
        value.setattr("splitter", explanation::splitter(details))
    };
    match set() {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

fn source_failed(py: Python<'_>, text: String, failure: &SourceFailure, refused: &OutOfMemory) -> PyErr {
    let Some(PythonError(raised)) = failure.downcast_ref() else { return out_of_memory(py, text, refused) };
    if !raised.is_instance_of::<PyException>(py) {
        // Ctrl-C or an exit is not a failure of the source and passes unchanged.
        return raised.clone_ref(py);
    }
    let error = out_of_memory(py, text, refused);
    error.set_cause(py, Some(raised.clone_ref(py)));
    error
}
