//! Chunks in use, by address: what a free looks up.
//!
//! A table of lists, linked through the chunks themselves: adding one takes no search and no branch, and a chunk
//! is looked at only to see its address, which a free needs anyway.

use crate::chunk::{ChunkTable, Handle};
use crate::claim::Claim;
use crate::hint::cold_path;
use crate::unchecked::Heads;

/// Lists of an empty table, as a power of two.
const SMALLEST: u32 = 10;

/// Address to handle, for exactly the chunks in use.
#[derive(Debug)]
pub(crate) struct LiveTable {
    heads: Heads,
    len: usize,
}

impl Default for LiveTable {
    fn default() -> Self {
        Self { heads: Heads::new(SMALLEST), len: 0 }
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
        if self.len >= self.heads.all().len() {
            self.grow(chunks);
        }
        self.len += 1;
        self.heads.get_mut(address).replace(handle)
    }

    /// The handle of the chunk in use at `address`.
    pub(crate) fn find(&self, chunks: &ChunkTable, address: u64) -> Option<Handle> {
        let mut list = std::iter::successors(self.heads.get(address), |&at| chunks.get(at).link);
        list.find(|&handle| chunks.get(handle).address == address)
    }

    /// Takes out the chunk at `address` and returns its handle, if the claim is good for it.
    pub(crate) fn remove(&mut self, chunks: &mut ChunkTable, address: u64, claim: Claim) -> Option<Handle> {
        let mut before: Option<Handle> = None;
        let mut at = self.heads.get(address);
        loop {
            let handle = at?;
            let chunk = chunks.get(handle);
            let after = chunk.link;
            if chunk.address == address {
                if !claim.takes(chunk.id) {
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
        let fewer = std::mem::replace(&mut self.heads, more);
        for &head in fewer.all() {
            let mut at = head;
            while let Some(handle) = at {
                let chunk = chunks.get_mut(handle);
                at = std::mem::replace(&mut chunk.link, self.heads.get_mut(chunk.address).replace(handle));
            }
        }
    }
}

#[cfg(test)]
mod tests;
