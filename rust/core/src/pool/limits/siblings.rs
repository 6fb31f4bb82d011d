//! Sibling pools: pools on the same memory that release idle regions for each other.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::super::advise::ExternalMemory;
use super::super::state::State;
use super::super::{AllocationAttempt, Pool, release_regions};
use crate::error::{TrimError, Unusable};
use crate::fork;
use crate::report::out_of_memory::Verdict;
use crate::tables::ChunkRequest;

/// The pools over sources that share one memory, such as a [`Cap`](crate::source::Cap).
///
/// Before a joined pool refuses a request that its source declined, the others release wholly free regions, the
/// largest first, until the request is served; so they do for a paused pool that resumes. Pools with
/// [`Options::trim_on_oom`](super::super::Options) off keep theirs; the refusal's advice names them. A forked child
/// shares nothing, as pools do not survive a fork.
#[derive(Debug)]
pub struct Siblings {
    pools: Mutex<Vec<Weak<Pool>>>,
    fork_generation: u64,
}

impl Default for Siblings {
    fn default() -> Self {
        Self { pools: Mutex::default(), fork_generation: fork::generation() }
    }
}

impl Siblings {
    /// Returns the live pools; none in a forked child, where the lock may be held for ever.
    fn alive(&self) -> Vec<Arc<Pool>> {
        if fork::generation() != self.fork_generation {
            return Vec::new();
        }
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Pool {
    /// Joins the pool to siblings that use each other's idle regions. Returns whether it joined: a pool joins once,
    /// and in the process that made `siblings`.
    pub fn join(self: &Arc<Self>, siblings: &Arc<Siblings>) -> bool {
        let joins =
            fork::generation() == siblings.fork_generation && self.siblings.set(Arc::clone(siblings)).is_ok();
        if joins {
            let mut pools = siblings.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.retain(|pool| pool.strong_count() > 0);
            pools.push(Arc::downgrade(self));
        }
        joins
    }

    /// Returns the sibling pools. Must be called without a lock: the returned `Arc` may be the last one of its pool.
    pub(in crate::pool) fn others(&self) -> Vec<Arc<Self>> {
        let Some(siblings) = self.siblings.get() else { return Vec::new() };
        let mut others = siblings.alive();
        others.retain(|other| other.number != self.number);
        others
    }

    /// Makes sibling pools release idle regions until the request would be served; returns whether any did.
    ///
    /// The caller holds neither lock nor source lock: the other pools take their own.
    pub(in crate::pool) fn reclaim_for(
        &self,
        request: ChunkRequest,
        refused: &AllocationAttempt,
    ) -> Result<bool, Unusable> {
        if refused.out_of_memory.verdict != Verdict::Source {
            return Ok(false);
        }
        self.reclaim_until(|external| self.may_serve(request, external))
    }

    /// Makes sibling pools release idle memory until the source may have `bytes` more bytes; returns whether any did.
    ///
    /// The caller holds neither lock nor source lock.
    pub(in crate::pool) fn reclaim_bytes(&self, bytes: u64) -> Result<bool, Unusable> {
        self.reclaim_until(|external| Ok(external.possible().total() >= bytes))
    }

    /// Makes sibling pools release idle memory, the largest first, until there is enough; none if all of it would not be
    /// enough. Returns whether any did.
    fn reclaim_until(
        &self,
        is_enough: impl Fn(&ExternalMemory) -> Result<bool, Unusable>,
    ) -> Result<bool, Unusable> {
        let mut others = self.others();
        others.retain(|other| other.options.trim_on_oom);
        if others.is_empty() || !is_enough(&self.external_memory(&others))? {
            return Ok(false);
        }
        others.sort_by_cached_key(|other| Reverse(other.idle_bytes()));
        let mut released = 0;
        for other in &others {
            released += other.release_free_regions().unwrap_or_else(|error| error.released());
            if released > 0 && is_enough(&self.external_memory(&[]))? {
                break;
            }
        }
        Ok(released > 0)
    }

    fn may_serve(&self, request: ChunkRequest, external: &ExternalMemory) -> Result<bool, Unusable> {
        let trim_on_oom = self.options.trim_on_oom;
        self.with_settled_state(|state| {
            state.allocator.would_serve(request, trim_on_oom, external.possible())
        })
    }

    /// Releases all wholly free regions without discarding other free memory; returns the released bytes.
    fn release_free_regions(&self) -> Result<u64, TrimError> {
        self.with_source(|source| {
            if self.options.elastic {
                return self.give_back_pages(source, u64::MAX, false);
            }
            let mut state = self.lock_settled_state()?;
            state.empty_quarantine();
            let regions = state.allocator.take_free_regions();
            if !regions.is_empty() {
                state.allocator.history.end();
            }
            drop(state);
            Ok(release_regions(source, regions))
        })?
    }

    /// Returns the bytes of regions without an allocation.
    pub(in crate::pool) fn idle_bytes(&self) -> u64 {
        let idle = |state: &mut State| {
            let paused = state.paused.is_some();
            if paused { state.held_and_releasable().1 } else { state.allocator.idle_bytes() }
        };
        self.with_settled_state(idle).unwrap_or(0)
    }
}
