//! The settings of a pool: limit, growth, policy, name.

use pyo3::prelude::*;

use super::Pool;
use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::interpreter::garbage::When;
use crate::plan::Plan;
use crate::size::size_argument;

#[pymethods]
impl Pool {
    /// The most bytes that the pool may reserve.
    #[getter]
    fn limit(&self, py: Python<'_>) -> PyResult<u64> {
        detach(py, || self.core.limit()).map_err(|error| error.into_py_err(py))
    }

    /// Change the limit, up or down, while the pool is in use.
    ///
    /// Args:
    ///     limit: Bytes, or a text such as ``"1GiB"``.
    ///     trim: Give wholly free regions back first, if that is needed and enough. False by default.
    ///     limit_set_by: The setting that decided the limit, for reports; ``"set_limit"`` by default.
    ///
    /// Raises:
    ///     ValueError: The limit is out of range, or below the bytes that stay reserved.
    ///     RuntimeError: The source did not take enough pages of an elastic pool. The limit is as it was.
    #[pyo3(signature = (limit, *, trim = false, limit_set_by = "set_limit"))]
    fn set_limit(
        &self,
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        trim: bool,
        limit_set_by: &str,
    ) -> PyResult<()> {
        let bytes = size_argument(limit, "limit")?;
        let set = detach(py, || self.flushed().set_limit(bytes, trim, limit_set_by));
        set.map(drop).map_err(|error| error.into_py_err(py))
    }

    /// Whether regions start at 2 MiB and double.
    #[getter]
    fn growth(&self, py: Python<'_>) -> PyResult<bool> {
        detach(py, || self.core.growth()).map_err(|error| error.into_py_err(py))
    }

    /// Turn growth on or off for later regions.
    ///
    /// Args:
    ///     growth: Without growth the next region has all that the limit leaves. An elastic pool without growth takes
    ///         the memory of its limit at its first request; later it has no effect there.
    #[pyo3(signature = (growth))]
    fn set_growth(&self, py: Python<'_>, growth: bool) -> PyResult<()> {
        detach(py, || self.core.set_growth(growth)).map_err(|error| error.into_py_err(py))
    }

    /// Whether the pool records the owner of each allocation: its thread's tag, or the line that requested it.
    #[getter]
    fn owner_tags(&self) -> bool {
        self.core.options().owner_tags
    }

    /// Whether each thread keeps small chunks for its next requests.
    #[getter]
    fn thread_caches(&self) -> bool {
        self.core.options().thread_caches
    }

    /// Whether addresses are plentiful, and only pages in use have memory.
    #[getter]
    fn elastic(&self) -> bool {
        self.core.options().elastic
    }

    /// The plan that the pool follows; ``None`` without one.
    #[getter]
    fn plan(&self) -> Option<Plan> {
        self.core.options().plan.clone().map(Plan)
    }

    /// The split policy, ``"tensorflow"`` or ``"tight"``.
    #[getter]
    fn policy(&self) -> &'static str {
        self.core.options().policy.as_str()
    }

    /// The pool's name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.core.options().name
    }

    /// Whether guard mode is on, which finds writes outside of allocations and after a free.
    #[getter]
    fn guard(&self) -> bool {
        self.core.options().guard
    }

    /// Whether Python's garbage collector runs before a refusal.
    ///
    /// ``None`` means unless the program has disabled it.
    #[getter(collect_garbage)]
    fn when_to_collect(&self) -> Option<bool> {
        match self.garbage.when {
            When::Never => Some(false),
            When::Enabled => None,
            When::Always => Some(true),
        }
    }
}
