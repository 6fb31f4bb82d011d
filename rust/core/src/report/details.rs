//! Details of a refusal that need a scan of all chunks: the use of the memory, and the allocation that splits free
//! memory.

use crate::chunk::{Chunk, ChunkTable};
use crate::tables::Tables;
use alloc::string::String;
use alloc::vec::Vec;

/// The number of groups that are listed.
const MAX_GROUPS: usize = 4;

/// The number of free chunks, the largest ones, whose neighbours are examined.
const EXAMINED_FREE_CHUNKS: usize = 64;

/// The largest length of the hash table; with more than half as many distinct sizes, groups are powers of two.
const MAX_SIZES: usize = 1 << 12;

/// Allocations of one size, or of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct SizeGroup {
    /// Total size of their chunks in bytes.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u64,
    /// Size of the smallest chunk, in bytes.
    pub smallest: u64,
    /// Size of the largest chunk, in bytes.
    pub largest: u64,
}

/// Allocations of one owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct OwnerGroup {
    /// Requested bytes, rounded up to granules.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u64,
    /// The tag or scope, with the enclosing scopes.
    pub owner: String,
}

/// An allocation between two free chunks; its free would merge them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Splitter {
    /// First byte of its chunk.
    pub address: u64,
    /// Size of its chunk in bytes.
    pub size: u64,
    /// Number of the allocation.
    pub id: u64,
    /// Its owner, if one is recorded.
    pub owner: Option<String>,
    /// Size of the free chunk before it, in bytes.
    pub before: u64,
    /// Size of the free chunk after it, in bytes.
    pub after: u64,
}

impl Splitter {
    /// Returns the size of the free chunk that its free would create, in bytes.
    #[must_use]
    pub fn hole(&self) -> u64 {
        self.before + self.size + self.after
    }
}

/// The current use of a pool's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Details {
    /// The size groups with the most bytes, in descending order.
    pub by_size: Vec<SizeGroup>,
    /// The number of other size groups.
    pub other_sizes: usize,
    /// The owners with the most bytes, in descending order; empty if no owners are recorded.
    pub by_owner: Vec<OwnerGroup>,
    /// The number of other owners.
    pub other_owners: usize,
    /// The allocation that splits the largest free chunks.
    pub splitter: Option<Splitter>,
}

impl Details {
    /// Scans the allocator.
    ///
    /// # Cost
    /// Linear in the number of chunks; some nanoseconds each.
    pub(crate) fn new(allocator: &Tables) -> Self {
        let (by_size, other_sizes) = largest(by_size(&allocator.chunks));
        let (by_owner, other_owners) = largest(by_owner(allocator));
        Self { by_size, other_sizes, by_owner, other_owners, splitter: splitter(allocator) }
    }
}

/// Returns the first few groups in descending order, and the number of others.
fn largest<T: Ord>(mut groups: Vec<T>) -> (Vec<T>, usize) {
    groups.sort_unstable_by(|a, b| b.cmp(a));
    let others = groups.len().saturating_sub(MAX_GROUPS);
    groups.truncate(MAX_GROUPS);
    (groups, others)
}

fn by_owner(allocator: &Tables) -> Vec<OwnerGroup> {
    let owners = &allocator.owners;
    let group = |(owner, count, bytes)| OwnerGroup { bytes, count, owner: owners.path(owner) };
    owners.holdings().into_iter().map(group).collect()
}

/// Groups the chunks in use by size; by powers of two if there are too many sizes, or if the process
/// has no memory for so many: a refusal may come where it has hardly any.
fn by_size(chunks: &ChunkTable) -> Vec<SizeGroup> {
    let length = chunks.len().saturating_mul(2).min(MAX_SIZES).next_power_of_two();
    let mut sizes = Vec::new();
    if sizes.try_reserve_exact(length).is_err() {
        return by_doubling(chunks);
    }
    sizes.resize(length, SizeGroup::NONE);
    let mut distinct = 0;
    for chunk in chunks.in_use() {
        let mut place = place_of(chunk.size, length);
        while sizes[place].count > 0 && sizes[place].smallest != chunk.size {
            place = (place + 1) % length;
        }
        distinct += usize::from(sizes[place].count == 0);
        if distinct > MAX_SIZES / 2 {
            return by_doubling(chunks);
        }
        sizes[place].add(chunk);
    }
    sizes.retain(|group| group.count > 0);
    sizes
}

fn by_doubling(chunks: &ChunkTable) -> Vec<SizeGroup> {
    let mut doublings = [SizeGroup::NONE; 64];
    for chunk in chunks.in_use() {
        doublings[chunk.size.ilog2() as usize].add(chunk);
    }
    doublings.into_iter().filter(|group| group.count > 0).collect()
}

/// Multiplicative hash, as sizes are often multiples of a common factor, into a table of a power of two of places.
fn place_of(size: u64, length: usize) -> usize {
    let hash = (u128::from(size.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * length as u128) >> 64;
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

/// Returns the allocation next to one of the largest free chunks whose free would create the largest free chunk.
fn splitter(allocator: &Tables) -> Option<Splitter> {
    let Tables { chunks, bins, owners, .. } = allocator;
    let largest = bins.largest_chunks(chunks, EXAMINED_FREE_CHUNKS);
    let beside = largest.into_iter().flat_map(|free| {
        let free = chunks.get(free);
        [free.prev, free.next].into_iter().flatten()
    });
    let between = beside.filter_map(|handle| {
        let chunk = chunks.get(handle);
        let (before, after) = (chunks.get(chunk.prev?), chunks.get(chunk.next?));
        let splits = before.is_free() && after.is_free() && chunk.has_allocation();
        splits.then(|| (before.size + chunk.size + after.size, handle, before.size, after.size))
    });
    let (_, handle, before, after) =
        between.max_by_key(|&(hole, handle, ..)| (hole, chunks.get(handle).address))?;
    let chunk = chunks.get(handle);
    Some(Splitter {
        address: chunk.address,
        size: chunk.size,
        id: chunk.number(),
        owner: owners.owner_of(handle).map(|owner| owners.path(owner)),
        before,
        after,
    })
}

#[cfg(test)]
mod tests;
