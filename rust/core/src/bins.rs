//! Bins: all free chunks, grouped by size class.
//!
//! Every free chunk is in exactly one bin; a chunk in use is in none. Size classes are consecutive ranges. The best
//! fit (the smallest sufficient chunk, and the lowest address among equals) is therefore in the bin of the request's
//! class or in the first non-empty bin above.
//!
//! ```text
//! size             256 B          4 MiB          512 MiB
//! class            0 … 55         56 … 62        63
//! per doubling     four           one            all the rest
//! ```
//!
//! Longer than 300 lines: the lists of the bins and the tree beside each are one structure.

use crate::bins::free_list::FreeChunk;
use crate::bins::trie::{NodeId, Tries};
use crate::chunk::branch_hint::cold_path;
use crate::chunk::{ChunkTable, Handle};
use crate::units::GRANULE;
use alloc::vec::Vec;

/// The number of size classes: the bits of one word, so that one instruction finds the first non-empty bin.
const CLASSES: usize = 64;

/// The longest list of a bin without a tree. Most bins of recorded programs have one or two chunks and sometimes a
/// few dozen, and insertion into an unordered list is cheapest. A list of this length takes about twice as long as a
/// tree; beyond it a tree bounds the cost.
const MAX_LIST: u32 = 48;

/// The longest list of a bin that has a tree. Recently freed chunks are often reused first, and the list saves them
/// the insertion into the tree.
const MAX_LIST_BESIDE_TREE: u32 = 6;

// The chunks of a dissolved tree fit into the list, however full it is; and a list beside a tree never has as much
// room as a list with a single chunk, which `has_single_chunk` relies on.
const _: () =
    assert!(MAX_LIST - MAX_LIST_BESIDE_TREE >= trie::MAX_LEAF as u32 && MAX_LIST_BESIDE_TREE < MAX_LIST - 1);

/// Sizes from here on have one class per doubling: large chunks are few.
const LARGE: u64 = 4 << 20;
/// The number of classes below [`LARGE`].
const SMALL_CLASSES: usize = 4 * (LARGE / GRANULE).ilog2() as usize;

/// Returns the size class of a chunk of `size` bytes; the class never decreases with the size.
#[expect(clippy::cast_possible_truncation, reason = "at most 7")]
#[inline(always)]
fn class_of(size: u64) -> usize {
    debug_assert!(size >= GRANULE);
    // A size is never 0; `| 1` lets the compiler drop the check for it.
    let doublings = (size | 1).ilog2();
    let class = if size < LARGE {
        // 4 to 7, from the two bits after the leading one. A lookup table is no faster and takes cache space.
        let quarters = (size << 2) >> doublings;
        (4 * doublings as usize + quarters as usize).wrapping_sub(4 * GRANULE.ilog2() as usize + 4)
    } else {
        cold_path();
        (SMALL_CLASSES + (doublings - LARGE.ilog2()) as usize).min(CLASSES - 1)
    };
    // No effect on the value; it removes the bounds check of every use as an index.
    class % CLASSES
}

/// The unordered list of a size class. A class with many free chunks keeps most of them in its tree.
#[derive(Debug, Clone, Copy)]
struct Bin {
    /// The first chunk of the list.
    head: Option<Handle>,
    /// How many more chunks the list takes.
    room: u32,
}

impl Bin {
    const EMPTY: Self = Self { head: None, room: MAX_LIST };

    /// Returns whether the bin has exactly one chunk and no tree.
    fn has_single_chunk(self) -> bool {
        self.room == MAX_LIST - 1
    }
}

/// The last answer of a tree and the range of sizes it holds for: programs request few distinct sizes.
#[derive(Debug, Clone, Copy)]
struct CachedBestFit {
    from: u64,
    upto: u64,
    best: Option<FreeChunk>,
}

impl CachedBestFit {
    /// An empty range: no cached answer.
    const NOTHING: Self = Self { from: 1, upto: 0, best: None };

    /// Caches the answer for `size`: it holds for all sizes up to that of the chunk, or for all larger sizes if there
    /// is none.
    fn answer(size: u64, best: Option<FreeChunk>) -> Self {
        Self { from: size, upto: best.map_or(u64::MAX, |best| best.size), best }
    }
}

/// All bins of an allocator. The lists are linked through the chunks.
#[derive(Debug)]
pub(crate) struct Bins {
    of_class: [Bin; CLASSES],
    /// The tree of each class that has one. A separate array, because it is rarely read.
    roots: [Option<NodeId>; CLASSES],
    /// Bit `c` is set iff bin `c` is not empty.
    occupied: u64,
    tries: Tries,
    /// The cached answer of each tree. Invalidated when the tree gains a chunk or loses the cached one.
    cached_best_fit: [CachedBestFit; CLASSES],
}

impl Default for Bins {
    fn default() -> Self {
        Self {
            of_class: [Bin::EMPTY; CLASSES],
            roots: [None; CLASSES],
            occupied: 0,
            tries: Tries::default(),
            cached_best_fit: [CachedBestFit::NOTHING; CLASSES],
        }
    }
}

impl Bins {
    /// Adds a free chunk of `size` bytes to its bin.
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

    /// Removes a free chunk of `size` bytes from its bin.
    #[inline(always)]
    pub(crate) fn remove(&mut self, chunks: &mut ChunkTable, handle: Handle, size: u64) {
        let class = class_of(size);
        if self.of_class[class].has_single_chunk() {
            self.clear(class);
        } else if chunks.get(handle).back == Some(handle) {
            self.remove_from_tree(chunks, class, handle);
        } else {
            self.remove_from_list(chunks, class, handle);
        }
    }

    /// Removes and returns the best fit: the smallest free chunk of at least `size` bytes, at the lowest address
    /// among equals.
    ///
    /// # Cost
    /// At most [`MAX_LIST`] comparisons, or one step for each digit of a size and an address; twice that if the
    /// request's own class has no fit.
    #[inline(always)]
    pub(crate) fn take_best_fit(&mut self, chunks: &mut ChunkTable, size: u64) -> Option<FreeChunk> {
        // A chunk of the request's own class may be too small; chunks of higher classes always fit.
        let mut candidates = self.occupied & (u64::MAX << class_of(size));
        while candidates != 0 {
            let class = candidates.trailing_zeros() as usize % CLASSES;
            let bin = self.of_class[class];
            // The most common case: no search and no unlinking.
            if bin.has_single_chunk()
                && let Some(only) = bin.head
            {
                let chunk = FreeChunk::of(chunks, only);
                if chunk.size >= size {
                    self.clear(class);
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

    /// Returns whether there is a free chunk of at least `size` bytes.
    pub(crate) fn fits(&self, chunks: &ChunkTable, size: u64) -> bool {
        let own = class_of(size);
        let candidates = self.occupied & (u64::MAX << own);
        candidates & !(1 << own) != 0 || (candidates != 0 && self.largest_in(chunks, own) >= size)
    }

    /// Returns the size of the largest free chunk, 0 if there is none.
    pub(crate) fn largest(&self, chunks: &ChunkTable) -> u64 {
        self.occupied.checked_ilog2().map_or(0, |class| self.largest_in(chunks, class as usize))
    }

    /// Returns up to `count` free chunks from the highest classes, in no particular order.
    pub(crate) fn largest_chunks(&self, chunks: &ChunkTable, count: usize) -> Vec<Handle> {
        let mut found = Vec::new();
        for (bin, root) in self.of_class.iter().zip(self.roots).rev() {
            found.extend(free_list::members(chunks, bin.head).take(count - found.len()));
            if let Some(root) = root {
                self.tries.collect_largest(chunks, root, &mut found, count);
            }
        }
        found
    }

    /// Visits up to about `count` free chunks of at least `size` bytes from the lowest classes, in no particular order.
    /// Of a tree it visits the best fit alone.
    pub(crate) fn visit_from(
        &self,
        chunks: &ChunkTable,
        size: u64,
        count: usize,
        mut visit: impl FnMut(Handle),
    ) {
        let mut visited = 0;
        let mut classes = self.occupied & (u64::MAX << class_of(size));
        while classes != 0 {
            let class = classes.trailing_zeros() as usize % CLASSES;
            classes &= classes - 1;
            let listed = free_list::members(chunks, self.of_class[class].head);
            let best = self.roots[class].and_then(|root| self.tries.best(chunks, root, size));
            for handle in listed.chain(best.map(|best| best.handle)) {
                if chunks.get(handle).size >= size {
                    visited += 1;
                    visit(handle);
                }
            }
            if visited >= count {
                break;
            }
        }
    }

    /// Returns all free chunks of at least `size` bytes, in no particular order.
    pub(crate) fn all_from(&self, chunks: &ChunkTable, size: u64) -> Vec<Handle> {
        let mut found = Vec::new();
        for (bin, root) in self.of_class.iter().zip(self.roots).skip(class_of(size)) {
            found.extend(free_list::members(chunks, bin.head));
            if let Some(root) = root {
                self.tries.collect(chunks, root, &mut found);
            }
        }
        found.retain(|&handle| chunks.get(handle).size >= size);
        found
    }

    /// Returns all free chunks in best-fit order.
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

    /// Returns whether every list is linked consistently in both directions and every chunk of a tree links to
    /// itself.
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

    /// Returns the size of the largest chunk of `class`.
    fn largest_in(&self, chunks: &ChunkTable, class: usize) -> u64 {
        let listed = free_list::largest(chunks, self.of_class[class].head);
        listed.max(self.roots[class].map_or(0, |root| self.tries.largest(chunks, root)))
    }

    /// Removes the only chunk of a bin.
    #[inline(always)]
    fn clear(&mut self, class: usize) {
        self.of_class[class] = Bin::EMPTY;
        self.occupied &= !(1 << class);
    }

    /// Removes a chunk from the list of a bin that has more chunks.
    #[inline(always)]
    fn remove_from_list(&mut self, chunks: &mut ChunkTable, class: usize, handle: Handle) {
        let bin = &mut self.of_class[class];
        debug_assert!(!bin.has_single_chunk());
        bin.room += 1;
        free_list::remove(chunks, &mut bin.head, handle);
    }

    /// Moves the full list of a bin into its tree.
    #[cold]
    #[inline(never)]
    fn list_to_tree(&mut self, chunks: &mut ChunkTable, class: usize) {
        self.cached_best_fit[class] = CachedBestFit::NOTHING;
        let bin = &mut self.of_class[class];
        let mut at = bin.head.take();
        bin.room = MAX_LIST_BESIDE_TREE;
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

    /// Removes and returns the best fit of the bin's tree, unless `listed` is a better fit.
    #[cold]
    #[inline(never)]
    fn take_from_tree(
        &mut self,
        chunks: &mut ChunkTable,
        class: usize,
        size: u64,
        listed: Option<Handle>,
    ) -> Option<Handle> {
        let cached_best_fit = &mut self.cached_best_fit[class];
        if !(cached_best_fit.from..=cached_best_fit.upto).contains(&size) {
            *cached_best_fit = CachedBestFit::answer(size, self.tries.best(chunks, self.roots[class]?, size));
        }
        let best = cached_best_fit.best?;
        if listed.is_some_and(|listed| FreeChunk::of(chunks, listed) < best) {
            return None;
        }
        self.remove_from_tree(chunks, class, best.handle);
        Some(best.handle)
    }

    /// Removes a chunk from the bin's tree. A tree with few chunks left is dissolved into the list.
    #[cold]
    #[inline(never)]
    fn remove_from_tree(&mut self, chunks: &mut ChunkTable, class: usize, handle: Handle) {
        if self.cached_best_fit[class].best.is_some_and(|best| best.handle == handle) {
            self.cached_best_fit[class] = CachedBestFit::NOTHING;
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
        bin.room += MAX_LIST - MAX_LIST_BESIDE_TREE;
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

pub(crate) mod free_list;
#[cfg(test)]
mod tests;
mod trie;
