//! Free chunks, by size class.
//!
//! Every free chunk is in exactly one bin, and no chunk in use is in any. Size classes are consecutive
//! ranges, so the best fit, the smallest chunk that is large enough and the lowest among equals, is in the bin
//! of the request's own class or in the first bin above that is not empty.
//!
//! ```text
//! from             256 B          256 KiB        64 MiB        8 GiB
//! class            0 … 39         40 … 55        56 … 62       63
//! to a doubling    four           two            one           all the rest
//! ```

use std::collections::BTreeSet;

use crate::chunk::{ChunkTable, Handle};
use crate::units::GRANULE;

/// As many as a word has bits: one instruction finds the first bin that is not empty.
const CLASSES: usize = 64;

/// The most chunks of a bin that is searched from end to end. Recorded programs have one or two in most bins,
/// and putting a chunk into no order is cheapest; beyond this a tree keeps the cost from growing with the holes.
const FEW: u32 = 32;

/// The length noted for a bin that is a tree.
const CROWDED: u32 = u32::MAX;

/// A free chunk as a tree keeps it. The order of the fields is the order of best fit.
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

    fn of(chunks: &ChunkTable, handle: Handle) -> Self {
        let chunk = chunks.get(handle);
        Self { size: chunk.size, address: chunk.address, handle }
    }
}

/// Quarters of a doubling, for 1 to 1023: 1 is 0, 2 is 4, 3 is 6, 4 is 8, 5 is 9.
static QUARTERS: [u8; 1024] = quarters();

#[expect(clippy::cast_possible_truncation, reason = "at most 39")]
const fn quarters() -> [u8; 1024] {
    let mut table = [0; 1024];
    let mut number = 1_usize;
    while number < 1024 {
        let doublings = number.ilog2();
        table[number] = (4 * doublings as usize + ((4 * number) >> doublings) - 4) as u8;
        number += 1;
    }
    table
}

/// The size class of a chunk of `size` bytes; larger sizes never have smaller classes.
///
/// From a table: the processor's way to a logarithm takes longer, and what waits for it is often a branch.
fn class_of(size: u64) -> usize {
    let granules = size / GRANULE;
    let class = if granules < 1024 {
        usize::from(QUARTERS[granules as usize])
    } else if granules < 1 << 18 {
        36 + usize::from(QUARTERS[(granules / 256) as usize] / 2)
    } else {
        (56 + granules.ilog2() as usize - 18).min(CLASSES - 1)
    };
    // Nothing changes, but every use of a class as an index is known to be in range.
    class % CLASSES
}

/// The free chunks of a class.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// The first of its list.
    head: Option<Handle>,
    /// Chunks in the list, or [`CROWDED`].
    length: u32,
}

/// All bins of an allocator: short ones are lists in no order, linked through the chunks.
#[derive(Debug)]
pub(crate) struct Bins {
    of_class: [Bin; CLASSES],
    /// Bit `c` is set iff bin `c` is not empty.
    occupied: u64,
    /// Every chunk of the crowded bins; those of a class lie together in it.
    tree: BTreeSet<FreeChunk>,
    /// Chunks of each class in the tree.
    in_tree: [usize; CLASSES],
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            of_class: [Bin::default(); CLASSES],
            occupied: 0,
            tree: BTreeSet::new(),
            in_tree: [0; CLASSES],
        }
    }
}

impl Bins {
    /// Adds a free chunk of `size` bytes that is in no bin.
    #[inline(always)]
    pub(crate) fn insert(&mut self, chunks: &mut ChunkTable, handle: Handle, size: u64) {
        let class = class_of(size);
        self.occupied |= 1 << class;
        let bin = &mut self.of_class[class];
        if bin.length >= FEW {
            return self.insert_crowded(chunks, class, handle);
        }
        bin.length += 1;
        chunks.get_mut(handle).link = bin.head.replace(handle);
    }

    /// Takes a free chunk of `size` bytes out of its bin.
    #[inline(always)]
    pub(crate) fn remove(&mut self, chunks: &mut ChunkTable, handle: Handle, size: u64) {
        let class = class_of(size);
        let bin = self.of_class[class];
        if bin.length == CROWDED {
            return self.remove_crowded(chunks, class, FreeChunk::of(chunks, handle));
        }
        let mut before = None;
        let mut at = bin.head;
        while let Some(other) = at.filter(|&other| other != handle) {
            before = at;
            at = chunks.get(other).link;
        }
        self.unlink(chunks, class, before, handle);
    }

    /// Takes out the smallest free chunk of at least `size` bytes, the one with the lowest address among equals.
    ///
    /// # Cost
    /// At most [`FEW`] looks, or logarithmic in the free chunks.
    #[inline]
    pub(crate) fn take_best_fit(&mut self, chunks: &mut ChunkTable, size: u64) -> Option<FreeChunk> {
        // Within its own class a chunk may be too small; in every class above, all fit.
        let mut candidates = self.occupied & (u64::MAX << class_of(size));
        while candidates != 0 {
            let class = candidates.trailing_zeros() as usize % CLASSES;
            let bin = self.of_class[class];
            if bin.length == CROWDED {
                if let Some(best) = self.best_crowded(class, size) {
                    self.remove_crowded(chunks, class, best);
                    return Some(best);
                }
            } else if let Some((before, best)) = best_of_few(chunks, bin.head, size) {
                self.unlink(chunks, class, before, best.handle);
                return Some(best);
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// Whether a free chunk of at least `size` bytes is there.
    pub(crate) fn fits(&self, chunks: &ChunkTable, size: u64) -> bool {
        let own = class_of(size);
        let candidates = self.occupied & (u64::MAX << own);
        candidates & !(1 << own) != 0 || (candidates != 0 && self.largest_in(chunks, own) >= size)
    }

    /// Size of the largest free chunk, 0 if there is none.
    pub(crate) fn largest(&self, chunks: &ChunkTable) -> u64 {
        self.occupied.checked_ilog2().map_or(0, |class| self.largest_in(chunks, class as usize))
    }

    /// All free chunks in the order of best fit.
    pub(crate) fn sorted(&self, chunks: &ChunkTable) -> Vec<FreeChunk> {
        let lists = (0..CLASSES).flat_map(|class| self.list(chunks, class));
        let mut all: Vec<_> = lists.map(|handle| FreeChunk::of(chunks, handle)).collect();
        all.extend(&self.tree);
        all.sort_unstable();
        all
    }

    /// The chunks of a bin that is a list; none of a crowded one.
    fn list<'a>(&self, chunks: &'a ChunkTable, class: usize) -> impl Iterator<Item = Handle> + use<'a> {
        std::iter::successors(self.of_class[class].head, |&handle| chunks.get(handle).link)
    }

    /// Size of the largest chunk of `class`, the last that is not empty.
    fn largest_in(&self, chunks: &ChunkTable, class: usize) -> u64 {
        if self.of_class[class].length == CROWDED {
            return self.tree.last().map_or(0, |chunk| chunk.size);
        }
        self.list(chunks, class).map(|handle| chunks.get(handle).size).max().unwrap_or(0)
    }

    /// Takes a chunk out of a list.
    fn unlink(&mut self, chunks: &mut ChunkTable, class: usize, before: Option<Handle>, handle: Handle) {
        let after = chunks.get(handle).link;
        let bin = &mut self.of_class[class];
        bin.length -= 1;
        if let Some(before) = before {
            chunks.get_mut(before).link = after;
            return;
        }
        bin.head = after;
        if after.is_none() {
            self.occupied &= !(1 << class);
        }
    }

    /// Adds a chunk to a bin that is full as a list, or a tree already.
    #[cold]
    #[inline(never)]
    fn insert_crowded(&mut self, chunks: &mut ChunkTable, class: usize, handle: Handle) {
        if self.of_class[class].length != CROWDED {
            for other in self.list(chunks, class) {
                self.tree.insert(FreeChunk::of(chunks, other));
            }
            self.in_tree[class] = self.of_class[class].length as usize;
            self.of_class[class].length = CROWDED;
            self.of_class[class].head = None;
        }
        self.tree.insert(FreeChunk::of(chunks, handle));
        self.in_tree[class] += 1;
    }

    #[cold]
    #[inline(never)]
    fn best_crowded(&self, class: usize, size: u64) -> Option<FreeChunk> {
        let best = self.tree.range(FreeChunk::lowest(size)..).next()?;
        (class_of(best.size) == class).then_some(*best)
    }

    /// Takes a chunk out of a tree, which becomes a list again when half of a full list is left.
    #[cold]
    #[inline(never)]
    fn remove_crowded(&mut self, chunks: &mut ChunkTable, class: usize, chunk: FreeChunk) {
        self.tree.remove(&chunk);
        self.in_tree[class] -= 1;
        if self.in_tree[class] > FEW as usize / 2 {
            return;
        }
        let same_class = |other: &FreeChunk| class_of(other.size) == class;
        let above = self.tree.range(chunk..).take_while(|&other| same_class(other));
        let below = self.tree.range(..chunk).rev().take_while(|&other| same_class(other));
        let left: Vec<_> = above.chain(below).copied().collect();
        self.of_class[class].length = 0;
        for other in left {
            self.tree.remove(&other);
            self.insert(chunks, other.handle, other.size);
        }
    }
}

/// The best fit in a list that starts at `at`, and its neighbour before it there.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "which of several is best, no processor can guess")]
fn best_of_few(
    chunks: &ChunkTable,
    mut at: Option<Handle>,
    size: u64,
) -> Option<(Option<Handle>, FreeChunk)> {
    let mut best: Option<Handle> = None;
    let mut before_best = None;
    // How much larger than asked for, and where. What is too small is larger by far: the difference wraps.
    let mut best_excess = 1 << 63;
    let mut best_address = 0;
    let mut before = None;
    while let Some(handle) = at {
        let chunk = chunks.get(handle);
        let (excess, address) = (chunk.size.wrapping_sub(size), chunk.address);
        if (excess < best_excess) | ((excess == best_excess) & (address < best_address)) {
            best = at;
            before_best = before;
            best_excess = excess;
            best_address = address;
        }
        before = at;
        at = chunk.link;
    }
    best.map(|handle| (before_best, FreeChunk { size: size + best_excess, address: best_address, handle }))
}

#[cfg(test)]
mod tests;
