//! All pools of the process that were made from Python, for figures over all of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;

use crate::numpy::{SmallOf, WeakSmallOf};
use crate::stats::PoolStats;

/// A pool, for as long as it is alive.
struct Noted {
    pool: Weak<allotment::Pool>,
    small: WeakSmallOf,
}

/// The pools of one process. Its lock may be held for ever by a thread that a forked child does not have, so a child
/// has a list of its own, behind its parent's.
struct List {
    pools: Mutex<Vec<Noted>>,
    child: OnceLock<Box<List>>,
}

impl List {
    const fn new() -> Self {
        Self { pools: Mutex::new(Vec::new()), child: OnceLock::new() }
    }
}

static FIRST: List = List::new();
/// How many lists come before this process's.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// From now on this process is a forked child: no pool of its parent's has figures here.
pub(crate) fn entered_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

fn pools() -> MutexGuard<'static, Vec<Noted>> {
    let mut list = &FIRST;
    for _ in 0..FORKS.load(Ordering::Relaxed) {
        list = list.child.get_or_init(|| Box::new(List::new()));
    }
    list.pools.lock().unwrap_or_else(PoisonError::into_inner)
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
