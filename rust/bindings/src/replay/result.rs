//! What every replay counts: the base class of results.

use std::time::Duration;

use pyo3::prelude::*;

/// The figures that every replay counts.
#[pyclass(frozen, subclass, module = "allotment")]
pub(crate) struct ReplayResult {
    pub(crate) refused: u64,
    pub(crate) first_refused: Option<usize>,
    pub(crate) elapsed: Duration,
    pub(crate) events: usize,
}

#[pymethods]
impl ReplayResult {
    /// Number of requests that were refused.
    #[getter]
    fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of the event of the first refusal, from 0 on; ``None`` without one.
    #[getter]
    fn first_refused(&self) -> Option<usize> {
        self.first_refused
    }

    /// Nanoseconds an event of the loop of allocations and frees alone; 0 without events.
    #[getter]
    fn ns_per_event(&self) -> f64 {
        let events = u32::try_from(self.events.max(1)).unwrap_or(u32::MAX);
        self.elapsed.as_secs_f64() * 1e9 / f64::from(events)
    }
}
