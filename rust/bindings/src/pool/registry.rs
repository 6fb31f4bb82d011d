//! The registry of all pools created from Python, for process-wide figures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use allotment_host::AdmissionControl;
use allotment_sync::PerProcess;
use pyo3::prelude::*;

use crate::interpreter::detach;
use crate::numpy::{PoolSmallCache, WeakPoolSmallCache};
use crate::report::stats::PoolStats;

/// A registered pool; does not keep it alive.
struct Entry {
    pool: Weak<allotment::Pool>,
    small_cache: WeakPoolSmallCache,
    admission: Option<Weak<AdmissionControl>>,
}

#[derive(Default)]
struct List {
    /// In no particular order.
    pools: Vec<Entry>,
    /// The next entry to check for a dead pool.
    next: usize,
}

impl List {
    /// Removes up to two dead entries, so that they do not accumulate and no call scans the whole list.
    fn remove_dead_entries(&mut self) {
        for _ in 0..2 {
            match self.pools.get(self.next) {
                Some(entry) if entry.pool.strong_count() > 0 => self.next += 1,
                Some(_) => drop(self.pools.swap_remove(self.next)),
                None => self.next = 0,
            }
        }
    }
}

/// Per process: a forked child's list does not contain its parent's pools.
static LIST: PerProcess<Mutex<List>> =
    PerProcess::new(Mutex::new(List { pools: Vec::new(), next: 0 }), Mutex::default);

fn list() -> MutexGuard<'static, List> {
    LIST.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a new pool.
pub(crate) fn register(
    pool: &Arc<allotment::Pool>,
    small_cache: &PoolSmallCache,
    admission: Option<&Arc<AdmissionControl>>,
) {
    let mut list = list();
    list.remove_dead_entries();
    list.pools.push(Entry {
        pool: Arc::downgrade(pool),
        small_cache: small_cache.downgrade(),
        admission: admission.map(Arc::downgrade),
    });
}

/// Returns the admission controls of all live pools.
pub(crate) fn admission_controls() -> Vec<Arc<AdmissionControl>> {
    list().pools.iter().filter_map(|entry| entry.admission.as_ref()?.upgrade()).collect()
}

/// Returns all live pools in order of creation, with flushed caches.
pub(crate) fn alive() -> Vec<Arc<allotment::Pool>> {
    let (mut pools, small_cache): (Vec<_>, Vec<_>) = list()
        .pools
        .iter()
        .filter_map(|entry| Some((entry.pool.upgrade()?, entry.small_cache.upgrade())))
        .unzip();
    for small_cache in small_cache.into_iter().flatten() {
        small_cache.flush();
    }
    pools.sort_unstable_by_key(|pool| pool.number());
    pools
}

/// Return name, number and counters of every pool that is alive, in the order in which they were made.
#[pyfunction]
pub(crate) fn all_stats(py: Python<'_>) -> Vec<(String, u64, PoolStats)> {
    detach(py, || {
        alive()
            .into_iter()
            .filter_map(|pool| {
                Some((pool.options().name.clone(), pool.number(), PoolStats(pool.stats().ok()?)))
            })
            .collect()
    })
}
