//! The `Plan` class, and the search for plans.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use allotment::plan::{self as core, Buffer, Effort, PlanError, PlanProgress};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter::detach;
use crate::numbers::Numbers;
use crate::replay::Program;
use crate::size::{number_argument, size_argument};

/// Offsets for the buffers of a program in one arena, such that no two that live at the same time overlap.
///
/// Every plan is checked when it is made. ``Pool(plan=…)`` follows it.
///
/// Args:
///     size: Bytes of each buffer, at least 1, in the order of the requests. Like the others it is a buffer of 64-bit
///         signed integers.
///     start: When it starts to live, in any unit of time; never smaller than that of the buffer before.
///     end: The first time at which it no longer lives.
///     offset: Where it lies, a multiple of ``alignment``.
///     alignment: A power of two; sizes are rounded up to it. A pool follows plans with 256 or more.
///     optimal: Whether a search has proven that no arena is smaller, which is not checked. Without that it is known of
///         an arena of the lower bound alone.
///
/// Raises:
///     ValueError: A number is out of range, or two buffers overlap; the text names the buffers, which count from 0.
#[pyclass(frozen, eq, hash, module = "allotment")]
#[derive(PartialEq, Eq)]
pub(crate) struct Plan(pub(crate) Arc<core::Plan>);

impl Hash for Plan {
    /// Hashes the figures: a plan may have millions of buffers.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.requests(), self.arena(), self.lower_bound(), self.alignment()).hash(state);
    }
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (size, start, end, offset, *, alignment = None, optimal = false),
        text_signature = "(size, start, end, offset, *, alignment=256, optimal=False)")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
    fn new(
        py: Python<'_>,
        size: Numbers,
        start: Numbers,
        end: Numbers,
        offset: Numbers,
        alignment: Option<&Bound<'_, PyAny>>,
        optimal: bool,
    ) -> PyResult<Self> {
        let alignment = alignment_argument(alignment)?;
        let column = |name: &str, buffer: &Numbers| {
            let numbers = buffer.to_vec(py)?.into_iter().enumerate();
            let numbers = numbers.map(|(index, number)| {
                u64::try_from(number).map_err(|_| {
                    PyValueError::new_err(format!("buffer {index}: {name} {number} is negative"))
                })
            });
            numbers.collect::<PyResult<Vec<_>>>()
        };
        let [sizes, starts, ends, offsets] =
            [("size", &size), ("start", &start), ("end", &end), ("offset", &offset)]
                .map(|(name, buffer)| column(name, buffer));
        let (sizes, starts, ends, offsets) = (sizes?, starts?, ends?, offsets?);
        if [&starts, &ends, &offsets].into_iter().any(|column| column.len() != sizes.len()) {
            return Err(PyValueError::new_err(format!(
                "the columns differ in length: size has {} numbers, start {}, end {}, offset {}",
                sizes.len(),
                starts.len(),
                ends.len(),
                offsets.len()
            )));
        }
        let times = starts.into_iter().zip(ends);
        let buffers = sizes.into_iter().zip(times).map(|(bytes, (start, end))| Buffer { bytes, start, end });
        let plan = detach(py, || core::Plan::new(buffers.collect(), offsets, alignment));
        let plan = plan.map(|plan| if optimal { plan.proven_optimal() } else { plan });
        plan.map(|plan| Self(Arc::new(plan))).map_err(|error| plan_error(&error))
    }

    /// Number of buffers.
    #[getter]
    fn requests(&self) -> usize {
        self.0.buffers().len()
    }

    /// Bytes that hold all buffers.
    #[getter]
    fn arena(&self) -> u64 {
        self.0.arena()
    }

    /// The most bytes that live at once, each buffer rounded up to the alignment: no arena is smaller.
    #[getter]
    fn lower_bound(&self) -> u64 {
        self.0.lower_bound()
    }

    /// Offsets are multiples of this many bytes, and sizes are rounded up to it.
    #[getter]
    fn alignment(&self) -> u64 {
        self.0.alignment()
    }

    /// Whether no arena is smaller: it has the lower bound, or the search of the plan tried everything below it.
    #[getter]
    fn optimal(&self) -> bool {
        self.0.is_optimal()
    }

    /// The numbers of the buffers, packed as 64-bit signed integers: their sizes, starts, ends and offsets.
    fn packed<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 4] {
        let buffers = self.0.buffers();
        let pack = |numbers: &mut dyn Iterator<Item = u64>| {
            let bytes: Vec<u8> =
                numbers.flat_map(|number| i64::try_from(number).unwrap_or(i64::MAX).to_ne_bytes()).collect();
            PyBytes::new(py, &bytes)
        };
        [
            pack(&mut buffers.iter().map(|buffer| buffer.bytes)),
            pack(&mut buffers.iter().map(|buffer| buffer.start)),
            pack(&mut buffers.iter().map(|buffer| buffer.end)),
            pack(&mut self.0.offsets().iter().copied()),
        ]
    }

    fn __repr__(&self) -> String {
        let (requests, arena, bound) = (self.requests(), self.arena(), self.lower_bound());
        format!("<Plan of {requests} requests: arena {arena}, lower bound {bound}>")
    }
}

/// Search for the smallest arena that holds the blocks of a program.
///
/// Args:
///     program: The program. Blocks of zero bytes get no place.
///     alignment: Offsets are multiples of this power of two, and sizes are rounded up to it; 256 by default.
///     seconds: The search ends after this time, 10 s by default, and earlier when no arena is smaller. It makes a
///         first plan in any case.
///     steps: The search ends after this many steps, each about the placing of one block. With enough ``seconds`` the
///         same steps find the same plan on every machine. ``None`` (default): time alone counts.
///     seed: Another number searches in another order; 0 by default.
///     progress: A function that is called now and then with the bytes of the smallest arena so far (0 before the first
///         one), the lower bound, and the seconds since the start.
///
/// Raises:
///     ValueError: An option is out of range.
#[pyfunction]
#[pyo3(signature = (program, *, alignment = None, seconds = 10.0, steps = None, seed = None, progress = None),
    text_signature = "(program, *, alignment=256, seconds=10.0, steps=None, seed=0, progress=None)")]
#[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
pub(crate) fn plan(
    py: Python<'_>,
    program: &Program,
    alignment: Option<&Bound<'_, PyAny>>,
    seconds: f64,
    steps: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plan> {
    let alignment = alignment_argument(alignment)?;
    let steps = steps.map(|steps| number_argument(steps, "steps")).transpose()?;
    let seed = seed.map_or(Ok(0), |seed| number_argument(seed, "seed"))?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("seconds must be 0 or more, not {seconds}")));
    }
    // A time beyond the range of `Duration` means no time limit.
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let effort = Effort::default().time(time).steps(steps).seed(seed);
    let mut raised = None;
    let found = detach(py, || {
        core::plan(
            program.core().buffers(),
            alignment,
            &effort,
            |PlanProgress { arena, lower_bound, elapsed, .. }| {
                let called = Python::try_attach(|py| {
                    py.check_signals()?;
                    let figures = (arena.unwrap_or(0), lower_bound, elapsed.as_secs_f64());
                    progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, figures).map(drop))
                });
                raised = called.and_then(Result::err);
                raised.is_none()
            },
        )
    });
    match (found, raised) {
        (_, Some(error)) => Err(error),
        (Ok(plan), None) => Ok(Plan(Arc::new(plan))),
        (Err(PlanError::Stopped), None) => Err(PyKeyboardInterrupt::new_err(())),
        (Err(error), None) => Err(plan_error(&error)),
    }
}

fn alignment_argument(alignment: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    alignment.map_or(Ok(allotment::GRANULE), |alignment| size_argument(alignment, "alignment"))
}

fn plan_error(error: &PlanError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
