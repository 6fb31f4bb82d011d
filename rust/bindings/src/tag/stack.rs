//! Stacks of Python as tags, while a recording asks for them.
//!
//! A stack is known by the code objects and instructions of its innermost frames. Its text is made once and kept in a
//! table of a fixed size, which references the code objects, so that no other code object gets their addresses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allotment::set_tag;
use pyo3::intern;
use pyo3::prelude::*;

use super::preserving_exception;
use crate::interpreter::frame;

/// The most frames of a stack.
pub(crate) const MAX_FRAMES: usize = 64;

/// The most stacks in the table. A full table is emptied.
const TABLE_SIZE: usize = 1 << 13;

/// Number of frames that recordings ask for, the most of all; 0 without any.
static FRAMES: AtomicUsize = AtomicUsize::new(0);

/// Number of frames that each running recording asks for.
static ASKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

static STACKS: Mutex<Option<HashMap<Key, Stack>>> = Mutex::new(None);

/// Addresses of code objects, each with its instruction, the innermost first.
type Key = Box<[(usize, u32)]>;

struct Stack {
    text: Arc<str>,
    /// Keeps the addresses of the key from being used again.
    _codes: Box<[Py<PyAny>]>,
}

/// Has requests take their stacks until [`end`] is called with the same number of frames.
pub(crate) fn begin(frames: usize) {
    let mut asked = lock(&ASKED);
    asked.push(frames);
    FRAMES.store(asked.iter().copied().max().unwrap_or(0), Ordering::Relaxed);
}

/// Ends what [`begin`] began.
pub(crate) fn end(frames: usize) {
    let mut asked = lock(&ASKED);
    if let Some(place) = asked.iter().position(|&other| other == frames) {
        asked.swap_remove(place);
    }
    FRAMES.store(asked.iter().copied().max().unwrap_or(0), Ordering::Relaxed);
}

/// Whether a running recording asks for stacks.
#[inline]
pub(crate) fn are_recorded() -> bool {
    FRAMES.load(Ordering::Relaxed) != 0
}

/// Runs `work` under a tag of this thread's tag, if it has one, and its stack of Python.
#[cold]
#[inline(never)]
pub(crate) fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    let stack = frame::if_attached(of_thread).flatten();
    let Some(stack) = stack else { return work() };
    let former = set_tag(None);
    set_tag(Some(match &former {
        Some(tag) => format!("{tag}\n{stack}").into(),
        None => stack,
    }));
    let result = work();
    set_tag(former);
    result
}

/// Returns the text of this thread's stack: a frame in each line, the innermost first.
fn of_thread(py: Python<'_>) -> Option<Arc<str>> {
    let most = FRAMES.load(Ordering::Relaxed);
    let mut frames = Vec::with_capacity(most);
    let mut next = frame::innermost(py);
    while let Some(frame) = next.take_if(|_| frames.len() < most) {
        let instruction = frame.getattr(intern!(py, "f_lasti")).ok()?.extract().unwrap_or(u32::MAX);
        let caller = frame.getattr(intern!(py, "f_back")).ok()?;
        frames.push((frame::code(&frame), instruction, frame));
        next = (!caller.is_none()).then_some(caller);
    }
    let key: Key = frames.iter().map(|(code, instruction, _)| (code.as_ptr().addr(), *instruction)).collect();
    if key.is_empty() {
        return None;
    }
    if let Some(known) = lock(&STACKS).as_ref().and_then(|stacks| stacks.get(&key)) {
        return Some(Arc::clone(&known.text));
    }
    // Without the lock: making texts may run the garbage collector, which may allocate from a pool.
    let text = preserving_exception(py, || text_of(&frames)).ok()?;
    let codes = frames.into_iter().map(|(code, ..)| code.unbind()).collect();
    let stack = Stack { text: Arc::clone(&text), _codes: codes };
    let former = {
        let mut guard = lock(&STACKS);
        let stacks = guard.get_or_insert_default();
        let full = (stacks.len() >= TABLE_SIZE).then(|| std::mem::take(stacks));
        (stacks.insert(key, stack), full)
    };
    // Dropping code objects may run Python, so not under the lock.
    drop(former);
    Some(text)
}

type Frame<'py> = (Bound<'py, PyAny>, u32, Bound<'py, PyAny>);

fn text_of(frames: &[Frame<'_>]) -> PyResult<Arc<str>> {
    let lines = frames.iter().map(|(code, _, frame)| {
        let name: String = code.getattr(intern!(code.py(), "co_qualname"))?.extract()?;
        PyResult::Ok(format!("{}:{} {name}", frame::file(code)?, frame::line(frame)))
    });
    Ok(lines.collect::<PyResult<Vec<_>>>()?.join("\n").into())
}

/// A thread that panicked here left the value whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
