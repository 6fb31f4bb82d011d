//! Why a handler returned null last: NumPy's `MemoryError` has no room for it.

use std::cell::RefCell;

use allotment::{AllocError, Pool, Unusable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::tag::running_line;

thread_local! {
    static LAST: RefCell<Option<RefusedArray>> = const { RefCell::new(None) };
}

/// A request of NumPy's that a pool refused, with the report of that moment.
pub(super) struct RefusedArray {
    pool: String,
    error: AllocError,
    /// File and line of the Python that ran: what the `MemoryError` was raised at.
    line: Option<(String, u32)>,
}

/// Keeps why a pool refused memory, on this thread.
pub(super) fn keep(pool: &Pool, error: AllocError) {
    // A forked child is refused for each array, and has NumPy's own memory instead.
    let forked = matches!(error, AllocError::Unusable(Unusable::Forked));
    let line = if forked { None } else { running_line() };
    let refused = RefusedArray { pool: pool.options().name.clone(), error, line };
    // At a thread's very end there is nowhere to keep it.
    let _ = LAST.try_with(|last| last.replace(Some(refused)));
}

/// Why a pool refused memory last, on this thread; asked once for each refusal. With a line, only if it was there.
pub(super) fn take(at: Option<&(String, u32)>) -> Option<RefusedArray> {
    LAST.with(|last| {
        let there = last
            .borrow()
            .as_ref()
            .is_some_and(|refused| at.is_none() || refused.line.is_none() || refused.line.as_ref() == at);
        if there { last.take() } else { None }
    })
}

/// Forgets a refusal that was not one in the end.
pub(super) fn forget() {
    let _ = LAST.try_with(RefCell::take);
}

impl IntoPyErr for RefusedArray {
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
