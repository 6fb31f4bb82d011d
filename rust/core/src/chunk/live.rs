//! The live table: finds the chunk in use at an address, for frees.
//!
//! A hash table of lists that are linked through the chunks. An insertion needs neither search nor branch, and a
//! lookup reads a chunk only for its address, which the free needs anyway.

use crate::chunk::branch_hint::cold_path;
use crate::chunk::unchecked::Heads;
use crate::chunk::{ChunkTable, Handle};
use crate::tables::free_target::FreeTarget;

/// Base-2 logarithm of the number of lists in an empty table.
const MIN_POWER: u32 = 10;

/// Maps addresses to handles, for exactly the chunks in use.
#[derive(Debug)]
pub(crate) struct LiveTable {
    heads: Heads,
    len: usize,
}

impl Default for LiveTable {
    fn default() -> Self {
        Self { heads: Heads::new(MIN_POWER), len: 0 }
    }
}

impl LiveTable {
    /// Returns the number of chunks in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a chunk; the caller sets the chunk's link to the returned handle.
    pub(crate) fn push(&mut self, chunks: &mut ChunkTable, handle: Handle, address: u64) -> Option<Handle> {
        // At least as many lists as chunks: a head takes four bytes, and most lists have one chunk.
        if self.len >= self.heads.all().len() {
            self.grow(chunks);
        }
        self.len += 1;
        self.heads.get_mut(address).replace(handle)
    }

    /// Returns the handle of the chunk in use at `address`.
    pub(crate) fn find(&self, chunks: &ChunkTable, address: u64) -> Option<Handle> {
        let mut list = core::iter::successors(self.heads.get(address), |&at| chunks.get(at).link);
        list.find(|&handle| chunks.get(handle).address == address)
    }

    /// Removes the chunk at `address` and returns its handle, if the target matches it.
    pub(crate) fn remove(
        &mut self,
        chunks: &mut ChunkTable,
        address: u64,
        target: FreeTarget,
    ) -> Option<Handle> {
        let mut before: Option<Handle> = None;
        let mut at = self.heads.get(address);
        loop {
            let handle = at?;
            let chunk = chunks.get(handle);
            let after = chunk.link;
            if chunk.address == address {
                if !target.matches(chunk.id) {
                    return None;
                }
                match before {
                    Some(before) => {
                        cold_path();
                        chunks.get_mut(before).link = after;
                    }
                    None => *self.heads.get_mut(address) = after,
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
        let more = self.heads.twice();
        let fewer = core::mem::replace(&mut self.heads, more);
        for &head in fewer.all() {
            let mut at = head;
            while let Some(handle) = at {
                let chunk = chunks.get_mut(handle);
                at = core::mem::replace(&mut chunk.link, self.heads.get_mut(chunk.address).replace(handle));
            }
        }
    }
}

#[cfg(test)]
mod tests;
