//! Runs a program on a pool, with a shadow beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use allotment::source::{Log, Recording};
use allotment::{Allocation, FreeError, GRANULE, MAX_BYTES, Pool, RegionSource};

use crate::program::{AllocateDoor, FreeDoor, Mark, Size, Step, Wrong};
use crate::setup::Setup;
use crate::shadow::Shadow;

/// How many freed allocations are kept for frees that come too late.
const STALE: usize = 16;

/// A pool, its shadow, and what the program holds.
pub(crate) struct Run {
    pool: Pool,
    log: Log,
    shadow: Shadow,
    live: Vec<Allocation>,
    stale: Vec<Allocation>,
    /// Bytes left after everything was freed come back in one piece.
    obliging: bool,
    steps: usize,
    /// Chunks and invariants are compared after each of so many steps, counters after every one.
    every: usize,
}

/// Runs a program and everything that has to hold at its end.
///
/// # Panics
/// When the pool did anything else than its shadow; the message says at which step.
pub(crate) fn run(setup: &Setup, steps: &[Step], every: usize) {
    let mut at = 0;
    let all = || {
        let mut run = Run::new(setup, every);
        for &step in steps {
            run.step(step);
            at += 1;
        }
        run.end();
    };
    if let Err(cause) = catch_unwind(AssertUnwindSafe(all)) {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("?");
        panic!("step {at} ({:?}) on {setup:?}: {text}", steps.get(at));
    }
}

impl Run {
    fn new(setup: &Setup, every: usize) -> Self {
        let log = Log::default();
        let source = setup.source();
        let shadow = Shadow::new(&setup.options, source.joins_regions());
        let recording = Recording::new(source, log.clone());
        let pool = Pool::new(recording, setup.options.clone()).expect("options in range");
        let obliging = setup.is_obliging();
        Self { pool, log, shadow, live: Vec::new(), stale: Vec::new(), obliging, steps: 0, every }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Allocate { size, alignment, door } => {
                self.allocate(self.bytes(size), alignment, door);
            }
            Step::Free { which, door } => self.free(which, door),
            Step::FreeAllBut(kept) => {
                while self.live.len() > kept {
                    self.free(self.live.len() / 2, FreeDoor::ByAddress);
                }
            }
            Step::FreeWrongly { which, wrong } => self.free_wrongly(which, wrong),
            Step::Resize { which, size } => self.resize(which, self.bytes(size)),
            Step::AskWhether(size) => {
                let bytes = self.bytes(size);
                let can = self.pool.can_allocate(bytes).expect("an open pool");
                assert_eq!(can, self.shadow.can_allocate(bytes), "can_allocate({bytes})");
            }
            Step::Trim => {
                let released = self.pool.trim().expect("nobody else has the turn");
                self.shadow.trimmed(released, self.log.take());
            }
            Step::ResetPeaks => {
                self.pool.reset_peaks().expect("this process");
                self.shadow.reset_peaks();
            }
        }
        assert_eq!(self.log.take(), [], "only allocating and trimming may call the source");
        self.compare();
    }

    fn compare(&mut self) {
        assert_eq!(self.pool.stats().expect("this process"), self.shadow.stats());
        if self.steps.is_multiple_of(self.every) {
            self.compare_chunks();
        }
        self.steps += 1;
    }

    fn compare_chunks(&self) {
        self.pool.check().expect("every invariant holds");
        assert_eq!(self.pool.snapshot().expect("this process"), self.shadow.snapshot());
    }

    fn allocate(&mut self, bytes: u64, alignment: u64, door: AllocateDoor) -> Option<Allocation> {
        let allocation = match door {
            AllocateDoor::Plain => {
                let result = if alignment == 1 {
                    self.pool.allocate(bytes)
                } else {
                    self.pool.allocate_or(bytes, alignment, |_| false)
                };
                self.shadow.allocated(bytes, alignment, &result, self.log.take());
                result.ok()
            }
            AllocateDoor::Try => {
                let result = self.pool.try_allocate(bytes, alignment);
                let allocation = result.as_ref().ok().copied().flatten();
                self.shadow.tried(bytes, alignment, result);
                allocation
            }
        };
        let allocation = allocation.filter(|allocation| allocation.address != 0)?;
        let start = allocation.aligned_address(alignment);
        assert!(
            start.is_multiple_of(alignment) && start >= allocation.address,
            "{allocation:?} at {alignment}"
        );
        assert!(start + bytes <= allocation.address + allocation.size, "{allocation:?} at {alignment}");
        self.live.push(allocation);
        Some(allocation)
    }

    fn free(&mut self, which: usize, door: FreeDoor) {
        if self.live.is_empty() {
            return;
        }
        let allocation = self.live.swap_remove(which % self.live.len());
        self.free_by(&allocation, door);
        if self.stale.len() == STALE {
            self.stale.remove(0);
        }
        self.stale.push(allocation);
    }

    fn free_by(&mut self, allocation: &Allocation, door: FreeDoor) {
        let address = allocation.address;
        let (id, result) = match door {
            FreeDoor::ByAddress => (None, self.pool.free(address)),
            FreeDoor::ByAllocation => (Some(allocation.id), self.pool.free_allocation(allocation)),
            FreeDoor::Try => {
                let tried = self.pool.try_free(address);
                (None, tried.map(|done| done.expect("nobody else has the lock")))
            }
            FreeDoor::Late => {
                self.pool.free_late(allocation);
                // It says nothing, so what it did shows in the counters.
                let is_live = self.shadow.id_at(address) == Some(allocation.id);
                let result = if is_live { Ok(()) } else { Err(FreeError::NotAllocated { address }) };
                (Some(allocation.id), result)
            }
        };
        self.shadow.freed(address, id, result);
    }

    fn free_wrongly(&mut self, which: usize, wrong: Wrong) {
        let live = (!self.live.is_empty()).then(|| self.live[which % self.live.len()]);
        let address = match wrong {
            Wrong::Stale(door) => {
                if let Some(&stale) = self.stale.get(which % STALE) {
                    let has_new_owner = self.shadow.id_at(stale.address).is_some_and(|id| id != 0);
                    let by_number = matches!(door, FreeDoor::ByAllocation | FreeDoor::Late);
                    if by_number || !has_new_owner {
                        self.free_by(&stale, door);
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
            self.shadow.freed(address, None, result);
        }
    }

    fn resize(&mut self, which: usize, bytes: u64) {
        let address = match self.live.len() {
            0 => GRANULE,
            _ if which.is_multiple_of(8) => self.shadow.a_free_address().unwrap_or(0),
            length => self.live[which % length].address,
        };
        // Half of the sizes are ones that its chunk holds.
        let size = self.shadow.size_at(address).filter(|_| which.is_multiple_of(2));
        let bytes = size.map_or(bytes, |size| bytes % (size + 1));
        self.shadow.resized(address, bytes, self.pool.resize_in_place(address, bytes));
    }

    /// Frees everything; then the largest region serves one request for all of it, trim leaves nothing, and
    /// one request takes the whole limit.
    fn end(mut self) {
        while !self.live.is_empty() {
            self.free(self.live.len() / 2, FreeDoor::ByAllocation);
            self.compare();
        }
        self.compare_chunks();
        let regions = self.shadow.region_sizes();
        assert_eq!(self.shadow.free_sizes(), regions, "what is free is one chunk to a region");
        if let Some(&largest) = regions.iter().max() {
            let all = self.allocate(largest, 1, AllocateDoor::Plain).expect("a whole region");
            assert_eq!(all.size, largest);
            self.free(0, FreeDoor::ByAddress);
        }
        self.step(Step::Trim);
        assert_eq!(self.pool.stats().expect("this process").reserved, 0);
        let limit = self.pool.options().limit / GRANULE * GRANULE;
        let all = self.allocate(limit, 1, AllocateDoor::Plain);
        self.compare();
        assert!(!self.obliging || limit == 0 || all.is_some_and(|all| all.size == limit), "{all:?}");
        if all.is_some() {
            self.free(0, FreeDoor::ByAddress);
        }
        self.compare_chunks();
        drop(self.pool);
        self.shadow.dropped(self.log.take());
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
        let free = self.shadow.free_sizes();
        match mark {
            Mark::Limit => self.pool.options().limit,
            Mark::Room => self.shadow.room(),
            Mark::LargestFree => free.into_iter().max().unwrap_or(0),
            Mark::AFreeChunk(_) if free.is_empty() => self.shadow.room(),
            Mark::AFreeChunk(which) => free[which % free.len()],
            Mark::AllButARest { of_room } => {
                let whole = self.mark(if of_room { Mark::Room } else { Mark::LargestFree });
                whole.saturating_sub(self.shadow.kept_from())
            }
            Mark::Everything => MAX_BYTES,
        }
    }
}
