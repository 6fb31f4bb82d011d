//! Runs a program on a pool with thread caches, whose choice of chunks no shadow predicts: checked is what every caller
//! relies on. Allocations are apart and large enough, a free does what it should, the figures are the sums over the
//! live allocations, nothing else is in use, and a refusal was unavoidable.
//!
//! Every third call runs on a second thread, so that chunks pass from one cache to another.
//!
//! Longer than 300 lines: each kind of step, and the check after it, on one pool.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use allotment::bindings::PoolForBindings as _;
use allotment::source::{Call, Log, Recording};
use allotment::{
    AllocError, Allocation, FreeError, GRANULE, MAX_BYTES, OutOfMemory, Pool, Request, ResizeError, Stats,
    Unusable,
};

use crate::misbehaving::Panicking;
use crate::program::{AllocateCall, FreeCall, Mark, Size, Step, Wrong};
use crate::run::{Pace, guarded, pick};
use crate::setup::Setup;

/// The most that the caches of the two threads keep.
const MOST_KEPT: u64 = 2 * (4 << 20);

/// A thread that runs one piece of work at a time.
struct Second {
    work: Sender<Box<dyn FnOnce() + Send>>,
}

impl Second {
    fn new() -> Self {
        let (work, works) = channel::<Box<dyn FnOnce() + Send>>();
        thread::spawn(move || works.into_iter().for_each(|work| work()));
        Self { work }
    }

    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = channel();
        let work = move || drop(done.send(catch_unwind(AssertUnwindSafe(work))));
        self.work.send(Box::new(work)).expect("the thread waits for work");
        is_done.recv().expect("it is done").unwrap_or_else(|cause| resume_unwind(cause))
    }
}

/// Runs a program and the final checks.
///
/// # Panics
/// If anything is not as it must be; the message names the step.
pub(crate) fn run(setup: &Setup, steps: impl IntoIterator<Item = Step>, pace: Pace) {
    let mut last = None;
    let all = || {
        let mut run = CachedRun::new(setup, pace);
        for (at, step) in steps.into_iter().enumerate() {
            last = Some((at, step));
            run.step(step);
        }
        run.end();
    };
    catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("?");
        panic!("step {last:?} on {setup:?}: {text}");
    });
}

/// A pool and what must be true of it.
struct CachedRun {
    pool: Arc<Pool>,
    second: Second,
    log: Log,
    panics: Arc<AtomicU64>,
    live: Vec<Allocation>,
    stale: Vec<Allocation>,
    pinned: Vec<u64>,
    is_obliging: bool,
    closed: bool,
    pace: Pace,
    events: u64,
    num_allocs: u64,
    largest_requested: u64,
    /// High-water marks of requested bytes and of bytes in use.
    marks: [u64; 2],
}

impl CachedRun {
    fn new(setup: &Setup, pace: Pace) -> Self {
        let log = Log::default();
        let source = Panicking::new(Recording::new(setup.source(), log.clone()), setup.panics_at_release());
        let panics = source.panics();
        Self {
            pool: Arc::new(Pool::new(source, setup.options.clone()).expect("options in range")),
            second: Second::new(),
            log,
            panics,
            live: Vec::new(),
            stale: Vec::new(),
            pinned: Vec::new(),
            is_obliging: setup.is_obliging(),
            closed: false,
            pace,
            events: 0,
            num_allocs: 0,
            largest_requested: 0,
            marks: [0; 2],
        }
    }

    /// Calls the pool, every third time on the second thread; `None` if its source panicked.
    fn call<T: Send + 'static>(&self, call: impl FnOnce(&Pool) -> T + Send + 'static) -> Option<T> {
        let pool = Arc::clone(&self.pool);
        guarded(&self.panics, || {
            if self.events.is_multiple_of(3) { self.second.run(move || call(&pool)) } else { call(&pool) }
        })
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Allocate { size, alignment, call } => {
                while self.live.len() >= self.pace.most_live {
                    self.free(0, FreeCall::ByAllocation);
                }
                self.allocate(self.bytes(size), alignment, call);
            }
            Step::Free { which, call } => {
                if !self.live.is_empty() {
                    self.free(which % self.live.len(), call);
                }
            }
            Step::FreeAllBut(kept) => {
                while self.live.len() > kept {
                    self.unpin(self.live.len() / 2);
                    self.free(self.live.len() / 2, FreeCall::ByAllocation);
                }
            }
            Step::FreeWrongly { which, wrong } => self.free_wrongly(which, wrong),
            Step::Resize { which, size } => self.resize(which, self.bytes(size)),
            Step::AskWhether(size) => {
                let bytes = self.bytes(size);
                let can = self.call(move |pool| pool.can_allocate(bytes)).expect("no source is called");
                let largest = self.stats().largest_free;
                assert!(can.expect("this process") || self.closed || bytes == 0 || largest < bytes);
            }
            Step::Trim => {
                self.call(|pool| pool.trim().expect("no other thread holds the source lock"));
                assert_eq!(self.stats().thread_cached, 0);
            }
            Step::ResetPeaks => {
                self.pool.reset_peaks().expect("this process");
                let now = self.stats();
                self.marks = [now.requested, now.in_use];
                assert_eq!([now.peak_requested, now.peak_in_use], self.marks);
            }
            Step::Pin { which, stale } => {
                if let Some(allocation) = pick(if stale { &self.stale } else { &self.live }, which) {
                    let is_live = self.live.contains(&allocation);
                    let pinned = self.call(move |pool| pool.pin(&allocation)).expect("no source is called");
                    assert_eq!(pinned.is_ok(), is_live, "pin of {allocation:?}");
                    if is_live && !self.pinned.contains(&allocation.address) {
                        self.pinned.push(allocation.address);
                    }
                }
            }
            Step::Unpin { which } => {
                if !self.live.is_empty() {
                    self.unpin(which % self.live.len());
                }
            }
            Step::Close => {
                self.call(|pool| pool.close().expect("no other thread holds the source lock"));
                self.closed = true;
            }
        }
        self.compare();
    }

    fn allocate(&mut self, bytes: u64, alignment: u64, call: AllocateCall) {
        drop(self.log.take());
        let request = Request::new(bytes).align(alignment);
        let served = self.call(move |pool| match call {
            AllocateCall::Plain => pool.allocate(request).map(Some),
            AllocateCall::Again(mut times) => {
                let again = |_: &_| {
                    times > 0 && {
                        times -= 1;
                        true
                    }
                };
                pool.allocate_with_retry(request, again).map(Some)
            }
            AllocateCall::Try => pool.try_allocate(request),
        });
        let allocation = match served {
            Some(Ok(Some(allocation))) => allocation,
            Some(Err(AllocError::OutOfMemory(refused))) => return self.refused(bytes, alignment, &refused),
            Some(Err(AllocError::Unusable(Unusable::Closed))) => return assert!(self.closed),
            Some(Ok(None)) => {
                // Not a lack of memory if another thread holds the lock; here none does.
                let largest = self.pool.snapshot().expect("this process").stats.largest_free;
                return assert!(largest < padded(bytes, alignment), "{largest} bytes were free");
            }
            Some(Err(_)) | None => return,
        };
        let Allocation { address, size, requested, id } = allocation;
        assert_eq!(requested, bytes);
        if bytes == 0 {
            return assert_eq!((address, size, id), (0, 0, 0));
        }
        let is_aligned = address.is_multiple_of(alignment.max(GRANULE));
        assert!(!self.closed && is_aligned && size >= bytes, "{allocation:?}");
        let is_new = self.live.iter().chain(&self.stale).all(|other| other.id != id);
        assert!(is_new, "the number of {allocation:?} was given before");
        self.check_apart(&allocation);
        self.num_allocs += 1;
        self.largest_requested = self.largest_requested.max(bytes);
        self.live.push(allocation);
    }

    /// Checks that nothing could have served the request.
    fn refused(&mut self, bytes: u64, alignment: u64, refused: &OutOfMemory) {
        let needed = padded(bytes, alignment);
        let snapshot = self.pool.snapshot().expect("this process");
        let Stats { reserved, limit, in_use, largest_free, .. } = snapshot.stats;
        assert_eq!(in_use, self.live.iter().map(|live| live.size).sum::<u64>());
        assert_eq!(
            (refused.in_use, refused.reserved, refused.largest_free),
            (in_use, reserved, largest_free)
        );
        assert!(largest_free < needed, "{largest_free} bytes were free");
        let trims = self.pool.options().trim_on_oom;
        let is_free = |region: &&allotment::RegionSnapshot| region.chunks.iter().all(|chunk| !chunk.in_use);
        let idle: u64 = snapshot.regions.iter().filter(is_free).map(|region| region.size).sum();
        let room = limit - reserved + if trims { idle } else { 0 };
        let declined = |call: &Call| matches!(call, Call::Reserve { answer: None, .. });
        let has_declined = !self.is_obliging || self.log.take().iter().any(declined);
        assert!(room < needed || has_declined, "{room} bytes were left");
    }

    fn free(&mut self, which: usize, call: FreeCall) {
        let allocation = self.live[which];
        let is_pinned = self.pinned.contains(&allocation.address);
        let expected =
            if is_pinned { Err(FreeError::Pinned { address: allocation.address }) } else { Ok(()) };
        let freed = self.free_by(allocation, call);
        assert!(freed.is_none_or(|freed| freed == expected), "{freed:?} of {allocation:?} by {call:?}");
        if !is_pinned {
            self.live.swap_remove(which);
            self.stale.push(allocation);
        }
    }

    /// Frees in one of the ways; returns the result, if the call has one and the source did not panic.
    fn free_by(&self, allocation: Allocation, call: FreeCall) -> Option<Result<(), FreeError>> {
        let alone = "no other thread holds the lock";
        self.call(move |pool| match call {
            FreeCall::ByAddress => Some(pool.free(allocation.address)),
            FreeCall::ByAllocation => Some(pool.free_allocation(&allocation)),
            FreeCall::Try => Some(pool.try_free(allocation.address).map(|done| done.expect(alone))),
            FreeCall::TryByAllocation => {
                Some(pool.try_free_allocation(&allocation).map(|done| done.expect(alone)))
            }
            FreeCall::Deferred => {
                pool.free_deferred(&allocation);
                None
            }
        })
        .flatten()
    }

    fn free_wrongly(&mut self, which: usize, wrong: Wrong) {
        let live = pick(&self.live, which);
        let address = match wrong {
            Wrong::Stale(call) => {
                if let Some(stale) = pick(&self.stale, which)
                    && (call.names_the_allocation() || self.starts_nothing(stale.address))
                {
                    let freed = self.free_by(stale, call);
                    assert!(freed.is_none_or(|freed| freed.is_err()), "{stale:?} was freed before");
                }
                return;
            }
            Wrong::Interior(offset) => {
                live.filter(|live| offset < live.size).map_or(1, |live| live.address + offset)
            }
            Wrong::FreeChunk => self.stale.last().map_or(GRANULE, |stale| stale.address),
            Wrong::Anywhere(address) => address,
            Wrong::Null => 0,
        };
        if self.starts_nothing(address) {
            let freed = self.call(move |pool| pool.free(address)).expect("no source is called");
            let expected = if address == 0 { Ok(()) } else { Err(FreeError::NotAllocated { address }) };
            assert_eq!(freed, expected);
        }
    }

    fn starts_nothing(&self, address: u64) -> bool {
        self.live.iter().all(|live| live.address != address)
    }

    fn resize(&mut self, which: usize, bytes: u64) {
        let Some(allocation) = pick(&self.live, which) else { return };
        let Allocation { address, size, id, .. } = allocation;
        let bytes = if which.is_multiple_of(2) { bytes % (size + 1) } else { bytes };
        match self.call(move |pool| pool.resize(address, bytes)).expect("no source is called") {
            Ok(resized) => {
                assert!(bytes > 0 && !self.pinned.contains(&address), "{resized:?}");
                assert_eq!((resized.address, resized.requested, resized.id), (address, bytes, id));
                assert!(resized.size >= bytes, "{resized:?}");
                self.live.retain(|live| live.address != address);
                self.check_apart(&resized);
                self.live.push(resized);
                self.largest_requested = self.largest_requested.max(bytes);
            }
            Err(ResizeError::ZeroBytes { .. }) => assert_eq!(bytes, 0),
            Err(ResizeError::Pinned { .. }) => assert!(self.pinned.contains(&address)),
            Err(ResizeError::NoRoom { size: found, possible, .. }) => {
                assert!(found == size && possible < bytes, "{possible} bytes were there for {bytes}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Checks that an allocation shares no byte with a live one.
    fn check_apart(&self, new: &Allocation) {
        let apart = |other: &Allocation| {
            other.address + other.size <= new.address || new.address + new.size <= other.address
        };
        assert!(self.live.iter().all(apart), "{new:?} overlaps another");
    }

    fn unpin(&mut self, which: usize) {
        let allocation = self.live[which];
        self.pool.unpin(&allocation);
        self.pinned.retain(|&address| address != allocation.address);
    }

    fn stats(&self) -> Stats {
        self.pool.stats().expect("this process")
    }

    /// Compares the figures with the sums over the live allocations.
    fn compare(&mut self) {
        let now = self.stats();
        let requested = self.live.iter().map(|live| live.requested).sum();
        let in_use = self.live.iter().map(|live| live.size).sum();
        self.marks = [self.marks[0].max(requested), self.marks[1].max(in_use)];
        assert_eq!((now.requested, now.in_use, now.num_live), (requested, in_use, self.live.len() as u64));
        assert_eq!((now.num_allocs, now.largest_requested), (self.num_allocs, self.largest_requested));
        assert_eq!((now.free, now.internal_fragmentation), (now.reserved - in_use, in_use - requested));
        assert!(now.reserved <= now.limit && now.peak_reserved <= now.limit, "{now:?}");
        assert!(
            now.thread_cached <= MOST_KEPT && now.largest_free + now.thread_cached <= now.free,
            "{now:?}"
        );
        assert!(now.peak_requested <= now.peak_in_use && now.peak_in_use <= now.peak_reserved, "{now:?}");
        assert!(now.peak_requested >= self.marks[0] && now.peak_in_use >= self.marks[1], "{now:?}");
        if self.events % (self.pace.every * 16) == 15 {
            self.compare_chunks();
        }
        self.events += 1;
    }

    /// Compares the chunks in use with the live allocations.
    fn compare_chunks(&self) {
        self.pool.check().expect("every invariant holds");
        let snapshot = self.pool.snapshot().expect("this process");
        let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
        let in_use: BTreeMap<_, _> = chunks
            .filter(|chunk| chunk.in_use)
            .map(|chunk| (chunk.address, (chunk.size, chunk.requested, chunk.id)))
            .collect();
        let live = self.live.iter().map(|live| (live.address, (live.size, live.requested, live.id)));
        assert_eq!(in_use, live.collect());
    }

    /// Frees everything and trims: nothing is left.
    fn end(mut self) {
        self.compare_chunks();
        self.pinned.clear();
        for place in (0..self.live.len()).rev() {
            self.unpin(place);
            self.free(place, FreeCall::ByAllocation);
            self.compare();
        }
        self.step(Step::Trim);
        self.step(Step::Trim);
        assert_eq!(self.stats().reserved, 0);
        self.compare_chunks();
        let Self { pool, panics, .. } = self;
        guarded(&panics, || drop(pool));
    }

    fn bytes(&self, size: Size) -> u64 {
        let halved = |of, halvings: u32| self.mark(of) >> halvings;
        match size {
            Size::Bytes(bytes) => bytes,
            Size::Share { of, halvings, share } => {
                let part = u128::from(halved(of, halvings)) * u128::from(share) / (1 << 16);
                u64::try_from(part).expect("a part of 64 bits")
            }
            Size::Near { of, halvings, more } => halved(of, halvings).saturating_add_signed(more),
        }
    }

    fn mark(&self, mark: Mark) -> u64 {
        let stats = self.stats();
        match mark {
            Mark::Limit => stats.limit,
            Mark::Room | Mark::AllButARest { of_room: true } => stats.limit - stats.reserved,
            Mark::LargestFree | Mark::AllButARest { of_room: false } => stats.largest_free,
            Mark::Newest => self.live.last().map_or(GRANULE, |newest| newest.size),
            // Mostly sizes that caches keep.
            Mark::AFreeChunk(which) => GRANULE * (1 + which as u64 % 128),
            Mark::Everything => MAX_BYTES,
            Mark::AnyNumber => u64::MAX,
            Mark::PowerOfTwo(power) => 1 << power,
        }
    }
}

/// Returns the size of the chunk that a request needs.
fn padded(bytes: u64, alignment: u64) -> u64 {
    (bytes + alignment.saturating_sub(GRANULE)).next_multiple_of(GRANULE)
}
