//! Recordings of a pool, made by `allotment.trace`, and the recording of a whole process.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment_sync::PerProcess;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Pool;
use crate::interpreter::environment::number;
use crate::recording::EventLog;

/// The file that receives the events of all pools of the process; unset or empty: none.
const RECORD: &str = "ALLOTMENT_RECORD";

/// Number of the last events that the file receives, at a refusal or at the end; unset or 0: all of them.
const EVENTS: &str = "ALLOTMENT_RECORD_EVENTS";

/// Number of frames of Python's stack for each request; unset: none.
const STACKS: &str = "ALLOTMENT_RECORD_STACKS";

#[pymethods]
impl Pool {
    /// Record the pool's events, into a file or a ring of the last ones.
    ///
    /// Recording adds some tens of nanoseconds to a call. A pool that is not recorded does nothing.
    ///
    /// Args:
    ///     file: The ``.npz`` trace to write. It is written as the program runs, and readable if the process is
    ///         killed. ``None`` (default): a ring in memory.
    ///     events: The most events of the ring; 65,536 by default. With a file, the most that wait to be written.
    ///     on_oom: Without ``file``: a file that receives the ring when a request was refused.
    ///     stacks: Number of innermost frames of Python's stack that the recording notes for each request, up to 64; 0
    ///         by default. They take each request some microseconds. A pool with ``owner_tags`` notes lines instead.
    ///
    /// Returns:
    ///     An ``allotment.trace.Recording``, which ends at ``stop()`` or as a context manager.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    ///     ValueError: An argument is out of range, or another recording of this process writes the file.
    #[pyo3(signature = (file = None, *, events = None, on_oom = None, stacks = None),
        text_signature = "($self, file=None, *, events=65536, on_oom=None, stacks=0)")]
    fn record<'py>(
        slf: &Bound<'py, Self>,
        file: Option<&Bound<'py, PyAny>>,
        events: Option<&Bound<'py, PyAny>>,
        on_oom: Option<&Bound<'py, PyAny>>,
        stacks: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("events", events)?;
        options.set_item("on_oom", on_oom)?;
        if let Some(stacks) = stacks {
            options.set_item("stacks", stacks)?;
        }
        py.import("allotment.trace.recorder")?.call_method("record_pool", (slf, file), Some(&options))
    }

    /// The recording that ``record_events`` began; ``None`` without it.
    #[getter]
    fn recording(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.recording.as_ref().map(|recording| recording.clone_ref(py))
    }
}

/// Begins a ring of the last events of a pool that was just made.
pub(super) fn start_ring(
    py: Python<'_>,
    pool: &Arc<allotment::Pool>,
    events: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let log = Py::new(py, EventLog::of_pool(pool, events)?)?;
    py.import("allotment.trace.recorder")?.call_method1("ring", (log,)).map(Bound::unbind)
}

/// Begins to record the whole process when its first pool is made, if the environment says so.
pub(super) fn start_from_environment(py: Python<'_>) -> PyResult<()> {
    // A forked child has pools of its own, and a file for them.
    static ASKED: PerProcess<AtomicBool> = PerProcess::new(AtomicBool::new(false), AtomicBool::default);
    if ASKED.get().swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    match env::var_os(RECORD) {
        Some(file) if !file.is_empty() => {
            let (events, stacks) = (number(py, EVENTS)?, number(py, STACKS)?);
            let options = PyDict::new(py);
            options.set_item("events", events.filter(|&events| events > 0))?;
            options.set_item("stacks", stacks.unwrap_or(0))?;
            let recorder = py.import("allotment.trace.recorder")?;
            recorder.call_method("record_process", (file,), Some(&options)).map(drop)
        }
        _ => Ok(()),
    }
}
