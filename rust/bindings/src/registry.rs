//! All pools of the process that were made from Python, for figures over all of them.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use std::thread;

use pyo3::prelude::*;

use crate::stats::PoolStats;

static POOLS: Mutex<Vec<Weak<allotment::Pool>>> = Mutex::new(Vec::new());

/// Notes a pool that was just made.
pub(crate) fn note(pool: &Arc<allotment::Pool>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(Arc::downgrade(pool));
}

/// The pools that are alive, in the order in which they were made.
fn alive() -> Vec<Arc<allotment::Pool>> {
    upgraded(&POOLS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The same for the end of a process. None if the list stays locked: a forked child's, for ever.
pub(crate) fn alive_at_exit() -> Option<Vec<Arc<allotment::Pool>>> {
    for _ in 0..1000 {
        match POOLS.try_lock() {
            Err(TryLockError::WouldBlock) => thread::yield_now(),
            Err(TryLockError::Poisoned(pools)) => return Some(upgraded(&pools.into_inner())),
            Ok(pools) => return Some(upgraded(&pools)),
        }
    }
    None
}

fn upgraded(pools: &[Weak<allotment::Pool>]) -> Vec<Arc<allotment::Pool>> {
    pools.iter().filter_map(Weak::upgrade).collect()
}

/// Name, number and figures of every pool that is alive, in the order in which they were made.
#[pyfunction]
pub(crate) fn all_stats(py: Python<'_>) -> Vec<(String, u64, PoolStats)> {
    py.detach(|| {
        // A pool of the process that this one was forked from has no figures here.
        alive()
            .into_iter()
            .filter_map(|pool| {
                Some((pool.options().name.clone(), pool.number(), PoolStats(pool.stats().ok()?)))
            })
            .collect()
    })
}
