//! What a pool's memory is used for: the part of a refusal that takes a look at every chunk.

use crate::allocator::Allocator;
use crate::chunk::{Chunk, ChunkTable};

/// How many groups of allocations are named.
const GROUPS: usize = 4;

/// Free chunks that are looked at for what lies between them: the largest.
const HOLES: usize = 64;

/// Sizes that are told apart, as many as a table of this length holds; more are counted by doublings.
const SIZES: usize = 1 << 12;

/// Allocations of one size, or of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SizeGroup {
    /// Bytes of all their chunks.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// Size of the smallest chunk, in bytes.
    pub smallest: u64,
    /// Size of the largest chunk, in bytes.
    pub largest: u64,
}

/// Allocations of one owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OwnerGroup {
    /// Bytes asked for, in whole granules.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// The tag or scope, after the scopes around it.
    pub owner: String,
}

/// An allocation between two free chunks: without it they would be one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Splitter {
    /// First byte of its chunk.
    pub address: u64,
    /// Bytes of its chunk.
    pub size: u64,
    /// Number of the allocation.
    pub id: u64,
    /// Whose it is, if that is noted.
    pub owner: Option<String>,
    /// Bytes of the free chunk before it.
    pub before: u64,
    /// Bytes of the free chunk after it.
    pub after: u64,
}

impl Splitter {
    /// Bytes of the free chunk that there would be without it.
    #[must_use]
    pub fn hole(&self) -> u64 {
        self.before + self.size + self.after
    }
}

/// What a pool's memory is used for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// The allocations that take most, by size, the most first.
    pub by_size: Vec<SizeGroup>,
    /// Groups of sizes beside those.
    pub other_sizes: usize,
    /// The owners that hold most, the most first; empty if no owners are noted.
    pub by_owner: Vec<OwnerGroup>,
    /// Owners beside those.
    pub other_owners: usize,
    /// The allocation that splits the largest free chunks.
    pub splitter: Option<Splitter>,
}

impl Details {
    /// # Cost
    /// Linear in the chunks; some nanoseconds for each.
    pub(crate) fn new(allocator: &Allocator) -> Self {
        let (by_size, other_sizes) = largest(by_size(&allocator.chunks));
        let (by_owner, other_owners) = largest(by_owner(allocator));
        Self { by_size, other_sizes, by_owner, other_owners, splitter: splitter(allocator) }
    }
}

/// The first few in descending order, and how many others there are.
fn largest<T: Ord>(mut groups: Vec<T>) -> (Vec<T>, usize) {
    groups.sort_unstable_by(|a, b| b.cmp(a));
    let others = groups.len().saturating_sub(GROUPS);
    groups.truncate(GROUPS);
    (groups, others)
}

fn by_owner(allocator: &Allocator) -> Vec<OwnerGroup> {
    let owners = &allocator.owners;
    let group = |(owner, count, bytes)| OwnerGroup { bytes, count, owner: owners.path(owner) };
    owners.holdings().into_iter().map(group).collect()
}

/// Chunks in use by size, or by doublings where the sizes are too many.
fn by_size(chunks: &ChunkTable) -> Vec<SizeGroup> {
    let mut sizes = vec![SizeGroup::NONE; SIZES];
    let mut told_apart = 0;
    for chunk in chunks.in_use() {
        let mut place = place_of(chunk.size);
        while sizes[place].count > 0 && sizes[place].smallest != chunk.size {
            place = (place + 1) % SIZES;
        }
        told_apart += usize::from(sizes[place].count == 0);
        if told_apart > SIZES / 2 {
            return by_doubling(chunks);
        }
        sizes[place].add(chunk);
    }
    sizes.retain(|group| group.count > 0);
    sizes
}

fn by_doubling(chunks: &ChunkTable) -> Vec<SizeGroup> {
    let mut doublings = vec![SizeGroup::NONE; 64];
    for chunk in chunks.in_use() {
        doublings[chunk.size.ilog2() as usize].add(chunk);
    }
    doublings.retain(|group| group.count > 0);
    doublings
}

/// A multiplicative hash, as sizes like to be multiples of something.
fn place_of(size: u64) -> usize {
    let hash = size.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SIZES.ilog2());
    usize::try_from(hash).unwrap_or(0)
}

impl SizeGroup {
    const NONE: Self = Self { bytes: 0, count: 0, smallest: u64::MAX, largest: 0 };

    fn add(&mut self, chunk: &Chunk) {
        self.bytes += chunk.size;
        self.count += 1;
        self.smallest = self.smallest.min(chunk.size);
        self.largest = self.largest.max(chunk.size);
    }
}

/// Of the allocations beside the largest free chunks, the one between the two that would be longest as one.
fn splitter(allocator: &Allocator) -> Option<Splitter> {
    let Allocator { chunks, bins, owners, .. } = allocator;
    let largest = bins.some_of_the_largest(chunks, HOLES);
    let beside = largest.into_iter().flat_map(|free| {
        let free = chunks.get(free);
        [free.prev, free.next].into_iter().flatten()
    });
    let between = beside.filter_map(|handle| {
        let chunk = chunks.get(handle);
        let (before, after) = (chunks.get(chunk.prev?), chunks.get(chunk.next?));
        let parts = before.is_free() && after.is_free() && chunk.holds_something();
        parts.then(|| (before.size + chunk.size + after.size, handle, before.size, after.size))
    });
    let (_, handle, before, after) =
        between.max_by_key(|&(hole, handle, ..)| (hole, chunks.get(handle).address))?;
    let chunk = chunks.get(handle);
    Some(Splitter {
        address: chunk.address,
        size: chunk.size,
        id: chunk.number(),
        owner: owners.of(handle).map(|owner| owners.path(owner)),
        before,
        after,
    })
}

#[cfg(test)]
mod tests;
