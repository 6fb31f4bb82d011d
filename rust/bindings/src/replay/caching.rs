//! Replays of recorded programs in a model of PyTorch's caching allocator.

use allotment::replay::{CachingOptions, CachingOutcome, replay_caching as replay};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::interpreter::detach;
use crate::numbers::Numbers;
use crate::replay::Program;
use crate::replay::result::ReplayResult;

/// The result of a replay in the model of PyTorch's allocator. Amounts are in bytes.
#[pyclass(frozen, extends = ReplayResult, module = "allotment")]
pub(crate) struct CachingReplay(CachingOutcome);

#[pymethods]
impl CachingReplay {
    /// The most bytes of all segments at once.
    #[getter]
    fn peak_reserved(&self) -> u64 {
        self.0.peak_reserved
    }

    /// The most bytes of all blocks in use at once.
    #[getter]
    fn peak_in_use(&self) -> u64 {
        self.0.peak_in_use
    }

    /// Bytes of all segments at the end.
    #[getter]
    fn reserved(&self) -> u64 {
        self.0.reserved
    }

    /// Number of segments at the end.
    #[getter]
    fn segments(&self) -> usize {
        self.0.segments
    }
}

/// Play a program into a model of PyTorch's caching allocator.
///
/// Args:
///     program: The program.
///     limit: The most bytes of all segments.
///     stream: A buffer of 64-bit signed integers with the stream of each event; ``None`` (default): one stream.
///     max_split_size: ``max_split_size_mb`` in bytes; ``None`` (default): every block may be split.
///     roundup_divisions: ``roundup_power2_divisions``; 0 by default: requests are rounded to 512 bytes.
///     expandable_segments: ``expandable_segments``; False by default.
///     gc_threshold: ``garbage_collection_threshold``, from 0 (default: off) to less than 1. PyTorch obeys it in
///         programs that call ``set_per_process_memory_fraction``.
///
/// Raises:
///     ValueError: An argument is out of range.
#[pyfunction]
#[pyo3(signature = (program, *, limit, stream = None, max_split_size = None, roundup_divisions = 0,
    expandable_segments = false, gc_threshold = 0.0))]
#[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
pub(crate) fn replay_caching<'py>(
    py: Python<'py>,
    program: &Program,
    limit: u64,
    stream: Option<Numbers>,
    max_split_size: Option<u64>,
    roundup_divisions: u64,
    expandable_segments: bool,
    gc_threshold: f64,
) -> PyResult<Bound<'py, CachingReplay>> {
    let events = program.core().events().len();
    let streams = stream.map_or_else(|| Ok(Vec::new()), |stream| stream.to_vec(py))?;
    if !streams.is_empty() && streams.len() != events {
        return Err(PyValueError::new_err(format!("stream must have one number an event, that is {events}")));
    }
    if roundup_divisions > 64 || roundup_divisions > 0 && !roundup_divisions.is_power_of_two() {
        let text = format!("roundup_divisions must be 0 or a power of two up to 64, not {roundup_divisions}");
        return Err(PyValueError::new_err(text));
    }
    // PyTorch's own bound: smaller values would forbid splits in segments of 20 MiB.
    if max_split_size.is_some_and(|bytes| bytes < 20 << 20) {
        return Err(PyValueError::new_err("max_split_size must be at least 20 MiB, as PyTorch has it"));
    }
    if !(0.0..1.0).contains(&gc_threshold) {
        let text = format!("gc_threshold must be from 0 to less than 1, not {gc_threshold}");
        return Err(PyValueError::new_err(text));
    }
    let options =
        CachingOptions { limit, max_split_size, roundup_divisions, expandable_segments, gc_threshold };
    let outcome = detach(py, || replay(program.core(), &streams, options));
    let CachingOutcome { refused, first_refused, elapsed, .. } = outcome;
    let result = ReplayResult { refused, first_refused, elapsed, events };
    Bound::new(py, PyClassInitializer::from(result).add_subclass(CachingReplay(outcome)))
}
