//! Expandable segments: a range of addresses for each stream and kind of block, with memory behind some of its pages.
//!
//! ```text
//! segment │ in use │ free │ in use │ unmapped │ in use │ unmapped …            │
//!         └ pages of 2 MiB for small blocks and of 20 MiB for large ones, mapped on request and unmapped before a refusal
//! ```
//!
//! A request that no free block serves takes the lowest unmapped block with enough free or unmapped addresses from it,
//! or from the free block before it, on; only the unmapped pages among them are mapped.

use super::sizes::{LARGE_SEGMENT, SMALL_SEGMENT};
use super::{Block, CachingAllocator};

/// The most addresses of a segment: more than any machine has memory.
const MAX_ADDRESSES: u64 = 1 << 50;

impl CachingAllocator {
    /// Returns the size of a block, and of the unmapped one behind it.
    pub(super) fn expanded_size(&self, address: u64) -> u64 {
        let Some(block) = self.blocks.get(&address) else { return 0 };
        let behind = self.after(address, block).filter(|(_, next)| !next.mapped);
        block.size + behind.map_or(0, |(_, next)| next.size)
    }

    /// Maps pages for a request, as many as it needs. The block is free and in no table of free blocks.
    pub(super) fn expand(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let mut address = self.find_expandable(size, small, stream)?;
        if !self.blocks.get(&address)?.mapped {
            address = self.map(address, size)?;
        }
        loop {
            let block = *self.blocks.get(&address)?;
            if block.size >= size {
                self.free[usize::from(!small)].remove(&(stream, block.size, address));
                return Some(address);
            }
            // Mapping merges what it maps with the free block before it. What was mapped stays so if the next fails.
            let (behind, _) = self.after(address, &block)?;
            address = self.map(behind, size - block.size)?;
        }
    }

    /// Returns the block from which on there are enough addresses, in a new segment if in no other.
    fn find_expandable(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let kind = usize::from(!small);
        let unmapped = self.unmapped[kind].range((stream, 0)..).take_while(|&&(other, _)| other == stream);
        for &(_, address) in unmapped {
            let block = self.blocks.get(&address)?;
            let start = self.before(address, block).filter(|(_, before)| before.free);
            let start = start.map_or(address, |(left, _)| left);
            if self.has_addresses(start, size) {
                return Some(start);
            }
        }
        let page = page_size(small);
        // PyTorch reserves an eighth more than the device's memory.
        let limit = self.options.limit;
        let length = (limit.saturating_add(limit / 8)).min(MAX_ADDRESSES).next_multiple_of(page);
        if length < size {
            return None;
        }
        let address = self.next;
        self.next = address + length;
        let block =
            Block { size: length, stream, small, free: true, segment: address, mapped: false, since: 0 };
        self.keep(address, block);
        Some(address)
    }

    /// Whether the blocks from `address` on that are free or unmapped have enough bytes.
    fn has_addresses(&self, address: u64, size: u64) -> bool {
        let Some(first) = self.blocks.get(&address) else { return false };
        let free = self
            .blocks
            .range(address..)
            .take_while(|(_, block)| block.segment == first.segment && block.free)
            .scan(0, |bytes, (_, block)| {
                *bytes += block.size;
                Some(*bytes)
            });
        free.into_iter().any(|bytes| bytes >= size)
    }

    /// Maps pages at the start of an unmapped block, for at most `bytes` of it. Returns the address of the free block
    /// that has them, or `None` if the limit does not allow them all.
    fn map(&mut self, address: u64, bytes: u64) -> Option<u64> {
        let block = *self.blocks.get(&address)?;
        let mapped = bytes.min(block.size).next_multiple_of(page_size(block.small));
        if mapped > self.options.limit.saturating_sub(self.reserved) {
            return None;
        }
        self.forget(address);
        if mapped < block.size {
            self.keep(address + mapped, Block { size: block.size - mapped, ..block });
        }
        self.reserve(mapped);
        Some(self.merge(address, Block { size: mapped, mapped: true, ..block }))
    }

    /// Takes the memory from the whole pages of a free block. Its ends that share a page stay free.
    pub(super) fn unmap(&mut self, address: u64) {
        let Some(block) = self.blocks.get(&address).copied() else { return };
        let page = page_size(block.small);
        let start = block.segment + (address - block.segment).next_multiple_of(page);
        let end = block.segment + (address + block.size - block.segment) / page * page;
        if start >= end {
            return;
        }
        self.forget(address);
        if address < start {
            self.keep(address, Block { size: start - address, ..block });
        }
        if end < address + block.size {
            self.keep(end, Block { size: address + block.size - end, ..block });
        }
        self.reserved -= end - start;
        self.merge(start, Block { size: end - start, mapped: false, ..block });
    }

    /// Returns the number of ranges of expandable segments that are mapped without a gap.
    pub(super) fn mapped_ranges(&self) -> usize {
        let starts = |&(&address, block): &(&u64, &Block)| {
            block.mapped
                && !self.segments.contains_key(&block.segment)
                && self.before(address, block).is_none_or(|(_, before)| !before.mapped)
        };
        self.blocks.iter().filter(starts).count()
    }
}

fn page_size(small: bool) -> u64 {
    if small { SMALL_SEGMENT } else { LARGE_SEGMENT }
}
