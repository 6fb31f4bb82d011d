//! Pools that share one memory: what one of them keeps idle, the others can have.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Pool;
use crate::allocator::Request;
use crate::error::Unusable;
use crate::fork;

/// The pools over sources that share one memory, such as a [`Cap`](crate::source::Cap).
///
/// A pool that joined trims the others before it refuses a request, if the memory that they hand back lets the
/// request be served. It leaves pools alone whose [`Options::trim_on_oom`](super::Options) is off; the advice of the
/// refusal names them.
#[derive(Debug)]
pub struct Siblings {
    pools: Mutex<Vec<Weak<Pool>>>,
    /// Pools do not survive a fork, and the lock may not either.
    born: u64,
}

impl Default for Siblings {
    fn default() -> Self {
        Self { pools: Mutex::default(), born: fork::generation() }
    }
}

impl Siblings {
    /// The pools that are alive.
    fn alive(&self) -> Vec<Arc<Pool>> {
        if fork::generation() != self.born {
            return Vec::new();
        }
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }

    fn add(&self, pool: &Arc<Pool>) {
        if fork::generation() == self.born {
            let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.retain(|pool| pool.strong_count() > 0);
            pools.push(Arc::downgrade(pool));
        }
    }
}

impl Pool {
    /// Lets the pool and the others that joined take over each other's idle regions. The first call counts; in a
    /// forked child none does.
    pub fn join(self: &Arc<Self>, siblings: &Arc<Siblings>) {
        if self.siblings.set(Arc::clone(siblings)).is_ok() {
            siblings.add(self);
        }
    }

    /// The pools beside this one.
    pub(super) fn others(&self) -> Vec<Arc<Self>> {
        let Some(siblings) = self.siblings.get() else { return Vec::new() };
        let mut others = siblings.alive();
        others.retain(|other| other.number != self.number);
        others
    }

    /// Trims the pools beside this one if the request is served then; says whether they handed anything back.
    ///
    /// Neither lock nor source lock is held here: the other pools have their own.
    pub(super) fn reclaim_for(&self, request: Request) -> Result<bool, Unusable> {
        let others = self.others();
        if others.is_empty() {
            return Ok(false);
        }
        let around = self.surroundings(&others);
        let helps = self.with_state(|state| {
            let trim_on_oom = self.options.trim_on_oom;
            let serves = |supply| state.allocator.would_serve(request.needed, trim_on_oom, supply);
            !serves(around.supply.without_reclaimable()) && serves(around.supply)
        })?;
        let trimmed = others.iter().filter(|other| helps && other.options.trim_on_oom);
        Ok(trimmed.filter_map(|other| other.trim().ok()).sum::<u64>() > 0)
    }

    /// Bytes of wholly free regions, those included that the quarantine keeps.
    pub(super) fn idle_bytes(&self) -> u64 {
        let idle = self.with_state(|state| {
            state.empty_quarantine();
            state.allocator.releasable()
        });
        idle.unwrap_or(0)
    }
}
