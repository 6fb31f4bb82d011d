//! The counters of an allocator, and every place where one of them moves.

use crate::hint::cold_path;
use crate::units::ratio;

/// What a pool holds and has done. One consistent copy, taken under the lock.
///
/// At every moment `requested <= in_use <= reserved <= limit`, every amount is at most its peak, and
/// `in_use` is the sum of the sizes of the chunks in use.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Stats {
    /// Bytes that callers asked for and still hold.
    pub requested: u64,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// `in_use - requested`: bytes lost inside chunks to rounding, alignment, red zones, and remainders that were not
    /// split off.
    pub internal_fragmentation: u64,
    /// Bytes of all regions, in use or not.
    pub reserved: u64,
    /// The most that may be reserved, in bytes.
    pub limit: u64,
    /// `reserved - in_use`, in bytes.
    pub free: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none.
    pub largest_free: u64,
    /// `(free - largest_free) / free`, 0 when nothing is free.
    pub fragmentation: f64,
    /// The most `requested` was since the last reset of the peaks.
    pub peak_requested: u64,
    /// The most `in_use` was since the last reset of the peaks.
    pub peak_in_use: u64,
    /// The most `reserved` was since the last reset of the peaks.
    pub peak_reserved: u64,
    /// The largest request ever served, in bytes.
    pub largest_requested: u64,
    /// Allocations ever made; frees do not lower it, zero-byte requests do not count.
    pub num_allocs: u64,
    /// Allocations held now.
    pub num_live: u64,
    /// Regions held now.
    pub num_regions: u64,
    /// Regions ever got from the source.
    pub num_grants: u64,
    /// Requests that were refused memory, for a source that failed, too.
    pub num_refused: u64,
}

/// An amount and the most it was since the last reset.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    now: u64,
    peak: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.now += bytes;
        // A branch, as new peaks are rare: a store less than taking the maximum.
        if self.now > self.peak {
            cold_path();
            self.peak = self.now;
        }
    }

    fn subtract(&mut self, bytes: u64) {
        self.now -= bytes;
    }
}

/// The counters that move; the rest of [`Stats`] follows from them and from the tables.
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
    /// A chunk of `size` bytes went to a caller who asked for `requested`; returns the allocation's number.
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

    /// A caller gave a chunk back.
    pub(crate) fn account_free(&mut self, requested: u64, size: u64) {
        self.requested.subtract(requested);
        self.in_use.subtract(size);
    }

    /// A caller asked for another number of bytes in the same chunk.
    pub(crate) fn account_resize(&mut self, before: u64, after: u64) {
        self.requested.subtract(before);
        self.requested.add(after);
        self.largest_requested = self.largest_requested.max(after);
    }

    /// The source granted a region.
    pub(crate) fn account_reserve(&mut self, bytes: u64) {
        self.reserved.add(bytes);
        self.grants += 1;
    }

    /// A region is on its way back to the source.
    pub(crate) fn account_release(&mut self, bytes: u64) {
        self.reserved.subtract(bytes);
    }

    /// A request was refused for good.
    pub(crate) fn account_refuse(&mut self) {
        self.refused += 1;
    }

    /// Every peak becomes *now*; what counts up for ever stays.
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

    /// Completes the counters with what the tables know.
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
