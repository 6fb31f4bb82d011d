//! All pools of the process that were made from Python, for figures over all of them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;

use crate::stats::PoolStats;

static POOLS: Mutex<Vec<Weak<allotment::Pool>>> = Mutex::new(Vec::new());

/// Notes a pool that was just made.
pub(crate) fn note(pool: &Arc<allotment::Pool>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(Arc::downgrade(pool));
}

/// Name, number and figures of every pool that is alive, in the order in which they were made.
#[pyfunction]
pub(crate) fn all_stats(py: Python<'_>) -> Vec<(String, u64, PoolStats)> {
    py.detach(|| {
        let pools: Vec<_> = POOLS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let alive = pools.iter().filter_map(Weak::upgrade);
        // A pool of the process that this one was forked from has no figures here.
        alive
            .filter_map(|pool| {
                Some((pool.options().name.clone(), pool.number(), PoolStats(pool.stats().ok()?)))
            })
            .collect()
    })
}
