//! A model of PyTorch's caching allocator, to compare replays with.
//!
//! Written from its published rules (the comments of `c10/cuda/CUDACachingAllocator.cpp` and the notes on CUDA memory
//! management): requests are rounded to 512 bytes; those up to 1 MiB come from segments of 2 MiB, others up to 10 MiB
//! from segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. A free block is best fit of its
//! stream and kind, and split if at least 512 bytes (small) or more than 1 MiB (large) would be left. Neighbours merge
//! on every free. Segments stay until a request fails: then wholly free ones are given back and the request is tried
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::program::{Event, Program};

const MIN_BLOCK: u64 = 512;
const SMALL: u64 = 1 << 20;
const SMALL_SEGMENT: u64 = 2 << 20;
const LARGE_SEGMENT: u64 = 20 << 20;
const MIN_OWN_SEGMENT: u64 = 10 << 20;
const SEGMENT_STEP: u64 = 2 << 20;

/// Segments of the model begin at multiples of this.
const FIRST_ADDRESS: u64 = 1 << 30;

/// Settings of `PYTORCH_CUDA_ALLOC_CONF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct CachingOptions {
    /// The most bytes of all segments.
    pub limit: u64,
    /// `max_split_size_mb` in bytes: larger blocks are not split, and serve requests of at least this size only.
    pub max_split_size: Option<u64>,
    /// `roundup_power2_divisions`: round requests up to one of this many steps between powers of two; 0 for none.
    pub roundup_divisions: u64,
}

impl CachingOptions {
    /// Returns the defaults of PyTorch with a limit in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, max_split_size: None, roundup_divisions: 0 }
    }
}

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct CachingOutcome {
    /// Number of refused requests.
    pub refused: u64,
    /// The event of the first refusal, counted from 0.
    pub first_refused: Option<usize>,
    /// The most bytes of all segments at once.
    pub peak_reserved: u64,
    /// The most bytes of all blocks in use at once.
    pub peak_in_use: u64,
    /// Bytes of all segments at the end.
    pub reserved: u64,
    /// Number of segments at the end.
    pub segments: usize,
    /// Time of the loop over the events alone.
    pub elapsed: Duration,
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
}

/// The model.
#[derive(Debug)]
pub struct CachingAllocator {
    options: CachingOptions,
    /// All blocks by address.
    blocks: BTreeMap<u64, Block>,
    /// Free blocks of small and large segments: stream, size, address.
    free: [BTreeSet<(i64, u64, u64)>; 2],
    /// Sizes of segments by address.
    segments: BTreeMap<u64, u64>,
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
            segments: BTreeMap::new(),
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
            self.blocks.insert(at, Block { size, stream, small, free: !used, segment: address });
            if used {
                self.in_use += size;
            } else {
                self.free[usize::from(!small)].insert((stream, size, at));
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
        let mut start = address;
        if let Some((&right, &next)) = self.blocks.range(address + 1..).next()
            && next.free
            && next.segment == block.segment
        {
            self.forget(right);
            block.size += next.size;
        }
        if let Some((&left, &before)) = self.blocks.range(..address).next_back()
            && before.free
            && before.segment == block.segment
        {
            self.forget(left);
            self.blocks.remove(&address);
            block.size += before.size;
            start = left;
        }
        self.blocks.insert(start, block);
        self.free[usize::from(!block.small)].insert((block.stream, block.size, start));
    }

    /// Removes a free block from the tables.
    fn forget(&mut self, address: u64) {
        if let Some(block) = self.blocks.remove(&address) {
            self.free[usize::from(!block.small)].remove(&(block.stream, block.size, address));
        }
    }

    /// Takes the best fit out of the free blocks.
    fn take_free(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let free = &mut self.free[usize::from(!small)];
        let &found = free.range((stream, size, 0)..).next().filter(|&&(other, ..)| other == stream)?;
        let (_, length, address) = found;
        if let Some(most) = self.options.max_split_size {
            // Small requests leave oversized blocks alone, large ones take those that are not much too large.
            if size < most && length >= most || size >= most && length >= size + LARGE_SEGMENT {
                return None;
            }
        }
        free.remove(&found);
        Some(address)
    }

    /// Takes a new segment, after cached ones were given back if the limit requires it.
    fn take_segment(&mut self, size: u64, small: bool, stream: i64) -> Option<u64> {
        let length = segment_size(size);
        let fits = |model: &Self| length <= model.options.limit.saturating_sub(model.reserved);
        if !fits(self) {
            self.release_oversized(size, stream);
        }
        if !fits(self) {
            self.release_cached();
        }
        if !fits(self) {
            return None;
        }
        let address = self.next;
        self.next = (address + length).next_multiple_of(SEGMENT_STEP);
        self.blocks.insert(address, Block { size: length, stream, small, free: true, segment: address });
        self.segments.insert(address, length);
        self.reserved += length;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        Some(address)
    }

    /// Splits the block at `address` if the rest is worth it.
    fn split(&mut self, address: u64, size: u64) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        let rest = block.size - size;
        let splits = if block.small {
            rest >= MIN_BLOCK
        } else {
            self.options.max_split_size.is_none_or(|most| size < most) && rest > SMALL
        };
        if splits {
            let remainder = Block { size: rest, free: true, ..*block };
            block.size = size;
            self.blocks.insert(address + size, remainder);
            self.free[usize::from(!remainder.small)].insert((remainder.stream, rest, address + size));
        }
    }

    /// Gives oversized blocks back until there is room for a request: only with `max_split_size`.
    fn release_oversized(&mut self, size: u64, stream: i64) {
        // Small segments are not oversized.
        let Some(most) = self.options.max_split_size.filter(|_| size > SMALL) else { return };
        let wanted = size.max(most);
        let of_stream = |&&(other, ..): &&(i64, u64, u64)| other == stream;
        if let Some(&(.., address)) = self.free[1].range((stream, wanted, 0)..).next().filter(of_stream) {
            self.release(address);
            return;
        }
        let mut released = 0;
        while released < wanted
            && let Some(&(.., length, address)) =
                self.free[1].range(..(stream, wanted, 0)).next_back().filter(of_stream)
            && length >= most
        {
            let before = self.reserved;
            self.release(address);
            if self.reserved == before {
                return; // A segment of a recording may be split nevertheless.
            }
            released += length;
        }
    }

    fn release_cached(&mut self) {
        let free: Vec<_> = self.free.iter().flatten().map(|&(.., address)| address).collect();
        for address in free {
            self.release(address);
        }
    }

    /// Gives the segment of a free block back if the block is all of it.
    fn release(&mut self, address: u64) {
        let whole =
            self.blocks.get(&address).is_some_and(|block| self.segments.get(&address) == Some(&block.size));
        if whole {
            self.forget(address);
            self.reserved -= self.segments.remove(&address).unwrap_or(0);
        }
    }
}

/// Replays a program; `streams` has the stream of each event, or is empty for one stream.
#[must_use]
pub fn replay_caching(program: &Program, streams: &[i64], options: CachingOptions) -> CachingOutcome {
    let mut model = CachingAllocator::new(options);
    let mut addresses = vec![None; program.slots()];
    let (mut refused, mut first_refused) = (0, None);
    let start = Instant::now();
    for (number, &event) in program.events().iter().enumerate() {
        match event {
            // PyTorch has no block for zero bytes.
            Event::Allocate { slot, bytes: 0 } => addresses[slot as usize] = None,
            Event::Allocate { slot, bytes } => {
                let address = model.allocate(bytes, streams.get(number).copied().unwrap_or(0));
                addresses[slot as usize] = address;
                if address.is_none() {
                    refused += 1;
                    first_refused = first_refused.or(Some(number));
                }
            }
            Event::Free { slot } => {
                if let Some(address) = addresses[slot as usize] {
                    model.free(address);
                }
            }
        }
    }
    CachingOutcome {
        refused,
        first_refused,
        peak_reserved: model.peak_reserved,
        peak_in_use: model.peak_in_use,
        reserved: model.reserved,
        segments: model.segments.len(),
        elapsed: start.elapsed(),
    }
}

/// Rounds a request as the allocator does.
fn round_size(bytes: u64, divisions: u64) -> u64 {
    if bytes < MIN_BLOCK {
        return MIN_BLOCK;
    }
    if divisions > 0 && bytes > MIN_BLOCK * divisions {
        return round_to_division(bytes, divisions);
    }
    bytes.next_multiple_of(MIN_BLOCK)
}

/// Rounds up to the next of `divisions` equal steps between two powers of two.
fn round_to_division(bytes: u64, divisions: u64) -> u64 {
    if bytes.is_power_of_two() || divisions <= 1 {
        return bytes.next_power_of_two();
    }
    let floor = 1 << bytes.ilog2();
    let step = floor / divisions;
    if step == 0 { bytes.next_power_of_two() } else { floor + (bytes - floor).next_multiple_of(step) }
}

fn segment_size(size: u64) -> u64 {
    if size <= SMALL {
        SMALL_SEGMENT
    } else if size < MIN_OWN_SEGMENT {
        LARGE_SEGMENT
    } else {
        size.next_multiple_of(SEGMENT_STEP)
    }
}

#[cfg(test)]
mod tests;
