//! A model of PyTorch's caching allocator, to compare replays with.
//!
//! Written from its published rules (the comments of `c10/cuda/CUDACachingAllocator.cpp` and the notes on CUDA memory
//! management): requests are rounded to 512 bytes; those up to 1 MiB come from segments of 2 MiB, others up to 10 MiB
//! from segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. A free block is best fit of its
//! stream and kind, and split if at least 512 bytes (small) or more than 1 MiB (large) would be left. Neighbours merge
//! on every free. Segments stay until a request fails: then wholly free ones are given back and the request is tried
//! again ([`release`]). Segments of `expandable_segments` are mapped and unmapped in pages ([`expandable`]).

mod expandable;
mod release;
mod run;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};

pub use run::{CachingOutcome, replay_caching};
use sizes::{LARGE_SEGMENT, MIN_BLOCK, SEGMENT_STEP, SMALL, round_size, segment_size};

/// Segments of the model begin at multiples of this.
const FIRST_ADDRESS: u64 = 1 << 30;

/// Settings of `PYTORCH_CUDA_ALLOC_CONF`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct CachingOptions {
    /// The most bytes of all segments.
    pub limit: u64,
    /// `max_split_size_mb` in bytes: larger blocks are not split, and serve requests of at least this size only.
    pub max_split_size: Option<u64>,
    /// `roundup_power2_divisions`: round requests up to one of this many steps between powers of two; 0 for none.
    pub roundup_divisions: u64,
    /// `expandable_segments`: one range of addresses for each stream and kind of block, mapped as it is needed.
    pub expandable_segments: bool,
    /// `garbage_collection_threshold`: the share of the limit from which on old cached segments are given back before a
    /// new one is taken; 0 for never. PyTorch obeys it beside `set_per_process_memory_fraction` only.
    pub gc_threshold: f64,
}

impl CachingOptions {
    /// Returns the defaults of PyTorch with a limit in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            max_split_size: None,
            roundup_divisions: 0,
            expandable_segments: false,
            gc_threshold: 0.0,
        }
    }
}

/// A block: in use or free, beside others of its segment.
#[derive(Debug, Clone, Copy)]
struct Block {
    size: u64,
    stream: i64,
    small: bool,
    free: bool,
    /// Address of the segment.
    segment: u64,
    /// Whether memory is behind the addresses; false in expandable segments only.
    mapped: bool,
    /// Number of searches for large blocks when the block became free.
    since: u64,
}

/// The model.
#[derive(Debug)]
pub struct CachingAllocator {
    options: CachingOptions,
    /// All blocks by address.
    blocks: BTreeMap<u64, Block>,
    /// Free blocks of small and large segments: stream, size, address.
    free: [BTreeSet<(i64, u64, u64)>; 2],
    /// Blocks without memory, of small and large expandable segments: stream, address.
    unmapped: [BTreeSet<(i64, u64)>; 2],
    /// Sizes of segments by address, without expandable ones.
    segments: BTreeMap<u64, u64>,
    /// Number of searches for large blocks.
    searches: u64,
    next: u64,
    reserved: u64,
    peak_reserved: u64,
    in_use: u64,
    peak_in_use: u64,
}

impl CachingAllocator {
    /// Creates an allocator without segments.
    #[must_use]
    pub fn new(options: CachingOptions) -> Self {
        Self {
            options,
            blocks: BTreeMap::new(),
            free: [BTreeSet::new(), BTreeSet::new()],
            unmapped: [BTreeSet::new(), BTreeSet::new()],
            segments: BTreeMap::new(),
            searches: 0,
            next: FIRST_ADDRESS,
            reserved: 0,
            peak_reserved: 0,
            in_use: 0,
            peak_in_use: 0,
        }
    }

    /// Adds a segment of known address with its blocks in order, each with its size and whether it is in use.
    pub fn add_segment(&mut self, address: u64, small: bool, stream: i64, blocks: &[(u64, bool)]) {
        let mut at = address;
        for &(size, used) in blocks {
            self.keep(
                at,
                Block { size, stream, small, free: !used, segment: address, mapped: true, since: 0 },
            );
            if used {
                self.in_use += size;
            }
            at += size;
        }
        self.segments.insert(address, at - address);
        self.reserved += at - address;
        self.next = self.next.max(at.next_multiple_of(SEGMENT_STEP));
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }

    /// Serves a request on a stream; returns its address, or `None` for a refusal.
    pub fn allocate(&mut self, bytes: u64, stream: i64) -> Option<u64> {
        let size = round_size(bytes, self.options.roundup_divisions);
        let small = size <= SMALL;
        self.searches += u64::from(!small);
        let address =
            self.take_free(size, small, stream).or_else(|| self.take_segment(size, small, stream))?;
        self.split(address, size);
        let block = self.blocks.get_mut(&address)?;
        block.free = false;
        self.in_use += block.size;
        self.peak_in_use = self.peak_in_use.max(self.in_use);
        Some(address)
    }

    /// Frees the block at `address`, which is in use.
    pub fn free(&mut self, address: u64) {
        let Some(mut block) = self.blocks.get(&address).copied().filter(|block| !block.free) else { return };
        self.in_use -= block.size;
        block.free = true;
        self.blocks.remove(&address);
        self.merge(address, block);
    }

    /// Enters a free block, merged with free neighbours that are mapped or not as it is. Returns its address.
    fn merge(&mut self, mut address: u64, mut block: Block) -> u64 {
        let joins = |other: &Block| other.free && other.mapped == block.mapped;
        if let Some((right, next)) = self.after(address, &block).filter(|(_, next)| joins(next)) {
            self.forget(right);
            block.size += next.size;
        }
        if let Some((left, before)) = self.before(address, &block).filter(|(_, before)| joins(before)) {
            self.forget(left);
            block.size += before.size;
            address = left;
        }
        self.keep(address, block);
        address
    }

    /// Returns the block behind one in its segment.
    fn after(&self, address: u64, block: &Block) -> Option<(u64, Block)> {
        let (&right, &next) = self.blocks.range(address + 1..).next()?;
        (next.segment == block.segment).then_some((right, next))
    }

    /// Returns the block before one in its segment.
    fn before(&self, address: u64, block: &Block) -> Option<(u64, Block)> {
        let (&left, &before) = self.blocks.range(..address).next_back()?;
        (before.segment == block.segment).then_some((left, before))
    }

    /// Enters a block into the tables; a free one is free from now on.
    fn keep(&mut self, address: u64, block: Block) {
        let block = Block { since: self.searches, ..block };
        self.blocks.insert(address, block);
        let kind = usize::from(!block.small);
        if !block.mapped {
            self.unmapped[kind].insert((block.stream, address));
        } else if block.free {
            self.free[kind].insert((block.stream, block.size, address));
        }
    }

    /// Removes a free block from the tables, and returns it.
    fn forget(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        let kind = usize::from(!block.small);
        self.free[kind].remove(&(block.stream, block.size, address));
        self.unmapped[kind].remove(&(block.stream, address));
        Some(block)
    }

    /// Takes the best fit out of the free blocks.
    fn take_free(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let mut found = self.free[usize::from(!small)]
            .range((stream, size, 0)..)
            .take_while(|&&(other, ..)| other == stream)
            .copied();
        let mut best = found.next()?;
        if self.options.expandable_segments {
            // Best fit by the size that a block can expand to, as far as those sizes fall.
            for next in found {
                if self.expanded_size(next.2) >= self.expanded_size(best.2) {
                    break;
                }
                best = next;
            }
        }
        let (_, length, address) = best;
        if let Some(most) = self.options.max_split_size {
            // Small requests leave oversized blocks alone, large ones take those that are not much too large.
            if size < most && length >= most || size >= most && length >= size + LARGE_SEGMENT {
                return None;
            }
        }
        self.free[usize::from(!small)].remove(&best);
        Some(address)
    }

    /// Takes a new segment, after cached ones were given back if the limit requires it.
    fn take_segment(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        self.collect_garbage();
        if let Some(address) = self.try_segment(size, small, stream) {
            return Some(address);
        }
        if self.release_oversized(size, stream)
            && let Some(address) = self.try_segment(size, small, stream)
        {
            return Some(address);
        }
        self.release_cached();
        self.try_segment(size, small, stream)
    }

    /// Takes a new segment, or expands one. The block is free and in no table of free blocks.
    fn try_segment(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let length = segment_size(size);
        let room = self.options.limit.saturating_sub(self.reserved);
        if self.options.expandable_segments {
            // A process that has a limit of its own checks it for a segment as large as without expandable ones.
            if self.options.gc_threshold > 0.0 && length > room {
                return None;
            }
            return self.expand(size, small, stream);
        }
        if length > room {
            return None;
        }
        let address = self.next;
        self.next = (address + length).next_multiple_of(SEGMENT_STEP);
        let block =
            Block { size: length, stream, small, free: true, segment: address, mapped: true, since: 0 };
        self.blocks.insert(address, block);
        self.segments.insert(address, length);
        self.reserve(length);
        Some(address)
    }

    fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Splits the block at `address` if the rest is worth it.
    fn split(&mut self, address: u64, size: u64) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        let rest = block.size - size;
        let splits = if block.small || self.options.expandable_segments {
            rest >= MIN_BLOCK
        } else {
            self.options.max_split_size.is_none_or(|most| size < most) && rest > SMALL
        };
        if splits {
            let remainder = Block { size: rest, free: true, ..*block };
            block.size = size;
            self.keep(address + size, remainder);
        }
    }
}

#[cfg(test)]
mod tests;
