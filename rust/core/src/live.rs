//! Chunks in use, by address: what a free looks up.
//!
//! A table of lists, linked through the chunks themselves: adding one takes no search and no branch, and a chunk
//! is looked at only to see its address, which a free needs anyway.

use std::num::NonZeroU64;

use crate::chunk::{ChunkTable, Handle};

const SMALLEST: u32 = 10;

/// Address to handle, for exactly the chunks in use.
#[derive(Debug)]
pub(crate) struct LiveTable {
    heads: Vec<Option<Handle>>,
    /// `heads.len() == 1 << (64 - shift)`.
    shift: u32,
    len: usize,
}

impl Default for LiveTable {
    fn default() -> Self {
        Self { heads: vec![None; 1 << SMALLEST], shift: 64 - SMALLEST, len: 0 }
    }
}

impl LiveTable {
    /// Number of chunks in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a chunk that is not in the table. The caller links it to what is returned.
    pub(crate) fn push(&mut self, chunks: &mut ChunkTable, handle: Handle, address: u64) -> Option<Handle> {
        // As many lists as chunks, or more: a head is four bytes, and most lists are of one chunk.
        if self.len >= self.heads.len() {
            self.grow(chunks);
        }
        self.len += 1;
        let slot = self.slot(address);
        self.heads[slot].replace(handle)
    }

    /// The handle of the chunk in use at `address`.
    pub(crate) fn find(&self, chunks: &ChunkTable, address: u64) -> Option<Handle> {
        let mut list = std::iter::successors(self.heads[self.slot(address)], |&at| chunks.get(at).link);
        list.find(|&handle| chunks.get(handle).address == address)
    }

    /// Takes out the chunk at `address` and returns its handle; with an `id`, only if it holds that allocation.
    pub(crate) fn remove(
        &mut self,
        chunks: &mut ChunkTable,
        address: u64,
        id: Option<NonZeroU64>,
    ) -> Option<Handle> {
        let slot = self.slot(address);
        let mut before: Option<Handle> = None;
        let mut at = self.heads[slot];
        loop {
            let handle = at?;
            let chunk = chunks.get(handle);
            let after = chunk.link;
            if chunk.address == address {
                if id.is_some() && chunk.id != id {
                    return None;
                }
                match before {
                    Some(before) => chunks.get_mut(before).link = after,
                    None => self.heads[slot] = after,
                }
                self.len -= 1;
                return Some(handle);
            }
            before = at;
            at = after;
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, chunks: &mut ChunkTable) {
        self.shift -= 1;
        let longer = vec![None; 2 * self.heads.len()];
        for head in std::mem::replace(&mut self.heads, longer) {
            let mut at = head;
            while let Some(handle) = at {
                let chunk = chunks.get_mut(handle);
                let slot = self.slot(chunk.address);
                at = std::mem::replace(&mut chunk.link, self.heads[slot].replace(handle));
            }
        }
    }

    /// A multiplicative hash: multiples of any power of two spread evenly over its topmost bits.
    #[expect(clippy::cast_possible_truncation, reason = "no table is longer than memory")]
    fn slot(&self, address: u64) -> usize {
        (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (self.shift % 64)) as usize
    }
}

#[cfg(test)]
mod tests;
