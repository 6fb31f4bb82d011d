//! Chunks, their handles, and the chunk table.
//!
//! The chunks of a region tile it. Each chunk links to its neighbours; the first has no predecessor and the last no
//! successor. This file splits and merges chunks; the allocator decides which and when.

use core::num::{NonZeroU32, NonZeroU64};

use crate::chunk::branch_hint::cold_path;
/// Identifies a chunk in the [`ChunkTable`]; reused after the chunk is merged away.
pub(crate) use crate::chunk::unchecked::Handle;
use crate::chunk::unchecked::Records;
use crate::tables::free_target::{HELD, LENT};

/// A piece of a region, wholly in use or wholly free.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chunk {
    /// First byte.
    pub(crate) address: u64,
    /// Size in bytes, a multiple of the granule, never 0.
    pub(crate) size: u64,
    /// Requested bytes; 0 in quarantine, meaningless when free.
    pub(crate) requested: u64,
    /// Number of the allocation in it (of the former one in quarantine), with the bit [`HELD`] if it is held. `None`
    /// iff the chunk is free.
    pub(crate) id: Option<NonZeroU64>,
    /// The neighbour that ends where this chunk starts.
    pub(crate) prev: Option<Handle>,
    /// The neighbour that starts where this chunk ends.
    pub(crate) next: Option<Handle>,
    /// The next chunk in its bin if free, in its list of the live table if in use.
    pub(crate) link: Option<Handle>,
    /// The previous chunk in the list of its bin; the chunk itself if it is in the bin's tree. Meaningless when in
    /// use.
    pub(crate) back: Option<Handle>,
}

// Each chunk costs 48 bytes of bookkeeping.
const _: () = assert!(size_of::<Chunk>() == 48);

impl Chunk {
    /// Returns whether the chunk is free.
    pub(crate) fn is_free(&self) -> bool {
        self.id.is_none()
    }

    /// Returns the number of the allocation in it, 0 if it is free.
    pub(crate) fn number(&self) -> u64 {
        self.id.map_or(0, NonZeroU64::get) & !HELD
    }

    /// Returns whether it is in use and held: see [`HELD`].
    pub(crate) fn is_held(&self) -> bool {
        self.requested > 0 && self.id.is_some_and(|id| id.get() & HELD != 0)
    }

    /// Returns whether it is lent: see [`LENT`].
    pub(crate) fn is_lent(&self) -> bool {
        self.id.is_some_and(|id| id.get() & LENT != 0)
    }

    /// Returns whether an allocation is in it; false in quarantine.
    pub(crate) fn has_allocation(&self) -> bool {
        !self.is_free() && self.requested > 0
    }

    /// Returns the first address after the chunk.
    pub(crate) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// All chunks of one allocator, by handle.
#[derive(Debug, Default)]
pub(crate) struct ChunkTable {
    records: Records,
    /// Head of the list of vacant records, linked through `next`.
    vacant: Option<Handle>,
}

impl ChunkTable {
    /// Adds a free chunk without neighbours.
    pub(crate) fn insert(&mut self, address: u64, size: u64) -> Handle {
        let handle = self.occupy();
        *self.get_mut(handle) = Chunk { address, size, ..Chunk::default() };
        handle
    }

    /// Returns a vacant record, or a new one.
    #[inline(always)]
    fn occupy(&mut self) -> Handle {
        let Some(handle) = self.vacant else { return self.append() };
        self.vacant = self.get(handle).next;
        handle
    }

    /// Appends a new record.
    #[cold]
    #[inline(never)]
    fn append(&mut self) -> Handle {
        self.records.push(Chunk::default())
    }

    /// Vacates the record of a free chunk that no neighbour links to.
    pub(crate) fn remove(&mut self, handle: Handle) {
        debug_assert!(self.get(handle).is_free());
        self.get_mut(handle).next = self.vacant;
        self.vacant = Some(handle);
    }

    #[inline(always)]
    pub(crate) fn get(&self, handle: Handle) -> &Chunk {
        self.records.get(handle)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Chunk {
        self.records.get_mut(handle)
    }

    #[inline(always)]
    pub(crate) fn get_or_none_mut(&mut self, handle: Option<Handle>) -> &mut Chunk {
        self.records.get_or_none_mut(handle)
    }

    /// Returns the handle with this number.
    pub(crate) fn handle(&self, number: NonZeroU32) -> Handle {
        self.records.handle(number)
    }

    /// Shortens a chunk to its first `size` bytes and makes the other `rest` bytes a free chunk after it, which the
    /// caller puts into a bin.
    #[inline(always)]
    pub(crate) fn split(&mut self, handle: Handle, size: u64, rest: u64) -> Handle {
        let new = self.occupy();
        let whole = self.get_mut(handle);
        let address = whole.address + size;
        let after = whole.next.replace(new);
        whole.size = size;
        // The other fields have the values of a free chunk, as a vacant record keeps them.
        let part = self.get_mut(new);
        part.address = address;
        part.size = rest;
        part.prev = Some(handle);
        part.next = after;
        if let Some(after) = after {
            self.get_mut(after).prev = Some(new);
        } else {
            cold_path();
        }
        new
    }

    /// Merges `right` into `left`, the neighbour before it, which then has `size` bytes.
    #[inline(always)]
    pub(crate) fn merge(&mut self, left: Handle, right: Handle, size: u64) {
        let after = self.get(right).next;
        self.remove(right);
        let survivor = self.get_mut(left);
        survivor.size = size;
        survivor.next = after;
        if let Some(after) = after {
            self.get_mut(after).prev = Some(left);
        } else {
            cold_path();
        }
    }

    /// Links two chunks as neighbours.
    pub(crate) fn link(&mut self, left: Handle, right: Handle) {
        self.get_mut(left).next = Some(right);
        self.get_mut(right).prev = Some(left);
    }

    /// Iterates over `first` and the chunks after it in address order.
    pub(crate) fn run(&self, first: Handle) -> impl Iterator<Item = (Handle, &Chunk)> {
        core::iter::successors(Some(first), |&handle| self.get(handle).next)
            .map(|handle| (handle, self.get(handle)))
    }

    /// Iterates over all chunks in use, in no particular order.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Chunk> {
        // Vacant records have the values of a free chunk.
        self.records.all().iter().filter(|chunk| chunk.has_allocation())
    }

    /// Returns the number of chunks.
    pub(crate) fn len(&self) -> usize {
        let vacated = core::iter::successors(self.vacant, |&handle| self.get(handle).next).count();
        self.records.all().len() - vacated
    }
}

pub(crate) mod branch_hint;
pub(crate) mod live;
pub(crate) mod region;
#[expect(unsafe_code, reason = "the one place for it, which says why")]
mod unchecked;
