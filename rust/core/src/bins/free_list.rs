//! Short unordered lists of free chunks, linked through the chunks.
//!
//! A search visits every member, so users keep the lists short. Bins link their lists in both directions: a merge
//! removes an arbitrary member.

use crate::chunk::{Chunk, ChunkTable, Handle};

/// A free chunk. The derived order of the fields is best-fit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FreeChunk {
    pub(crate) size: u64,
    pub(crate) address: u64,
    pub(crate) handle: Handle,
}

impl FreeChunk {
    pub(crate) fn of(chunks: &ChunkTable, handle: Handle) -> Self {
        let chunk = chunks.get(handle);
        Self { size: chunk.size, address: chunk.address, handle }
    }
}

/// Iterates over the list that starts at `head`.
pub(crate) fn members(chunks: &ChunkTable, head: Option<Handle>) -> impl Iterator<Item = Handle> + use<'_> {
    core::iter::successors(head, |&handle| chunks.get(handle).link)
}

/// Returns the size of the largest member, 0 for an empty list.
pub(crate) fn largest(chunks: &ChunkTable, head: Option<Handle>) -> u64 {
    members(chunks, head).map(|handle| chunks.get(handle).size).max().unwrap_or(0)
}

/// Returns the smallest member of at least `size` bytes, the lowest address among equals.
// Not inlined: the search needs registers that the caller's fast path uses.
#[inline(never)]
pub(crate) fn best_fit(chunks: &ChunkTable, head: Option<Handle>, size: u64) -> Option<Handle> {
    // One branch-free 128-bit key: surplus size, then address; the branch would be unpredictable. For members that
    // are too small the subtraction wraps to a huge key.
    let mut least = 1_u128 << 127;
    let mut best = None;
    let mut at = head;
    while let Some(handle) = at {
        let chunk = chunks.get(handle);
        let key = u128::from(chunk.size.wrapping_sub(size)) << 64 | u128::from(chunk.address);
        if key < least {
            least = key;
            best = at;
        }
        at = chunk.link;
    }
    best
}

/// Adds a chunk at the front of a doubly linked list.
#[inline(always)]
pub(crate) fn push(chunks: &mut ChunkTable, head: &mut Option<Handle>, handle: Handle) {
    let after = head.replace(handle);
    let chunk = chunks.get_mut(handle);
    chunk.link = after;
    chunk.back = None;
    chunks.get_or_none_mut(after).back = Some(handle);
}

/// Removes a member of a doubly linked list. Branch-free, as a member's position is unpredictable.
#[inline(always)]
pub(crate) fn remove(chunks: &mut ChunkTable, head: &mut Option<Handle>, handle: Handle) {
    let Chunk { link: after, back: before, .. } = *chunks.get(handle);
    chunks.get_or_none_mut(after).back = before;
    let place = match before {
        Some(before) => &mut chunks.get_mut(before).link,
        None => head,
    };
    *place = after;
}

/// Removes a member of a singly linked list.
pub(crate) fn find_and_remove(chunks: &mut ChunkTable, head: &mut Option<Handle>, handle: Handle) {
    let after = chunks.get(handle).link;
    let mut at = *head;
    if at == Some(handle) {
        *head = after;
        return;
    }
    while let Some(before) = at {
        let chunk = chunks.get_mut(before);
        at = chunk.link;
        if at == Some(handle) {
            chunk.link = after;
            return;
        }
    }
    debug_assert!(false, "a chunk of this list");
}
