//! Which allocations to free so that a request is served: within a region, of whole regions, or of one scope.

use std::collections::VecDeque;

use super::Allocator;
use super::outlook::Supply;
use crate::chunk::{Chunk, Handle};
use crate::owner::OwnerId;
use crate::region::Region;
use crate::units::round_up;

/// More allocations than this are nothing that a caller frees one by one.
const MOST: usize = 256;

/// Allocations to free.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Vacated {
    /// Their numbers, in ascending order.
    pub(crate) allocations: Vec<u64>,
    /// Bytes of their chunks.
    pub(crate) bytes: u64,
}

impl Vacated {
    fn of<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> Self {
        let mut vacated = Self::default();
        for chunk in chunks {
            vacated.bytes += chunk.size;
            vacated.allocations.extend(chunk.id.map(|_| chunk.number()));
        }
        vacated.allocations.sort_unstable();
        vacated
    }
}

impl Allocator {
    /// The allocations to free so that a chunk of `needed` bytes is served, if some do it and no runtime holds them: the
    /// fewest bytes that leave a free chunk of that size, or a few regions to hand back for a larger one.
    ///
    /// # Cost
    /// Linear in the chunks.
    pub(crate) fn vacate_for(&self, needed: u64, trim_on_oom: bool, supply: Supply) -> Option<Vacated> {
        let in_place = self.regions.iter().filter_map(|region| self.vacate_within(region, needed));
        let regions = if trim_on_oom { self.vacate_regions_for(needed, supply) } else { None };
        let few = in_place.chain(regions).filter(|vacated| vacated.allocations.len() <= MOST);
        few.min_by_key(|vacated| (vacated.bytes, vacated.allocations.len()))
    }

    /// The allocations of fewest bytes in a row of chunks of `needed` bytes or more.
    fn vacate_within(&self, region: &Region, needed: u64) -> Option<Vacated> {
        // For each last chunk, the shortest row that is long enough holds the fewest bytes.
        let mut row: VecDeque<(Handle, &Chunk)> = VecDeque::new();
        let (mut length, mut used) = (0, 0);
        // The bytes of the best row, its first chunk, and how many it has.
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

    /// All allocations of regions that must be wholly free before another region of `needed` bytes fits under the limit.
    fn vacate_regions_for(&self, needed: u64, supply: Supply) -> Option<Vacated> {
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
        // Begin with the emptiest; then leave out what is not needed, beginning with the fullest.
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

    fn allocations_of<'a>(&self, chunks: impl Iterator<Item = (Handle, &'a Chunk)>) -> Vacated {
        let held = chunks.filter(|&(handle, chunk)| self.is_occupied(handle, chunk));
        Vacated::of(held.map(|(_, chunk)| chunk))
    }

    /// Allocations of an owner, or of owners below it, that no runtime holds and whose requests in whole granules add up
    /// to `bytes` or more: the smallest one that does, or else the largest ones.
    ///
    /// # Cost
    /// Linear in the chunks.
    pub(crate) fn vacate_owned(&self, owner: OwnerId, bytes: u64) -> Option<Vacated> {
        let is_below = |handle| self.owners.of(handle).is_some_and(|of| self.owners.is_within(of, owner));
        let chunks = self.regions.iter().flat_map(|region| self.chunks.run(region.first));
        let mut held: Vec<_> = chunks
            .filter(|&(handle, chunk)| is_below(handle) && !chunk.is_held())
            .map(|(_, chunk)| chunk)
            .collect();
        held.sort_unstable_by_key(|chunk| (chunk.requested, chunk.address));
        let enough = |chunk: &&&Chunk| round_up(chunk.requested) >= bytes;
        if let Some(one) = held.iter().find(enough) {
            return Some(Vacated::of([*one]));
        }
        let mut missing = bytes;
        let mut taken = Vec::new();
        for chunk in held.into_iter().rev() {
            taken.push(chunk);
            missing = missing.saturating_sub(round_up(chunk.requested));
            if missing == 0 {
                return (taken.len() <= MOST).then(|| Vacated::of(taken));
            }
        }
        None
    }

    /// Bytes that an allocation keeps from being free.
    fn used_bytes(&self, handle: Handle, chunk: &Chunk) -> u64 {
        if self.is_occupied(handle, chunk) { chunk.size } else { 0 }
    }
}
