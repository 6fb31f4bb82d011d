//! Recorded programs and their replays.

use std::time::Duration;

use allotment::replay::{self as core, Outcome, Progress, ReplayError, Search};
use allotment::{Options, Policy, Stats};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::numbers::Numbers;
use crate::pool::policy::policy_argument;
use crate::report::stats::PoolStats;
use crate::size::size_argument;
use result::ReplayResult;

pub(crate) mod caching;
pub(crate) mod picture;
pub(crate) mod result;

/// A recorded program of allocations and frees in which every free has its allocation.
///
/// Args:
///     op: One number an event: 1 allocates, 2 frees. A buffer of 64-bit signed integers, as are the others.
///     id: The block's number, which may be used again after its free.
///     size: Bytes requested; a free repeats them.
///
/// Raises:
///     ValueError: An event makes no sense; the text starts with ``event N:``, where N counts from 0.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Program(core::Program);

impl Program {
    pub(crate) fn core(&self) -> &core::Program {
        &self.0
    }
}

#[pymethods]
impl Program {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
    fn new(py: Python<'_>, op: Numbers, id: Numbers, size: Numbers) -> PyResult<Self> {
        let (ops, ids, sizes) = (op.to_vec(py)?, id.to_vec(py)?, size.to_vec(py)?);
        let program = detach(py, || core::Program::from_columns(&ops, &ids, &sizes));
        program.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Number of events.
    #[getter]
    fn events(&self) -> usize {
        self.0.events().len()
    }

    /// The most bytes, as requested, that are live at once.
    #[getter]
    fn peak_live(&self) -> u64 {
        self.0.peak_live()
    }
}

/// The result of a replay.
#[pyclass(frozen, extends = ReplayResult, module = "allotment")]
pub(crate) struct Replay(Stats);

impl Replay {
    fn new(py: Python<'_>, outcome: Outcome, events: usize) -> PyResult<Bound<'_, Self>> {
        let Outcome { refused, first_refused, elapsed, stats } = outcome;
        let result = ReplayResult { refused, first_refused, elapsed, events };
        Bound::new(py, PyClassInitializer::from(result).add_subclass(Self(stats)))
    }
}

#[pymethods]
impl Replay {
    /// The pool's counters at the end.
    #[getter]
    fn stats(&self) -> PoolStats {
        PoolStats(self.0)
    }
}

/// The limits that a search found, in bytes.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct Limits(core::Limits);

#[pymethods]
impl Limits {
    /// The smallest limit at which a replay refuses nothing; of those that were tried, if not complete.
    #[getter]
    fn min_limit(&self) -> u64 {
        self.0.min_limit
    }

    /// A limit from which up to 1.25 times it every limit serves; the smallest one, if complete.
    #[getter]
    fn safe_limit(&self) -> u64 {
        self.0.safe_limit
    }

    /// Whether the search tried every limit that it has to.
    #[getter]
    fn complete(&self) -> bool {
        self.0.complete()
    }

    /// The first and the last limit that the search did not try; ``None`` if it is complete.
    #[getter]
    fn untried(&self) -> Option<(u64, u64)> {
        self.0.untried.as_ref().map(|limits| (*limits.start(), *limits.end()))
    }
}

/// Play a program into a new pool of made-up addresses.
///
/// Args:
///     program: The program.
///     limit: The most bytes that the pool may reserve: a number, or a text such as ``"64GiB"``.
///     growth: Start with 2 MiB and double (default), or reserve the limit at the first request.
///     trim_on_oom: Before a refusal, give wholly free regions back and grow again. False by default.
///     gap: Bytes between one region and the next, a multiple of 256; 0 by default.
///     joined: Join regions that touch. ``None`` (default): if ``gap`` is 0.
///     policy: The split policy, ``"tensorflow"`` (default) or ``"tight"``. An elastic pool splits off every remainder.
///     elastic: Play into an elastic pool: see :class:`Pool`. False by default.
///     page_size: The page size of an elastic pool: a power of two from 256 bytes on. ``None`` (default): 2 MiB.
///     offsets: A writable buffer of 64-bit signed integers, one an event, that receives the distances from the
///         first region's start: -1 for a refusal, for a block of zero bytes, and for the free of either; a free
///         repeats what it frees.
///
/// Raises:
///     ValueError: An option is out of range, or ``offsets`` has the wrong length.
#[pyfunction]
#[pyo3(signature = (program, *, limit, growth = true, trim_on_oom = false, gap = None, joined = None, policy = None,
    elastic = false, page_size = None, offsets = None),
    text_signature = "(program, *, limit, growth=True, trim_on_oom=False, gap=0, joined=None, policy='tensorflow', \
    elastic=False, page_size=None, offsets=None)")]
#[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    program: &Program,
    limit: &Bound<'_, PyAny>,
    growth: bool,
    trim_on_oom: bool,
    gap: Option<&Bound<'_, PyAny>>,
    joined: Option<bool>,
    policy: Option<&Bound<'_, PyAny>>,
    elastic: bool,
    page_size: Option<&Bound<'_, PyAny>>,
    offsets: Option<Numbers>,
) -> PyResult<Bound<'py, Replay>> {
    let limit = size_argument(limit, "limit")?;
    let options = options(limit, growth, trim_on_oom, joined, policy)?;
    let options = with_pages(options, elastic, page_size)?;
    let gap = gap_argument(gap)?;
    let events = program.0.events().len();
    let mut written = offsets.as_ref().map(|buffer| vec![0_i64; buffer.len()]);
    if written.as_ref().is_some_and(|written| written.len() != events) {
        return Err(PyValueError::new_err(format!(
            "offsets must have one number an event, that is {events}"
        )));
    }
    let outcome = detach(py, || core::replay(&program.0, &options, gap, written.as_deref_mut()));
    let outcome = outcome.map_err(|error| replay_error(py, error))?;
    if let (Some(buffer), Some(written)) = (offsets, written) {
        buffer.write(py, &written)?;
    }
    Replay::new(py, outcome, events)
}

/// Find the smallest limit at which a replay refuses nothing, and one from which on limits are safe.
///
/// Best fit is not monotone: a limit may serve while a larger one refuses. So the search tries every multiple of
/// ``granularity`` from the peak of live bytes up to 1.25 times the safe limit, on all cores. Where regions stay
/// apart, a safe limit serves with rising and with falling addresses of regions, because of equal chunks the pool
/// uses the one with the lower address.
///
/// Args:
///     program: The program to replay.
///     granularity: Limits are multiples of this many bytes, itself a multiple of 256; 64 KiB by default.
///     seconds: The search ends after this time at the latest, 60 s by default; ``Limits.untried`` says what it
///         left out.
///     growth: As for :func:`replay`.
///     trim_on_oom: As for :func:`replay`.
///     gap: As for :func:`replay`.
///     joined: As for :func:`replay`.
///     policy: As for :func:`replay`.
///     elastic: As for :func:`replay`. Limits are at least a page then.
///     page_size: As for :func:`replay`.
///     progress: A function that is called now and then with the number of limits that are decided, and of all.
///
/// Raises:
///     ValueError: An option is out of range, or no limit serves the program.
#[pyfunction]
#[pyo3(signature = (program, *, granularity = None, seconds = 60.0, growth = true, trim_on_oom = false, gap = None,
    joined = None, policy = None, elastic = false, page_size = None, progress = None),
    text_signature = "(program, *, granularity=65536, seconds=60.0, growth=True, trim_on_oom=False, gap=0, \
    joined=None, policy='tensorflow', elastic=False, page_size=None, progress=None)")]
#[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments are converted by value")]
pub(crate) fn find_limits(
    py: Python<'_>,
    program: &Program,
    granularity: Option<&Bound<'_, PyAny>>,
    seconds: f64,
    growth: bool,
    trim_on_oom: bool,
    gap: Option<&Bound<'_, PyAny>>,
    joined: Option<bool>,
    policy: Option<&Bound<'_, PyAny>>,
    elastic: bool,
    page_size: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Limits> {
    let gap = gap_argument(gap)?;
    // The search sets the limit.
    let options = with_pages(options(1, growth, trim_on_oom, joined, policy)?, elastic, page_size)?;
    let granularity =
        granularity.map_or(Ok(core::LIMIT_STEP), |granularity| size_argument(granularity, "granularity"))?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("seconds must be 0 or more, not {seconds}")));
    }
    // A time beyond the range of `Duration` means no time limit.
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let search = Search { granularity, time, ..Search::default() };
    let mut raised = None;
    let found = detach(py, || {
        core::find_limits(&program.0, &options, gap, &search, |Progress { known, all }| {
            let called = Python::try_attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (known, all)).map(drop))
            });
            raised = called.and_then(Result::err);
            raised.is_none()
        })
    });
    match raised {
        Some(error) => Err(error),
        None => found.map(Limits).map_err(|error| replay_error(py, error)),
    }
}

fn options(
    limit: u64,
    growth: bool,
    trim_on_oom: bool,
    joins_regions: Option<bool>,
    policy: Option<&Bound<'_, PyAny>>,
) -> PyResult<Options> {
    let policy = policy.map_or(Ok(Policy::default()), policy_argument)?;
    Ok(Options::new(limit)
        .growth(growth)
        .trim_on_oom(trim_on_oom)
        .joins_regions(joins_regions)
        .policy(policy))
}

fn with_pages(options: Options, elastic: bool, page_size: Option<&Bound<'_, PyAny>>) -> PyResult<Options> {
    let page_size = page_size.map(|bytes| size_argument(bytes, "page_size")).transpose()?;
    Ok(options.elastic(elastic).page_size(page_size))
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
