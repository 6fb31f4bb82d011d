//! Free chunks, by size class.
//!
//! Every free chunk is in exactly one bin, and no chunk in use is in any. Size classes are consecutive
//! ranges, and a bin is ordered by size, then address; so going through the bins upward meets free chunks
//! in the order of one set keyed by (size, address), and the first that is large enough is the best fit.
//!
//! ```text
//! granules  1 2 3 4 5 6 7 | 8 9 … 15 | 16-17 18-19 … 30-31 | 32-35 36-39 … 60-63 | …
//!           one class each               eight classes to each power of two
//! ```

use std::collections::BTreeSet;

use crate::chunk::Handle;
use crate::units::{GRANULE, MAX_BYTES};

/// Classes to a power of two, as a power of two.
const STEPS_LOG2: u32 = 3;
const STEPS: u64 = 1 << STEPS_LOG2;
const CLASSES: usize = class_of(MAX_BYTES) + 1;
const WORDS: usize = CLASSES.div_ceil(64);

/// A free chunk as a bin keeps it. The order of the fields is the order of best fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FreeChunk {
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) handle: Handle,
}

/// The size class of a chunk of `size` bytes; larger sizes never have smaller classes.
const fn class_of(size: u64) -> usize {
    let granules = size / GRANULE;
    if granules < STEPS {
        return granules as usize;
    }
    let doublings = granules.ilog2() - STEPS_LOG2;
    ((doublings as usize) << STEPS_LOG2) + (granules >> doublings) as usize
}

/// All bins of an allocator.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<BTreeSet<FreeChunk>>,
    /// Bit `c` is set iff bin `c` is not empty.
    occupied: [u64; WORDS],
}

impl Default for Bins {
    fn default() -> Self {
        Self { bins: vec![BTreeSet::new(); CLASSES], occupied: [0; WORDS] }
    }
}

impl Bins {
    /// Adds a free chunk that is in no bin.
    pub(crate) fn insert(&mut self, chunk: FreeChunk) {
        let class = class_of(chunk.size);
        self.occupied[class / 64] |= 1 << (class % 64);
        self.bins[class].insert(chunk);
    }

    /// Takes a free chunk out of its bin.
    pub(crate) fn remove(&mut self, chunk: FreeChunk) {
        let class = class_of(chunk.size);
        self.bins[class].remove(&chunk);
        if self.bins[class].is_empty() {
            self.occupied[class / 64] &= !(1 << (class % 64));
        }
    }

    /// The smallest free chunk of at least `size` bytes, the one with the lowest address among equals.
    ///
    /// # Cost
    /// Logarithmic in the free chunks of one class.
    pub(crate) fn best_fit(&self, size: u64) -> Option<FreeChunk> {
        let class = class_of(size);
        let fits = |chunk: &FreeChunk| chunk.size >= size;
        let lowest = FreeChunk { size, address: 0, handle: Handle::new(1)? };
        // Within its own class a chunk may be too small; in every class above, all fit.
        self.bins[class]
            .range(lowest..)
            .find(|c| fits(c))
            .copied()
            .or_else(|| self.first_occupied(class + 1).and_then(|class| self.bins[class].first().copied()))
    }

    /// Size of the largest free chunk, 0 if there is none.
    pub(crate) fn largest(&self) -> u64 {
        let last = (0..WORDS).rev().find(|&word| self.occupied[word] != 0);
        last.map(|word| word * 64 + self.occupied[word].ilog2() as usize)
            .and_then(|class| self.bins[class].last())
            .map_or(0, |chunk| chunk.size)
    }

    /// All free chunks in the order of best fit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = FreeChunk> {
        self.bins.iter().flatten().copied()
    }

    /// The first class at or after `class` whose bin is not empty.
    fn first_occupied(&self, class: usize) -> Option<usize> {
        let mut word = class / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (class % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests;
