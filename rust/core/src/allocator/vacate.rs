//! Which allocations to free so that a request is served: the fewest bytes, in one of three places.

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
    /// The allocations to free so that a chunk of `needed` bytes is served, if some do it: the fewest bytes of those
    /// that make a free chunk of that size, and of those that leave regions to hand back for a larger one.
    ///
    /// # Cost
    /// Linear in the chunks.
    pub(crate) fn vacate_for(&self, needed: u64, trim_on_oom: bool, supply: Supply) -> Option<Vacated> {
        let in_place = self.regions.iter().filter_map(|region| self.vacate_within(region, needed));
        let in_place = in_place.min_by_key(|vacated| (vacated.bytes, vacated.allocations.len()));
        let regions = if trim_on_oom { self.vacate_regions_for(needed, supply) } else { None };
        let vacated = [in_place, regions].into_iter().flatten().min_by_key(|vacated| vacated.bytes)?;
        (vacated.allocations.len() <= MOST).then_some(vacated)
    }

    /// The allocations of fewest bytes in a row of chunks of `needed` bytes or more.
    fn vacate_within(&self, region: &Region, needed: u64) -> Option<Vacated> {
        if region.span.bytes < needed {
            return None;
        }
        // For each last chunk, the shortest row that is long enough holds the fewest bytes.
        let mut row: VecDeque<(Handle, &Chunk)> = VecDeque::new();
        let (mut length, mut used) = (0, 0);
        let mut best: Option<(u64, Vec<Handle>)> = None;
        for (handle, chunk) in self.chunks.run(region.first) {
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
            if length >= needed && best.as_ref().is_none_or(|(least, _)| used < *least) {
                best = Some((used, row.iter().map(|&(handle, _)| handle).collect()));
            }
        }
        let (_, handles) = best?;
        let held = handles.into_iter().map(|handle| (handle, self.chunks.get(handle)));
        Some(Vacated::of(held.filter(|&(handle, chunk)| self.is_held(handle, chunk)).map(|(_, chunk)| chunk)))
    }

    /// All allocations of the regions that must be wholly free before another region of `needed` bytes fits under the
    /// limit, beginning with the emptiest.
    fn vacate_regions_for(&self, needed: u64, supply: Supply) -> Option<Vacated> {
        let used = |region: &Region| -> u64 {
            self.chunks.run(region.first).map(|(handle, chunk)| self.used_bytes(handle, chunk)).sum()
        };
        let mut regions: Vec<_> = self.regions.iter().map(|region| (used(region), region)).collect();
        regions.sort_by_key(|&(used, region)| (used, region.span));
        let mut gone = 0;
        let mut vacated = Vec::new();
        for (_, region) in regions {
            gone += region.span.bytes;
            vacated.push(region);
            let reserved = self.counters.reserved() - gone;
            let available = supply.after_release(gone).now;
            if self.growth.serves(needed, reserved, self.limit, available) {
                let chunks = vacated.iter().flat_map(|region| self.chunks.run(region.first));
                let held = chunks.filter(|&(handle, chunk)| self.is_held(handle, chunk));
                return Some(Vacated::of(held.map(|(_, chunk)| chunk)));
            }
        }
        None
    }

    /// Allocations of an owner, or of owners below it, whose requests in whole granules add up to `bytes` or more: the
    /// smallest one that does, or else the largest ones.
    ///
    /// # Cost
    /// Linear in the chunks.
    pub(crate) fn vacate_owned(&self, owner: OwnerId, bytes: u64) -> Option<Vacated> {
        let is_below = |handle| self.owners.of(handle).is_some_and(|of| self.owners.is_within(of, owner));
        let chunks = self.regions.iter().flat_map(|region| self.chunks.run(region.first));
        let mut held: Vec<_> =
            chunks.filter(|&(handle, _)| is_below(handle)).map(|(_, chunk)| chunk).collect();
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
        if self.is_held(handle, chunk) { chunk.size } else { 0 }
    }

    /// Whether an allocation holds the chunk. One that is set aside for a moment is as good as free.
    fn is_held(&self, handle: Handle, chunk: &Chunk) -> bool {
        !chunk.is_free() && (chunk.requested > 0 || !self.quarantined.contains(&handle))
    }
}
