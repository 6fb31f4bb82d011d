//! Snapshots: a copy of all regions and chunks of a pool.

use crate::map::Map;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::chunk::{Chunk, Handle};
use crate::stats::Stats;
use crate::tables::Tables;
use crate::tables::owner::OwnerId;
use crate::units::Bytes;

/// The number of size groups in the summary.
const MAX_GROUPS: usize = 5;

/// A consistent copy of all regions and chunks of a pool.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Snapshot {
    /// The pool's name.
    pub name: String,
    /// The counters of the same moment.
    pub stats: Stats,
    /// Regions in address order.
    pub regions: Vec<RegionSnapshot>,
}

/// One region.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct RegionSnapshot {
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Chunks in address order; they cover the region without gaps.
    pub chunks: Vec<ChunkSnapshot>,
}

/// One chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct ChunkSnapshot {
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Requested bytes, 0 when free.
    pub requested: u64,
    /// Number of the allocation, 0 when free.
    pub id: u64,
    /// Whether an allocation is in it.
    pub in_use: bool,
    /// Owner of the allocation with the enclosing scopes, if one is recorded.
    pub owner: Option<Arc<str>>,
}

impl Snapshot {
    pub(crate) fn new(name: &str, allocator: &Tables) -> Self {
        // Builds each owner name once.
        let mut names: Map<OwnerId, Arc<str>> = Map::new();
        let mut name_of =
            |owner| Arc::clone(names.entry(owner).or_insert_with(|| allocator.owners.path(owner).into()));
        let mut chunk = |(handle, chunk): (Handle, &Chunk)| {
            let in_use = !chunk.is_free() && !allocator.quarantined.contains(&handle);
            ChunkSnapshot {
                address: chunk.address,
                size: chunk.size,
                requested: if in_use { chunk.requested } else { 0 },
                id: if in_use { chunk.number() } else { 0 },
                in_use,
                owner: allocator.owners.owner_of(handle).map(&mut name_of),
            }
        };
        let regions = allocator.regions.iter().map(|region| RegionSnapshot {
            address: region.span.address,
            size: region.span.bytes,
            chunks: allocator.chunks.run(region.first).map(&mut chunk).collect(),
        });
        Self { name: name.to_owned(), stats: allocator.stats(), regions: regions.collect() }
    }

    /// Returns the sizes of the chunks in use with their counts, the most total bytes first.
    fn groups(&self) -> Vec<(u64, u64)> {
        let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
        for chunk in self.regions.iter().flat_map(|region| &region.chunks).filter(|chunk| chunk.in_use) {
            *groups.entry(chunk.size).or_default() += 1;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|&(size, count)| core::cmp::Reverse(u128::from(size) * u128::from(count)));
        groups
    }
}

/// Prints totals, regions, and the largest size groups.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { requested, in_use, internal_fragmentation, reserved, limit, .. } = self.stats;
        let Stats { free, largest_free, num_live, num_regions, .. } = self.stats;
        writeln!(
            f,
            "{}: {} in use in {num_live} allocation{}, {} reserved in {num_regions} region{}, limit {}",
            self.name,
            Bytes(in_use),
            plural(num_live),
            Bytes(reserved),
            plural(num_regions),
            Bytes(limit)
        )?;
        writeln!(
            f,
            "  asked for {} of those in use, lost inside chunks {}",
            Bytes(requested),
            Bytes(internal_fragmentation)
        )?;
        writeln!(
            f,
            "  free {}, largest {}, fragmentation {:.2}",
            Bytes(free),
            Bytes(largest_free),
            self.stats.fragmentation
        )?;
        let groups = self.groups();
        for (size, count) in groups.iter().take(MAX_GROUPS) {
            writeln!(f, "  {count:>8} × {:>12} = {:>12}", Bytes(*size), Bytes(size * count))?;
        }
        if let Some(others) = groups.len().checked_sub(MAX_GROUPS).filter(|&others| others > 0) {
            writeln!(f, "  and allocations of {others} other sizes")?;
        }
        Ok(())
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
