//! NumPy's memory handlers (NEP 49) over pools, as Python sees them: convert, call, convert back.
//!
//! `door` finds NumPy's functions, `handler` is the handler of one context, `process_wide` that of every thread,
//! `memory` what both do with a pool, `small` what they keep back, and `refused` why a pool refused. None of the functions
//! that NumPy calls waits for the interpreter.

use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::IntoPyErr;
use crate::pool::Pool;
use crate::size::whole_number;
use door::Door;
use memory::Home;

pub(crate) use small::{SmallOf, WeakSmallOf};

mod abi;
mod door;
mod handler;
mod memory;
mod process_wide;
mod refused;
mod small;

/// A handler over a pool, to be installed in a context (of `contextvars`), or for the whole process.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct ArrayMemory {
    capsule: Py<PyCapsule>,
    home: Home,
    door: &'static Door,
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
        let door = Door::find(py)?;
        let in_child = serves_forked_children.then(|| *door.original());
        let small = if keeps_small_data { pool.small().get(pool.core()) } else { None };
        let home = Home { pool: Arc::clone(pool.core()), small, watch: pool.watch().cloned() };
        let capsule = handler::capsule(py, home.clone(), in_child)?;
        Ok(Self { capsule, home, door })
    }

    /// From here on, the data of arrays made in the current context is in the pool.
    fn install<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.door.set(self.capsule.bind(py).as_any())
    }

    /// Makes a handler that `install` returned the current context's again.
    #[staticmethod]
    fn restore(former: &Bound<'_, PyAny>) -> PyResult<()> {
        Door::find(former.py())?.set(former).map(drop)
    }

    /// Whether data of an array starts at `address` in the pool.
    fn holds(&self, address: &Bound<'_, PyAny>) -> PyResult<bool> {
        let address = whole_number(address, "address")?;
        Ok(self.home.pool.is_held(address).unwrap_or(false))
    }

    /// From here on, the data of arrays made in any context without a handler of its own is in the pool.
    fn install_process_wide(&self, py: Python<'_>) -> PyResult<()> {
        if process_wide::is_serving() {
            return Err(PyRuntimeError::new_err(
                "NumPy's arrays are in a pool already, in the whole process: uninstall() first",
            ));
        }
        process_wide::serve(py, self.door, &self.home)
    }

    /// Ends `install_process_wide`; says whether there was anything to end.
    #[staticmethod]
    fn stop_process_wide(py: Python<'_>) -> PyResult<bool> {
        if process_wide::is_serving() { process_wide::stop(py, Door::find(py)?) } else { Ok(false) }
    }

    /// Why a pool refused memory to an array last, on this thread; asked once for each refusal. With a file and a line,
    /// only if it was asked for there.
    #[staticmethod]
    #[pyo3(signature = (at = None))]
    #[expect(clippy::needless_pass_by_value, reason = "made for this call, of what Python passes")]
    fn take_refusal(py: Python<'_>, at: Option<(String, u32)>) -> Option<PyErr> {
        refused::take(at.as_ref()).map(|refused| refused.into_py_err(py))
    }
}
