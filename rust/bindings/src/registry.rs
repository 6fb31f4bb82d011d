//! All pools of the process that were made from Python, for figures over all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use allotment_sync::PerProcess;
use pyo3::prelude::*;

use crate::numpy::{SmallOf, WeakSmallOf};
use crate::stats::PoolStats;

/// A pool, for as long as it is alive.
struct Noted {
    pool: Weak<allotment::Pool>,
    small: WeakSmallOf,
}

/// The pools of each process: no pool of its parent's has figures in a forked child.
static POOLS: PerProcess<Mutex<Vec<Noted>>> = PerProcess::new(Mutex::new(Vec::new()), Mutex::default);

fn pools() -> MutexGuard<'static, Vec<Noted>> {
    POOLS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a pool that was just made.
pub(crate) fn note(pool: &Arc<allotment::Pool>, small: &SmallOf) {
    let mut pools = pools();
    pools.retain(|noted| noted.pool.strong_count() > 0);
    pools.push(Noted { pool: Arc::downgrade(pool), small: small.downgrade() });
}

/// The pools that are alive, in the order in which they were made, with nothing kept back.
pub(crate) fn alive() -> Vec<Arc<allotment::Pool>> {
    let (pools, small): (Vec<_>, Vec<_>) =
        pools().iter().filter_map(|noted| Some((noted.pool.upgrade()?, noted.small.upgrade()))).unzip();
    for small in small.into_iter().flatten() {
        small.settle();
    }
    pools
}

/// Name, number and figures of every pool that is alive, in the order in which they were made.
#[pyfunction]
pub(crate) fn all_stats(py: Python<'_>) -> Vec<(String, u64, PoolStats)> {
    py.detach(|| {
        alive()
            .into_iter()
            .filter_map(|pool| {
                Some((pool.options().name.clone(), pool.number(), PoolStats(pool.stats().ok()?)))
            })
            .collect()
    })
}
