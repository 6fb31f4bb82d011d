//! Recordings of a pool, made by `allotment.trace`, and the recording of a whole process.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Pool;

/// The file that receives the events of all pools of the process; unset or empty: none.
const RECORD: &str = "ALLOTMENT_RECORD";

#[pymethods]
impl Pool {
    /// Record the pool's events, into a file or a ring of the last ones.
    ///
    /// A recorded pool takes a slower path, some hundred nanoseconds a call. One that is not recorded does nothing.
    ///
    /// Args:
    ///     file: The ``.npz`` trace to write. It is written as the program runs, and readable if the process is
    ///         killed. ``None`` (default): a ring in memory.
    ///     events: The most events of the ring; 65,536 by default. With a file, the most that wait to be written.
    ///     on_oom: Without ``file``: a file that receives the ring when a request was refused.
    ///
    /// Returns:
    ///     An ``allotment.trace.Recording``, which ends at ``stop()`` or as a context manager.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    ///     ValueError: An argument is out of range.
    #[pyo3(signature = (file = None, *, events = None, on_oom = None),
        text_signature = "($self, file=None, *, events=65536, on_oom=None)")]
    fn record<'py>(
        slf: &Bound<'py, Self>,
        file: Option<&Bound<'py, PyAny>>,
        events: Option<&Bound<'py, PyAny>>,
        on_oom: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("events", events)?;
        options.set_item("on_oom", on_oom)?;
        py.import("allotment.trace.recorder")?.call_method("record_pool", (slf, file), Some(&options))
    }
}

/// Begins to record the whole process when its first pool is made, if the environment says so.
pub(super) fn start_from_environment(py: Python<'_>) -> PyResult<()> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if ASKED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    match env::var_os(RECORD) {
        Some(file) if !file.is_empty() => {
            py.import("allotment.trace.recorder")?.call_method1("record_process", (file,)).map(drop)
        }
        _ => Ok(()),
    }
}
