//! The two tables that every request and every free looks into several times, without a check at each look.
//!
//! The only unsafe code of this crate. Why it stays within its tables:
//!
//! - A [`Handle`] is made by [`Records`] for a record that is there, and a record is never taken out again. So it is
//!   good for as long as its table. A pool has one table, which is never another's copy nor exchanged for another, and
//!   no handle meets the table of another pool: that much is up to whoever keeps handles.
//! - The first record is of no chunk, and always there: whatever follows a link that leads nowhere may write to it.
//! - [`Heads`] are as many as its hash has values, which is settled where they are made.
//!
//! A build with debug assertions checks each look all the same. What it saves, of the 14 nanoseconds of an event:
//! 0.9 the checks, and 0.9 the multiplications, as a handle counts words instead of records.

use std::num::NonZeroU32;

use crate::chunk::Chunk;

/// Words of eight bytes in a record: what a handle counts, as processors do that for nothing.
const WORDS: usize = size_of::<Chunk>() / size_of::<u64>();

const _: () =
    assert!(WORDS * size_of::<u64>() == size_of::<Chunk>() && align_of::<Chunk>() == align_of::<u64>());

/// Names a record of its [`Records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle(NonZeroU32);

impl Handle {
    /// What [`Records::handle`] makes a handle of again.
    pub(crate) fn number(self) -> NonZeroU32 {
        self.0
    }

    /// Of its record, counted from 0; the one of no chunk does not count.
    pub(crate) fn index(self) -> usize {
        self.word() / WORDS - 1
    }

    fn word(self) -> usize {
        self.0.get() as usize
    }
}

/// A list of chunks that only grows.
#[derive(Debug)]
pub(crate) struct Records {
    /// The first is of no chunk, so that no handle is 0, and a place to write to where there is none.
    records: Vec<Chunk>,
}

impl Default for Records {
    fn default() -> Self {
        Self { records: vec![Chunk::default()] }
    }
}

impl Records {
    /// One more record.
    ///
    /// # Panics
    /// Past 2^32 words: 700 million chunks, 32 GiB of records.
    pub(crate) fn push(&mut self, chunk: Chunk) -> Handle {
        if self.records.len() == self.records.capacity() {
            // By an eighth: doubled, the room for chunks to come would be more than those there are.
            self.records.reserve_exact(self.records.len() / 8 + 16);
        }
        let word = u32::try_from(self.records.len() * WORDS).ok().and_then(NonZeroU32::new);
        let handle = Handle(word.expect("32 GiB of records are enough"));
        self.records.push(chunk);
        handle
    }

    /// The handle of this number.
    ///
    /// # Panics
    /// When there is none of that number.
    pub(crate) fn handle(&self, number: NonZeroU32) -> Handle {
        let handle = Handle(number);
        assert!(self.has(handle), "the number of a handle");
        handle
    }

    #[inline(always)]
    pub(crate) fn get(&self, handle: Handle) -> &Chunk {
        debug_assert!(self.has(handle));
        // SAFETY: the record is there: see the top.
        unsafe { &*self.records.as_ptr().cast::<u64>().add(handle.word()).cast() }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Chunk {
        debug_assert!(self.has(handle));
        // SAFETY: the record is there: see the top.
        unsafe { &mut *self.records.as_mut_ptr().cast::<u64>().add(handle.word()).cast() }
    }

    /// The record that is named, or the first, of no chunk: to be written to where it does not matter.
    #[inline(always)]
    pub(crate) fn get_or_none_mut(&mut self, handle: Option<Handle>) -> &mut Chunk {
        debug_assert!(handle.is_none_or(|handle| self.has(handle)));
        let word = handle.map_or(0, Handle::word);
        // SAFETY: the record is there: see the top; and so is the first.
        unsafe { &mut *self.records.as_mut_ptr().cast::<u64>().add(word).cast() }
    }

    /// All but the first.
    pub(crate) fn all(&self) -> &[Chunk] {
        &self.records[1..]
    }

    fn has(&self, handle: Handle) -> bool {
        handle.word().is_multiple_of(WORDS) && handle.word() < self.records.len() * WORDS
    }
}

/// The first of each list of a table of lists, by the hash of an address.
#[derive(Debug)]
pub(crate) struct Heads {
    heads: Vec<Option<Handle>>,
    /// `heads.len() == 1 << (64 - shift)`, and 64 is no shift.
    shift: u32,
}

impl Heads {
    /// So many empty lists, as a power of two.
    pub(crate) fn new(power: u32) -> Self {
        assert!((1..usize::BITS).contains(&power));
        Self { heads: vec![None; 1 << power], shift: u64::BITS - power }
    }

    /// Twice as many.
    pub(crate) fn twice(&self) -> Self {
        Self::new(u64::BITS - self.shift + 1)
    }

    pub(crate) fn all(&self) -> &[Option<Handle>] {
        &self.heads
    }

    /// The first of the list of this address.
    #[inline(always)]
    pub(crate) fn get(&self, address: u64) -> Option<Handle> {
        let slot = self.slot(address);
        debug_assert!(slot < self.heads.len());
        // SAFETY: a number of 64 bits, shifted by so many, is less than the length.
        unsafe { *self.heads.get_unchecked(slot) }
    }

    /// The first of the list of this address, to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, address: u64) -> &mut Option<Handle> {
        let slot = self.slot(address);
        debug_assert!(slot < self.heads.len());
        // SAFETY: a number of 64 bits, shifted by so many, is less than the length.
        unsafe { self.heads.get_unchecked_mut(slot) }
    }

    /// A multiplicative hash: multiples of any power of two spread evenly over its topmost bits.
    #[expect(clippy::cast_possible_truncation, reason = "no table is longer than memory")]
    #[inline(always)]
    fn slot(&self, address: u64) -> usize {
        (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (self.shift % u64::BITS)) as usize
    }
}

#[cfg(test)]
mod tests;
