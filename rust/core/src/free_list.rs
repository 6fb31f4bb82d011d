//! A few free chunks in no order, linked through the chunks themselves.
//!
//! Searched from end to end, so whoever has one keeps it short. Bins link theirs both ways, as a merge takes out
//! whichever chunk lies beside the one that was freed.

use crate::chunk::{Chunk, ChunkTable, Handle};

/// A free chunk. The order of the fields is the order of best fit.
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

/// The chunks of the list that starts at `head`.
pub(crate) fn members(chunks: &ChunkTable, head: Option<Handle>) -> impl Iterator<Item = Handle> + use<'_> {
    std::iter::successors(head, |&handle| chunks.get(handle).link)
}

/// Size of the largest member, 0 if there is none.
pub(crate) fn largest(chunks: &ChunkTable, head: Option<Handle>) -> u64 {
    members(chunks, head).map(|handle| chunks.get(handle).size).max().unwrap_or(0)
}

/// The smallest member of at least `size` bytes, the lowest among equals.
// Not where it is called: what it takes to search would not be there for the rest.
#[inline(never)]
pub(crate) fn best_fit(chunks: &ChunkTable, head: Option<Handle>, size: u64) -> Option<Handle> {
    // How much larger than asked for, then where: one number, as which is less no processor can guess. What is
    // too small is larger by far: the difference wraps.
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

/// Puts a chunk in front of a list that is linked both ways.
#[inline(always)]
pub(crate) fn push(chunks: &mut ChunkTable, head: &mut Option<Handle>, handle: Handle) {
    let after = head.replace(handle);
    let chunk = chunks.get_mut(handle);
    chunk.link = after;
    chunk.back = None;
    chunks.get_or_none_mut(after).back = Some(handle);
}

/// Takes a member out of a list that is linked both ways. No branch: where a member is no processor can guess.
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

/// Takes a member out of a list that is linked one way.
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
