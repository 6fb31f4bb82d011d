//! Recorded programs and their replays.

use allotment::Options;
use allotment::replay::{self as core, Outcome, ReplayError};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::pool::check_signals;
use crate::size::size_argument;
use crate::stats::PoolStats;

/// A recorded program that makes sense: every free has its allocation.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Program(core::Program);

#[pymethods]
impl Program {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
    fn new(py: Python<'_>, op: PyBuffer<i64>, id: PyBuffer<i64>, size: PyBuffer<i64>) -> PyResult<Self> {
        let (ops, ids, sizes) = (op.to_vec(py)?, id.to_vec(py)?, size.to_vec(py)?);
        let program = detach(py, || core::Program::from_columns(&ops, &ids, &sizes));
        program.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Number of events.
    #[getter]
    fn events(&self) -> usize {
        self.0.events().len()
    }

    /// The most bytes live at once, as requested.
    #[getter]
    fn peak_live(&self) -> u64 {
        self.0.peak_live()
    }
}

/// What came of a replay.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Replay {
    outcome: Outcome,
    events: usize,
}

#[pymethods]
impl Replay {
    /// Requests that were refused.
    #[getter]
    fn refused(&self) -> u64 {
        self.outcome.refused
    }

    /// The event of the first refusal, counted from 0.
    #[getter]
    fn first_refused(&self) -> Option<usize> {
        self.outcome.first_refused
    }

    /// Nanoseconds an event, of the loop of allocations and frees alone; 0 without events.
    #[getter]
    fn ns_per_event(&self) -> f64 {
        self.outcome.nanoseconds_per(self.events)
    }

    /// The pool's counters at the end.
    #[getter]
    fn stats(&self) -> PoolStats {
        PoolStats(self.outcome.stats)
    }
}

/// Play a program into a fresh pool on made-up addresses.
#[pyfunction]
#[pyo3(signature = (program, *, limit, growth = true, trim_on_oom = false, gap = None, offsets = None),
    text_signature = "(program, *, limit, growth=True, trim_on_oom=False, gap=0, offsets=None)")]
pub(crate) fn replay(
    py: Python<'_>,
    program: &Program,
    limit: &Bound<'_, PyAny>,
    growth: bool,
    trim_on_oom: bool,
    gap: Option<&Bound<'_, PyAny>>,
    offsets: Option<PyBuffer<i64>>,
) -> PyResult<Replay> {
    let options = Options { growth, trim_on_oom, ..Options::new(size_argument(limit, "limit")?) };
    let gap = gap_argument(gap)?;
    let events = program.0.events().len();
    let mut written = offsets.as_ref().map(|buffer| vec![0_i64; buffer.item_count()]);
    if written.as_ref().is_some_and(|written| written.len() != events) {
        return Err(PyValueError::new_err(format!(
            "offsets must have one number an event, that is {events}"
        )));
    }
    let outcome = detach(py, || core::replay(&program.0, &options, gap, written.as_deref_mut()));
    let outcome = outcome.map_err(|error| replay_error(py, error))?;
    if let (Some(buffer), Some(written)) = (offsets, written) {
        buffer.copy_from_slice(py, &written)?;
    }
    Ok(Replay { outcome, events })
}

/// The smallest multiple of 64 KiB, found by bisection, at which a replay refuses nothing.
#[pyfunction]
#[pyo3(signature = (program, *, growth = true, trim_on_oom = false, gap = None),
    text_signature = "(program, *, growth=True, trim_on_oom=False, gap=0)")]
pub(crate) fn min_limit(
    py: Python<'_>,
    program: &Program,
    growth: bool,
    trim_on_oom: bool,
    gap: Option<&Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let gap = gap_argument(gap)?;
    let options = Options { growth, trim_on_oom, ..Options::new(1) };
    let mut interrupt = None;
    let found = detach(py, || {
        core::min_limit_of(&program.0, &options, gap, || {
            interrupt = check_signals().err();
            interrupt.is_none()
        })
    });
    match interrupt {
        Some(error) => Err(error),
        None => found.map_err(|error| replay_error(py, error)),
    }
}

fn gap_argument(gap: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let bytes = gap.map_or(Ok(0), |gap| size_argument(gap, "gap"))?;
    if bytes.is_multiple_of(allotment::GRANULE) {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("gap must be a multiple of {} bytes, not {bytes}", allotment::GRANULE)))
}

fn replay_error(py: Python<'_>, error: ReplayError) -> PyErr {
    match error {
        ReplayError::Options(error) => error.into_py_err(py),
        ReplayError::Alloc(error) => error.into_py_err(py),
        other => PyValueError::new_err(other.to_string()),
    }
}
