//! Chunks, their handles, and the table that holds them all.
//!
//! The chunks of a region tile it: each names its neighbours, the first has none before it and the last
//! none after it. Splitting and merging are list surgery here; which chunk and when is the allocator's.

use std::num::{NonZeroU32, NonZeroU64};

/// Names a chunk in the [`ChunkTable`]; used again after the chunk is merged away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle(NonZeroU32);

impl Handle {
    /// Before every other handle.
    pub(crate) const LOWEST: Self = Self(NonZeroU32::MIN);

    /// The handle with this number; none for 0.
    fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A piece of a region, wholly in use or wholly free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// First byte.
    pub(crate) address: u64,
    /// Length in bytes, a multiple of the granule, never 0.
    pub(crate) size: u64,
    /// What the caller asked for, in bytes; 0 when free.
    pub(crate) requested: u64,
    /// Number of the allocation that holds it; `Some` iff the chunk is in use.
    pub(crate) id: Option<NonZeroU64>,
    /// The neighbour that ends where this one starts.
    pub(crate) prev: Option<Handle>,
    /// The neighbour that starts where this one ends.
    pub(crate) next: Option<Handle>,
    /// The chunk after it in its bin if free, in its list of the live table if in use.
    pub(crate) link: Option<Handle>,
}

impl Chunk {
    /// Whether no allocation holds it.
    pub(crate) fn is_free(&self) -> bool {
        self.id.is_none()
    }

    /// The first byte after it.
    pub(crate) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// All chunks of one allocator, by handle.
#[derive(Debug, Default)]
pub(crate) struct ChunkTable {
    slots: Vec<Chunk>,
    /// Most recently vacated slot; each vacated slot names the one before it in `next`.
    vacant: Option<Handle>,
}

impl ChunkTable {
    /// A free chunk without neighbours.
    ///
    /// # Panics
    /// Past 2^32 - 1 chunks at once, whose records alone would fill 192 GiB.
    pub(crate) fn insert(&mut self, address: u64, size: u64) -> Handle {
        self.insert_between(address, size, None, None)
    }

    /// A free chunk that names its neighbours, who do not name it yet.
    fn insert_between(
        &mut self,
        address: u64,
        size: u64,
        prev: Option<Handle>,
        next: Option<Handle>,
    ) -> Handle {
        let chunk = Chunk { address, size, requested: 0, id: None, prev, next, link: None };
        if let Some(handle) = self.vacant {
            self.vacant = self.slots[handle.index()].next;
            self.slots[handle.index()] = chunk;
            return handle;
        }
        self.slots.push(chunk);
        u32::try_from(self.slots.len()).ok().and_then(Handle::new).expect("fewer than 2^32 chunks")
    }

    /// Vacates a slot; the chunk's neighbours no longer name it.
    pub(crate) fn remove(&mut self, handle: Handle) {
        self.slots[handle.index()].next = self.vacant;
        self.vacant = Some(handle);
    }

    pub(crate) fn get(&self, handle: Handle) -> &Chunk {
        &self.slots[handle.index()]
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Chunk {
        &mut self.slots[handle.index()]
    }

    /// Cuts `handle` down to its first `size` bytes; the rest becomes a free chunk after it.
    pub(crate) fn split(&mut self, handle: Handle, size: u64) -> Handle {
        let whole = self.get_mut(handle);
        let (end, rest) = (whole.address + size, whole.size - size);
        whole.size = size;
        let after = whole.next;
        let rest = self.insert_between(end, rest, Some(handle), after);
        self.get_mut(handle).next = Some(rest);
        if let Some(after) = after {
            self.get_mut(after).prev = Some(rest);
        }
        rest
    }

    /// Lets `left` absorb `right`, the neighbour after it.
    pub(crate) fn merge(&mut self, left: Handle, right: Handle) {
        let absorbed = *self.get(right);
        let survivor = self.get_mut(left);
        survivor.size += absorbed.size;
        survivor.next = absorbed.next;
        if let Some(after) = absorbed.next {
            self.get_mut(after).prev = Some(left);
        }
        self.remove(right);
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

    /// Slots that hold a chunk.
    pub(crate) fn len(&self) -> usize {
        let vacated = std::iter::successors(self.vacant, |&handle| self.get(handle).next).count();
        self.slots.len() - vacated
    }
}
