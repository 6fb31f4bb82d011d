//! The reason of the last refused array on each thread: NumPy's `MemoryError` cannot carry it.

use std::cell::RefCell;

use allotment::{AllocError, Pool, Unusable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::tag::running_line;

thread_local! {
    static LAST: RefCell<Option<FailedArrayRequest>> = const { RefCell::new(None) };
}

/// An array request that a pool refused, with the report of that moment.
pub(super) struct FailedArrayRequest {
    pool: String,
    error: AllocError,
    /// File and line of the running Python code, where the `MemoryError` is raised.
    line: Option<(String, u32)>,
}

/// Stores the reason of a refusal for this thread.
pub(super) fn store(pool: &Pool, error: AllocError) {
    // A forked child is refused for each array and uses NumPy's own memory instead.
    let forked = matches!(error, AllocError::Unusable(Unusable::Forked));
    let line = if forked { None } else { running_line() };
    let refused = FailedArrayRequest { pool: pool.options().name.clone(), error, line };
    // Thread-local storage is gone at the very end of a thread.
    let _ = LAST.try_with(|last| last.replace(Some(refused)));
}

/// Removes and returns this thread's last refusal; with a line, only if it happened there.
pub(super) fn take(at: Option<&(String, u32)>) -> Option<FailedArrayRequest> {
    LAST.with(|last| {
        let there = last
            .borrow()
            .as_ref()
            .is_some_and(|refused| at.is_none() || refused.line.is_none() || refused.line.as_ref() == at);
        if there { last.take() } else { None }
    })
}

/// Clears a refusal that the fallback resolved.
pub(super) fn clear() {
    let _ = LAST.try_with(RefCell::take);
}

impl IntoPyErr for FailedArrayRequest {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let Self { pool, error, .. } = self;
        let error = match error {
            AllocError::Unusable(Unusable::Closed) => PyValueError::new_err(format!(
                "pool {pool:?} is closed, and NumPy's arrays are still made in it: call \
                 allotment.integrations.numpy.uninstall(), or leave the use() block, before the pool is closed; then \
                 install another pool, if arrays are to be in one",
            )),
            error => error.into_py_err(py),
        };
        match error.value(py).setattr("pool", pool) {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }
}
