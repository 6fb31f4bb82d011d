//! All pools of the process that were made from Python, for figures over all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use allotment_host::Watch;
use allotment_sync::PerProcess;
use pyo3::prelude::*;

use crate::interpreter::detach;
use crate::numpy::{SmallOf, WeakSmallOf};
use crate::stats::PoolStats;

/// A pool, for as long as it is alive.
struct Noted {
    pool: Weak<allotment::Pool>,
    small: WeakSmallOf,
    watch: Option<Weak<Watch>>,
}

#[derive(Default)]
struct List {
    /// In no order.
    pools: Vec<Noted>,
    /// Where to look next for one that is gone.
    next: usize,
}

impl List {
    /// Takes out a pool or two that are gone, if it meets any. So those that are gone do not pile up, and no call looks
    /// at all pools.
    fn tidy(&mut self) {
        for _ in 0..2 {
            match self.pools.get(self.next) {
                Some(noted) if noted.pool.strong_count() > 0 => self.next += 1,
                Some(_) => drop(self.pools.swap_remove(self.next)),
                None => self.next = 0,
            }
        }
    }
}

/// The pools of each process: no pool of its parent's has figures in a forked child.
static LIST: PerProcess<Mutex<List>> =
    PerProcess::new(Mutex::new(List { pools: Vec::new(), next: 0 }), Mutex::default);

fn list() -> MutexGuard<'static, List> {
    LIST.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a pool that was just made.
pub(crate) fn note(pool: &Arc<allotment::Pool>, small: &SmallOf, watch: Option<&Arc<Watch>>) {
    let mut list = list();
    list.tidy();
    list.pools.push(Noted {
        pool: Arc::downgrade(pool),
        small: small.downgrade(),
        watch: watch.map(Arc::downgrade),
    });
}

/// The watches over pools that are alive.
pub(crate) fn watches() -> Vec<Arc<Watch>> {
    list().pools.iter().filter_map(|noted| noted.watch.as_ref()?.upgrade()).collect()
}

/// The pools that are alive, in the order in which they were made, with nothing kept back.
pub(crate) fn alive() -> Vec<Arc<allotment::Pool>> {
    let (mut pools, small): (Vec<_>, Vec<_>) =
        list().pools.iter().filter_map(|noted| Some((noted.pool.upgrade()?, noted.small.upgrade()))).unzip();
    for small in small.into_iter().flatten() {
        small.settle();
    }
    pools.sort_unstable_by_key(|pool| pool.number());
    pools
}

/// Name, number and figures of every pool that is alive, in the order in which they were made.
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
