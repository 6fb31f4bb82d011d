//! Requests of Python programs: the fast path, the slow path, and the details of refusals.

use allotment::AllocError;
use pyo3::prelude::*;

use super::Pool;
use crate::admission::admit_address;
use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::tag;

impl Pool {
    /// Serves a request: attached on the fast path, detached on the slow path.
    pub(super) fn take(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        if self.core.options().owner_tags {
            return tag::with_caller_line(py, || self.take_untagged(py, bytes, alignment));
        }
        self.take_untagged(py, bytes, alignment)
    }

    fn take_untagged(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        admit_address(&self.core, self.admission(), bytes).map_err(|error| error.into_py_err(py))?;
        match self.core.try_allocate(bytes, alignment) {
            Ok(Some(allocation)) => Ok(allocation),
            Ok(None) => self.take_slow(py, bytes, alignment),
            Err(error) => Err(error.into_py_err(py)),
        }
    }

    #[cold]
    fn take_slow(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        let mut wait = self.core.memory_wait();
        let mut collected = false;
        let mut interrupt = None;
        let taken = detach(py, || {
            self.flushed().allocate_with_retry(bytes, alignment, |refused| {
                // Python garbage may hold memory.
                let collect = !refused.cannot_succeed() && !std::mem::replace(&mut collected, true);
                if collect && self.collect_garbage() && self.core.freed_since(refused).unwrap_or(false) {
                    return true;
                }
                wait.should_retry(refused, || {
                    interrupt = check_signals().err();
                    interrupt.is_some()
                })
            })
        });
        match interrupt {
            Some(error) => Err(error),
            None => taken.map_err(|error| self.add_details(py, error).into_py_err(py)),
        }
    }

    /// Adds details to an out-of-memory error.
    pub(crate) fn add_details(&self, py: Python<'_>, mut error: AllocError) -> AllocError {
        if let AllocError::OutOfMemory(refused) = &mut error {
            // In a forked child the error has no details.
            let _ = detach(py, || self.core.add_details(refused));
        }
        error
    }
}

/// Lets Ctrl-C through. A thread that outlives the interpreter has no signals to check.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
fn check_signals() -> PyResult<()> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
}
