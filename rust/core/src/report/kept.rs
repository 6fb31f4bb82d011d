//! Regions that a trim keeps, and the allocations that keep them.

use crate::chunk::region::Region;
use crate::tables::Tables;

/// A region that a trim keeps because an allocation is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct KeptRegion {
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of its chunks in use.
    pub in_use: u64,
    /// Number of allocations in it.
    pub num_live: u64,
    /// Number of the largest allocation, the lowest address among equals.
    pub largest: u64,
    /// Owner of that allocation, if one is recorded.
    pub owner: Option<String>,
}

/// Returns all regions with an allocation, in address order.
///
/// # Cost
/// Linear in the number of chunks.
pub(crate) fn kept(allocator: &Tables) -> Vec<KeptRegion> {
    allocator.regions.iter().filter_map(|region| kept_region(allocator, region)).collect()
}

fn kept_region(allocator: &Tables, region: &Region) -> Option<KeptRegion> {
    let chunks = || allocator.chunks.run(region.first).filter(|(_, chunk)| chunk.has_allocation());
    let (handle, largest) =
        chunks().max_by_key(|(_, chunk)| (chunk.size, std::cmp::Reverse(chunk.address)))?;
    Some(KeptRegion {
        address: region.span.address,
        size: region.span.bytes,
        in_use: chunks().map(|(_, chunk)| chunk.size).sum(),
        num_live: chunks().count() as u64,
        largest: largest.number(),
        owner: allocator.owners.owner_of(handle).map(|owner| allocator.owners.path(owner)),
    })
}
