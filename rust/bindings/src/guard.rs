//! Guard mode in Python: its activation, and logging where no exception can be raised.
//!
//! Damage found by a finaliser is raised by the next call that can. At the end of a pool or of the interpreter,
//! unreported damage and leaks go to the logger `allotment.guard`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment::source::{Grant, PageSource, RegionSource, ReserveError};
use allotment::{Damage, Gauge, Leaks, MemoryGuard, Pool};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interpreter::ends_with_the_process;
use crate::interpreter::environment;
use crate::interpreter::garbage;
use crate::pool::registry;

/// Whether the final report of the interpreter was made.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Returns whether a pool uses guard mode: its option, else the environment variable, for memory that can be guarded.
pub(crate) fn is_enabled(
    py: Python<'_>,
    option: Option<bool>,
    is_host_memory: bool,
    elastic: bool,
) -> PyResult<bool> {
    if let Some(option) = option {
        return Ok(option);
    }
    let is_on = environment::switch(py, "ALLOTMENT_GUARD")? && is_host_memory;
    if is_on && elastic {
        return Err(PyValueError::new_err(
            "an elastic pool cannot have guard mode, which ALLOTMENT_GUARD=1 turns on: pass guard=False, or unset \
             ALLOTMENT_GUARD",
        ));
    }
    Ok(is_on)
}

/// A source whose guard logs the final report of a pool.
pub(crate) struct ReportingSource(pub(crate) Box<dyn RegionSource>);

impl RegionSource for ReportingSource {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn joins_regions(&self) -> bool {
        self.0.joins_regions()
    }

    fn starts_at_zero(&self) -> bool {
        self.0.starts_at_zero()
    }

    fn discards(&self) -> bool {
        self.0.discards()
    }

    fn discard(&mut self, span: Grant) {
        self.0.discard(span);
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        self.0.pages()
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.0.gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(ReportingGuard(self.0.guard()?)))
    }
}

/// Passes memory accesses to another guard and logs reports.
#[derive(Debug)]
struct ReportingGuard(Arc<dyn MemoryGuard>);

impl MemoryGuard for ReportingGuard {
    fn fill(&self, address: u64, bytes: u64, byte: u8) {
        self.0.fill(address, bytes, byte);
    }

    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64> {
        self.0.first_other(address, bytes, byte)
    }

    fn report(&self, pool: &str, damages: &[Damage], leaks: Option<&Leaks>) {
        if !ENDED.load(Ordering::Relaxed) {
            report(pool, damages, leaks);
        }
    }
}

/// Raises the oldest unreported damage.
pub(crate) fn raise_damage(py: Python<'_>, pool: &Pool) -> PyResult<()> {
    match pool.take_damage() {
        Ok(Some(damage)) => Err(damage.into_py_err(py)),
        // In a forked child there is nothing to report.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Logs the live allocations as leaks, once.
pub(crate) fn report_leaks(pool: &Pool) {
    report(&pool.options().name, &[], pool.take_leaks().ok().flatten().as_ref());
}

/// Logs damage for callers that cannot raise.
pub(crate) fn log_damage(pool: &str, damage: &Damage) {
    report(pool, std::slice::from_ref(damage), None);
}

fn report(pool: &str, damages: &[Damage], leaks: Option<&Leaks>) {
    for damage in damages {
        log("error", &format!("{pool}: {damage}"));
    }
    if let Some(leaks) = leaks {
        log("warning", &leaks.to_string());
    }
}

/// Writes a log record. Preserves a pending exception.
fn log(level: &str, text: &str) {
    Python::try_attach(|py| {
        if ends_with_the_process(py) {
            // Output is impossible by now.
            return;
        }
        let pending = PyErr::take(py);
        let logger =
            py.import("logging").and_then(|logging| logging.call_method1("getLogger", ("allotment.guard",)));
        if let Err(error) = logger.and_then(|logger| logger.call_method1(level, ("%s", text))) {
            error.write_unraisable(py, None);
        }
        if let Some(pending) = pending {
            pending.restore(py);
        }
    });
}

/// Registers the final report at the interpreter's end, after the handlers that programs register.
pub(crate) fn watch_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // First, as `atexit` runs handlers in reverse order: logging must shut down after the report.
    py.import("logging")?;
    let report = wrap_pyfunction!(report_at_exit, module)?;
    py.import("atexit")?.call_method1("register", (report,))?;
    Ok(())
}

/// Report damage and leaks of all pools in guard mode.
#[pyfunction]
fn report_at_exit(py: Python<'_>) {
    // Each import of the module registers the report.
    if ENDED.load(Ordering::Relaxed) {
        return;
    }
    // Stays attached while it takes locks: the holders of those never need the interpreter.
    if !ends_with_the_process(py) {
        let mut pools = registry::alive();
        pools.retain(|pool| pool.options().guard);
        if !pools.is_empty() {
            // Memory that only garbage holds is not a leak.
            garbage::run(py);
        }
        for pool in &pools {
            // Inherited pools of a forked child have nothing to report.
            let damages = pool.inspect().unwrap_or_default();
            report(&pool.options().name, &damages, pool.take_leaks().ok().flatten().as_ref());
        }
    }
    ENDED.store(true, Ordering::Relaxed);
}
