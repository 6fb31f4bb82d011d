//! Python's collector before a refusal: memory may be held by nothing but garbage.
//!
//! A collection takes milliseconds. So it is left out where the last one freed nothing of the pool, and the pool has
//! neither served nor freed anything since.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::environment;
use crate::interpreter::detach;
use crate::pool::Pool;

/// When a pool has the collector run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    /// Before each refusal, unless the program has switched the collector off.
    Enabled,
    /// Before each refusal, whatever the program says of the collector.
    Always,
}

impl When {
    /// As a pool was told, else as `ALLOTMENT_COLLECT_GARBAGE` says, else as the program has the collector.
    pub(crate) fn choose(py: Python<'_>, told: Option<bool>) -> PyResult<Self> {
        let told = match told {
            None => environment::optional_switch(py, "ALLOTMENT_COLLECT_GARBAGE")?,
            told => told,
        };
        Ok(told.map_or(Self::Enabled, |collect| if collect { Self::Always } else { Self::Never }))
    }

    /// Runs the collector, unless it is not to; says whether it did.
    fn run(self, py: Python<'_>) -> bool {
        match self {
            Self::Never => return false,
            Self::Enabled if !is_enabled(py) => return false,
            Self::Enabled | Self::Always => run(py),
        }
        true
    }
}

/// When to collect for one pool, and what came of the last time.
pub(crate) struct Garbage {
    pub(crate) when: When,
    /// What the pool had done, one more, after the last collection that freed nothing of it; 0 for none.
    fruitless: AtomicU64,
}

impl Garbage {
    pub(crate) fn new(when: When) -> Self {
        Self { when, fruitless: AtomicU64::new(0) }
    }

    /// Runs the collector if it may free anything of the pool; says whether it ran. This attaches to the interpreter.
    pub(crate) fn collect(&self, pool: &allotment::Pool) -> bool {
        let Ok(before) = pool.activity() else { return false };
        if self.when == When::Never || self.fruitless.load(Ordering::Relaxed) == before + 1 {
            return false;
        }
        // After the interpreter's end there is no garbage to collect, and to attach would be a crash.
        if Python::try_attach(|py| self.when.run(py)) != Some(true) {
            return false;
        }
        if pool.activity() == Ok(before) {
            self.fruitless.store(before + 1, Ordering::Relaxed);
        }
        true
    }
}

/// Run Python's collector before memory is refused, as the pool says, or for memory without a pool as the environment
/// says; return whether it ran.
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

/// Runs Python's collector.
pub(crate) fn run(py: Python<'_>) {
    if let Err(error) = py.import("gc").and_then(|gc| gc.call_method0("collect")) {
        error.write_unraisable(py, None);
    }
}

fn is_enabled(py: Python<'_>) -> bool {
    let enabled = py.import("gc").and_then(|gc| gc.call_method0("isenabled")?.extract());
    enabled.unwrap_or_else(|error| {
        error.write_unraisable(py, None);
        false
    })
}
