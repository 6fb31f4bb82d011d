//! Runs Python's garbage collector before a refusal: garbage may still hold memory.
//!
//! A collection takes milliseconds. It is skipped if the last one freed no memory of the pool and the pool has
//! neither allocated nor freed since.
//!
//! Without a GIL an object whose last reference was dropped by another thread is freed when its own thread runs Python
//! code again, or by a collection: that of a container first, and that of its contents by the next one. So there a
//! collection is several.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use allotment::bindings::PoolForBindings as _;
use allotment_sync::PerProcess;
use pyo3::prelude::*;

use crate::interpreter::detach;
use crate::interpreter::environment;
use crate::pool::Pool;

/// When a pool runs the collector.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    /// Before each refusal, unless the program has disabled the collector.
    Enabled,
    /// Before each refusal, even if the program has disabled the collector.
    Always,
}

impl When {
    /// Returns the pool's option, else that of `ALLOTMENT_COLLECT_GARBAGE`, else `Enabled`.
    pub(crate) fn choose(py: Python<'_>, option: Option<bool>) -> PyResult<Self> {
        let option = match option {
            None => environment::optional_switch(py, "ALLOTMENT_COLLECT_GARBAGE")?,
            option => option,
        };
        Ok(option.map_or(Self::Enabled, |collect| if collect { Self::Always } else { Self::Never }))
    }

    /// Runs the collector if the setting allows it; returns whether it ran.
    fn run(self, py: Python<'_>) -> bool {
        match self {
            Self::Never => return false,
            Self::Enabled if !is_enabled(py) => return false,
            Self::Enabled | Self::Always => run(py),
        }
        true
    }
}

/// The setting of one pool and the result of its last collection.
pub(crate) struct Garbage {
    pub(crate) when: When,
    /// The pool's activity plus 1 after the last collection that freed none of its memory; 0 for none.
    last_useless_activity: AtomicU64,
}

impl Garbage {
    pub(crate) fn new(when: When) -> Self {
        Self { when, last_useless_activity: AtomicU64::new(0) }
    }

    /// Has the next collection run whatever the last one did: what was in use then may be garbage now.
    pub(crate) fn expect_more(&self) {
        self.last_useless_activity.store(0, Ordering::Relaxed);
    }

    /// Runs the collector if it may free memory of the pool; returns whether it ran. Attaches to the interpreter.
    pub(crate) fn collect(&self, pool: &allotment::Pool) -> bool {
        let Ok(before) = pool.activity() else { return false };
        if self.when == When::Never || self.last_useless_activity.load(Ordering::Relaxed) == before + 1 {
            return false;
        }
        // After the interpreter's end there is no garbage, and attaching would crash.
        if Python::try_attach(|py| self.when.run(py)) != Some(true) {
            return false;
        }
        if pool.activity() == Ok(before) {
            self.last_useless_activity.store(before + 1, Ordering::Relaxed);
        }
        true
    }
}

/// Run Python's garbage collector before a refusal; return whether it ran.
///
/// It does not run where the pool's option, or for memory without a pool the environment, turns it off. It does not
/// run a second time with no allocation and no free of the pool since a first run that freed nothing of the pool.
///
/// Raises:
///     ValueError: ``ALLOTMENT_COLLECT_GARBAGE`` is neither 0 nor 1.
#[pyfunction]
pub(crate) fn collect_garbage(py: Python<'_>, pool: Option<&Bound<'_, Pool>>) -> PyResult<bool> {
    match pool {
        None => Ok(When::choose(py, None)?.run(py)),
        Some(pool) => {
            let pool = pool.get();
            Ok(detach(py, || pool.collect_garbage()))
        }
    }
}

/// Collections without a GIL: for a result in a list in the message of a thread, and its array.
const PASSES_WITHOUT_GIL: usize = 4;

/// Whether a thread of this process collects for a refusal.
static COLLECTS: PerProcess<AtomicBool> = PerProcess::new(AtomicBool::new(false), AtomicBool::default);

/// The most time that a thread waits for the collection of another one: what that one runs may wait for this thread.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

thread_local! {
    /// Whether this thread collects for a refusal: what is freed then may be refused memory, too.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// The right to collect, which one thread at a time has.
struct Turn;

impl Turn {
    /// Waits until no other thread collects; `None` if that takes too long, or if this thread has its turn.
    fn await_it(py: Python<'_>) -> Option<Self> {
        let begun = Instant::now();
        while !HAS_TURN.get() && begun.elapsed() < LONGEST_WAIT {
            if !COLLECTS.get().swap(true, Ordering::AcqRel) {
                HAS_TURN.set(true);
                return Some(Self);
            }
            py.detach(|| thread::sleep(Duration::from_micros(100)));
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HAS_TURN.set(false);
        COLLECTS.get().store(false, Ordering::Release);
    }
}

/// Runs Python's garbage collector.
pub(crate) fn run(py: Python<'_>) {
    let is_free_threaded = is_free_threaded(py);
    let passes = if is_free_threaded { PASSES_WITHOUT_GIL } else { 1 };
    // Without a GIL the collector does nothing while another thread is in it.
    let _turn = if is_free_threaded { Turn::await_it(py) } else { None };
    let collect = || {
        let gc = py.import("gc")?;
        (0..passes).try_for_each(|_| gc.call_method0("collect").map(drop))
    };
    if let Err(error) = collect() {
        error.write_unraisable(py, None);
    }
}

/// Frees what this thread made and others dropped, if that is left to it: it runs some Python code.
///
/// # Errors
/// What a signal handler raised.
pub(crate) fn free_what_is_left_to_this_thread(py: Python<'_>) -> PyResult<()> {
    if is_free_threaded(py) { py.eval(c"None", None, None).map(drop) } else { Ok(()) }
}

/// Returns whether the interpreter was built without a GIL, which is a flag of its ABI. It counts references in the
/// same manner when an environment variable turns a GIL on.
fn is_free_threaded(py: Python<'_>) -> bool {
    let flags = py.import("sys").and_then(|sys| sys.getattr("abiflags")?.extract::<String>());
    // Where there is no such attribute there is no such interpreter.
    flags.is_ok_and(|flags| flags.contains('t'))
}

fn is_enabled(py: Python<'_>) -> bool {
    let enabled = py.import("gc").and_then(|gc| gc.call_method0("isenabled")?.extract());
    enabled.unwrap_or_else(|error| {
        error.write_unraisable(py, None);
        false
    })
}
