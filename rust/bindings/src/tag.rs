//! Tags of allocations: what the thread calls its work, or else the line of Python that asks.
//!
//! A tag is made once for each instruction that asks, and found again by the code and the instruction. The table holds
//! a reference to the code, so that no other code gets its address meanwhile, and has room for so many and no more:
//! each instruction has one place, and the last that needed the place has it.

use std::sync::{Arc, Mutex, PoisonError};

use allotment::{is_tagged, set_tag};
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use crate::frame;

/// Instructions whose tags are kept.
const PLACES: usize = 1 << 10;

static TAGS: Mutex<Vec<Option<Tag>>> = Mutex::new(Vec::new());

/// What an instruction is called.
struct Tag {
    code: Py<PyAny>,
    instruction: u32,
    text: Arc<str>,
    /// Whether the code is a part of NumPy.
    is_numpys: bool,
}

/// Sets what this thread calls its work; returns what it called it before.
#[pyfunction]
#[pyo3(name = "set_tag", signature = (tag))]
pub(crate) fn set_tag_of_thread(tag: Option<String>) -> Option<String> {
    set_tag(tag.map(Arc::from)).map(|tag| tag.to_string())
}

/// Does something under the tag of this thread, or without one under that of the line that asks.
pub(crate) fn with_line<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    if is_tagged() {
        return work();
    }
    let line = frame::innermost(py).and_then(|frame| of_frame(&frame)).map(|(text, _)| text);
    under(line, work)
}

/// Does something under the tag of this thread, or without one under that of the line that makes an array: the
/// innermost that is not NumPy's own. NumPy may call without the interpreter; then the tag is its name.
pub(crate) fn with_line_of_array<T>(work: impl FnOnce() -> T) -> T {
    if is_tagged() {
        return work();
    }
    let line = frame::if_attached(line_outside_numpy).flatten();
    under(Some(line.unwrap_or_else(|| "numpy".into())), work)
}

fn under<T>(tag: Option<Arc<str>>, work: impl FnOnce() -> T) -> T {
    set_tag(tag);
    let result = work();
    set_tag(None);
    result
}

fn line_outside_numpy(py: Python<'_>) -> Option<Arc<str>> {
    let mut frame = frame::innermost(py)?;
    let (innermost, mut is_numpys) = of_frame(&frame)?;
    let mut line = Arc::clone(&innermost);
    while is_numpys {
        frame = frame.getattr(intern!(py, "f_back")).ok()?;
        if frame.is_none() {
            return Some(innermost);
        }
        (line, is_numpys) = of_frame(&frame)?;
    }
    Some(line)
}

/// The tag of the instruction that a frame is at, and whether that is NumPy's.
fn of_frame(frame: &Bound<'_, PyAny>) -> Option<(Arc<str>, bool)> {
    let py = frame.py();
    let code = frame::code(frame);
    let instruction = frame.getattr(intern!(py, "f_lasti")).ok()?.extract().unwrap_or(u32::MAX);
    let place = place(code.as_ptr(), instruction);
    {
        let tags = TAGS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(tag)) = tags.get(place)
            && tag.instruction == instruction
            && tag.code.is(&code)
        {
            return Some((Arc::clone(&tag.text), tag.is_numpys));
        }
    }
    // Without the lock: what is made for this may have the collector run, and that may allocate.
    let (text, is_numpys) = quietly(py, || {
        let file = frame::file(&code)?;
        let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        PyResult::Ok((Arc::from(format!("{name}:{}", frame::line(frame))), is_numpys(py, &file)))
    })
    .ok()?;
    let tag = Tag { code: code.unbind(), instruction, text: Arc::clone(&text), is_numpys };
    let former = {
        let mut tags = TAGS.lock().unwrap_or_else(PoisonError::into_inner);
        if tags.is_empty() {
            tags.resize_with(PLACES, || None);
        }
        tags[place].replace(tag)
    };
    drop(former);
    Some((text, is_numpys))
}

/// The place of an instruction in the table.
fn place(code: *mut ffi::PyObject, instruction: u32) -> usize {
    let mixed = (code.addr() as u64 ^ u64::from(instruction) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> (u64::BITS - PLACES.ilog2())).unwrap_or(0)
}

/// Whether a file is a part of NumPy.
fn is_numpys(py: Python<'_>, file: &str) -> bool {
    let folder = || -> PyResult<String> {
        let modules = py.import("sys")?.getattr("modules")?;
        modules.get_item("numpy")?.getattr("__path__")?.get_item(0)?.extract()
    };
    folder().is_ok_and(|folder| file.strip_prefix(&folder).is_some_and(|rest| rest.starts_with(['/', '\\'])))
}

/// The file and the line of Python that runs on this thread, if it is attached to the interpreter.
pub(crate) fn running_line() -> Option<(String, u32)> {
    frame::if_attached(|py| {
        let frame = frame::innermost(py)?;
        let file = quietly(py, || frame::file(&frame::code(&frame))).ok()?;
        Some((file, frame::line(&frame)))
    })
    .flatten()
}

/// Does something that may raise, and leaves an exception that is on its way on its way.
fn quietly<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let pending = PyErr::take(py);
    let result = work();
    if let Some(pending) = pending {
        pending.restore(py);
    }
    result
}
