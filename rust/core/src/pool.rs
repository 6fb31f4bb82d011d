//! A pool: an allocator, its source and its limit, safe to share between threads.
//!
//! Two mutexes. The **lock** guards the tables and is held briefly; no source is called under it. The
//! **turn** is the right to talk to the source; it is taken before the lock, never after. Only its holder
//! can reserve, so the limit is exact although the source is asked with the lock free.
//!
//! ```text
//! allocate ─ lock: fits? ─────────────────────────────────────────────→ done
//!               └ no: turn ─ lock: fits now? plan ─ ask ─ lock: adopt ─→ done
//!                                                    └ refused: lock: give up free regions ─ hand back
//!                                                       └ plan, ask, adopt once more ─→ done or refused
//! ```

use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use crate::allocator::{Allocation, Allocator, Request};
use crate::check::{Violation, check};
use crate::error::{AllocError, FreeError, OptionsError, Unusable};
use crate::fork;
use crate::report::Snapshot;
use crate::source::{Grant, RegionSource};
use crate::stats::Stats;
use crate::units::GRANULE;

mod closing;
mod grow;
mod late;
mod options;
mod turn;
mod wait;

use late::LateFrees;
pub use options::{MAX_WAIT, Options};
use turn::{Held, Turn};
pub use wait::Refused;

/// The largest alignment a request may ask for, in bytes.
const MAX_ALIGNMENT: u64 = 4096;

/// A best-fit allocator over regions from one source.
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    turn: Turn,
    late: LateFrees,
    freed: Condvar,
    born: u64,
}

/// What the lock guards.
struct State {
    allocator: Allocator,
    closed: bool,
    /// Frees so far.
    frees: u64,
    /// Threads asleep until the next free.
    waiting: usize,
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
    /// When an option is out of range.
    pub fn new(source: impl RegionSource + 'static, options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let joins = options.joins_regions.unwrap_or_else(|| source.joins_regions());
        let allocator = Allocator::new(options.limit, options.growth, options.fragmentation_fraction, joins);
        Ok(Self {
            options,
            state: Mutex::new(State { allocator, closed: false, frees: 0, waiting: 0 }),
            turn: Turn::new(Box::new(source)),
            late: LateFrees::default(),
            freed: Condvar::new(),
            born: fork::generation(),
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
    pub fn allocate(&self, bytes: u64) -> Result<Allocation, AllocError> {
        // The clock is read only once there is something to wait for.
        let mut deadline = None;
        self.allocate_or(bytes, GRANULE, |refused| {
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.options.wait);
            self.wait_for_free(refused, deadline)
        })
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
        mut again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        let request = request(bytes, alignment)?;
        if bytes == 0 {
            return Ok(Allocation::NOTHING);
        }
        loop {
            let refused = match self.attempt(request)? {
                Ok(allocation) => return Ok(allocation),
                Err(refused) => refused,
            };
            if !again(&refused) {
                self.enter()?.allocator.counters.account_refuse();
                return Err(refused.out_of_memory.into());
            }
        }
    }

    /// Allocates if that takes no waiting and no growing; `None` means: take the other door.
    ///
    /// # Errors
    /// When the request is out of range or the pool cannot be used.
    pub fn try_allocate(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        let request = request(bytes, alignment)?;
        if bytes == 0 {
            return Ok(Some(Allocation::NOTHING));
        }
        let Some(mut state) = self.try_enter()? else { return Ok(None) };
        state.open()?;
        Ok(state.allocator.try_allocate(request).ok())
    }

    /// Frees the allocation at `address`; 0 is nothing and is accepted.
    ///
    /// # Errors
    /// When no allocation starts there. The pool is as it was.
    pub fn free(&self, address: u64) -> Result<(), FreeError> {
        self.give_back(self.enter()?, address, None)
    }

    /// Frees if that takes no waiting for the lock; `None` means: take the other door.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn try_free(&self, address: u64) -> Result<Option<()>, FreeError> {
        self.try_enter()?.map(|state| self.give_back(state, address, None)).transpose()
    }

    /// Frees exactly this allocation: if the address has a new owner, that is an error.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn free_allocation(&self, allocation: &Allocation) -> Result<(), FreeError> {
        self.give_back(self.enter()?, allocation.address, NonZeroU64::new(allocation.id))
    }

    /// Makes the allocation at `address` one of `bytes` bytes if its chunk is long enough; returns the bytes
    /// of the chunk either way. For allocations that were not aligned beyond the granule.
    ///
    /// # Errors
    /// As [`Pool::free`].
    pub fn resize_in_place(&self, address: u64, bytes: u64) -> Result<u64, FreeError> {
        let resized = self.enter()?.allocator.resize_in_place(address, bytes);
        resized.ok_or(FreeError::NotAllocated { address })
    }

    /// Frees an allocation that nobody uses any more, without waiting and without failing.
    ///
    /// For finalisers: if the lock is taken, the free is left for the next caller; if the allocation was
    /// freed before, nothing happens.
    pub fn free_late(&self, allocation: &Allocation) {
        let Some(id) = NonZeroU64::new(allocation.id) else { return };
        match self.try_enter() {
            Ok(Some(state)) => drop(self.give_back(state, allocation.address, Some(id))),
            Ok(None) => self.late.push((allocation.address, id)),
            // A child process has a copy of the tables at best; what it does to them frees nothing.
            Err(_) => {}
        }
    }

    /// What the pool holds and has done.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stats(&self) -> Result<Stats, Unusable> {
        Ok(self.enter()?.allocator.stats())
    }

    /// Makes every peak what it is now; cumulative counters stay.
    ///
    /// # Errors
    /// In a forked child.
    pub fn reset_peaks(&self) -> Result<(), Unusable> {
        self.enter()?.allocator.counters.reset_peaks();
        Ok(())
    }

    /// Every region and every chunk, as of one moment.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the chunks, under the lock.
    pub fn snapshot(&self) -> Result<Snapshot, Unusable> {
        let state = self.enter()?;
        Ok(Snapshot::new(&self.options.name, &state.allocator))
    }

    /// Whether a request of `bytes` bytes would be served now, provided the source grants what the limit
    /// allows.
    ///
    /// # Errors
    /// When the pool cannot be used.
    pub fn can_allocate(&self, bytes: u64) -> Result<bool, Unusable> {
        let mut state = self.enter()?;
        let allocator = &state.open()?.allocator;
        let Some(Request { needed, .. }) = Request::new(bytes, GRANULE) else { return Ok(false) };
        Ok(bytes == 0
            || allocator.bins.best_fit(needed).is_some()
            || allocator.may_grow(needed)
            || (self.options.trim_on_oom && allocator.release_would_help(needed)))
    }

    /// Hands back every wholly free region; returns their bytes.
    ///
    /// # Errors
    /// When called by the source of this pool, or in a forked child.
    pub fn trim(&self) -> Result<u64, Unusable> {
        self.with_turn(|turn| {
            let regions = self.enter()?.allocator.give_up_free_regions();
            Ok(hand_back(turn, regions))
        })?
    }

    /// Walks everything and names the first invariant that does not hold. For tests.
    ///
    /// # Errors
    /// The violation.
    ///
    /// # Panics
    /// In a forked child.
    pub fn check(&self) -> Result<(), Violation> {
        check(&self.enter().expect("a pool of this process").allocator)
    }

    fn give_back(
        &self,
        mut state: MutexGuard<'_, State>,
        address: u64,
        id: Option<NonZeroU64>,
    ) -> Result<(), FreeError> {
        if address == 0 {
            return Ok(());
        }
        state.allocator.free(address, id).ok_or(FreeError::NotAllocated { address })?;
        state.frees += 1;
        if state.waiting > 0 {
            self.freed.notify_all();
        }
        if state.is_over() {
            drop(state);
            self.hand_back_last_regions();
        }
        Ok(())
    }

    /// Does something with the turn, and afterwards what others left undone because it was taken.
    fn with_turn<T>(&self, work: impl FnOnce(&mut Held<'_>) -> T) -> Result<T, Unusable> {
        self.same_process()?;
        let mut turn = self.turn.take()?;
        let result = work(&mut turn);
        drop(turn);
        self.hand_back_last_regions();
        Ok(result)
    }

    /// Takes the lock and does the late frees.
    fn enter(&self) -> Result<MutexGuard<'_, State>, Unusable> {
        self.same_process()?;
        Ok(self.after_late_frees(self.state.lock().expect(BROKEN)))
    }

    /// Takes the lock, unless somebody else has it, and does the late frees.
    fn try_enter(&self) -> Result<Option<MutexGuard<'_, State>>, Unusable> {
        self.same_process()?;
        match self.state.try_lock() {
            Ok(state) => Ok(Some(self.after_late_frees(state))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Poisoned(_)) => panic!("{BROKEN}"),
        }
    }

    fn after_late_frees<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !self.late.is_empty() {
            for (address, id) in self.late.take() {
                if state.allocator.free(address, Some(id)).is_some() {
                    state.frees += 1;
                }
            }
            if state.waiting > 0 {
                self.freed.notify_all();
            }
            if state.is_over() {
                drop(state);
                self.hand_back_last_regions();
                return self.state.lock().expect(BROKEN);
            }
        }
        state
    }

    fn same_process(&self) -> Result<(), Unusable> {
        if fork::generation() == self.born { Ok(()) } else { Err(Unusable::Forked) }
    }
}

const BROKEN: &str = "the pool's tables are sound: no thread panicked while it held the lock";

/// Hands back wholly free regions. One with a live allocation stays reserved for ever: somebody may still
/// use its addresses, and nobody is left to say when that ends.
impl Drop for Pool {
    fn drop(&mut self) {
        // In a forked child nothing is its own to give back; after a panic the tables are not to be trusted.
        if !self.state.is_poisoned() {
            let _ = self.trim();
        }
    }
}

fn request(bytes: u64, alignment: u64) -> Result<Request, AllocError> {
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        return Err(AllocError::BadAlignment { alignment });
    }
    Request::new(bytes, alignment).ok_or(AllocError::TooLarge { bytes })
}

fn hand_back(turn: &mut Held<'_>, regions: Vec<Grant>) -> u64 {
    let bytes = regions.iter().map(|region| region.bytes).sum();
    // A source that panics over one region must still get the others.
    let mut panic = None;
    for region in regions {
        let released = catch_unwind(AssertUnwindSafe(|| turn.source().release(region)));
        panic = panic.or(released.err());
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    bytes
}
