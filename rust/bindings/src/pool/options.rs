//! Options of new pools: defaults, ranges, warnings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allotment::{MAX_WAIT, Options, Policy};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::error::message_text::show_value;
use crate::plan::Plan;

/// Warns of options without an effect.
pub(super) fn warn_of_unused(py: Python<'_>, options: &Options) -> PyResult<()> {
    let warn = |text| PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1);
    if options.quarantine.is_some() && !options.guard {
        warn(c"quarantine= has no effect without guard mode: pass guard=True, or set ALLOTMENT_GUARD=1")?;
    }
    if options.fragmentation_fraction != 0.0 && options.policy == Policy::Tight {
        warn(c"fragmentation_fraction= has no effect with policy='tight', which splits off every remainder")?;
    }
    if options.thread_caches && (options.guard || options.owner_tags) {
        warn(c"thread_caches=True has no effect with guard mode or owner tags, which see every allocation")?;
    }
    if options.fragmentation_fraction != 0.0 && options.elastic {
        warn(c"fragmentation_fraction= has no effect in an elastic pool, which splits off every remainder")?;
    }
    if options.joins_regions.is_some() && options.elastic {
        warn(c"joins_regions= has no effect in an elastic pool, which never joins its ranges of addresses")?;
    }
    if options.thread_caches && options.elastic {
        warn(c"thread_caches=True has no effect in an elastic pool")?;
    }
    Ok(())
}

/// Converts the idle time; at least a millisecond, as a thread wakes up for it each time.
pub(super) fn idle_argument(seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| *time >= Duration::from_millis(1));
    time.filter(|time| *time <= MAX_WAIT).ok_or_else(|| {
        let most = MAX_WAIT.as_secs();
        PyValueError::new_err(format!("idle_trim_seconds {seconds} is not between 0.001 and {most}"))
    })
}

/// Converts the plan.
pub(super) fn plan_argument(plan: &Bound<'_, PyAny>) -> PyResult<Arc<allotment::plan::Plan>> {
    let found = plan.cast::<Plan>().map(|plan| Arc::clone(&plan.get().0));
    found.map_err(|_| {
        PyTypeError::new_err(format!(
            "plan must be a Plan or None, not {}: allotment.trace.read_plan reads one from a file, and \
             allotment.trace.plan makes one of a trace",
            show_value(plan)
        ))
    })
}

pub(super) fn default_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("pool-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
