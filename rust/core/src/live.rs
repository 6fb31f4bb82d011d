//! Chunks in use, by address: what a free looks up.
//!
//! An open-addressing table of 8-byte slots. A slot holds the upper half of the address's hash beside the
//! handle, so that probing, growing and closing gaps never touch the chunks themselves.
//!
//! ```text
//! slot   63 ────── tag: upper half of the hash ────── 32 31 ────── handle, 0 = empty ────── 0
//! home of a tag = its topmost log2(slots) bits; a chunk sits at its home or, wrapping, after it
//! ```

use crate::chunk::Handle;
use crate::units::GRANULE;

const SMALLEST: u32 = 4;

/// Address to handle, for exactly the chunks in use.
#[derive(Debug)]
pub(crate) struct LiveTable {
    slots: Vec<u64>,
    /// `slots.len() == 1 << bits`.
    bits: u32,
    len: usize,
}

impl Default for LiveTable {
    fn default() -> Self {
        Self { slots: vec![0; 1 << SMALLEST], bits: SMALLEST, len: 0 }
    }
}

/// Upper half of a multiplicative hash: multiples of any power of two spread evenly over the top bits.
fn tag_of(address: u64) -> u32 {
    ((address / GRANULE).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

fn tag_in(slot: u64) -> u32 {
    (slot >> 32) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is the handle")]
fn handle_in(slot: u64) -> Option<Handle> {
    Handle::new(slot as u32)
}

impl LiveTable {
    /// Number of chunks in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a chunk that is not in the table.
    pub(crate) fn insert(&mut self, address: u64, handle: Handle) {
        // Three quarters full at most: about two slots are looked at for a chunk that is there.
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.place(u64::from(tag_of(address)) << 32 | u64::from(handle.get()));
        self.len += 1;
    }

    /// The handle under `address`, if `is_at` confirms it: different addresses may share a tag.
    pub(crate) fn find(&self, address: u64, is_at: impl Fn(Handle) -> bool) -> Option<Handle> {
        self.position(tag_of(address), is_at).and_then(|at| handle_in(self.slots[at]))
    }

    /// Takes out the chunk at `address` and returns its handle.
    pub(crate) fn remove(&mut self, address: u64, is_at: impl Fn(Handle) -> bool) -> Option<Handle> {
        let mut hole = self.position(tag_of(address), is_at)?;
        let handle = handle_in(self.slots[hole]);
        // Close the gap: whoever follows and is not at home moves up, unless that is before its home.
        let mut at = self.after(hole);
        while self.slots[at] != 0 {
            let wanted = self.home(tag_in(self.slots[at]));
            if self.distance(wanted, at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole] = 0;
        self.len -= 1;
        handle
    }

    fn position(&self, tag: u32, is_at: impl Fn(Handle) -> bool) -> Option<usize> {
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            let handle = handle_in(slot)?;
            if tag_in(slot) == tag && is_at(handle) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn place(&mut self, slot: u64) {
        let mut at = self.home(tag_in(slot));
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        self.bits += 1;
        assert!(self.bits <= 32, "fewer than 2^31 chunks in use");
        for slot in std::mem::replace(&mut self.slots, vec![0; 1 << self.bits]) {
            if slot != 0 {
                self.place(slot);
            }
        }
    }

    fn home(&self, tag: u32) -> usize {
        (tag >> (32 - self.bits)) as usize
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// Slots from `from` onward to `to`, wrapping.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests;
