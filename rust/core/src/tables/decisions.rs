//! The order of a pool's decisions, for tests of histories of several threads.
//!
//! Only with the feature `decisions`: an allocator then records each change of its tables, under the lock that the
//! change needs. The order of the record is therefore the order in which a single lock made the decisions. Without
//! the feature the record has no size and no code.

#![cfg_attr(
    not(feature = "decisions"),
    allow(dead_code, unreachable_pub, reason = "no test reads the record")
)]

#[cfg(feature = "std")]
use std::cell::Cell;
#[cfg(feature = "std")]
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::Grant;

/// One change of a pool's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The allocation with this number was made.
    Allocated(u64),
    /// The allocation with this number was freed.
    Freed(u64),
    /// The allocation at an address was resized in place.
    Resized {
        /// Its address.
        address: u64,
        /// The wanted bytes.
        bytes: u64,
    },
    /// The allocation at an address became held, or is no longer held.
    Held {
        /// Its address.
        address: u64,
        /// Whether it is held now.
        held: bool,
    },
    /// A round of growth was planned for a chunk of this many bytes.
    Planned(u64),
    /// A grant became a region.
    Adopted(Grant),
    /// All wholly free regions were removed.
    RegionsRemoved,
    /// A closed pool without allocations removes its regions; the next decision is [`Decision::RegionsRemoved`].
    Emptied,
    /// The limit or growth was changed.
    Changed {
        /// The limit in bytes.
        limit: u64,
        /// Whether growth is on.
        growth: bool,
    },
    /// A refusal was counted.
    Refused,
    /// The peaks were reset.
    PeaksReset,
    /// The pool was closed.
    Closed,
    /// A request was counted against the scope limits of its thread.
    Charged,
    /// That request was served or refused.
    Settled,
    /// A scope with this serial number was opened.
    ScopeOpened(u64),
    /// That scope was closed.
    ScopeClosed(u64),
    /// A limit was set for that scope, which may be closed.
    ScopeLimited(u64),
    /// The lock of a pool with thread caches was taken, and no deferred operation is left.
    Locked,
    /// The lock of a pool with thread caches was taken, and deferred operations run.
    RunsDeferred,
    /// A cache was locked under the lock of the pool, until the next decision that is not one of the cache's.
    CacheLocked {
        /// The number of the cache.
        cache: u64,
        /// The number of decisions of that cache so far.
        decided: u64,
    },
    /// Numbers of allocations were set aside for the locked cache.
    NumbersSetAside {
        /// The first of them.
        first: u64,
        /// How many there are.
        count: u64,
    },
    /// A chunk of exactly this size was lent to the locked cache.
    Lent {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The chunk at an address, which the locked cache kept, became free.
    TakenBack {
        /// Its address.
        address: u64,
    },
    /// An allocation that a cache served became one of the allocator.
    Withdrawn {
        /// Its address.
        address: u64,
        /// Its number.
        id: u64,
    },
    /// The counters were read, with all caches locked.
    Counted,
    /// An allocation was served from a cache. This and the next one are in the record of the cache.
    CacheServed {
        /// The number of the cache.
        cache: u64,
        /// The number of the allocation.
        id: u64,
    },
    /// An allocation was freed into a cache.
    CacheFreed {
        /// The number of the cache.
        cache: u64,
        /// The number of the allocation.
        id: u64,
    },
}

/// A decision and the thread that ran it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// The thread, by [`Maker::thread`]. A deferred free is run by the thread that found it in the queue.
    pub thread: u64,
    /// The number of decisions that the thread had run before, of all pools.
    pub number: u64,
    /// The decision.
    pub decision: Decision,
}

/// A thread that makes decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maker {
    /// The number of the thread, unique within the process.
    pub thread: u64,
    /// The number of decisions that it has run so far, of all pools.
    pub made: u64,
}

#[cfg(feature = "std")]
thread_local! {
    static MAKER: Cell<Maker> = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Cell::new(Maker { thread: NEXT.fetch_add(1, Ordering::Relaxed), made: 0 })
    };
    static YIELDS_IN_EVERY: Cell<u64> = const { Cell::new(0) };
}

#[cfg(feature = "std")]
impl Maker {
    /// Returns the calling thread.
    ///
    /// # Panics
    /// At the very end of a thread.
    #[must_use]
    pub fn this() -> Self {
        MAKER.get()
    }

    /// Makes the calling thread yield its core in every `every`-th of its decisions, 0 for never: with the lock held,
    /// as if the scheduler stopped it there. Threads then meet on a machine with too few free cores as well.
    pub fn yield_in_every(every: u64) {
        YIELDS_IN_EVERY.set(every);
    }

    /// Counts one decision of the calling thread; returns the thread as it was before.
    #[cfg(feature = "decisions")]
    fn decides() -> Self {
        let Self { thread, made } = MAKER.get();
        MAKER.set(Self { thread, made: made + 1 });
        if made.checked_rem(YIELDS_IN_EVERY.get()) == Some(0) {
            std::thread::yield_now();
        }
        Self { thread, made }
    }
}

/// The decisions of an allocator, in order.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    #[cfg(feature = "decisions")]
    made: Vec<Decided>,
}

impl Decisions {
    /// Records a decision.
    #[inline(always)]
    #[cfg_attr(not(feature = "decisions"), expect(clippy::unused_self, reason = "there is no record"))]
    pub(crate) fn record(&mut self, decision: impl FnOnce() -> Decision) {
        #[cfg(feature = "decisions")]
        {
            let Maker { thread, made: number } = Maker::decides();
            self.made.push(Decided { thread, number, decision: decision() });
        }
        #[cfg(not(feature = "decisions"))]
        drop(decision);
    }

    /// Replaces the last decision: it was part of this one.
    #[inline(always)]
    #[cfg_attr(not(feature = "decisions"), expect(clippy::unused_self, reason = "there is no record"))]
    pub(crate) fn replace_last(&mut self, decision: impl FnOnce() -> Decision) {
        #[cfg(feature = "decisions")]
        if let Some(last) = self.made.last_mut() {
            last.decision = decision();
        }
        #[cfg(not(feature = "decisions"))]
        drop(decision);
    }

    /// Removes and returns the record.
    #[cfg(feature = "decisions")]
    pub(crate) fn take(&mut self) -> Vec<Decided> {
        std::mem::take(&mut self.made)
    }
}

/// The decisions of a thread cache, in order.
#[derive(Debug)]
#[cfg_attr(not(feature = "decisions"), derive(Default))]
pub(crate) struct CacheDecisions {
    /// The number of the cache, unique within the process.
    #[cfg(feature = "decisions")]
    cache: u64,
    #[cfg(feature = "decisions")]
    made: Decisions,
}

#[cfg(feature = "decisions")]
impl Default for CacheDecisions {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { cache: NEXT.fetch_add(1, Ordering::Relaxed), made: Decisions::default() }
    }
}

impl CacheDecisions {
    /// Records a decision of the cache.
    #[inline(always)]
    #[cfg_attr(not(feature = "decisions"), expect(clippy::unused_self, reason = "there is no record"))]
    pub(crate) fn record(&mut self, decision: impl FnOnce(u64) -> Decision) {
        #[cfg(feature = "decisions")]
        self.made.record(|| decision(self.cache));
        #[cfg(not(feature = "decisions"))]
        drop(decision);
    }

    /// Records in the order of the pool that the cache is locked.
    #[inline(always)]
    #[cfg_attr(not(feature = "decisions"), expect(clippy::unused_self, reason = "there is no record"))]
    pub(crate) fn record_lock(&self, order: &mut Decisions) {
        #[cfg(feature = "decisions")]
        order.record(|| Decision::CacheLocked { cache: self.cache, decided: self.made.made.len() as u64 });
        #[cfg(not(feature = "decisions"))]
        let _ = order;
    }

    /// Returns a copy of the record, with the number of the cache.
    #[cfg(feature = "decisions")]
    pub(crate) fn copy(&self) -> (u64, Vec<Decided>) {
        (self.cache, self.made.made.clone())
    }
}
