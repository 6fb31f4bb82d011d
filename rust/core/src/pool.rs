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

use allotment_sync::{Bell, Guard, Inside, Mailbox, Mutex, Turn, TurnGuard};

use crate::allocator::{Allocation, Allocator, Limit, Request};
use crate::check::{Violation, check};
use crate::error::{AllocError, FreeError, OptionsError, Unusable};
use crate::fork;
use crate::guard::MARGINS;
use crate::policy::SplitRule;
use crate::refusal::OutOfMemory;
use crate::report::Snapshot;
use crate::source::{Gauge, Grant, RegionSource};
use crate::stats::Stats;
use crate::units::GRANULE;

mod advise;
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

use advise::Depth;
use freeing::Late;
use guarding::Guarded;
pub use options::{MAX_WAIT, Options};
pub use scope::{Scope, is_tagged, set_tag};
pub use siblings::Siblings;
use state::State;
pub use wait::{Patience, Refused};

/// The largest alignment a request may ask for, in bytes.
const MAX_ALIGNMENT: u64 = 4096;

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

    /// Allocates at least `bytes` bytes; zero bytes give an allocation without address.
    ///
    /// May ask the source, and waits for a free if the options say so.
    ///
    /// # Errors
    /// When nothing fits and there is no more to get, or the pool cannot be used.
    #[inline(always)]
    pub fn allocate(&self, bytes: u64) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.serve_quickly(bytes, GRANULE, false) {
            return Ok(allocation);
        }
        self.allocate_patiently(bytes)
    }

    #[cold]
    #[inline(never)]
    fn allocate_patiently(&self, bytes: u64) -> Result<Allocation, AllocError> {
        let mut patience = self.patience();
        self.allocate_or(bytes, GRANULE, |refused| patience.again(refused, || false))
    }

    /// Like [`Pool::allocate`] at a multiple of `alignment`, and asks `again` before it refuses.
    ///
    /// `again` is called without lock or turn. While it says true the request is tried once more, from the
    /// start; how it finds memory, or waits for some, is up to it. Above 256 bytes of alignment the chunk is
    /// that much longer, and [`Allocation::aligned_address`] is the address to use.
    ///
    /// # Errors
    /// As [`Pool::allocate`], and for an alignment that is no power of two up to 4096.
    pub fn allocate_or(
        &self,
        bytes: u64,
        alignment: u64,
        again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        self.serve_or(self.request(bytes, alignment)?, alignment, again)
    }

    /// Serves a request, and asks `again` before it refuses.
    fn serve_or(
        &self,
        request: Request,
        alignment: u64,
        mut again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        if let Some(damage) = self.take_damage()? {
            return Err(damage.into());
        }
        let mut reclaimed = false;
        loop {
            let refused = match self.try_once(request, alignment)? {
                Ok(allocation) => return Ok(allocation),
                Err(refused) => refused,
            };
            // Once for each time that `again` has its say: it may want to stop.
            reclaimed = !reclaimed && self.reclaim_for(request, &refused)?;
            if !reclaimed && !again(&refused) {
                return Err(self.refuse(request, refused)?.into());
            }
        }
    }

    /// Refuses a request for good.
    #[cold]
    fn refuse(&self, request: Request, refused: Refused) -> Result<Box<OutOfMemory>, Unusable> {
        let Refused { mut out_of_memory, .. } = refused;
        self.with_state(|state| {
            state.allocator.counters.account_refuse();
            state.allocator.history.refused(request.needed);
        })?;
        let around = self.surroundings(&self.others());
        out_of_memory.advice = self.advise(request, &around, Depth::Quick)?;
        Ok(out_of_memory)
    }

    /// Serves a request, from what is held or from more, or refuses it.
    fn try_once(&self, request: Request, alignment: u64) -> Result<Result<Allocation, Refused>, AllocError> {
        let mut state = self.enter_open()?;
        let charge = match self.charge(&mut state, request) {
            Ok(charge) => charge,
            Err(out_of_memory) => {
                let progress = state.progress();
                drop(state);
                self.settle();
                return Ok(Err(Refused { out_of_memory, progress, possible: None }));
            }
        };
        let outcome = match self.serve(state, charge.request, alignment) {
            Some(allocation) => Ok(allocation),
            None => match self.with_turn(|turn| self.attempt(turn, charge.request))?? {
                Ok(allocation) => Ok(self.with_state(|state| state.surround(allocation, alignment))?),
                Err(refused) => {
                    // Not with the source: other pools are asked.
                    let waits = !self.options.wait.is_zero();
                    Err(Refused { possible: waits.then(|| self.possible_bytes()), ..refused })
                }
            },
        };
        if outcome.is_ok() {
            charge.served();
        }
        Ok(outcome)
    }

    /// Allocates if that takes no waiting and no growing; `None` means: take the other door.
    ///
    /// # Errors
    /// When the request is out of range or the pool cannot be used.
    #[inline]
    pub fn try_allocate(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        if let Some(allocation) = self.serve_quickly(bytes, alignment, false) {
            return Ok(Some(allocation));
        }
        self.try_serve(bytes, alignment)
    }

    #[cold]
    fn try_serve(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        let request = self.request(bytes, alignment)?;
        let Some(mut state) = self.try_enter()? else { return Ok(None) };
        let damage = state.next_damage().map_or(Ok(()), |damage| Err(AllocError::from(damage)));
        if let Err(refused) = damage.and(state.open().map_err(AllocError::from)) {
            drop(state);
            self.settle();
            return Err(refused);
        }
        let Ok(charge) = self.charge(&mut state, request) else {
            drop(state);
            self.settle();
            return Ok(None);
        };
        let served = self.serve(state, charge.request, alignment);
        if served.is_some() {
            charge.served();
        }
        Ok(served)
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

    /// Serves a request from what is held, if that is all there is to do; `None`: take the other door.
    #[inline(always)]
    fn serve_quickly(&self, bytes: u64, alignment: u64, held: bool) -> Option<Allocation> {
        if bytes == 0 || !is_alignment(alignment) {
            return None;
        }
        let request = Request { held, ..Request::new(bytes, alignment)? };
        self.quickly(|allocator| allocator.try_allocate(request))
    }

    /// Serves a request from what is held.
    fn serve(&self, mut state: Guard<'_, State>, request: Request, alignment: u64) -> Option<Allocation> {
        let served = if request.bytes == 0 {
            Some(Allocation::NOTHING)
        } else {
            state.allocator.try_allocate(request).map(|served| state.surround(served, alignment))
        };
        drop(state);
        self.settle();
        served
    }

    /// Bytes that each request takes more for red zones.
    fn margins(&self) -> u64 {
        if self.options.guard { MARGINS } else { 0 }
    }

    /// A request with room for red zones in guard mode.
    fn request(&self, bytes: u64, alignment: u64) -> Result<Request, AllocError> {
        let padded = bytes.checked_add(self.margins()).ok_or(AllocError::TooLarge { bytes })?;
        let wide = request(padded, alignment).map_err(|error| match error {
            AllocError::TooLarge { .. } => AllocError::TooLarge { bytes },
            other => other,
        })?;
        Ok(Request { bytes, ..wide })
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

fn request(bytes: u64, alignment: u64) -> Result<Request, AllocError> {
    if !is_alignment(alignment) {
        return Err(AllocError::BadAlignment { alignment });
    }
    Request::new(bytes, alignment).ok_or(AllocError::TooLarge { bytes })
}

fn is_alignment(alignment: u64) -> bool {
    alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT
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
