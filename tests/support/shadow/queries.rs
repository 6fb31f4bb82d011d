//! The state that a program may read to choose its next step.

use allotment::Allocation;

use super::Shadow;

impl Shadow {
    /// Returns the number of refusals confirmed as unavoidable.
    pub(crate) fn confirmed_refusals(&self) -> u64 {
        self.confirmed
    }

    /// Returns whether an allocation must not be freed.
    pub(crate) fn is_pinned(&self, allocation: &Allocation) -> bool {
        self.pins.contains(&allocation.address)
    }

    /// Returns the room under the limit.
    pub(crate) fn room(&self) -> u64 {
        self.rules.room(self.space.reserved())
    }

    /// Returns the size from which a remainder is always kept.
    pub(crate) fn kept_from(&self) -> u64 {
        u64::try_from(self.rules.kept_from).expect("at most the limit or 128 MiB")
    }

    /// Returns the size of each free chunk, in address order.
    pub(crate) fn free_sizes(&self) -> impl Iterator<Item = u64> {
        self.space.free().map(|chunk| chunk.size)
    }

    /// Returns the number of the chunk at `address`: 0 if it is free, `None` if there is none.
    pub(crate) fn id_at(&self, address: u64) -> Option<u64> {
        Some(self.space.chunk_at(address)?.holder.map_or(0, |holder| holder.id))
    }

    /// Returns the size of the chunk at `address`, if there is one.
    pub(crate) fn size_at(&self, address: u64) -> Option<u64> {
        self.space.chunk_at(address).map(|chunk| chunk.size)
    }

    /// Returns the start of a free chunk, if there is one.
    pub(crate) fn a_free_address(&self) -> Option<u64> {
        self.space.free().next().map(|chunk| chunk.address)
    }

    /// Returns the region sizes, in address order.
    pub(crate) fn region_sizes(&self) -> Vec<u64> {
        self.space.regions().iter().map(|region| region.span.bytes).collect()
    }
}
