//! A few free chunks in no order, linked through the chunks themselves.
//!
//! Searched from end to end, so whoever has one keeps it short.

use crate::chunk::{ChunkTable, Handle};

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

/// A member of a list, and the one before it there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) handle: Handle,
    pub(crate) before: Option<Handle>,
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
pub(crate) fn best_fit(chunks: &ChunkTable, head: Option<Handle>, size: u64) -> Option<Member> {
    // How much larger than asked for, then where: one number, as which is less no processor can guess. What is
    // too small is larger by far: the difference wraps.
    let mut least = 1_u128 << 127;
    let mut best = None;
    let mut before_best = None;
    let (mut before, mut at) = (None, head);
    while let Some(handle) = at {
        let chunk = chunks.get(handle);
        let key = u128::from(chunk.size.wrapping_sub(size)) << 64 | u128::from(chunk.address);
        if key < least {
            least = key;
            best = at;
            before_best = before;
        }
        before = at;
        at = chunk.link;
    }
    best.map(|handle| Member { handle, before: before_best })
}

/// Takes a chunk out of the list; false if it is not there.
#[inline]
pub(crate) fn remove(chunks: &mut ChunkTable, head: &mut Option<Handle>, handle: Handle) -> bool {
    if *head == Some(handle) {
        *head = chunks.get(handle).link;
        return true;
    }
    remove_behind(chunks, *head, handle)
}

/// Takes a chunk out of what comes after `head`; false if it is not there.
#[inline]
pub(crate) fn remove_behind(chunks: &mut ChunkTable, head: Option<Handle>, handle: Handle) -> bool {
    let mut at = head;
    while let Some(before) = at {
        at = chunks.get(before).link;
        if at == Some(handle) {
            chunks.get_mut(before).link = chunks.get(handle).link;
            return true;
        }
    }
    false
}

/// Takes the member after `before`, or the first, out of the list.
#[inline]
pub(crate) fn unlink(
    chunks: &mut ChunkTable,
    head: &mut Option<Handle>,
    before: Option<Handle>,
    handle: Handle,
) {
    let after = chunks.get(handle).link;
    // A place to write to, which no processor need guess.
    let place = match before {
        Some(before) => &mut chunks.get_mut(before).link,
        None => head,
    };
    *place = after;
}
