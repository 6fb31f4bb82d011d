//! The counters of an allocator; every change of a counter is a method here.

use crate::branch_hint::cold_path;
use crate::units::ratio;

/// The counters of a pool: one consistent copy, taken under the lock.
///
/// At every moment `requested <= in_use <= reserved <= limit`, every amount is at most its peak, and `in_use` is the
/// sum of the sizes of the chunks in use.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// `reserved - in_use`, in bytes.
    pub free: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none.
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
    /// Live allocations.
    pub num_live: u64,
    /// Current regions.
    pub num_regions: u64,
    /// Regions ever granted by the source.
    pub num_grants: u64,
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
    allocs: u64,
    grants: u64,
    refused: u64,
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

    /// Counts a granted region.
    pub(crate) fn account_reserve(&mut self, bytes: u64) {
        self.reserved.add(bytes);
        self.grants += 1;
    }

    /// Counts a released region.
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

    pub(crate) fn allocs(&self) -> u64 {
        self.allocs
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
    pub(crate) fn stats(&self, limit: u64, largest_free: u64, num_live: usize, num_regions: usize) -> Stats {
        let free = self.reserved.now - self.in_use.now;
        Stats {
            requested: self.requested.now,
            in_use: self.in_use.now,
            internal_fragmentation: self.internal_fragmentation(),
            reserved: self.reserved.now,
            limit,
            free,
            largest_free,
            fragmentation: ratio(free - largest_free, free),
            peak_requested: self.requested.peak,
            peak_in_use: self.in_use.peak,
            peak_reserved: self.reserved.peak,
            largest_requested: self.largest_requested,
            num_allocs: self.allocs,
            num_live: num_live as u64,
            num_regions: num_regions as u64,
            num_grants: self.grants,
            num_refused: self.refused,
        }
    }
}
