//! The pool: a thread-safe allocator with its source and limit.
//!
//! A pool has two locks. The **lock** guards the tables and is held briefly; no source is called under it. The
//! **source lock** is the right to call the source; a thread takes it before the lock, never after. Only its holder
//! reserves, so the limit is exact although the lock is free while the source runs.
//!
//! The **fast path** comes before both. It applies while one thread uses the pool alone and the tables suffice to
//! serve the call. A failed fast path changes nothing. With thread caches no thread owns the lock; each has a cache of
//! its own instead, which comes before the lock (`caches.rs`).
//!
//! ```text
//! allocate ─ lock: fits? ─────────────────────────────────────────────────────→ done
//!               └ no: source lock ─ lock: fits now? plan ─ reserve ─ lock: adopt ─→ done
//!                                           └ declined: lock: remove free regions ─ release
//!                                              └ plan, reserve, adopt again ─→ done or refused
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use allotment_sync::{DeferredQueue, EventCount, Mutex, SourceLock, SourceLockGuard, WouldDeadlock};

use crate::error::{OptionsError, Unusable};
use crate::fork;
use crate::options::Options;
use crate::report::snapshot::Snapshot;
use crate::source::{Gauge, Grant, PageSizes, RegionSource};
use crate::stats::Stats;
use crate::tables::Elastic;
use crate::tables::check::{Violation, check};
use crate::tables::decisions::Decision;

mod advise;
mod allocating;
mod block;
mod caches;
mod closing;
mod elastic;
mod freeing;
mod grow;
mod guarding;
mod holding;
mod idle;
mod limits;
mod lock;
mod queries;
mod recording;
mod resizing;
mod state;
mod trim;
mod wait;

pub use block::Block;
use caches::Caches;
pub use elastic::paused_content::PausedContent;
pub use elastic::pausing::PauseError;
use freeing::Deferred;
use guarding::Guarded;
pub use limits::scope::{Scope, is_tagged, set_tag};
pub use limits::siblings::Siblings;
pub use recording::{EventKind, EventLog, Keep, PoolEvent, RecentEvents};
use state::State;
pub use wait::{AllocationAttempt, MemoryWait};

/// The source, with the source lock held.
type Source<'a> = SourceLockGuard<'a, Box<dyn RegionSource>>;

/// A best-fit allocator over regions from one source.
///
/// Threads share it by reference. [`block`](Self::block) makes memory that frees itself; [`allocate`](Self::allocate)
/// and [`free`](Self::free) take and return addresses. Every call is an error, [`Unusable`], in a forked child.
///
/// The end of a pool releases its wholly free regions. One with a live allocation stays reserved for ever, as its user
/// may still access it; a pool that is [closed](Self::close) first releases it after the last free.
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    source_lock: SourceLock<Box<dyn RegionSource>>,
    /// Small chunks that threads keep; `None` unless the options ask for them.
    caches: Option<Arc<Caches>>,
    /// Frees and scope ends that could not take the lock.
    deferred: DeferredQueue<Deferred>,
    /// Notified when memory was freed and a thread waits for that.
    freed: EventCount,
    /// Notified when a waiting request was served, or refused again.
    tried: EventCount,
    /// Reports how much the source could grant.
    gauge: Option<Arc<dyn Gauge>>,
    /// The page sizes of the source.
    page_sizes: PageSizes,
    /// The pools that share the source's memory.
    siblings: OnceLock<Arc<Siblings>>,
    fork_generation: u64,
    /// The number of this pool, unique within the process.
    number: u64,
    /// The address of zero bytes.
    no_address: u64,
    /// Whether the pool was ever registered for trims when idle.
    is_trimmed_when_idle: AtomicBool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Pool {
    /// Creates a pool over `source`. Reserves nothing before the first allocation.
    ///
    /// # Errors
    /// If an option is out of range, or if guard mode is requested and the source has no guard.
    pub fn new(mut source: impl RegionSource + 'static, options: Options) -> Result<Self, OptionsError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        options.check()?;
        let mut allocator = options.tables(&source);
        let page_sizes = PageSizes::of(&mut source);
        if let Some(page_size) = options.page_size_of(&mut source)? {
            allocator.set_elastic(Elastic::new(page_size));
        }
        let guard = options.guard.then(|| source.guard().ok_or(OptionsError::NotGuardable)).transpose()?;
        let guarded = guard.map(|guard| Guarded::new(guard, &options));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Where every operation counts the caches would always be empty, and they keep no chunk at address 0.
        let has_caches = options.has_thread_caches() && !source.starts_at_zero();
        let caches = has_caches.then(Arc::<Caches>::default);
        let state = State::new(allocator, guarded, options.owner_tags, number, caches.clone());
        let deferred = DeferredQueue::new();
        deferred.set_slow_path(state.slow_path().any());
        Ok(Self {
            no_address: if source.starts_at_zero() { u64::MAX } else { 0 },
            gauge: source.gauge(),
            page_sizes,
            siblings: OnceLock::new(),
            options,
            // With caches each thread owns the lock of its own.
            state: if has_caches { Mutex::new_unbiased(state) } else { Mutex::new(state) },
            caches,
            source_lock: SourceLock::new(Box::new(source)),
            deferred,
            freed: EventCount::new(),
            tried: EventCount::new(),
            fork_generation: fork::generation(),
            number,
            is_trimmed_when_idle: AtomicBool::new(false),
        })
    }

    /// Returns the options that the pool was created with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the pool's counters.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stats(&self) -> Result<Stats, Unusable> {
        self.with_state(State::stats)?
    }

    /// Sets every peak to its current value; cumulative counters stay.
    ///
    /// # Errors
    /// In a forked child.
    pub fn reset_peaks(&self) -> Result<(), Unusable> {
        self.with_settled_state(|state| {
            state.allocator.decisions.record(|| Decision::PeaksReset);
            state.allocator.counters.reset_peaks();
        })
    }

    /// Returns a consistent copy of all regions and chunks.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the number of chunks, under the lock.
    pub fn snapshot(&self) -> Result<Snapshot, Unusable> {
        self.with_settled_state(|state| Snapshot::new(&self.options.name, &state.allocator))
    }

    /// Checks all invariants and returns the first violation. For tests.
    ///
    /// # Errors
    /// The violation.
    ///
    /// # Panics
    /// In a forked child.
    pub fn check(&self) -> Result<(), Violation> {
        self.with_settled_state(|state| check(&state.allocator)).expect("a pool of this process")
    }

    /// Runs `work` with the source lock held, then releases regions that other threads left because the lock was
    /// taken.
    fn with_source<T>(&self, work: impl FnOnce(&mut Source<'_>) -> T) -> Result<T, Unusable> {
        self.check_process()?;
        let source = self.source_lock.lock().map_err(|WouldDeadlock| Unusable::InsideSource)?;
        Ok(self.use_source(source, work))
    }

    fn use_source<T>(&self, mut source: Source<'_>, work: impl FnOnce(&mut Source<'_>) -> T) -> T {
        let result = work(&mut source);
        drop(source);
        self.release_last_regions();
        result
    }

    /// Returns whether this process is a forked child of the process that made the pool; every call is an error then.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        fork::generation() != self.fork_generation
    }

    fn check_process(&self) -> Result<(), Unusable> {
        if self.is_inherited() { Err(Unusable::Forked) } else { Ok(()) }
    }
}

const STATE_IS_SOUND: &str = "the pool's tables are sound: no thread panicked while it held the lock";

/// Releases wholly free regions. A region with a live allocation stays reserved for ever: its user may still access
/// it, and no later call can tell when that ends.
impl Drop for Pool {
    fn drop(&mut self) {
        self.stop_trimming_when_idle();
        self.state.forget_owner();
        // A forked child owns none of the regions; after a panic under the lock the tables may be inconsistent.
        if !self.state.is_poisoned() {
            let _ = self.trim();
            self.report_leaks();
        }
    }
}

fn release_regions(source: &mut Source<'_>, regions: Vec<Grant>) -> u64 {
    let bytes = regions.iter().map(|region| region.bytes).sum();
    // If the source panics for one region, the others are still released.
    let mut panic = None;
    for region in regions {
        let released = catch_unwind(AssertUnwindSafe(|| source.release(region)));
        panic = panic.or(released.err());
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    bytes
}

#[cfg(test)]
mod tests;
