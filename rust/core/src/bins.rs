//! Free chunks, by size class.
//!
//! Every free chunk is in exactly one bin, and no chunk in use is in any. Size classes are consecutive
//! ranges, so the best fit, the smallest chunk that is large enough and the lowest among equals, is in the bin
//! of the request's own class or in the first bin above that is not empty.
//!
//! ```text
//! from             256 B          4 MiB          512 MiB
//! class            0 … 55         56 … 62        63
//! to a doubling    four           one            all the rest
//! ```

use crate::chunk::{ChunkTable, Handle};
use crate::free_list::{self, FreeChunk};
use crate::hint::cold_path;
use crate::trie::{self, NodeId, Tries};
use crate::units::GRANULE;

/// As many as a word has bits: one instruction finds the first bin that is not empty.
const CLASSES: usize = 64;

/// The most chunks of a list, which is searched from end to end. Recorded programs have one or two in most bins, and
/// some a few dozen now and then; putting a chunk into no order is cheapest. Beyond this a tree keeps the cost from
/// growing with the holes: a list so long takes about twice what a tree does.
const FEW: u32 = 48;

/// The most chunks of the list of a bin that has a tree: what was freed last is often wanted first, and is
/// spared the way into the tree and out of it.
const LATEST: u32 = 6;

// What is left of a tree finds room in the list, however full that is; and a list beside a tree has never so much
// room as one of a single chunk.
const _: () = assert!(FEW - LATEST >= trie::FEW as u32 && LATEST < FEW - 1);

/// From this size on, the classes are wide: few chunks are so large.
const LARGE: u64 = 4 << 20;
/// Classes below that.
const SMALL_CLASSES: usize = 4 * (LARGE / GRANULE).ilog2() as usize;

/// The size class of a chunk of `size` bytes; larger sizes never have smaller classes.
#[expect(clippy::cast_possible_truncation, reason = "at most 7")]
#[inline(always)]
fn class_of(size: u64) -> usize {
    debug_assert!(size >= GRANULE);
    // A size is never 0, and so the processor need not ask.
    let doublings = (size | 1).ilog2();
    let class = if size < LARGE {
        // From 4 to 7, by the two bits after the first. A table would be no faster, and one more thing to be in a
        // cache.
        let quarters = (size << 2) >> doublings;
        (4 * doublings as usize + quarters as usize).wrapping_sub(4 * GRANULE.ilog2() as usize + 4)
    } else {
        cold_path();
        (SMALL_CLASSES + (doublings - LARGE.ilog2()) as usize).min(CLASSES - 1)
    };
    // Nothing changes, but every use of a class as an index is known to be in range.
    class % CLASSES
}

/// The list of a class, in no order. Of many free chunks most are in the tree of the class instead.
#[derive(Debug, Clone, Copy)]
struct Bin {
    /// The first of the list.
    head: Option<Handle>,
    /// How many more chunks the list takes.
    room: u32,
}

impl Bin {
    const EMPTY: Self = Self { head: None, room: FEW };

    /// Whether there is exactly one chunk, and no tree.
    fn has_one(self) -> bool {
        self.room == FEW - 1
    }
}

/// What a tree gave last, and for which sizes it would give that again: programs ask for few sizes, over and over.
#[derive(Debug, Clone, Copy)]
struct Remembered {
    from: u64,
    upto: u64,
    best: Option<FreeChunk>,
}

impl Remembered {
    /// No size is between these.
    const NOTHING: Self = Self { from: 1, upto: 0, best: None };

    /// The answer for `size` holds for all sizes up to that of the chunk, or, if there is none, for all above.
    fn answer(size: u64, best: Option<FreeChunk>) -> Self {
        Self { from: size, upto: best.map_or(u64::MAX, |best| best.size), best }
    }
}

/// All bins of an allocator. Lists are linked through the chunks.
#[derive(Debug)]
pub(crate) struct Bins {
    of_class: [Bin; CLASSES],
    /// The tree of each class that has one. Apart: most of the time nobody asks.
    roots: [Option<NodeId>; CLASSES],
    /// Bit `c` is set iff bin `c` is not empty.
    occupied: u64,
    tries: Tries,
    /// Of the tree of each bin. Forgotten when the tree gains a chunk, or loses the one that is remembered.
    remembered: [Remembered; CLASSES],
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            of_class: [Bin::EMPTY; CLASSES],
            roots: [None; CLASSES],
            occupied: 0,
            tries: Tries::default(),
            remembered: [Remembered::NOTHING; CLASSES],
        }
    }
}

impl Bins {
    /// Adds a free chunk of `size` bytes that is in no bin.
    #[inline(always)]
    pub(crate) fn insert(&mut self, chunks: &mut ChunkTable, handle: Handle, size: u64) {
        let class = class_of(size);
        if self.of_class[class].room == 0 {
            self.list_to_tree(chunks, class);
        }
        self.occupied |= 1 << class;
        let bin = &mut self.of_class[class];
        bin.room -= 1;
        free_list::push(chunks, &mut bin.head, handle);
    }

    /// Takes a free chunk of `size` bytes out of its bin.
    #[inline(always)]
    pub(crate) fn remove(&mut self, chunks: &mut ChunkTable, handle: Handle, size: u64) {
        let class = class_of(size);
        if self.of_class[class].has_one() {
            self.empty(class);
        } else if chunks.get(handle).back == Some(handle) {
            self.remove_from_tree(chunks, class, handle);
        } else {
            self.remove_from_list(chunks, class, handle);
        }
    }

    /// Takes out the smallest free chunk of at least `size` bytes, the one with the lowest address among equals.
    ///
    /// # Cost
    /// At most [`FEW`] looks, or one to every digit of a size and an address; twice that where nothing in its own class
    /// fits.
    #[inline]
    pub(crate) fn take_best_fit(&mut self, chunks: &mut ChunkTable, size: u64) -> Option<FreeChunk> {
        // Within its own class a chunk may be too small; in every class above, all fit.
        let mut candidates = self.occupied & (u64::MAX << class_of(size));
        while candidates != 0 {
            let class = candidates.trailing_zeros() as usize % CLASSES;
            let bin = self.of_class[class];
            // The way of most: no search, and nothing to unlink.
            if bin.has_one()
                && let Some(only) = bin.head
            {
                let chunk = FreeChunk::of(chunks, only);
                if chunk.size >= size {
                    self.empty(class);
                    return Some(chunk);
                }
                candidates &= candidates - 1;
                continue;
            }
            let listed = free_list::best_fit(chunks, bin.head, size);
            if self.roots[class].is_some()
                && let Some(best) = self.take_from_tree(chunks, class, size, listed)
            {
                return Some(FreeChunk::of(chunks, best));
            }
            if let Some(handle) = listed {
                let chunk = FreeChunk::of(chunks, handle);
                self.remove_from_list(chunks, class, handle);
                return Some(chunk);
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

    /// So many free chunks, or all, from the highest classes; in no order, and of the last class any.
    pub(crate) fn some_of_the_largest(&self, chunks: &ChunkTable, count: usize) -> Vec<Handle> {
        let mut found = Vec::new();
        for (bin, root) in self.of_class.iter().zip(self.roots).rev() {
            found.extend(free_list::members(chunks, bin.head).take(count - found.len()));
            if let Some(root) = root {
                self.tries.collect_largest(chunks, root, &mut found, count);
            }
        }
        found
    }

    /// All free chunks in the order of best fit.
    pub(crate) fn sorted(&self, chunks: &ChunkTable) -> Vec<FreeChunk> {
        let mut all = Vec::new();
        for (bin, root) in self.of_class.iter().zip(self.roots) {
            all.extend(free_list::members(chunks, bin.head));
            if let Some(root) = root {
                self.tries.collect(chunks, root, &mut all);
            }
        }
        let mut all: Vec<_> = all.into_iter().map(|handle| FreeChunk::of(chunks, handle)).collect();
        all.sort_unstable();
        all
    }

    /// Whether every member of a list names the one before it, and every chunk of a tree itself.
    pub(crate) fn are_linked(&self, chunks: &ChunkTable) -> bool {
        self.of_class.iter().zip(self.roots).all(|(bin, root)| {
            let mut before = None;
            let listed = free_list::members(chunks, bin.head)
                .all(|handle| chunks.get(handle).back == before.replace(handle));
            let mut treed = Vec::new();
            if let Some(root) = root {
                self.tries.collect(chunks, root, &mut treed);
            }
            listed && treed.into_iter().all(|handle| chunks.get(handle).back == Some(handle))
        })
    }

    /// Size of the largest chunk of `class`.
    fn largest_in(&self, chunks: &ChunkTable, class: usize) -> u64 {
        let listed = free_list::largest(chunks, self.of_class[class].head);
        listed.max(self.roots[class].map_or(0, |root| self.tries.largest(chunks, root)))
    }

    /// Takes the only chunk out of a bin that has one.
    #[inline(always)]
    fn empty(&mut self, class: usize) {
        self.of_class[class] = Bin::EMPTY;
        self.occupied &= !(1 << class);
    }

    /// Takes a chunk out of a bin's list, where it is not the bin's only one.
    #[inline(always)]
    fn remove_from_list(&mut self, chunks: &mut ChunkTable, class: usize, handle: Handle) {
        let bin = &mut self.of_class[class];
        debug_assert!(!bin.has_one());
        bin.room += 1;
        free_list::remove(chunks, &mut bin.head, handle);
    }

    /// Moves a full list into the bin's tree.
    #[cold]
    #[inline(never)]
    fn list_to_tree(&mut self, chunks: &mut ChunkTable, class: usize) {
        self.remembered[class] = Remembered::NOTHING;
        let bin = &mut self.of_class[class];
        let mut at = bin.head.take();
        bin.room = LATEST;
        let Some(mut root) = self.roots[class] else {
            self.roots[class] = at.map(|head| self.tries.of_list(chunks, head));
            return;
        };
        while let Some(handle) = at {
            at = chunks.get(handle).link;
            root = self.tries.insert(chunks, root, handle);
        }
        self.roots[class] = Some(root);
    }

    /// Takes the best fit out of the bin's tree if it is better than the one of the list.
    #[cold]
    #[inline(never)]
    fn take_from_tree(
        &mut self,
        chunks: &mut ChunkTable,
        class: usize,
        size: u64,
        listed: Option<Handle>,
    ) -> Option<Handle> {
        let remembered = &mut self.remembered[class];
        if !(remembered.from..=remembered.upto).contains(&size) {
            *remembered = Remembered::answer(size, self.tries.best(chunks, self.roots[class]?, size));
        }
        let best = remembered.best?;
        if listed.is_some_and(|listed| FreeChunk::of(chunks, listed) < best) {
            return None;
        }
        self.remove_from_tree(chunks, class, best.handle);
        Some(best.handle)
    }

    /// Takes a chunk out of the bin's tree. What is left joins the list when it is little enough.
    #[cold]
    #[inline(never)]
    fn remove_from_tree(&mut self, chunks: &mut ChunkTable, class: usize, handle: Handle) {
        if self.remembered[class].best.is_some_and(|best| best.handle == handle) {
            self.remembered[class] = Remembered::NOTHING;
        }
        let bin = &mut self.of_class[class];
        let root =
            self.roots[class].expect("a free chunk that is not in the list of its class is in the tree");
        let mut at = match self.tries.remove(chunks, root, handle) {
            Ok(root) => {
                self.roots[class] = Some(root);
                return;
            }
            Err(left) => left,
        };
        self.roots[class] = None;
        bin.room += FEW - LATEST;
        while let Some(handle) = at {
            at = chunks.get(handle).link;
            bin.room -= 1;
            free_list::push(chunks, &mut bin.head, handle);
        }
        if bin.head.is_none() {
            self.occupied &= !(1 << class);
        }
    }
}

#[cfg(test)]
mod tests;
