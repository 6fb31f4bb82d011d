//! Requests of Python programs: the fast path, the slow path, and the details of refusals.

use std::sync::Arc;

use allotment::{AllocError, AllocationAttempt, GRANULE, Request};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::Pool;
use crate::allocation::{Allocation, address_argument};
use crate::error::IntoPyErr;
use crate::error::admission::admit_address;
use crate::interpreter::{detach, garbage};
use crate::pool::scope::Scope;
use crate::size::{size_argument, whole_number};
use crate::tag;

#[pymethods]
impl Pool {
    /// Allocate at least ``nbytes`` bytes.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give an allocation with address 0 and size 0.
    ///     alignment: What the address is a multiple of, in bytes: any power of two, 256 by default. Above
    ///         256 the memory in front of it stays free.
    ///
    /// Raises:
    ///     OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
    ///     MemoryDamageError: Guard mode found damage before; the next call goes on.
    ///     ValueError: A size or an alignment is out of range, or the pool is closed.
    #[pyo3(signature = (nbytes, *, alignment = None))]
    #[pyo3(text_signature = "(self, nbytes, *, alignment=256)")]
    fn allocate(
        &self,
        py: Python<'_>,
        nbytes: &Bound<'_, PyAny>,
        alignment: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Allocation> {
        let alignment = alignment.map_or(Ok(GRANULE), |value| whole_number(value, "alignment"))?;
        let inner = self.take(py, size_argument(nbytes, "nbytes")?, alignment)?;
        let streams = self.streams.clone();
        Ok(Allocation::new(Arc::clone(&self.core), inner, self.is_host_memory, streams))
    }

    /// Allocate at least ``nbytes`` bytes and return their address: the call with the least overhead.
    ///
    /// The caller keeps a reference to the pool and frees the address with ``free``.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give the address 0.
    ///
    /// Raises:
    ///     OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
    ///     MemoryDamageError: Guard mode found damage before; the next call goes on.
    ///     ValueError: The size is out of range, or the pool is closed.
    #[pyo3(signature = (nbytes))]
    fn malloc(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.take(py, size_argument(nbytes, "nbytes")?, GRANULE)?.address)
    }

    /// Free the allocation that starts at ``address``.
    ///
    /// Args:
    ///     address: The result of ``malloc``, or the ``address`` of an allocation. 0 does nothing.
    ///
    /// Raises:
    ///     InvalidFreeError: No live allocation starts there. Nothing has changed.
    ///     BufferError: A buffer or an array over it is alive, or NumPy has an array's data there.
    ///     MemoryDamageError: Guard mode found damage; the memory was freed nevertheless.
    #[pyo3(signature = (address))]
    fn free(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<()> {
        let address = address_argument(address)?;
        let freed = match self.flushed().try_free(address) {
            Ok(Some(())) => Ok(()),
            // Another thread holds the lock: wait without the interpreter's lock.
            Ok(None) => detach(py, || self.core.free(address)),
            Err(error) => Err(error),
        };
        freed.map_err(|error| error.into_py_err(py))
    }

    /// Return a context manager that counts what its block allocates, with an optional limit.
    ///
    /// Args:
    ///     name: The scope's name in reports.
    ///     limit: The most bytes that the scope may hold: a number, or a text such as ``"64MiB"``. ``None``
    ///         (default): no limit.
    ///     every_thread: Count the allocations of all threads, in scopes that they enter meanwhile, too; not those of a
    ///         thread in a scope that it entered before. By default those of this thread count.
    #[pyo3(signature = (name, *, limit = None, every_thread = false))]
    fn scope(
        &self,
        name: &Bound<'_, PyAny>,
        limit: Option<&Bound<'_, PyAny>>,
        every_thread: bool,
    ) -> PyResult<Scope> {
        let Ok(name) = name.extract::<String>() else {
            let kind = name.get_type().name()?;
            return Err(PyTypeError::new_err(format!("name must be a text, such as 'step', not {kind}")));
        };
        let limit = limit.map(|limit| size_argument(limit, "limit")).transpose()?;
        Ok(Scope::new(Arc::clone(&self.core), self.small_cache.clone(), name, limit, every_thread))
    }
}

/// Called before a refusal; returns whether to try again.
pub(super) type Retry<'a> = &'a mut dyn FnMut(&AllocationAttempt) -> bool;

impl Pool {
    /// Serves a request: attached on the fast path, detached on the slow path.
    pub(super) fn take(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        let take = || self.take_untagged(py, bytes, alignment);
        tag::with_owner(py, self.core.options().owner_tags, take)
    }

    fn take_untagged(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        admit_address(&self.core, self.admission(), bytes).map_err(|error| error.into_py_err(py))?;
        match self.core.try_allocate(Request::new(bytes).align(alignment)) {
            Ok(Some(allocation)) => Ok(allocation),
            Ok(None) => self.take_slow(py, bytes, alignment),
            Err(error) => Err(error.into_py_err(py)),
        }
    }

    #[cold]
    fn take_slow(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        let take = |retry: Retry<'_>| {
            self.flushed().allocate_with_retry(Request::new(bytes).align(alignment), retry)
        };
        self.retrying(py, take)?.map_err(|error| self.add_details(py, error).into_py_err(py))
    }

    /// Serves a request detached. The retries that it asks for are after a collection of garbage, or after other
    /// threads have freed memory.
    pub(super) fn retrying<T: Send>(
        &self,
        py: Python<'_>,
        take: impl FnOnce(Retry<'_>) -> T + Send,
    ) -> PyResult<T> {
        let mut wait = self.core.memory_wait();
        let (mut collected, mut collected_after_wait) = (false, false);
        let mut interrupt = None;
        let taken = detach(py, || {
            wait.await_turn();
            take(&mut |refused| {
                // Python garbage may hold memory, and other garbage after the wait.
                let done = if wait.is_over() { &mut collected_after_wait } else { &mut collected };
                let collect = !refused.cannot_succeed() && !std::mem::replace(done, true);
                if wait.is_over() {
                    self.garbage.expect_more();
                }
                if collect && self.collect_garbage() && self.core.freed_since(refused).unwrap_or(false) {
                    return true;
                }
                wait.should_retry(refused, || {
                    interrupt = look_around().err();
                    interrupt.is_some()
                })
            })
        });
        interrupt.map_or(Ok(taken), Err)
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

/// Lets Ctrl-C through, and frees what is left to this thread. A thread that outlives the interpreter does neither.
fn look_around() -> PyResult<()> {
    let look = |py: Python<'_>| {
        py.check_signals()?;
        garbage::free_what_is_left_to_this_thread(py)
    };
    Python::try_attach(look).unwrap_or(Ok(()))
}
