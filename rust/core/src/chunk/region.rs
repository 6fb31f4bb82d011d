//! Regions in address order.
//!
//! Regions do not overlap. Each region stores its first chunk, whose handle never changes while the region exists: a
//! split keeps the handle of the lower part, and no chunk before it can absorb it.

use crate::chunk::Handle;
use crate::source::Grant;
use alloc::vec::Vec;

/// Identifies a region among those that a pool holds.
///
/// It is the address at which the source granted the region, or the first of several that were joined. Addresses of
/// allocations count from there: an offset is the distance from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub(crate) u64);

impl RegionId {
    /// Returns the address at which the region starts.
    #[must_use]
    pub fn start(self) -> u64 {
        self.0
    }
}

/// One granted span, or several adjacent ones that were joined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) span: Grant,
    pub(crate) first: Handle,
}

/// The position of a new span among the regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the region at this index, or last.
    Between(usize),
    /// It starts where the region at this index ends.
    After(usize),
}

/// All regions of an allocator, sorted by address.
#[derive(Debug)]
pub(crate) struct Regions {
    sorted: Vec<Region>,
    /// The start and the length of the region that was located last; no bytes if it is gone.
    recent: Grant,
}

impl Default for Regions {
    fn default() -> Self {
        Self { sorted: Vec::new(), recent: NONE }
    }
}

/// A span that contains no address.
const NONE: Grant = Grant { address: 0, bytes: 0 };

impl Regions {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.sorted.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn get(&self, index: usize) -> &Region {
        &self.sorted[index]
    }

    /// Returns the region that contains an address.
    fn find(&self, address: u64) -> Option<&Region> {
        let after = self.sorted.partition_point(|region| region.span.address <= address);
        self.sorted[..after].last().filter(|region| address < region.span.end())
    }

    /// Returns the first chunk of the region that contains an address.
    pub(crate) fn first_chunk(&self, address: u64) -> Option<Handle> {
        self.find(address).map(|region| region.first)
    }

    /// Returns the region that contains an address, and the offset of the address in it.
    pub(crate) fn locate(&self, address: u64) -> Option<(RegionId, u64)> {
        let start = self.find(address)?.span.address;
        Some((RegionId(start), address - start))
    }

    /// Returns the region that contains an address, or one that starts there if none does. Looks first into the region
    /// that it found last.
    #[inline(always)]
    pub(crate) fn region_of(&mut self, address: u64) -> RegionId {
        let Grant { address: start, bytes } = self.recent;
        if address.wrapping_sub(start) < bytes { RegionId(start) } else { self.search(address) }
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, address: u64) -> RegionId {
        self.recent = self.find(address).map_or(NONE, |region| region.span);
        if self.recent.bytes == 0 { RegionId(address) } else { RegionId(self.recent.address) }
    }

    /// Finds the position of a new span; `None` if it overlaps a region.
    pub(crate) fn place(&self, span: Grant) -> Option<Place> {
        let index = self.sorted.partition_point(|region| region.span.address < span.address);
        if self.sorted.get(index).is_some_and(|after| after.span.address < span.end()) {
            return None;
        }
        let Some(before) = index.checked_sub(1) else { return Some(Place::Between(index)) };
        match self.sorted[before].span.end().cmp(&span.address) {
            core::cmp::Ordering::Less => Some(Place::Between(index)),
            core::cmp::Ordering::Equal => Some(Place::After(before)),
            core::cmp::Ordering::Greater => None,
        }
    }

    /// Inserts a region at the index that [`Regions::place`] returned.
    pub(crate) fn insert(&mut self, index: usize, region: Region) {
        self.sorted.insert(index, region);
    }

    /// Extends a region by the adjacent span after it.
    pub(crate) fn lengthen(&mut self, index: usize, bytes: u64) {
        self.sorted[index].span.bytes += bytes;
    }

    /// Removes and returns the regions for which `gone` returns true, in address order.
    pub(crate) fn take(&mut self, mut gone: impl FnMut(&Region) -> bool) -> Vec<Region> {
        self.recent = NONE;
        self.sorted.extract_if(.., |region| gone(region)).collect()
    }
}
