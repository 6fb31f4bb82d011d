//! Finds allocations to free so that a refused request fits: within one region, in whole regions, or in one scope.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::feasibility::Supply;
use super::{ChunkRequest, Tables};
use crate::chunk::region::Region;
use crate::chunk::{Chunk, Handle};
use crate::tables::owner::OwnerId;
use crate::units::round_up;

/// The largest number of allocations worth reporting: a caller does not free more than this one by one.
pub(in crate::tables) const MAX_ALLOCATIONS: usize = 256;

/// A set of allocations to free.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FreePlan {
    /// Their numbers, in ascending order.
    pub(crate) allocations: Vec<u64>,
    /// The total size of their chunks in bytes.
    pub(crate) bytes: u64,
}

impl FreePlan {
    pub(in crate::tables) fn of<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> Self {
        let mut plan = Self::default();
        for chunk in chunks {
            plan.bytes += chunk.size;
            plan.allocations.extend(chunk.id.map(|_| chunk.number()));
        }
        plan.allocations.sort_unstable();
        plan
    }
}

impl Tables {
    /// Returns the smallest set of allocations whose release lets a request be served: within a region, or in whole
    /// regions that are released for a larger one. Skips allocations that a runtime holds.
    /// Returns `None` if there is no such set.
    ///
    /// # Cost
    /// Linear in the number of chunks.
    pub(crate) fn plan_frees_for(
        &self,
        request: ChunkRequest,
        trim_on_oom: bool,
        supply: Supply,
    ) -> Option<FreePlan> {
        if self.elastic.is_some() {
            return self.plan_frees_in_pages(request, supply);
        }
        let needed = request.needed;
        let in_place = self.regions.iter().filter_map(|region| self.plan_frees_in_region(region, needed));
        let regions = if trim_on_oom { self.plan_regions_to_empty(needed, supply) } else { None };
        let few = in_place.chain(regions).filter(|plan| plan.allocations.len() <= MAX_ALLOCATIONS);
        few.min_by_key(|plan| (plan.bytes, plan.allocations.len()))
    }

    /// Finds the run of adjacent chunks of at least `needed` bytes with the fewest bytes in use.
    fn plan_frees_in_region(&self, region: &Region, needed: u64) -> Option<FreePlan> {
        // A sliding window: for each last chunk, the shortest sufficient run has the fewest bytes in use.
        let mut row: VecDeque<(Handle, &Chunk)> = VecDeque::new();
        let (mut length, mut used) = (0, 0);
        // Bytes in use, first chunk and length of the best run so far.
        let mut best: Option<(u64, Handle, usize)> = None;
        for (handle, chunk) in self.chunks.run(region.first) {
            if chunk.is_held() {
                row.clear();
                (length, used) = (0, 0);
                continue;
            }
            row.push_back((handle, chunk));
            length += chunk.size;
            used += self.used_bytes(handle, chunk);
            while let Some(&(first, gone)) = row.front()
                && length - gone.size >= needed
            {
                row.pop_front();
                length -= gone.size;
                used -= self.used_bytes(first, gone);
            }
            if length >= needed
                && best.is_none_or(|(least, ..)| used < least)
                && let Some(&(first, _)) = row.front()
            {
                best = Some((used, first, row.len()));
            }
        }
        let (_, first, count) = best?;
        Some(self.allocations_of(self.chunks.run(first).take(count)))
    }

    /// Returns all allocations of the regions that must become free before a region of `needed` bytes fits under the
    /// limit.
    fn plan_regions_to_empty(&self, needed: u64, supply: Supply) -> Option<FreePlan> {
        let used = |region: &Region| -> Option<u64> {
            let mut chunks = self.chunks.run(region.first);
            chunks.try_fold(0, |sum, (handle, chunk)| {
                (!chunk.is_held()).then(|| sum + self.used_bytes(handle, chunk))
            })
        };
        let mut regions: Vec<_> =
            self.regions.iter().filter_map(|region| Some((used(region)?, region))).collect();
        regions.sort_by_key(|&(used, region)| (used, region.span));
        let is_enough = |gone: u64| {
            let available = supply.after_release(gone).now;
            self.growth.serves(needed, self.counters.reserved() - gone, self.limit, available)
        };
        // Greedy: add regions from the least used one on, then drop unneeded ones from the most used one on.
        let mut gone = 0;
        let count = regions.iter().position(|(_, region)| {
            gone += region.span.bytes;
            is_enough(gone)
        })?;
        regions.truncate(count + 1);
        for index in (0..regions.len()).rev() {
            let bytes = regions[index].1.span.bytes;
            if is_enough(gone - bytes) {
                gone -= bytes;
                regions.remove(index);
            }
        }
        Some(self.allocations_of(regions.iter().flat_map(|(_, region)| self.chunks.run(region.first))))
    }

    fn allocations_of<'a>(&self, chunks: impl Iterator<Item = (Handle, &'a Chunk)>) -> FreePlan {
        let held = chunks.filter(|&(handle, chunk)| self.is_occupied(handle, chunk));
        FreePlan::of(held.map(|(_, chunk)| chunk))
    }

    /// Returns allocations of an owner and the owners below it whose rounded requests add up to at least `bytes`: the
    /// smallest single one that suffices, or else the largest ones. Skips allocations that a runtime holds.
    ///
    /// # Cost
    /// Linear in the number of chunks.
    pub(crate) fn plan_frees_of_owner(&self, owner: OwnerId, bytes: u64) -> Option<FreePlan> {
        let is_below =
            |handle| self.owners.owner_of(handle).is_some_and(|of| self.owners.is_within(of, owner));
        let chunks = self.regions.iter().flat_map(|region| self.chunks.run(region.first));
        let mut held: Vec<_> = chunks
            .filter(|&(handle, chunk)| is_below(handle) && !chunk.is_held())
            .map(|(_, chunk)| chunk)
            .collect();
        held.sort_unstable_by_key(|chunk| (chunk.requested, chunk.address));
        let enough = |chunk: &&&Chunk| round_up(chunk.requested) >= bytes;
        if let Some(one) = held.iter().find(enough) {
            return Some(FreePlan::of([*one]));
        }
        let mut missing = bytes;
        let mut taken = Vec::new();
        for chunk in held.into_iter().rev() {
            taken.push(chunk);
            missing = missing.saturating_sub(round_up(chunk.requested));
            if missing == 0 {
                return (taken.len() <= MAX_ALLOCATIONS).then(|| FreePlan::of(taken));
            }
        }
        None
    }

    /// Returns the bytes of the chunk that are in use.
    fn used_bytes(&self, handle: Handle, chunk: &Chunk) -> u64 {
        if self.is_occupied(handle, chunk) { chunk.size } else { 0 }
    }
}
