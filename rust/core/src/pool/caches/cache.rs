//! The cache of one thread: a magazine of free chunks for each size class.

use std::num::NonZeroU64;
use std::ops::Range;

use allotment_sync::{Entry, EntryTable, Place};

use super::size_class::{CLASSES, SizeClass};
use crate::stats::CacheFigures;
#[cfg(feature = "decisions")]
use crate::tables::decisions::Decided;
use crate::tables::decisions::{CacheDecisions, Decision, Decisions};
use crate::tables::free_target::{FreeTarget, HELD};

/// Free chunks, and numbers for allocations in them. In the tables of the allocator the chunks are lent.
#[derive(Debug)]
pub(super) struct Cache {
    /// Kept chunks by size class: their places in the table of allocations. The last was freed last.
    magazines: [Vec<Place>; CLASSES],
    /// Numbers of allocations that no other thread uses.
    numbers: Range<u64>,
    /// Bytes requested by those that it served less those that it freed, modulo 2^64.
    requested: u64,
    served: u64,
    largest_requested: u64,
    decisions: CacheDecisions,
}

/// How a free into a cache ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// The magazine of this class is full; nothing was changed.
    Full(SizeClass),
    /// No allocation from a cache is at the address, or the target does not match it; nothing was changed.
    Missed,
}

impl Default for Cache {
    fn default() -> Self {
        let magazines = [const { Vec::new() }; CLASSES];
        let decisions = CacheDecisions::default();
        Self { magazines, numbers: 0..0, requested: 0, served: 0, largest_requested: 0, decisions }
    }
}

impl Cache {
    /// Serves a request of `bytes` bytes from the magazine of its class; returns the address, never 0, and the number of
    /// the allocation. `None`, without any change, if there is no chunk or number for it.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        class: SizeClass,
        bytes: u32,
        held: bool,
        allocations: &EntryTable,
    ) -> Option<(NonZeroU64, u64)> {
        if self.numbers.is_empty() {
            return None;
        }
        let place = self.magazines[class.index()].pop()?;
        let id = self.numbers.start;
        self.numbers.start += 1;
        self.decisions.record(|cache| Decision::CacheServed { cache, id });
        allocations.put(place, Entry { number: if held { id | HELD } else { id }, value: bytes });
        let requested = u64::from(bytes);
        self.requested = self.requested.wrapping_add(requested);
        self.served += 1;
        self.largest_requested = self.largest_requested.max(requested);
        NonZeroU64::new(allocations.key(place)).map(|address| (address, id))
    }

    /// Frees an allocation that was served from any cache.
    #[inline(always)]
    pub(super) fn put(&mut self, address: u64, target: FreeTarget, allocations: &EntryTable) -> Put {
        let Some(found) = allocations.find(address) else { return Put::Missed };
        let requested = u64::from(found.entry.value);
        let Some(class) = SizeClass::of(requested) else { return Put::Missed };
        if !target.matches(NonZeroU64::new(found.entry.number)) {
            return Put::Missed;
        }
        let magazine = &mut self.magazines[class.index()];
        if magazine.len() >= class.capacity() {
            return Put::Full(class);
        }
        if !allocations.remove(&found) {
            return Put::Missed;
        }
        self.decisions.record(|cache| Decision::CacheFreed { cache, id: found.entry.number & !HELD });
        self.requested = self.requested.wrapping_sub(requested);
        self.keep(class, found.place);
        Put::Done
    }

    /// Adds a chunk that is lent and free.
    #[inline(always)]
    pub(super) fn keep(&mut self, class: SizeClass, place: Place) {
        let magazine = &mut self.magazines[class.index()];
        if magazine.len() == magazine.capacity() {
            reserve(magazine, class);
        }
        magazine.push(place);
    }

    /// Removes the `count` chunks of a class that were freed longest ago.
    pub(super) fn remove(&mut self, class: SizeClass, count: usize) -> impl Iterator<Item = Place> {
        let magazine = &mut self.magazines[class.index()];
        let count = count.min(magazine.len());
        magazine.drain(..count)
    }

    /// Returns whether it has what it takes to serve a request of a class.
    pub(super) fn has(&self, class: SizeClass) -> bool {
        !self.magazines[class.index()].is_empty()
    }

    pub(super) fn needs_numbers(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(super) fn set_numbers(&mut self, numbers: Range<u64>) {
        self.numbers = numbers;
    }

    /// Records in the order of the pool that this cache is locked.
    #[inline(always)]
    pub(super) fn record_lock(&self, order: &mut Decisions) {
        self.decisions.record_lock(order);
    }

    /// Returns a copy of the decisions so far, with the number of the cache.
    #[cfg(feature = "decisions")]
    pub(super) fn decisions(&self) -> (u64, Vec<Decided>) {
        self.decisions.copy()
    }

    /// Returns what it keeps, and what it did since the counters took note.
    pub(super) fn figures(&self) -> CacheFigures {
        let kept = SizeClass::all().map(|class| (self.magazines[class.index()].len() as u64, class.bytes()));
        let (num_kept, kept) =
            kept.fold((0, 0), |sums, (count, bytes)| (sums.0 + count, sums.1 + count * bytes));
        let Self { requested, served, largest_requested, .. } = *self;
        CacheFigures { kept, num_kept, requested, served, largest_requested }
    }

    /// Resets what it did, as the counters took note.
    pub(super) fn reset_figures(&mut self) {
        (self.requested, self.served, self.largest_requested) = (0, 0, 0);
    }
}

/// Makes room for all chunks that a magazine may hold.
#[cold]
fn reserve(magazine: &mut Vec<Place>, class: SizeClass) {
    magazine.reserve_exact(class.capacity() - magazine.len());
}
