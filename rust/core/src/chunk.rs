//! Chunks, their handles, and the table that holds them all.
//!
//! The chunks of a region tile it: each names its neighbours, the first has none before it and the last
//! none after it. Splitting and merging are list surgery here; which chunk and when is the allocator's.

use std::num::{NonZeroU32, NonZeroU64};

use crate::claim::HELD;
use crate::hint::cold_path;
/// Names a chunk in the [`ChunkTable`]; used again after the chunk is merged away.
pub(crate) use crate::unchecked::Handle;
use crate::unchecked::Records;

/// A piece of a region, wholly in use or wholly free.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chunk {
    /// First byte.
    pub(crate) address: u64,
    /// Length in bytes, a multiple of the granule, never 0.
    pub(crate) size: u64,
    /// What the caller asked for, in bytes; 0 in quarantine, and of no meaning when free.
    pub(crate) requested: u64,
    /// Number of the allocation that holds it, or held it until it came into quarantine, with [`HELD`] if that is held;
    /// none iff it is free.
    pub(crate) id: Option<NonZeroU64>,
    /// The neighbour that ends where this one starts.
    pub(crate) prev: Option<Handle>,
    /// The neighbour that starts where this one ends.
    pub(crate) next: Option<Handle>,
    /// The chunk after it in its bin if free, in its list of the live table if in use.
    pub(crate) link: Option<Handle>,
    /// The chunk before it in the list of its bin; itself if it is in the tree of the bin. Of no meaning in use.
    pub(crate) back: Option<Handle>,
}

// A chunk more is 48 bytes more of books.
const _: () = assert!(size_of::<Chunk>() == 48);

impl Chunk {
    /// Whether no allocation holds it.
    pub(crate) fn is_free(&self) -> bool {
        self.id.is_none()
    }

    /// Number of the allocation that holds it, 0 if it is free.
    pub(crate) fn number(&self) -> u64 {
        self.id.map_or(0, NonZeroU64::get) & !HELD
    }

    /// Whether it is in use by an allocation that a runtime holds: see [`HELD`].
    pub(crate) fn is_held(&self) -> bool {
        self.requested > 0 && self.id.is_some_and(|id| id.get() & HELD != 0)
    }

    /// Whether an allocation holds it, and not the quarantine.
    pub(crate) fn holds_something(&self) -> bool {
        !self.is_free() && self.requested > 0
    }

    /// The first byte after it.
    pub(crate) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// All chunks of one allocator, by handle.
#[derive(Debug, Default)]
pub(crate) struct ChunkTable {
    records: Records,
    /// Most recently vacated record; each vacated record names the one before it in `next`.
    vacant: Option<Handle>,
}

impl ChunkTable {
    /// A free chunk without neighbours.
    pub(crate) fn insert(&mut self, address: u64, size: u64) -> Handle {
        let handle = self.occupy();
        *self.get_mut(handle) = Chunk { address, size, ..Chunk::default() };
        handle
    }

    /// A record for a chunk.
    #[inline(always)]
    fn occupy(&mut self) -> Handle {
        let Some(handle) = self.vacant else { return self.append() };
        self.vacant = self.get(handle).next;
        handle
    }

    /// One more record.
    #[cold]
    #[inline(never)]
    fn append(&mut self) -> Handle {
        self.records.push(Chunk::default())
    }

    /// Vacates the record of a chunk that is free, so without number; its neighbours no longer name it.
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

    /// The handle of this number.
    pub(crate) fn handle(&self, number: NonZeroU32) -> Handle {
        self.records.handle(number)
    }

    /// Cuts `handle` down to its first `size` bytes; the rest, `rest` bytes, becomes a free chunk after it, to be put
    /// into a bin.
    #[inline(always)]
    pub(crate) fn split(&mut self, handle: Handle, size: u64, rest: u64) -> Handle {
        let new = self.occupy();
        let whole = self.get_mut(handle);
        let address = whole.address + size;
        let after = whole.next.replace(new);
        whole.size = size;
        // The rest of the record is as a free chunk left it.
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

    /// Lets `left`, which is to have `size` bytes, absorb `right`, the neighbour after it.
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

    /// Makes two chunks neighbours.
    pub(crate) fn link(&mut self, left: Handle, right: Handle) {
        self.get_mut(left).next = Some(right);
        self.get_mut(right).prev = Some(left);
    }

    /// `first` and everything after it, in address order.
    pub(crate) fn run(&self, first: Handle) -> impl Iterator<Item = (Handle, &Chunk)> {
        std::iter::successors(Some(first), |&handle| self.get(handle).next)
            .map(|handle| (handle, self.get(handle)))
    }

    /// All chunks in use, in no order.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Chunk> {
        // A vacant record is as a free chunk left it.
        self.records.all().iter().filter(|chunk| chunk.holds_something())
    }

    /// Records that hold a chunk.
    pub(crate) fn len(&self) -> usize {
        let vacated = std::iter::successors(self.vacant, |&handle| self.get(handle).next).count();
        self.records.all().len() - vacated
    }
}
