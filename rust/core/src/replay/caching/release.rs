//! Giving cached segments back: old ones beside a threshold, oversized ones, and all of them before a refusal.

use super::CachingAllocator;
use super::sizes::SMALL;
use crate::units::{ratio, share_of};

impl CachingAllocator {
    /// Gives oversized blocks back until there is room for a request: only with `max_split_size`. Returns whether there
    /// may be.
    pub(super) fn release_oversized(&mut self, size: u64, stream: i64) -> bool {
        // Small segments are not oversized.
        let Some(most) = self.options.max_split_size.filter(|_| size > SMALL) else { return false };
        let wanted = size.max(most);
        let of_stream = |&&(other, ..): &&(i64, u64, u64)| other == stream;
        if let Some(&(.., address)) = self.free[1].range((stream, wanted, 0)..).next().filter(of_stream)
            && self.segments.contains_key(&self.segment_of(address))
        {
            self.release(address);
            return true;
        }
        let oversized: Vec<_> = self.free[1]
            .range(..(stream, wanted, 0))
            .rev()
            .take_while(of_stream)
            .take_while(|&&(_, length, _)| length >= most)
            .copied()
            .collect();
        let mut released = 0;
        for (_, length, address) in oversized {
            if released >= wanted {
                break;
            }
            // A segment of a recording may be split nevertheless.
            if self.release(address) {
                released += length;
            }
        }
        released >= wanted
    }

    /// Gives all wholly free segments back, and the free pages of expandable ones.
    pub(super) fn release_cached(&mut self) {
        let free: Vec<_> = self.free.iter().flatten().map(|&(.., address)| address).collect();
        for address in free {
            if !self.release(address) && !self.segments.contains_key(&self.segment_of(address)) {
                self.unmap(address);
            }
        }
    }

    /// Gives wholly free large segments back that were free for longer than the average, until the reserved bytes are
    /// at the threshold.
    pub(super) fn collect_garbage(&mut self) {
        if self.options.gc_threshold <= 0.0 {
            return;
        }
        let threshold = share_of(self.options.limit, self.options.gc_threshold);
        let Some(target) = self.reserved.checked_sub(threshold).filter(|&target| target > 0) else { return };
        let mut whole: Vec<_> = self.free[1]
            .iter()
            .filter(|&&(_, size, address)| self.segments.get(&address) == Some(&size))
            .map(|&(_, size, address)| (address, size, self.age(address)))
            .collect();
        let mut total_age: u64 = whole.iter().map(|&(.., age)| age).sum();
        let mut reclaimed = 0;
        while reclaimed < target && !whole.is_empty() {
            // Of the segments that are left; those that go lower the sum, not the average of this round.
            let average = ratio(total_age, whole.len() as u64);
            let (old, young): (Vec<_>, Vec<_>) =
                whole.into_iter().partition(|&(.., age)| ratio(age, 1) >= average);
            if old.is_empty() {
                return;
            }
            for (address, size, age) in old {
                self.release(address);
                reclaimed += size;
                total_age -= age;
            }
            whole = young;
        }
    }

    /// Returns the number of searches for large blocks since a block became free.
    fn age(&self, address: u64) -> u64 {
        self.blocks.get(&address).map_or(0, |block| self.searches - block.since)
    }

    fn segment_of(&self, address: u64) -> u64 {
        self.blocks.get(&address).map_or(0, |block| block.segment)
    }

    /// Gives the segment of a free block back if the block is all of it; returns whether it was.
    fn release(&mut self, address: u64) -> bool {
        let whole =
            self.blocks.get(&address).is_some_and(|block| self.segments.get(&address) == Some(&block.size));
        if whole {
            self.forget(address);
            self.reserved -= self.segments.remove(&address).unwrap_or(0);
        }
        whole
    }
}
