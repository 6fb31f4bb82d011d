//! Runs a program on a pool and its shadow.
//!
//! Longer than 300 lines: each kind of step, and the comparison after it, on one pool and its shadow.

use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::bindings::PoolForBindings as _;
use allotment::source::{Log, Recording};
use allotment::{Allocation, AllocationAttempt, GRANULE, MAX_BYTES, Pool, RegionSource, Request};

use crate::misbehaving::{OnPurpose, Panicking};
use crate::program::{AllocateCall, FreeCall, Mark, Size, Step, Wrong};
use crate::setup::Setup;
use crate::shadow::{Outcome, Shadow};

/// The number of freed allocations that are kept for stale frees.
const STALE: usize = 16;

/// Limits on a program, and how often its state is compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Compares chunks and invariants after every this many events; answers and counters after each.
    pub(crate) every: u64,
    /// The most live allocations.
    pub(crate) most_live: usize,
}

/// Totals of the comparisons.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    /// Refused requests.
    pub(crate) refused: u64,
    /// Refusals that the shadow confirmed: nothing could have served them.
    pub(crate) confirmed: u64,
    /// Calls that the source ended early.
    pub(crate) cut_short: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.refused += other.refused;
        self.confirmed += other.confirmed;
        self.cut_short += other.cut_short;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, refused, confirmed, cut_short } = self;
        write!(
            f,
            "{events} events ({refused} refused, {confirmed} of them confirmed: nothing could have served them; \
             {cut_short} cut short by the source)"
        )
    }
}

/// A pool, its shadow, and the program's live allocations.
pub(crate) struct Run {
    pool: Pool,
    log: Log,
    /// The number of panics of the source.
    panics: Arc<AtomicU64>,
    shadow: Shadow,
    live: Vec<Allocation>,
    stale: Vec<Allocation>,
    /// Whether the source grants every request in one piece.
    obliging: bool,
    /// The most bytes that the source grants at once, if it reports that.
    capacity: Option<u64>,
    closed: bool,
    pace: Pace,
    tally: Tally,
}

/// Runs a program and the final checks.
///
/// # Panics
/// If the pool differs from its shadow; the message names the step.
pub(crate) fn run(setup: &Setup, steps: impl IntoIterator<Item = Step>, pace: Pace) -> Tally {
    let mut at = 0;
    let mut last = None;
    let all = || {
        let mut run = Run::new(setup, pace);
        for step in steps {
            last = Some(step);
            run.step(step);
            at += 1;
        }
        run.end()
    };
    catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("?");
        panic!("step {at} ({last:?}) on {setup:?}: {text}");
    })
}

impl Run {
    fn new(setup: &Setup, pace: Pace) -> Self {
        let log = Log::default();
        let source = setup.source();
        let shadow = Shadow::new(&setup.options, source.joins_regions());
        let source = Panicking::new(Recording::new(source, log.clone()), setup.panics_at_release());
        let panics = source.panics();
        let pool = Pool::new(source, setup.options.clone()).expect("options in range");
        Self {
            pool,
            log,
            panics,
            shadow,
            live: Vec::new(),
            stale: Vec::new(),
            capacity: setup.capacity(),
            obliging: setup.is_obliging(),
            closed: false,
            pace,
            tally: Tally::default(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Allocate { size, alignment, call } => {
                self.free_all_but(self.pace.most_live);
                self.allocate(self.bytes(size), alignment, call);
            }
            Step::Free { which, call } => self.free(which, call),
            Step::FreeAllBut(kept) => self.free_all_but(kept),
            Step::FreeWrongly { which, wrong } => self.free_wrongly(which, wrong),
            Step::Resize { which, size } => self.resize(which, self.bytes(size)),
            Step::AskWhether(size) => {
                let bytes = self.bytes(size);
                let can = self.pool.can_allocate(bytes).expect("this process");
                assert_eq!(can, self.shadow.can_allocate(bytes, self.capacity), "can_allocate({bytes})");
            }
            Step::Trim => self.trim(),
            Step::ResetPeaks => {
                self.pool.reset_peaks().expect("this process");
                self.shadow.reset_peaks();
            }
            Step::Pin { which, stale } => {
                let among = if stale { &self.stale } else { &self.live };
                if let Some(allocation) = pick(among, which) {
                    self.shadow.pinned(&allocation, self.pool.pin(&allocation));
                }
            }
            Step::Unpin { which } => {
                if let Some(allocation) = pick(&self.live, which) {
                    self.unpin(&allocation);
                }
            }
            Step::Close => self.close(),
        }
        assert_eq!(self.log.take(), [], "this step has no reason to call the source, or not so often");
        self.compare();
    }

    fn compare(&mut self) {
        assert_eq!(self.pool.stats().expect("this process"), self.shadow.stats());
        if self.tally.events.is_multiple_of(self.pace.every) {
            self.compare_chunks();
        }
        self.tally.events += 1;
    }

    fn compare_chunks(&self) {
        self.pool.check().expect("every invariant holds");
        assert_eq!(self.pool.snapshot().expect("this process"), self.shadow.snapshot());
    }

    fn allocate(&mut self, bytes: u64, alignment: u64, call: AllocateCall) -> Option<Allocation> {
        let allocation = match call {
            AllocateCall::Plain => self.allocate_again(bytes, alignment, 0),
            AllocateCall::Again(times) => self.allocate_again(bytes, alignment, times),
            AllocateCall::Try => {
                let result = self.pool.try_allocate(Request::new(bytes).align(alignment));
                let allocation = result.as_ref().ok().copied().flatten();
                self.shadow.tried(bytes, alignment, result);
                allocation
            }
        };
        let allocation = allocation.filter(|allocation| allocation.address != 0)?;
        assert!(allocation.address.is_multiple_of(alignment), "{allocation:?} at {alignment}");
        assert!(bytes <= allocation.size, "{allocation:?} at {alignment}");
        self.live.push(allocation);
        Some(allocation)
    }

    /// Allocates with retries, and frees something before each retry but the first.
    fn allocate_again(&mut self, bytes: u64, alignment: u64, times: u32) -> Option<Allocation> {
        let Self { pool, log, panics, shadow, live, tally, .. } = self;
        let mut tried = 0;
        let again = |refused: &AllocationAttempt| {
            if tried == times {
                return false;
            }
            let refused = Outcome::Refused(refused.out_of_memory.clone());
            shadow.attempted(bytes, alignment, &refused, log.take());
            tally.refused += 1;
            if tried > 0
                && let Some(newest) = live.pop_if(|newest| !shadow.is_pinned(newest))
            {
                let result = pool.free_allocation(&newest);
                shadow.freed(newest.address, Some(newest.id), Some(result), log.take());
            }
            tried += 1;
            true
        };
        let result = guarded(panics, || match (alignment, times) {
            (1, 0) => pool.allocate(bytes),
            _ => pool.allocate_with_retry(Request::new(bytes).align(alignment), again),
        });
        let outcome = result.as_ref().map_or(Outcome::Panicked, Outcome::of);
        match outcome {
            Outcome::Refused(_) => tally.refused += 1,
            Outcome::Panicked | Outcome::SourceFailed(_) | Outcome::BadGrant(..) => tally.cut_short += 1,
            _ => {}
        }
        shadow.allocated(bytes, alignment, &outcome, log.take());
        result?.ok()
    }

    fn free(&mut self, which: usize, call: FreeCall) {
        let Some(allocation) = pick(&self.live, which) else { return };
        let pinned = self.shadow.is_pinned(&allocation);
        self.free_by(&allocation, call);
        if pinned {
            return;
        }
        self.live.swap_remove(which % self.live.len());
        if self.stale.len() == STALE {
            self.stale.remove(0);
        }
        self.stale.push(allocation);
    }

    fn free_by(&mut self, allocation: &Allocation, call: FreeCall) {
        let Self { pool, log, panics, shadow, .. } = self;
        let address = allocation.address;
        let here = "no other thread holds the lock";
        let (id, result) = match call {
            FreeCall::ByAddress => (None, guarded(panics, || pool.free(address))),
            FreeCall::ByAllocation => {
                (Some(allocation.id), guarded(panics, || pool.free_allocation(allocation)))
            }
            FreeCall::Try => (None, guarded(panics, || pool.try_free(address).map(|done| done.expect(here)))),
            FreeCall::TryByAllocation => {
                let tried = || pool.try_free_allocation(allocation).map(|done| done.expect(here));
                (Some(allocation.id), guarded(panics, tried))
            }
            FreeCall::Deferred => {
                let done = guarded(panics, || pool.free_deferred(allocation));
                shadow.freed_deferred(allocation, done.is_none(), log.take());
                return;
            }
        };
        shadow.freed(address, id, result, log.take());
    }

    fn free_all_but(&mut self, kept: usize) {
        while self.live.len() > kept {
            let middle = self.live.len() / 2;
            self.unpin(&{ self.live[middle] });
            self.free(middle, FreeCall::ByAllocation);
            self.compare();
        }
    }

    fn free_wrongly(&mut self, which: usize, wrong: Wrong) {
        let live = pick(&self.live, which);
        let address = match wrong {
            Wrong::Stale(call) => {
                if let Some(&stale) = self.stale.get(which % STALE) {
                    let has_new_owner = self.shadow.id_at(stale.address).is_some_and(|id| id != 0);
                    if call.names_the_allocation() || !has_new_owner {
                        self.free_by(&stale, call);
                    }
                }
                return;
            }
            Wrong::Interior(offset) => {
                live.filter(|live| offset < live.size).map_or(1, |live| live.address + offset)
            }
            Wrong::FreeChunk => self.shadow.a_free_address().unwrap_or(GRANULE),
            Wrong::Anywhere(address) => address,
            Wrong::Null => 0,
        };
        if address == 0 || self.shadow.id_at(address).is_none_or(|id| id == 0) {
            let result = self.pool.free(address);
            assert_eq!(result.is_ok(), address == 0, "free of {address:#x}");
            self.shadow.freed(address, None, Some(result), self.log.take());
        }
    }

    fn resize(&mut self, which: usize, bytes: u64) {
        let address = match self.live.len() {
            0 => GRANULE,
            _ if which.is_multiple_of(8) => self.shadow.a_free_address().unwrap_or(0),
            length => self.live[which % length].address,
        };
        // Half of the sizes fit the chunk.
        let size = self.shadow.size_at(address).filter(|_| which.is_multiple_of(2));
        let bytes = size.map_or(bytes, |size| bytes % (size + 1));
        let resized = self.pool.resize(address, bytes);
        if let (Ok(resized), Some(live)) =
            (&resized, self.live.iter_mut().find(|live| live.address == address))
        {
            *live = *resized;
        }
        self.shadow.resized(address, bytes, &resized);
    }

    fn unpin(&mut self, allocation: &Allocation) {
        self.pool.unpin(allocation);
        self.shadow.unpinned(allocation);
    }

    fn trim(&mut self) {
        let released =
            guarded(&self.panics, || self.pool.trim().expect("no other thread holds the source lock"));
        self.shadow.trimmed(released, self.log.take());
    }

    fn close(&mut self) {
        let closed =
            guarded(&self.panics, || self.pool.close().expect("no other thread holds the source lock"));
        self.shadow.closed(closed.is_none(), self.log.take());
        self.closed = true;
    }

    /// Frees everything; then the largest region serves one request of its size, trim releases everything, and one
    /// request takes the whole limit. A closed pool has no regions left.
    fn end(mut self) -> Tally {
        self.free_all_but(0);
        self.compare_chunks();
        let regions = self.shadow.region_sizes();
        assert!(
            self.shadow.free_sizes().eq(regions.iter().copied()),
            "what is free is one chunk to a region"
        );
        if self.closed {
            assert_eq!(regions, [], "a closed pool without allocations holds regions");
        }
        if let Some(&largest) = regions.iter().max() {
            let all = self.allocate(largest, 1, AllocateCall::Plain).expect("a whole region");
            assert_eq!(all.size, largest);
            self.free(0, FreeCall::ByAddress);
        }
        self.step(Step::Trim);
        assert_eq!(self.pool.stats().expect("this process").reserved, 0);
        let limit = self.pool.options().limit / GRANULE * GRANULE;
        let all = self.allocate(limit, 1, AllocateCall::Plain);
        self.compare();
        let obliged = self.obliging && !self.closed && limit > 0;
        assert!(!obliged || all.is_some_and(|all| all.size == limit), "{all:?}");
        if all.is_some() {
            self.free(0, FreeCall::ByAddress);
        }
        self.compare_chunks();
        let tally = Tally { confirmed: self.shadow.confirmed_refusals(), ..self.tally };
        assert_eq!(tally.refused, tally.confirmed, "every refusal was gone through");
        let dropped = guarded(&self.panics, || drop(self.pool));
        self.shadow.dropped(dropped.is_none(), self.log.take());
        tally
    }

    fn bytes(&self, size: Size) -> u64 {
        match size {
            Size::Bytes(bytes) => bytes,
            Size::Share { of, halvings, share } => {
                let part = u128::from(self.mark(of) >> halvings) * u128::from(share) / (1 << 16);
                u64::try_from(part).expect("a part of 64 bits")
            }
            Size::Near { of, halvings, more } => (self.mark(of) >> halvings).saturating_add_signed(more),
        }
    }

    fn mark(&self, mark: Mark) -> u64 {
        match mark {
            Mark::Limit => self.pool.options().limit,
            Mark::Room => self.shadow.room(),
            Mark::LargestFree => self.shadow.free_sizes().max().unwrap_or(0),
            Mark::Newest => self.live.last().map_or(GRANULE, |newest| newest.size),
            Mark::AFreeChunk(which) => match self.shadow.free_sizes().count() {
                0 => self.shadow.room(),
                count => self.shadow.free_sizes().nth(which % count).expect("below the count"),
            },
            Mark::AllButARest { of_room } => {
                let whole = self.mark(if of_room { Mark::Room } else { Mark::LargestFree });
                whole.saturating_sub(self.shadow.kept_from())
            }
            Mark::Everything => MAX_BYTES,
            Mark::AnyNumber => u64::MAX,
            Mark::PowerOfTwo(power) => 1 << power,
        }
    }
}

/// Calls a pool; returns `None` if its source panicked.
pub(crate) fn guarded<T>(panics: &AtomicU64, call: impl FnOnce() -> T) -> Option<T> {
    let before = panics.load(Ordering::Relaxed);
    let result = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(cause) if cause.is::<OnPurpose>() => None,
        Err(cause) => resume_unwind(cause),
    };
    let panicked = panics.load(Ordering::Relaxed) > before;
    assert_eq!(panicked, result.is_none(), "a panic of the source reaches the caller");
    result
}

/// Returns one member of a list, if there is any.
pub(crate) fn pick(from: &[Allocation], which: usize) -> Option<Allocation> {
    from.get(which.checked_rem(from.len())?).copied()
}
