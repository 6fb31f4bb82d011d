//! A pool: an allocator, its source and its limit, safe to share between threads.
//!
//! Two mutexes. The **lock** guards the tables and is held briefly; no source is called under it. The
//! **turn** is the right to talk to the source; it is taken before the lock, never after. Only its holder
//! can reserve, so the limit is exact although the source is asked with the lock free.
//!
//! In front of both is the quick door, for a thread that has had the pool to itself: it opens only where there is
//! nothing to do but what the tables can do alone, and who finds it shut has changed nothing.
//!
//! ```text
//! allocate ─ lock: fits? ─────────────────────────────────────────────→ done
//!               └ no: turn ─ lock: fits now? plan ─ ask ─ lock: adopt ─→ done
//!                                                    └ refused: lock: give up free regions ─ hand back
//!                                                       └ plan, ask, adopt once more ─→ done or refused
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use allotment_sync::{Bell, Inside, Mailbox, Mutex, Turn, TurnGuard};

use crate::allocator::{Allocator, Limit};
use crate::check::{Violation, check};
use crate::error::{FreeError, OptionsError, Unusable};
use crate::fork;
use crate::policy::SplitRule;
use crate::report::Snapshot;
use crate::source::{Gauge, Grant, RegionSource};
use crate::stats::Stats;

mod advise;
mod allocating;
mod closing;
mod freeing;
mod grow;
mod guarding;
mod holding;
mod idle;
mod limits;
mod lock;
mod options;
mod questions;
mod scope;
mod siblings;
mod state;
mod trim;
mod wait;

use freeing::Late;
use guarding::Guarded;
pub use options::{MAX_WAIT, Options};
pub use scope::{Scope, is_tagged, set_tag};
pub use siblings::Siblings;
use state::State;
pub use wait::{Patience, Refused};

/// The source, and the right to call it.
type Source<'a> = TurnGuard<'a, Box<dyn RegionSource>>;

/// A best-fit allocator over regions from one source.
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    turn: Turn<Box<dyn RegionSource>>,
    /// Frees and ends of scopes that could not wait for the lock.
    late: Mailbox<Late>,
    /// Rings when something was freed and somebody waits for that.
    freed: Bell,
    /// Tells what the source could grant.
    gauge: Option<Arc<dyn Gauge>>,
    /// Pools on the same memory.
    siblings: OnceLock<Arc<Siblings>>,
    born: u64,
    /// Its own among all pools of the process.
    number: u64,
    /// Whether it was ever to be trimmed when idle.
    is_watched: AtomicBool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool over `source`. Nothing is reserved before the first allocation.
    ///
    /// # Errors
    /// When an option is out of range, or guard mode is asked for and the source has no guard.
    pub fn new(source: impl RegionSource + 'static, options: Options) -> Result<Self, OptionsError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        options.check()?;
        let joins = options.joins_regions.unwrap_or_else(|| source.joins_regions());
        let limit = Limit { bytes: options.limit, set_by: options.limit_set_by.as_str().into() };
        let split_rule = SplitRule { policy: options.policy, fraction: options.fragmentation_fraction };
        let allocator = Allocator::new(limit, options.growth, split_rule, joins);
        let guard = options.guard.then(|| source.guard().ok_or(OptionsError::NotGuardable)).transpose()?;
        let guarded = guard.map(|guard| Guarded::new(guard, &options));
        let state = State::new(allocator, guarded, options.owner_tags);
        let late = Mailbox::new();
        late.set_notice(state.concerns().any());
        Ok(Self {
            gauge: source.gauge(),
            siblings: OnceLock::new(),
            options,
            state: Mutex::new(state),
            turn: Turn::new(Box::new(source)),
            late,
            freed: Bell::new(),
            born: fork::generation(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            is_watched: AtomicBool::new(false),
        })
    }

    /// How the pool was set up.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Makes the allocation at `address` one of `bytes` bytes if its chunk is long enough; returns the bytes
    /// that may be used there either way. For allocations that were not aligned beyond the granule.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn resize_in_place(&self, address: u64, bytes: u64) -> Result<u64, FreeError> {
        let resized = self.with_state(|state| state.resize_in_place(address, bytes))?;
        resized.ok_or(FreeError::NotAllocated { address })
    }

    /// What the pool holds and has done.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stats(&self) -> Result<Stats, Unusable> {
        self.with_state(|state| state.allocator.stats())
    }

    /// Makes every peak what it is now; cumulative counters stay.
    ///
    /// # Errors
    /// In a forked child.
    pub fn reset_peaks(&self) -> Result<(), Unusable> {
        self.with_state(|state| state.allocator.counters.reset_peaks())
    }

    /// Every region and every chunk, as of one moment.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the chunks, under the lock.
    pub fn snapshot(&self) -> Result<Snapshot, Unusable> {
        self.with_state(|state| Snapshot::new(&self.options.name, &state.allocator))
    }

    /// Walks everything and names the first invariant that does not hold. For tests.
    ///
    /// # Errors
    /// The violation.
    ///
    /// # Panics
    /// In a forked child.
    pub fn check(&self) -> Result<(), Violation> {
        self.with_state(|state| check(&state.allocator)).expect("a pool of this process")
    }

    /// Does something with the turn, and afterwards what others left undone because it was taken.
    fn with_turn<T>(&self, work: impl FnOnce(&mut Source<'_>) -> T) -> Result<T, Unusable> {
        self.same_process()?;
        let turn = self.turn.take().map_err(|Inside| Unusable::InsideSource)?;
        Ok(self.use_turn(turn, work))
    }

    fn use_turn<T>(&self, mut turn: Source<'_>, work: impl FnOnce(&mut Source<'_>) -> T) -> T {
        let result = work(&mut turn);
        drop(turn);
        self.hand_back_last_regions();
        result
    }

    /// Whether this process is a forked child of the one that made the pool: every call refuses then.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        fork::generation() != self.born
    }

    fn same_process(&self) -> Result<(), Unusable> {
        if self.is_inherited() { Err(Unusable::Forked) } else { Ok(()) }
    }
}

const BROKEN: &str = "the pool's tables are sound: no thread panicked while it held the lock";

/// Hands back wholly free regions. One with a live allocation stays reserved for ever: somebody may still
/// use its addresses, and nobody is left to say when that ends.
impl Drop for Pool {
    fn drop(&mut self) {
        self.stop_trimming_when_idle();
        // In a forked child nothing is its own to give back; after a panic the tables are not to be trusted.
        if !self.state.is_broken() {
            let _ = self.trim();
            self.say_last_words();
        }
    }
}

fn hand_back(turn: &mut Source<'_>, regions: Vec<Grant>) -> u64 {
    let bytes = regions.iter().map(|region| region.bytes).sum();
    // A source that panics over one region must still get the others.
    let mut panic = None;
    for region in regions {
        let released = catch_unwind(AssertUnwindSafe(|| turn.release(region)));
        panic = panic.or(released.err());
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    bytes
}

#[cfg(test)]
mod tests;
