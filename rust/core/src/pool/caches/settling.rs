//! Settling: kept chunks become free, and allocations that were served from caches become the allocator's.

use allotment_sync::{EntryTable, MutexGuard};

use super::cache::Cache;
use super::size_class::SizeClass;
use super::{Caches, NUMBERS};
use crate::error::Unusable;
use crate::pool::lock::usable;
use crate::pool::state::State;
use crate::stats::{CacheFigures, Stats};
#[cfg(feature = "decisions")]
use crate::tables::decisions::Decided;
use crate::tables::decisions::Decision;

impl Caches {
    /// Locks the caches of all threads; says which threads have ended. The caller holds the lock.
    fn lock_all(&self) -> Result<Vec<(MutexGuard<'_, Cache>, bool)>, Unusable> {
        let all = self.threads.all();
        all.map(|(cache, has_ended)| Ok((usable(cache.lock())?, has_ended))).collect()
    }
}

#[cfg(feature = "decisions")]
impl Caches {
    /// Returns the decisions of each cache so far, with its number.
    pub(in crate::pool) fn decisions(&self) -> Vec<(u64, Vec<Decided>)> {
        let all = self.lock_all().expect("the barrier works, or the caches have no owners");
        all.iter().map(|(cache, _)| cache.decisions()).collect()
    }
}

impl State {
    /// Records that the lock of a pool with caches was taken: with [`Decision::Locked`], or [`Decision::RunsDeferred`].
    #[inline(always)]
    pub(in crate::pool) fn record_lock(&mut self, decision: Decision) {
        if cfg!(feature = "decisions") && self.caches.is_some() {
            self.allocator.decisions.record(|| decision);
        }
    }

    /// Gives a cache what it needs to serve a request of a class, as far as there are free chunks.
    pub(super) fn fill(&mut self, cache: &mut Cache, class: SizeClass, allocations: &EntryTable) {
        self.has_lent = true;
        if cache.needs_numbers() {
            let numbers = self.allocator.counters.set_numbers_aside(NUMBERS);
            let first = numbers.start;
            self.allocator.decisions.record(|| Decision::NumbersSetAside { first, count: NUMBERS });
            cache.set_numbers(numbers);
        }
        if cache.has(class) {
            return;
        }
        for _ in 0..class.batch() {
            let Some(address) = self.allocator.lend(class.bytes()) else { return };
            let Some(place) = allocations.reserve(address) else {
                return self.allocator.take_back(address, class.bytes());
            };
            cache.keep(class, place);
        }
    }

    /// Frees the `count` chunks of a class that a cache has kept longest.
    pub(super) fn take_back(
        &mut self,
        cache: &mut Cache,
        class: SizeClass,
        count: usize,
        allocations: &EntryTable,
    ) {
        for place in cache.remove(class, count) {
            self.allocator.take_back(allocations.key(place), class.bytes());
            allocations.release(place);
        }
    }

    /// Settles the caches of all threads: nothing is lent afterwards, until the lock is released.
    ///
    /// # Errors
    /// If the system forbids to take a cache from its thread; nothing was changed.
    pub(in crate::pool) fn settle(&mut self) -> Result<(), Unusable> {
        let Some(caches) = self.caches.clone().filter(|_| self.has_lent) else { return Ok(()) };
        let mut locked = caches.lock_all()?;
        for (cache, _) in &mut locked {
            cache.record_lock(&mut self.allocator.decisions);
            self.empty(cache, &caches.allocations);
            self.allocator.counters.account_cached(&cache.figures());
            cache.reset_figures();
        }
        caches.allocations.drain(|address, entry| {
            self.allocator.withdraw(address, entry.number, entry.value.into());
        });
        self.has_lent = false;
        Ok(())
    }

    /// Frees all chunks that a cache keeps.
    fn empty(&mut self, cache: &mut Cache, allocations: &EntryTable) {
        for class in SizeClass::all() {
            self.take_back(cache, class, usize::MAX, allocations);
        }
    }

    /// Makes the allocation at an address one of the allocator, if it was served from a cache.
    pub(in crate::pool) fn withdraw(&mut self, address: u64) {
        if let Some(Caches { allocations, .. }) = self.caches.as_deref()
            && let Some(found) = allocations.find(address)
            && allocations.remove(&found)
        {
            self.allocator.withdraw(address, found.entry.number, found.entry.value.into());
            allocations.release(found.place);
        }
    }

    /// Returns the counters, without a change to what the caches keep, except that those of ended threads are emptied.
    ///
    /// # Errors
    /// As [`State::settle`].
    pub(in crate::pool) fn stats(&mut self) -> Result<Stats, Unusable> {
        let caches = self.cached_figures()?;
        Ok(self.allocator.stats_with(&caches))
    }

    /// Returns the sums over the caches of all threads. Empties those of threads that have ended.
    fn cached_figures(&mut self) -> Result<CacheFigures, Unusable> {
        let mut sums = CacheFigures::default();
        let Some(caches) = self.caches.clone().filter(|_| self.has_lent) else { return Ok(sums) };
        let mut locked = caches.lock_all()?;
        for (cache, has_ended) in &mut locked {
            cache.record_lock(&mut self.allocator.decisions);
            if *has_ended {
                self.empty(cache, &caches.allocations);
            }
            sums.add(&cache.figures());
        }
        self.allocator.decisions.record(|| Decision::Counted);
        Ok(sums)
    }
}
