//! A shadow of single decisions: between two decisions of one thread, other threads may decide.

use allotment::{Allocation, Grant, Options, OutOfMemory, RegionSnapshot};

use super::Shadow;
use super::requests::Request;
use super::rules::{Rules, less_than};
use super::space::Holder;

/// A planned round of growth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    needed: u64,
    /// The size of the next request to the source.
    asked: u64,
    /// Whether the step was doubled to reach the request.
    too_small: bool,
}

impl Round {
    /// Returns the next size to ask the source for; `None` after the smallest one.
    pub(crate) fn next_size(&mut self) -> Option<u64> {
        let asked = self.asked;
        (asked >= self.needed).then(|| {
            self.asked = less_than(asked);
            asked
        })
    }
}

impl Shadow {
    /// Serves a request from a free chunk, if one fits.
    pub(crate) fn serve(&mut self, bytes: u64, alignment: u64) -> Option<Allocation> {
        self.take(Request::new(bytes, alignment)?)
    }

    /// Returns the chunk size that a request needs.
    pub(crate) fn needed(bytes: u64, alignment: u64) -> u64 {
        Request::new(bytes, alignment).expect("not too large").needed
    }

    /// Returns whether a free chunk serves a request.
    pub(crate) fn fits(&self, needed: u64) -> bool {
        self.space.best_fit(needed).is_some()
    }

    /// Frees allocation `id` at `address`; returns whether it was live.
    pub(crate) fn release(&mut self, address: u64, id: u64) -> bool {
        let live = self.holds(address, Some(id));
        if live {
            self.space.free_at(address);
        }
        live
    }

    /// Plans a round of growth for a request that no free chunk serves.
    pub(crate) fn plan(&mut self, needed: u64) -> Round {
        assert!(!self.fits(needed), "a free chunk serves the request, and the pool grows");
        let room = self.room();
        assert!(needed <= room, "the limit leaves no room for the request, and the pool grows");
        let too_small = u128::from(needed) > self.step;
        while u128::from(needed) > self.step {
            self.step *= 2;
        }
        let asked = u64::try_from(self.step).map_or(room, |step| step.min(room));
        Round { needed, asked, too_small }
    }

    /// Makes the grant of a round a region.
    pub(crate) fn adopt(&mut self, grant: Grant, round: &Round) {
        if !round.too_small {
            self.step = self.step.saturating_mul(2);
        }
        self.grants += 1;
        self.space.add(grant, self.rules.joins_regions);
        self.raise_peaks();
    }

    /// Removes and returns all wholly free regions.
    pub(crate) fn remove_regions(&mut self) -> Vec<Grant> {
        self.space.give_up()
    }

    /// Changes limit and growth: the step becomes that of a new pool, and never smaller while growth stays on.
    pub(crate) fn change(&mut self, before: &Options, after: &Options) {
        self.rules = Rules { joins_regions: self.rules.joins_regions, ..Rules::new(after, false) };
        let first = self.rules.first_step;
        self.step = if before.growth && after.growth { self.step.max(first) } else { first };
    }

    pub(crate) fn count_refusal(&mut self) {
        self.refused += 1;
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn has_live(&self) -> bool {
        self.space.held().next().is_some()
    }

    /// Returns the bytes in wholly free regions.
    pub(crate) fn releasable(&self) -> u64 {
        self.space.releasable()
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.space.reserved()
    }

    /// Returns whether the release of every wholly free region makes room for a request.
    pub(crate) fn release_helps(&self, needed: u64) -> bool {
        self.releasing_helps(needed)
    }

    /// Returns the error of a request that is refused now.
    pub(crate) fn refusal(&self, bytes: u64, needed: u64, declined: bool) -> OutOfMemory {
        *self.out_of_memory(Request { bytes, needed, alignment: 1 }, declined)
    }

    /// Returns the allocation at `address`: its number and the size of its chunk.
    pub(crate) fn live_at(&self, address: u64) -> Option<(u64, u64)> {
        let chunk = self.space.chunk_at(address)?;
        Some((chunk.holder?.id, chunk.size))
    }

    /// Returns the bytes to which the allocation at `address` can grow in place.
    pub(crate) fn possible_at(&self, address: u64) -> u64 {
        self.space.possible_at(address)
    }

    /// Resizes the allocation at `address` in place.
    pub(crate) fn resize(&mut self, address: u64, bytes: u64) {
        self.space.resize(address, bytes);
        self.largest_requested = self.largest_requested.max(bytes);
        self.raise_peaks();
    }

    /// Returns the number of allocations so far.
    pub(crate) fn allocs(&self) -> u64 {
        self.allocs - self.set_aside + self.from_caches
    }

    /// Lends a chunk of exactly `size` bytes to a thread cache; returns its address. The peaks follow with
    /// [`Shadow::end_of_lending`].
    pub(crate) fn lend(&mut self, size: u64) -> Option<u64> {
        let best = self.space.best_fit(size)?;
        self.allocs += 1;
        self.set_aside += 1;
        let holder = Holder { id: self.allocs, requested: size };
        self.space.hand_out(best.address, best.address, size, holder);
        Some(best.address)
    }

    /// Raises the peaks after some chunks were lent and none was taken back.
    pub(crate) fn end_of_lending(&mut self) {
        self.raise_peaks();
    }

    /// Frees a lent chunk.
    pub(crate) fn take_back(&mut self, address: u64) {
        self.space.free_at(address);
    }

    /// Makes a lent chunk an ordinary allocation.
    pub(crate) fn withdraw(&mut self, address: u64, id: u64, requested: u64) {
        self.space.set_holder(address, Holder { id, requested });
    }

    /// Sets the next `count` numbers aside for a thread cache; returns the first one.
    pub(crate) fn set_numbers_aside(&mut self, count: u64) -> u64 {
        let first = self.allocs + 1;
        self.allocs += count;
        self.set_aside += count;
        first
    }

    /// Counts an allocation that a thread cache serves.
    pub(crate) fn count_from_cache(&mut self, bytes: u64) {
        self.from_caches += 1;
        self.largest_requested = self.largest_requested.max(bytes);
    }

    /// Returns all regions.
    pub(crate) fn regions(&self) -> Vec<RegionSnapshot> {
        self.space.snapshot()
    }
}
