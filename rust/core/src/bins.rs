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

impl FreeChunk {
    /// Before every chunk of `size` bytes or more, and after every smaller one.
    fn lowest(size: u64) -> Self {
        Self { size, address: 0, handle: Handle::LOWEST }
    }
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

/// The most chunks that a bin keeps in one sorted run. Up to here, moving a few of them costs less than a tree
/// does; beyond, a tree keeps the cost from growing with the number of holes.
const FEW: usize = 48;

/// The free chunks of one size class, in the order of best fit.
#[derive(Debug, Clone)]
enum Bin {
    Few(Vec<FreeChunk>),
    Many(BTreeSet<FreeChunk>),
}

impl Bin {
    fn insert(&mut self, chunk: FreeChunk) {
        match self {
            Self::Few(chunks) if chunks.len() < FEW => {
                let at = chunks.partition_point(|other| *other < chunk);
                chunks.insert(at, chunk);
            }
            Self::Few(chunks) => {
                let mut many: BTreeSet<_> = chunks.drain(..).collect();
                many.insert(chunk);
                *self = Self::Many(many);
            }
            Self::Many(chunks) => {
                chunks.insert(chunk);
            }
        }
    }

    /// Takes a chunk out; says whether the bin is empty now.
    fn remove(&mut self, chunk: FreeChunk) -> bool {
        match self {
            Self::Few(chunks) => {
                let at = chunks.partition_point(|other| *other < chunk);
                chunks.remove(at);
                chunks.is_empty()
            }
            Self::Many(chunks) => {
                chunks.remove(&chunk);
                self.shrink()
            }
        }
    }

    /// Takes out the first chunk of at least `size` bytes; with it, whether the bin is empty now.
    fn take_first(&mut self, size: u64) -> Option<(FreeChunk, bool)> {
        match self {
            Self::Few(chunks) => {
                let at = chunks.partition_point(|chunk| chunk.size < size);
                (at < chunks.len()).then(|| (chunks.remove(at), chunks.is_empty()))
            }
            Self::Many(chunks) => {
                let chunk = *chunks.range(FreeChunk::lowest(size)..).next()?;
                chunks.remove(&chunk);
                Some((chunk, self.shrink()))
            }
        }
    }

    /// Goes back to a run when few are left; never empty, because few is more than none.
    fn shrink(&mut self) -> bool {
        if let Self::Many(chunks) = self
            && chunks.len() <= FEW / 2
        {
            *self = Self::Few(std::mem::take(chunks).into_iter().collect());
        }
        false
    }

    fn holds(&self, size: u64) -> bool {
        self.last().is_some_and(|chunk| chunk.size >= size)
    }

    fn last(&self) -> Option<FreeChunk> {
        match self {
            Self::Few(chunks) => chunks.last().copied(),
            Self::Many(chunks) => chunks.last().copied(),
        }
    }
}

/// All bins of an allocator.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Bin>,
    /// Bit `c` is set iff bin `c` is not empty.
    occupied: [u64; WORDS],
}

impl Default for Bins {
    fn default() -> Self {
        Self { bins: vec![Bin::Few(Vec::new()); CLASSES], occupied: [0; WORDS] }
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
        if self.bins[class].remove(chunk) {
            self.occupied[class / 64] &= !(1 << (class % 64));
        }
    }

    /// Takes out the smallest free chunk of at least `size` bytes, the one with the lowest address among equals.
    ///
    /// # Cost
    /// Logarithmic in the free chunks of one class.
    pub(crate) fn take_best_fit(&mut self, size: u64) -> Option<FreeChunk> {
        // Within its own class a chunk may be too small; in every class above, all fit.
        let own = class_of(size);
        let class = if self.bins[own].holds(size) { own } else { self.first_occupied(own + 1)? };
        let (chunk, empty) = self.bins[class].take_first(size)?;
        if empty {
            self.occupied[class / 64] &= !(1 << (class % 64));
        }
        Some(chunk)
    }

    /// Whether a free chunk of at least `size` bytes is there.
    pub(crate) fn fits(&self, size: u64) -> bool {
        let own = class_of(size);
        self.bins[own].holds(size) || self.first_occupied(own + 1).is_some()
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
        self.bins
            .iter()
            .flat_map(|bin| -> Box<dyn Iterator<Item = &FreeChunk>> {
                match bin {
                    Bin::Few(chunks) => Box::new(chunks.iter()),
                    Bin::Many(chunks) => Box::new(chunks.iter()),
                }
            })
            .copied()
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
