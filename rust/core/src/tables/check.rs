//! The invariant checker: walks all tables and returns the first violation. Repairs nothing.

use crate::map::Map;
use alloc::vec::Vec;

use crate::bins::free_list::FreeChunk;
use crate::chunk::region::Region;
use crate::tables::Tables;
use crate::tables::owner::OwnerId;
use crate::units::{GRANULE, round_up};

/// A violated invariant and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// Address of the region or chunk that violates it, 0 for the pool as a whole.
    pub address: u64,
}

/// Sums over all chunks, for comparison with the counters.
#[derive(Default)]
struct Sums {
    requested: u64,
    in_use: u64,
    reserved: u64,
    live: usize,
    quarantined: usize,
    chunks: usize,
    /// Allocations and bytes of each owner.
    owned: Map<OwnerId, (u64, u64)>,
    free: Vec<FreeChunk>,
}

fn require(holds: bool, invariant: &'static str, address: u64) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, address }) }
}

pub(crate) fn check(allocator: &Tables) -> Result<(), Violation> {
    let mut sums = Sums::default();
    let mut last_end = 0;
    for region in allocator.regions.iter() {
        let address = region.span.address;
        require(address >= last_end, "regions are sorted and do not overlap", address)?;
        last_end = region.span.end();
        check_region(allocator, region, &mut sums)?;
    }
    sums.free.sort_unstable();
    require(
        allocator.bins.sorted(&allocator.chunks) == sums.free,
        "the bins hold exactly the free chunks",
        0,
    )?;
    require(allocator.bins.are_linked(&allocator.chunks), "the lists of the bins are linked both ways", 0)?;
    let largest = sums.free.last().map_or(0, |chunk| chunk.size);
    require(allocator.bins.largest(&allocator.chunks) == largest, "the bins know the largest free chunk", 0)?;
    let quarantined = allocator.quarantined.len();
    require(quarantined == sums.quarantined, "every chunk in quarantine belongs to a region", 0)?;
    require(allocator.live.len() == sums.live, "the live table holds exactly the chunks in use", 0)?;
    require(allocator.chunks.len() == sums.chunks, "every chunk in the table belongs to a region", 0)?;
    require(allocator.follows_all_chunks(), "a pool with a plan knows the chunks in use by address", 0)?;
    let counters = &allocator.counters;
    require(counters.requested() == sums.requested, "requested is the sum over the chunks in use", 0)?;
    require(counters.in_use() == sums.in_use, "in use is the sum over the chunks in use", 0)?;
    #[cfg(feature = "std")]
    if allocator.elastic.is_some() {
        allocator.check_pages().map_err(|(invariant, address)| Violation { invariant, address })?;
        sums.reserved = counters.reserved();
    }
    require(counters.reserved() == sums.reserved, "reserved is the sum over the regions", 0)?;
    let holdings = allocator.owners.holdings();
    let holdings: Map<_, _> =
        holdings.into_iter().map(|(owner, count, bytes)| (owner, (count, bytes))).collect();
    require(sums.owned == holdings, "an owner's figures are the sums over its chunks", 0)?;
    let owned = allocator.owners.count_owned();
    let held: u64 = sums.owned.values().map(|(count, _)| count).sum();
    require(usize::try_from(held) == Ok(owned), "only a chunk in use has an owner", 0)?;
    require(allocator.owners.has_owned_chunks() == (owned > 0), "the flag for owned chunks is right", 0)?;
    require(sums.reserved <= allocator.limit, "reserved is at most the limit", 0)
}

fn check_region(allocator: &Tables, region: &Region, sums: &mut Sums) -> Result<(), Violation> {
    let mut end = region.span.address;
    let mut previous = None;
    let mut previous_free = false;
    for (handle, chunk) in allocator.chunks.run(region.first) {
        let address = chunk.address;
        let owner = allocator.owners.owner_of(handle);
        require(address == end, "the chunks of a region cover it without gaps", address)?;
        require(chunk.prev == previous, "neighbours link to each other", address)?;
        require(chunk.size > 0 && chunk.size.is_multiple_of(GRANULE), "a chunk is whole granules", address)?;
        require(!(chunk.is_free() && previous_free), "free neighbours are merged", address)?;
        if chunk.is_free() {
            require(owner.is_none(), "a free chunk has no owner", address)?;
            sums.free.push(FreeChunk { size: chunk.size, address, handle });
        } else if allocator.quarantined.contains(&handle) {
            require(chunk.requested == 0, "a chunk in quarantine has no request", address)?;
            sums.quarantined += 1;
        } else {
            let found = allocator.live.find(&allocator.chunks, address);
            require(found == Some(handle), "a chunk in use is found by its address", address)?;
            require(chunk.requested <= chunk.size, "a chunk is at least as large as its request", address)?;
            sums.requested += chunk.requested;
            sums.in_use += chunk.size;
            sums.live += 1;
            if let Some(owner) = owner {
                let (count, bytes) = sums.owned.entry(owner).or_default();
                *count += 1;
                *bytes += round_up(chunk.requested);
            }
        }
        sums.chunks += 1;
        end = chunk.end();
        previous = Some(handle);
        previous_free = chunk.is_free();
    }
    sums.reserved += region.span.bytes;
    require(end == region.span.end(), "the chunks of a region cover it to its end", region.span.address)
}
