//! A first plan in one pass over time: each buffer gets the smallest free range that holds it.

use std::collections::{BTreeMap, BTreeSet};

use super::sections::Block;

/// Returns an offset for each block; blocks are in the order of their first section.
///
/// # Cost
/// n log n.
pub(super) fn sweep(blocks: &[Block]) -> Vec<u64> {
    let mut by_end: Vec<usize> = (0..blocks.len()).collect();
    by_end.sort_by_key(|&block| blocks[block].to);
    let mut ended = by_end.into_iter().peekable();
    let mut free = FreeRanges::default();
    let mut offsets = vec![0; blocks.len()];
    for (index, block) in blocks.iter().enumerate() {
        while let Some(&gone) = ended.peek()
            && blocks[gone].to <= block.from
        {
            free.give(offsets[gone], blocks[gone].size);
            ended.next();
        }
        offsets[index] = free.take(block.size);
    }
    offsets
}

/// The free ranges below the highest byte in use.
#[derive(Default)]
struct FreeRanges {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    /// The end of the highest range in use.
    top: u64,
}

impl FreeRanges {
    fn take(&mut self, size: u64) -> u64 {
        let Some(&(found, offset)) = self.by_size.range((size, 0)..).next() else {
            self.top += size;
            return self.top - size;
        };
        self.remove(offset, found);
        if found > size {
            self.insert(offset + size, found - size);
        }
        offset
    }

    fn give(&mut self, mut offset: u64, mut size: u64) {
        if let Some((&before, &length)) = self.by_offset.range(..offset).next_back()
            && before + length == offset
        {
            self.remove(before, length);
            offset = before;
            size += length;
        }
        if let Some(&length) = self.by_offset.get(&(offset + size)) {
            self.remove(offset + size, length);
            size += length;
        }
        if offset + size == self.top {
            self.top = offset;
        } else {
            self.insert(offset, size);
        }
    }

    fn insert(&mut self, offset: u64, size: u64) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: u64, size: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}
