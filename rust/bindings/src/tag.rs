//! Owner tags: the tag of the thread, or else the calling line of Python.
//!
//! A line's tag is created once per instruction and cached by code object and instruction. The table references the
//! code object, so that no other code object gets its address. It has a fixed size: each instruction maps to one
//! entry, and the latest instruction owns it.

use std::sync::{Arc, Mutex, PoisonError};

use allotment::bindings::is_tagged;
use allotment::set_tag;
use pyo3::prelude::*;
use pyo3::{ffi, intern};

use crate::interpreter::frame;

pub(crate) mod stack;

/// The number of cached instructions.
const TABLE_SIZE: usize = 1 << 10;

static TAGS: Mutex<Vec<Option<Tag>>> = Mutex::new(Vec::new());

/// The cached tag of an instruction.
struct Tag {
    code: Py<PyAny>,
    instruction: u32,
    text: Arc<str>,
    /// Whether the code is part of NumPy.
    is_numpy: bool,
}

/// Set this thread's tag, the owner of its allocations in pools with ``owner_tags``; return the former tag.
#[pyfunction]
#[pyo3(name = "set_tag", signature = (tag))]
pub(crate) fn set_tag_of_thread(tag: Option<String>) -> Option<String> {
    set_tag(tag.map(Arc::from)).map(|tag| tag.to_string())
}

/// Runs `work` under the owner of a request in a pool with or without `owner_tags`.
#[inline]
pub(crate) fn with_owner<T>(py: Python<'_>, owner_tags: bool, work: impl FnOnce() -> T) -> T {
    if owner_tags {
        with_caller_line(py, work)
    } else if stack::are_recorded() {
        stack::with_stack(work)
    } else {
        work()
    }
}

/// Runs `work` under this thread's tag, or else under that of the calling line.
fn with_caller_line<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    if is_tagged() {
        return work();
    }
    let line = frame::innermost(py).and_then(|frame| of_frame(&frame)).map(|(text, _)| text);
    with_tag(line, work)
}

/// Runs `work` under this thread's tag, or else under that of the line that makes an array: the innermost line
/// outside of NumPy. If NumPy calls without the interpreter, the tag is `numpy`.
pub(crate) fn with_line_of_array<T>(work: impl FnOnce() -> T) -> T {
    if is_tagged() {
        return work();
    }
    let line = frame::if_attached(line_outside_numpy).flatten();
    with_tag(Some(line.unwrap_or_else(|| "numpy".into())), work)
}

/// Runs `work` under this thread's tag, or else under `tag`.
pub(crate) fn with_default<T>(tag: &Arc<str>, work: impl FnOnce() -> T) -> T {
    if is_tagged() { work() } else { with_tag(Some(Arc::clone(tag)), work) }
}

fn with_tag<T>(tag: Option<Arc<str>>, work: impl FnOnce() -> T) -> T {
    set_tag(tag);
    let result = work();
    set_tag(None);
    result
}

fn line_outside_numpy(py: Python<'_>) -> Option<Arc<str>> {
    let mut frame = frame::innermost(py)?;
    let (innermost, mut is_numpy) = of_frame(&frame)?;
    let mut line = Arc::clone(&innermost);
    while is_numpy {
        frame = frame.getattr(intern!(py, "f_back")).ok()?;
        if frame.is_none() {
            return Some(innermost);
        }
        (line, is_numpy) = of_frame(&frame)?;
    }
    Some(line)
}

/// Returns the tag of a frame's current instruction, and whether its code is part of NumPy.
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
            return Some((Arc::clone(&tag.text), tag.is_numpy));
        }
    }
    // Without the lock: allocating these objects may run the garbage collector, which may allocate from a pool.
    let (text, is_numpy) = preserving_exception(py, || {
        let file = frame::file(&code)?;
        let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        PyResult::Ok((Arc::from(format!("{name}:{}", frame::line(frame))), is_numpy(py, &file)))
    })
    .ok()?;
    let tag = Tag { code: code.unbind(), instruction, text: Arc::clone(&text), is_numpy };
    let former = {
        let mut tags = TAGS.lock().unwrap_or_else(PoisonError::into_inner);
        if tags.is_empty() {
            tags.resize_with(TABLE_SIZE, || None);
        }
        tags[place].replace(tag)
    };
    drop(former);
    Some((text, is_numpy))
}

/// Returns the table index of an instruction.
fn place(code: *mut ffi::PyObject, instruction: u32) -> usize {
    let mixed = (code.addr() as u64 ^ u64::from(instruction) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> (u64::BITS - TABLE_SIZE.ilog2())).unwrap_or(0)
}

/// Returns whether a file is part of NumPy.
fn is_numpy(py: Python<'_>, file: &str) -> bool {
    let folder = || -> PyResult<String> {
        let modules = py.import("sys")?.getattr("modules")?;
        modules.get_item("numpy")?.getattr("__path__")?.get_item(0)?.extract()
    };
    folder().is_ok_and(|folder| file.strip_prefix(&folder).is_some_and(|rest| rest.starts_with(['/', '\\'])))
}

/// Returns the file and line of the Python code that runs on this thread, if it is attached to the interpreter.
pub(crate) fn running_line() -> Option<(String, u32)> {
    frame::if_attached(|py| {
        let frame = frame::innermost(py)?;
        let file = preserving_exception(py, || frame::file(&frame::code(&frame))).ok()?;
        Some((file, frame::line(&frame)))
    })
    .flatten()
}

/// Runs `work`, which may raise, and preserves a pending exception.
fn preserving_exception<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let pending = PyErr::take(py);
    let result = work();
    if let Some(pending) = pending {
        pending.restore(py);
    }
    result
}
