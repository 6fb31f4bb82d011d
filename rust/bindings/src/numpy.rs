//! NumPy's memory handlers (NEP 49) over pools.
//!
//! `numpy_api` finds NumPy's functions, `handler` implements the handler of one context, `process_wide` the handler
//! of all threads, `memory` their operations on a pool, `small_cache` the cache of small data, and `last_error` keeps
//! the reason of the last refusal. None of the functions that NumPy calls waits for the interpreter.

use std::sync::Arc;

use allotment::bindings::PoolForBindings as _;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::IntoPyErr;
use crate::pool::Pool;
use crate::size::whole_number;
use memory::Backend;
use numpy_api::NumpyApi;

pub(crate) use small_cache::{PoolSmallCache, WeakPoolSmallCache};

mod abi;
mod handler;
mod last_error;
mod memory;
mod numpy_api;
mod process_wide;
mod small_cache;

/// A NumPy memory handler (NEP 49) over a pool, for a context of ``contextvars`` or the whole process.
///
/// The data of an array goes back to the pool when the array is collected, on any thread; until then it keeps the
/// pool alive.
///
/// Args:
///     pool: The pool that holds the data.
///     keeps_small_data: Keep some data of small arrays that were collected, for the next ones. Every query of the
///         pool counts such data as free; its peaks and its number of allocations may include it. False by default.
///     serves_forked_children: In a forked child, which cannot use the pool, give out NumPy's own memory instead of
///         refusing. False by default.
///
/// Raises:
///     ValueError: The pool's memory is not memory of this process.
///     ImportError: NumPy is missing, or too old for memory handlers.
///     RuntimeError: NumPy's memory handlers have an unknown version.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct ArrayMemory {
    capsule: Py<PyCapsule>,
    backend: Backend,
    numpy_api: &'static NumpyApi,
}

#[pymethods]
impl ArrayMemory {
    #[new]
    #[pyo3(signature = (pool, *, keeps_small_data = false, serves_forked_children = false))]
    fn new(
        py: Python<'_>,
        pool: &Bound<'_, Pool>,
        keeps_small_data: bool,
        serves_forked_children: bool,
    ) -> PyResult<Self> {
        let pool = pool.get();
        if !pool.is_host_memory() {
            return Err(PyValueError::new_err(
                "arrays need memory of this process: the pool must have source='host' or HostMemory",
            ));
        }
        let numpy_api = NumpyApi::find(py)?;
        let in_child = serves_forked_children.then(|| *numpy_api.original());
        let small_cache = if keeps_small_data { pool.small_cache().get(pool.core()) } else { None };
        let backend =
            Backend { pool: Arc::clone(pool.core()), small_cache, admission: pool.admission().cloned() };
        let capsule = handler::capsule(py, backend.clone(), in_child)?;
        Ok(Self { capsule, backend, numpy_api })
    }

    /// Put the data of later arrays of the current context into the pool; return the former handler.
    fn install<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy_api.set(self.capsule.bind(py).as_any())
    }

    /// Make a handler that ``install`` returned the current context's again.
    ///
    /// Raises:
    ///     ValueError: ``former`` is not a handler.
    #[staticmethod]
    fn restore(former: &Bound<'_, PyAny>) -> PyResult<()> {
        NumpyApi::find(former.py())?.set(former).map(drop)
    }

    /// Return whether the data of an array starts at ``address`` in the pool.
    fn holds(&self, address: &Bound<'_, PyAny>) -> PyResult<bool> {
        let address = whole_number(address, "address")?;
        Ok(self.backend.pool.is_held(address).unwrap_or(false))
    }

    /// Put the data of arrays of every context without a handler of its own into the pool.
    ///
    /// The pool then lives as long as the process.
    ///
    /// Raises:
    ///     RuntimeError: Another pool serves the process, or NumPy's default handler cannot be replaced.
    fn install_process_wide(&self, py: Python<'_>) -> PyResult<()> {
        if process_wide::serve(py, self.numpy_api, &self.backend)? {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "NumPy's arrays are in a pool already, in the whole process: uninstall() first",
        ))
    }

    /// End ``install_process_wide`` for new arrays; return whether it was in effect.
    #[staticmethod]
    fn stop_process_wide(py: Python<'_>) -> PyResult<bool> {
        // Without a serving pool NumPy is not needed.
        if process_wide::is_serving() { process_wide::stop(py, NumpyApi::find(py)?) } else { Ok(false) }
    }

    /// Return why a pool last refused memory to an array on this thread, once for each refusal.
    ///
    /// The attribute ``pool`` of the exception is the pool's name.
    ///
    /// Args:
    ///     at: File name and line number. Given, the answer is ``None`` unless the array was to be made there, as
    ///         far as that is known.
    #[staticmethod]
    #[pyo3(signature = (at = None))]
    #[expect(clippy::needless_pass_by_value, reason = "made for this call, of what Python passes")]
    fn take_refusal(py: Python<'_>, at: Option<(String, u32)>) -> Option<PyErr> {
        last_error::take(at.as_ref()).map(|refused| refused.into_py_err(py))
    }
}
