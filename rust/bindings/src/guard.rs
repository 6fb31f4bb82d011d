//! Guard mode as Python has it: what turns it on, and what is said where nobody can be told by an exception.
//!
//! Damage that a finaliser finds waits for the next call that can raise. What is left when a pool or the
//! interpreter ends goes to the logger `allotment.guard`, as do the allocations that were never freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment::source::{Grant, Refusal, RegionSource};
use allotment::{Damage, Gauge, Leaks, MemoryGuard, Pool};
use pyo3::prelude::*;

use crate::environment;
use crate::error::IntoPyErr;
use crate::garbage;
use crate::interpreter::ends_with_the_process;
use crate::registry;

/// The interpreter is at its end, and everything was said.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Whether a pool is to be guarded: as it was told, else as the environment says, for memory that can be.
pub(crate) fn is_wanted(py: Python<'_>, told: Option<bool>, is_host_memory: bool) -> PyResult<bool> {
    match told {
        Some(told) => Ok(told),
        None => Ok(environment::switch(py, "ALLOTMENT_GUARD")? && is_host_memory),
    }
}

/// A source whose guard has the last words of a pool logged.
pub(crate) struct Outspoken(pub(crate) Box<dyn RegionSource>);

impl RegionSource for Outspoken {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn joins_regions(&self) -> bool {
        self.0.joins_regions()
    }

    fn discards(&self) -> bool {
        self.0.discards()
    }

    fn discard(&mut self, span: Grant) {
        self.0.discard(span);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.0.gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        Some(Arc::new(OutspokenGuard(self.0.guard()?)))
    }
}

/// Leaves the memory to another guard, and speaks itself.
#[derive(Debug)]
struct OutspokenGuard(Arc<dyn MemoryGuard>);

impl MemoryGuard for OutspokenGuard {
    fn fill(&self, address: u64, bytes: u64, byte: u8) {
        self.0.fill(address, bytes, byte);
    }

    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64> {
        self.0.first_other(address, bytes, byte)
    }

    fn last_words(&self, pool: &str, damages: &[Damage], leaks: Option<&Leaks>) {
        if !ENDED.load(Ordering::Relaxed) {
            report(pool, damages, leaks);
        }
    }
}

/// Raises the damage that was found longest ago and nobody was told of.
pub(crate) fn raise_damage(py: Python<'_>, pool: &Pool) -> PyResult<()> {
    match pool.take_damage() {
        Ok(Some(damage)) => Err(damage.into_py_err(py)),
        // A forked child has nothing to be told.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Reports what is still allocated, once.
pub(crate) fn report_leaks(pool: &Pool) {
    report(&pool.options().name, &[], pool.take_leaks().ok().flatten().as_ref());
}

/// Reports damage for callers that have nobody to raise to.
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

/// Says something through the logger. An exception that is on its way stays on its way.
fn log(level: &str, text: &str) {
    Python::try_attach(|py| {
        if ends_with_the_process(py) {
            // Nothing can be written any more.
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

/// Has everything said at the interpreter's end, after what programs register for that.
pub(crate) fn watch_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // First: what is registered last is called first, and logging's own end must come after ours.
    py.import("logging")?;
    let report = wrap_pyfunction!(report_at_exit, module)?;
    py.import("atexit")?.call_method1("register", (report,))?;
    Ok(())
}

/// Report the damage to pools in guard mode and what they still hold.
#[pyfunction]
fn report_at_exit(py: Python<'_>) {
    // Registered by each import of the module; there may have been several.
    if ENDED.load(Ordering::Relaxed) {
        return;
    }
    // Attached, although locks are taken: their holders never need the interpreter.
    if !ends_with_the_process(py) {
        let mut pools = registry::alive();
        pools.retain(|pool| pool.options().guard);
        if !pools.is_empty() {
            // What only garbage holds is no leak.
            garbage::run(py);
        }
        for pool in &pools {
            // A pool of the process that this one was forked from has nothing to say.
            let damages = pool.inspect().unwrap_or_default();
            report(&pool.options().name, &damages, pool.take_leaks().ok().flatten().as_ref());
        }
    }
    ENDED.store(true, Ordering::Relaxed);
}
