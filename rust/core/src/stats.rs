//! The counters of an allocator; every change of a counter is a method here.

use core::ops::Range;

use crate::chunk::branch_hint::cold_path;
use crate::units::ratio;

/// The counters of a pool: one consistent copy, taken under the lock.
///
/// At every moment `requested <= in_use <= reserved <= limit`, every amount is at most its peak, and `in_use` is the
/// sum of the sizes of the chunks in use.
///
/// With [thread caches](crate::Options::thread_caches) a chunk that a cache keeps is free. But the peaks of `requested`
/// and `in_use` count it, and all of each chunk that was served from a cache: they may be too high by what the caches
/// keep at most.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Stats {
    /// Requested bytes of all live allocations.
    pub requested: u64,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// `in_use - requested`: bytes lost inside chunks to rounding, alignment, red zones, and remainders that were not
    /// split off.
    pub internal_fragmentation: u64,
    /// Bytes of all regions, in use or not.
    pub reserved: u64,
    /// The most bytes that may be reserved.
    pub limit: u64,
    /// `reserved - in_use`, in bytes; 0 in a paused pool.
    pub free: u64,
    /// The part of `free` that thread caches keep, in bytes.
    pub thread_cached: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none; without chunks that thread caches keep. In an elastic
    /// pool that of the largest request that its memory serves: free pages move, and pages in use have room.
    pub largest_free: u64,
    /// `(free - largest_free) / free`, 0 when nothing is free.
    pub fragmentation: f64,
    /// High-water mark of `requested` since the last reset of the peaks.
    pub peak_requested: u64,
    /// High-water mark of `in_use` since the last reset of the peaks.
    pub peak_in_use: u64,
    /// High-water mark of `reserved` since the last reset of the peaks.
    pub peak_reserved: u64,
    /// The largest request ever served, in bytes.
    pub largest_requested: u64,
    /// Allocations ever made; zero-byte requests do not count.
    pub num_allocs: u64,
    /// The part of `num_allocs` that thread caches served.
    pub num_from_thread_caches: u64,
    /// Live allocations.
    pub num_live: u64,
    /// Current regions.
    pub num_regions: u64,
    /// Regions ever granted by the source, or ranges of addresses.
    pub num_grants: u64,
    /// Bytes with memory: `reserved`, which counts the committed pages of elastic pools.
    pub committed: u64,
    /// How often a page of an elastic pool received memory, from the source or from another page; 0 in other pools.
    pub num_commits: u64,
    /// Requests that got their place in the [plan](crate::Options::plan); 0 in pools without one.
    pub num_planned: u64,
    /// Requests refused for lack of memory, including those that failed in the source.
    pub num_refused: u64,
}

/// An amount and its high-water mark since the last reset.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    now: u64,
    peak: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        // A branch instead of `max`: new peaks are rare, and the branch saves a store.
        if self.now > self.peak {
            cold_path();
            self.peak = self.now;
        }
    }

    fn subtract(&mut self, bytes: u64) {
        self.now -= bytes;
    }
}

/// The stored counters; the rest of [`Stats`] is derived from them and from the tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    requested: Amount,
    in_use: Amount,
    reserved: Amount,
    largest_requested: u64,
    /// The highest number given to an allocation, to a lent chunk, or to a cache.
    allocs: u64,
    /// Those of `allocs` that no allocation had when they were given away.
    set_aside: u64,
    /// Allocations served from thread caches, as far as known.
    from_caches: u64,
    /// Bytes of the lent chunks, all of which `requested` counts.
    lent: u64,
    /// What callers requested of those, modulo 2^64, as far as known; the caches know the rest.
    requested_of_lent: u64,
    grants: u64,
    refused: u64,
}

/// What thread caches did since the counters took note. The sum over all caches is exact; one alone is not, as a chunk
/// may be allocated from one cache and freed into another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CacheFigures {
    /// Bytes of the kept chunks.
    pub(crate) kept: u64,
    /// The number of kept chunks.
    pub(crate) num_kept: u64,
    /// Bytes requested by those that it served less those that it freed, modulo 2^64.
    pub(crate) requested: u64,
    /// Requests served.
    pub(crate) served: u64,
    /// The largest request served, in bytes.
    pub(crate) largest_requested: u64,
}

impl CacheFigures {
    /// Adds the figures of another cache.
    pub(crate) fn add(&mut self, other: &Self) {
        self.kept += other.kept;
        self.num_kept += other.num_kept;
        self.requested = self.requested.wrapping_add(other.requested);
        self.served += other.served;
        self.largest_requested = self.largest_requested.max(other.largest_requested);
    }
}

impl Counters {
    /// Counts an allocation of `requested` bytes in a chunk of `size` bytes; returns the allocation's number.
    pub(crate) fn account_allocate(&mut self, requested: u64, size: u64) -> u64 {
        self.requested.add(requested);
        self.in_use.add(size);
        if requested > self.largest_requested {
            cold_path();
            self.largest_requested = requested;
        }
        self.allocs += 1;
        self.allocs
    }

    /// Counts a free.
    pub(crate) fn account_free(&mut self, requested: u64, size: u64) {
        self.requested.subtract(requested);
        self.in_use.subtract(size);
    }

    /// Counts a change of the requested bytes of an allocation and of the size of its chunk.
    pub(crate) fn account_resize(&mut self, before: (u64, u64), after: (u64, u64)) {
        self.requested.subtract(before.0);
        self.in_use.subtract(before.1);
        self.requested.add(after.0);
        self.in_use.add(after.1);
        self.largest_requested = self.largest_requested.max(after.0);
    }

    /// Counts a lent chunk, which was counted as an allocation of all its `size` bytes; `largest_requested` is that of
    /// before.
    pub(crate) fn account_lend(&mut self, size: u64, largest_requested: u64) {
        self.lent += size;
        self.largest_requested = largest_requested;
        self.set_aside += 1;
    }

    /// Counts a lent chunk of `size` bytes as no longer lent. It is free.
    pub(crate) fn account_take_back(&mut self, size: u64) {
        self.lent -= size;
    }

    /// Counts a lent chunk of `size` bytes as an ordinary allocation of `requested` bytes.
    pub(crate) fn account_withdraw(&mut self, size: u64, requested: u64) {
        self.lent -= size;
        self.requested_of_lent = self.requested_of_lent.wrapping_sub(requested);
        self.requested.subtract(size - requested);
    }

    /// Sets the next `count` numbers of allocations aside for a cache.
    pub(crate) fn set_numbers_aside(&mut self, count: u64) -> Range<u64> {
        let first = self.allocs + 1;
        self.allocs += count;
        self.set_aside += count;
        first..first + count
    }

    /// Takes note of what a cache did. It keeps nothing.
    pub(crate) fn account_cached(&mut self, figures: &CacheFigures) {
        self.from_caches += figures.served;
        self.requested_of_lent = self.requested_of_lent.wrapping_add(figures.requested);
        self.largest_requested = self.largest_requested.max(figures.largest_requested);
    }

    /// Counts a granted region, or a range of addresses, which has no bytes yet.
    pub(crate) fn account_reserve(&mut self, bytes: u64) {
        self.reserved.add(bytes);
        self.grants += 1;
    }

    /// Counts memory that was committed to pages.
    pub(crate) fn account_commit(&mut self, bytes: u64) {
        self.reserved.add(bytes);
    }

    /// Counts a released region, or memory that pages gave back.
    pub(crate) fn account_release(&mut self, bytes: u64) {
        self.reserved.subtract(bytes);
    }

    /// Counts a refused request.
    pub(crate) fn account_refuse(&mut self) {
        self.refused += 1;
    }

    /// Sets every peak to its current value; cumulative counters stay.
    pub(crate) fn reset_peaks(&mut self) {
        for amount in [&mut self.requested, &mut self.in_use, &mut self.reserved] {
            amount.peak = amount.now;
        }
    }

    pub(crate) fn largest_requested(&self) -> u64 {
        self.largest_requested
    }

    pub(crate) fn allocs(&self) -> u64 {
        self.allocs
    }

    pub(crate) fn peak_requested(&self) -> u64 {
        self.requested.peak
    }

    pub(crate) fn requested(&self) -> u64 {
        self.requested.now
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.in_use.now
    }

    pub(crate) fn internal_fragmentation(&self) -> u64 {
        self.in_use.now - self.requested.now
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.now
    }

    /// Completes the counters with figures of the tables.
    pub(crate) fn stats(
        &self,
        limit: u64,
        largest_free: u64,
        num_live: usize,
        num_regions: usize,
        caches: &CacheFigures,
    ) -> Stats {
        let of_lent = self.requested_of_lent.wrapping_add(caches.requested);
        let requested = self.requested.now - self.lent + of_lent;
        let in_use = self.in_use.now - caches.kept;
        // A paused pool has nothing reserved.
        let free = self.reserved.now.saturating_sub(in_use);
        Stats {
            requested,
            in_use,
            internal_fragmentation: in_use - requested,
            reserved: self.reserved.now,
            limit,
            free,
            thread_cached: caches.kept,
            largest_free,
            fragmentation: ratio(free.saturating_sub(largest_free), free),
            peak_requested: self.requested.peak,
            peak_in_use: self.in_use.peak,
            peak_reserved: self.reserved.peak,
            largest_requested: self.largest_requested.max(caches.largest_requested),
            num_allocs: self.allocs - self.set_aside + self.from_caches + caches.served,
            num_from_thread_caches: self.from_caches + caches.served,
            num_live: num_live as u64 - caches.num_kept,
            num_regions: num_regions as u64,
            num_grants: self.grants,
            committed: self.reserved.now,
            num_commits: 0,
            num_planned: 0,
            num_refused: self.refused,
        }
    }
}
