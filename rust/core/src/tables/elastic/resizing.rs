//! Growth of an allocation in an elastic pool, in place and within committed pages.

use super::super::Tables;
use crate::chunk::{Chunk, Handle};
use crate::units::round_down;

impl Tables {
    /// Returns the bytes to which a chunk could grow into the hole after it, as far as its pages have memory.
    pub(crate) fn possible_in_pages(&self, chunk: &Chunk, next: Handle) -> u64 {
        let hole = self.hole(next);
        if self.pages().is_paused || self.pages().has_plan {
            return chunk.size;
        }
        let missing = hole.committed.missing(hole.whole);
        let end = missing.first().map_or(hole.end, |span| span.first << self.pages().shift);
        chunk.size + round_down(end) - hole.start
    }

    /// Lengthens a chunk to `needed` bytes, for which the hole after it has the memory.
    pub(crate) fn lengthen_in_pages(&mut self, handle: Handle, needed: u64) {
        let Chunk { address, size, next, .. } = *self.chunks.get(handle);
        let Some(next) = next else { return };
        let free = self.chunks.get(next).size;
        self.bins.remove(&mut self.chunks, next, free);
        let place = self.hole(next).place(address + size, address + needed, self.pages());
        let taken = self.carve(next, place);
        self.chunks.merge(handle, taken.handle, needed);
    }
}
