//! Requests of Python programs: the fast path, the slow one, and what a refusal looks into.

use allotment::AllocError;
use pyo3::prelude::*;

use super::Pool;
use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::tag;
use crate::watched::admit_address;

impl Pool {
    /// Serves a request: attached on the fast path, detached on the slow one.
    pub(super) fn take(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        if self.core.options().owner_tags {
            return tag::with_line(py, || self.take_untagged(py, bytes, alignment));
        }
        self.take_untagged(py, bytes, alignment)
    }

    fn take_untagged(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        admit_address(&self.core, self.watch(), bytes).map_err(|error| error.into_py_err(py))?;
        match self.core.try_allocate(bytes, alignment) {
            Ok(Some(allocation)) => Ok(allocation),
            Ok(None) => self.take_slowly(py, bytes, alignment),
            Err(error) => Err(error.into_py_err(py)),
        }
    }

    #[cold]
    fn take_slowly(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        let mut patience = self.core.patience();
        let mut collected = false;
        let mut interrupt = None;
        let taken = detach(py, || {
            self.settled().allocate_or(bytes, alignment, |refused| {
                // Memory may be held by nothing but Python's own garbage.
                let collect = !refused.is_hopeless() && !std::mem::replace(&mut collected, true);
                if collect && self.collect_garbage() && self.core.freed_since(refused).unwrap_or(false) {
                    return true;
                }
                patience.again(refused, || {
                    interrupt = check_signals().err();
                    interrupt.is_some()
                })
            })
        });
        match interrupt {
            Some(error) => Err(error),
            None => taken.map_err(|error| self.look_into(py, error).into_py_err(py)),
        }
    }

    /// The error, with what the memory is used for if it is a refusal.
    pub(crate) fn look_into(&self, py: Python<'_>, mut error: AllocError) -> AllocError {
        if let AllocError::OutOfMemory(refused) = &mut error {
            // In a forked child the text goes without.
            let _ = detach(py, || self.core.look_into(refused));
        }
        error
    }
}

/// Lets Ctrl-C through. In a thread that outlives the interpreter there is none to let through.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
fn check_signals() -> PyResult<()> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
}
