//! Best fit with the standard library's trees: what a program writes that needs such an allocator.

use std::collections::{BTreeMap, BTreeSet};

use allotment::GRANULE;

use super::Peer;

/// One region. Free chunks by size and address, all chunks by address: exact best fit, the lowest address among equals,
/// every remainder split off, merging with both neighbours. No lock, growth, counters or figures in refusals.
pub(crate) struct TreeSet {
    /// The size of each chunk and whether it is free, by its first granule.
    chunks: BTreeMap<u64, (u64, bool)>,
    /// Size and first granule of the free chunks.
    free: BTreeSet<(u64, u64)>,
}

impl TreeSet {
    pub(crate) fn new(limit: u64) -> Self {
        let granules = limit / GRANULE;
        Self { chunks: BTreeMap::from([(0, (granules, true))]), free: BTreeSet::from([(granules, 0)]) }
    }

    /// Removes the free chunk at `start`, if there is one; returns its size.
    fn take_free(&mut self, start: u64) -> Option<u64> {
        let &(size, is_free) = self.chunks.get(&start)?;
        is_free.then(|| {
            self.chunks.remove(&start);
            self.free.remove(&(size, start));
            size
        })
    }

    fn insert_free(&mut self, start: u64, size: u64) {
        self.chunks.insert(start, (size, true));
        self.free.insert((size, start));
    }
}

impl Peer for TreeSet {
    type Block = u64;

    fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let size = bytes.div_ceil(GRANULE);
        let &(found, start) = self.free.range((size, 0)..).next()?;
        self.free.remove(&(found, start));
        self.chunks.insert(start, (size, false));
        if found > size {
            self.insert_free(start + size, found - size);
        }
        Some(start)
    }

    fn free(&mut self, mut start: u64) {
        let (mut size, is_free) = self.chunks.remove(&start).expect("a live allocation");
        assert!(!is_free, "a live allocation");
        if let Some(after) = self.take_free(start + size) {
            size += after;
        }
        if let Some((&before, &(bytes, true))) = self.chunks.range(..start).next_back() {
            self.take_free(before);
            (start, size) = (before, size + bytes);
        }
        self.insert_free(start, size);
    }
}
