//! Tags of allocations: what the thread calls its work, or else the line of Python that asks.

use std::sync::Arc;

use allotment::set_tag;
use pyo3::prelude::*;

/// Sets what this thread calls its work; returns what it called it before.
#[pyfunction]
#[pyo3(name = "set_tag", signature = (tag))]
pub(crate) fn set_tag_of_thread(tag: Option<String>) -> Option<String> {
    set_tag(tag.map(Arc::from)).map(|tag| tag.to_string())
}

/// Does something under the tag of this thread, or without one under that of the line that asks.
pub(crate) fn with_line<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let outer = set_tag(None);
    let tag = outer.clone().or_else(|| line(py).ok().map(Arc::from));
    set_tag(tag);
    let result = work();
    set_tag(outer);
    result
}

/// The line of Python that runs, as in `train.py:12`.
fn line(py: Python<'_>) -> PyResult<String> {
    let frame = py.import("sys")?.getattr("_getframe")?.call0()?;
    let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
    let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
    let line: u32 = frame.getattr("f_lineno")?.extract()?;
    Ok(format!("{name}:{line}"))
}
