//! Pools that share one memory: what one of them keeps idle, the others can have.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::advise::Surroundings;
use super::{Pool, Refused, hand_back};
use crate::allocator::Request;
use crate::error::Unusable;
use crate::fork;
use crate::refusal::Verdict;

/// The pools over sources that share one memory, such as a [`Cap`](crate::source::Cap).
///
/// Before a pool that joined refuses a request that its source declined, the others hand back wholly free regions, the
/// largest first, until the request is served. Pools whose [`Options::trim_on_oom`](super::Options) is off keep theirs;
/// the advice of the refusal names them. In a forked child nothing is shared, as pools do not survive a fork.
#[derive(Debug)]
pub struct Siblings {
    pools: Mutex<Vec<Weak<Pool>>>,
    born: u64,
}

impl Default for Siblings {
    fn default() -> Self {
        Self { pools: Mutex::default(), born: fork::generation() }
    }
}

impl Siblings {
    /// The pools that are alive; none in a forked child, where the lock may be held for ever.
    fn alive(&self) -> Vec<Arc<Pool>> {
        if fork::generation() != self.born {
            return Vec::new();
        }
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Pool {
    /// Lets the pool and the others that joined take over each other's idle regions. Returns whether it does: a pool
    /// joins once, and in the process in which `siblings` was made.
    pub fn join(self: &Arc<Self>, siblings: &Arc<Siblings>) -> bool {
        let joins = fork::generation() == siblings.born && self.siblings.set(Arc::clone(siblings)).is_ok();
        if joins {
            let mut pools = siblings.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.retain(|pool| pool.strong_count() > 0);
            pools.push(Arc::downgrade(self));
        }
        joins
    }

    /// The pools beside this one. The caller may be the last owner of one: it drops them without a lock.
    pub(super) fn others(&self) -> Vec<Arc<Self>> {
        let Some(siblings) = self.siblings.get() else { return Vec::new() };
        let mut others = siblings.alive();
        others.retain(|other| other.number != self.number);
        others
    }

    /// Has the pools beside this one hand back idle regions, until the request would be served; returns whether any
    /// did.
    ///
    /// Neither lock nor source lock is held here: the other pools have their own.
    pub(super) fn reclaim_for(&self, request: Request, refused: &Refused) -> Result<bool, Unusable> {
        if refused.out_of_memory.verdict != Verdict::Source {
            return Ok(false);
        }
        let mut others = self.others();
        others.retain(|other| other.options.trim_on_oom);
        let around = self.surroundings(&others);
        if others.is_empty() || !self.may_serve(request, &around)? {
            return Ok(false);
        }
        others.sort_by_cached_key(|other| Reverse(other.idle_bytes()));
        let mut released = 0;
        for other in &others {
            released += other.release_free_regions().unwrap_or(0);
            if released > 0 && self.may_serve(request, &self.surroundings(&[]))? {
                break;
            }
        }
        Ok(released > 0)
    }

    fn may_serve(&self, request: Request, around: &Surroundings) -> Result<bool, Unusable> {
        let trim_on_oom = self.options.trim_on_oom;
        self.with_state(|state| state.allocator.would_serve(request.needed, trim_on_oom, around.possible()))
    }

    /// Hands back every wholly free region, and leaves what is free in others as it is; returns their bytes.
    fn release_free_regions(&self) -> Result<u64, Unusable> {
        self.with_turn(|turn| {
            let mut state = self.enter()?;
            state.empty_quarantine();
            let regions = state.allocator.give_up_free_regions();
            if !regions.is_empty() {
                state.allocator.history.end();
            }
            drop(state);
            Ok(hand_back(turn, regions))
        })?
    }

    /// Bytes of regions that no allocation is in.
    pub(super) fn idle_bytes(&self) -> u64 {
        self.with_state(|state| state.allocator.idle_bytes()).unwrap_or(0)
    }
}
