//! Queries of a pool: counters, snapshots, explanations.

use std::sync::Arc;

use allotment::{Bytes, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Pool;
use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::report::explanation::Explanation;
use crate::report::snapshot::{KeptRegion, Snapshot};
use crate::report::stats::PoolStats;
use crate::size::size_argument;

#[pymethods]
impl Pool {
    /// Return a copy of the pool's counters.
    fn stats(&self, py: Python<'_>) -> PyResult<PoolStats> {
        detach(py, || self.flushed().stats()).map(PoolStats).map_err(|error| error.into_py_err(py))
    }

    /// Set every ``peak_...`` counter to its current value; cumulative counters stay.
    fn reset_peaks(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, || self.flushed().reset_peaks()).map_err(|error| error.into_py_err(py))
    }

    /// Return a copy of all regions and chunks, with the counters of the same moment.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = detach(py, || self.flushed().snapshot()).map_err(|error| error.into_py_err(py))?;
        Ok(Snapshot(Arc::new(snapshot)))
    }

    /// Return whether a request would be served now, provided the source grants what the limit allows.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. The answer is False for a closed pool, and for any number
    ///         that is too large.
    fn can_allocate(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<bool> {
        // A number above the range does not fit; a negative number is an error.
        let bytes = size_argument(nbytes, "nbytes").or_else(|error| {
            let is_number = error.is_instance_of::<PyValueError>(py);
            if is_number && nbytes.gt(u64::MAX).unwrap_or(false) { Ok(u64::MAX) } else { Err(error) }
        })?;
        detach(py, || self.flushed().can_allocate(bytes)).map_err(|error| error.into_py_err(py))
    }

    /// Explain whether a request would be served now, and if not, why and what would help.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``.
    ///
    /// Raises:
    ///     ValueError: The size is out of range, or the pool is closed.
    fn explain(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<Explanation> {
        let bytes = size_argument(nbytes, "nbytes")?;
        let refused = detach(py, || self.flushed().explain(bytes)).map_err(|error| error.into_py_err(py))?;
        Ok(Explanation(refused))
    }

    /// Return the regions that a trim cannot give back, in address order, with what keeps them.
    fn kept_regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let kept = detach(py, || self.flushed().kept_regions()).map_err(|error| error.into_py_err(py))?;
        PyTuple::new(py, kept.into_iter().map(KeptRegion::from))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        detach(py, || self.describe())
    }
}

impl Pool {
    fn describe(&self) -> String {
        let Options { name, limit, growth, .. } = self.core.options();
        let (limit, growth) = (self.core.limit().unwrap_or(*limit), self.core.growth().unwrap_or(*growth));
        let growth = if growth { "on" } else { "off" };
        // A forked child has no figures; only the options are shown.
        let holds = self.flushed().stats().map_or_else(
            |_| "left behind by a fork".to_owned(),
            |stats| format!("{} in use, {} reserved", Bytes(stats.in_use), Bytes(stats.reserved)),
        );
        format!("<allotment.Pool {name:?}: limit {}, {holds}, growth {growth}>", Bytes(limit))
    }
}
