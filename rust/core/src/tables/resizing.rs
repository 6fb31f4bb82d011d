//! Changes of the size of an allocation, in place.

use super::Tables;
use crate::error::Shortage;
use crate::tables::decisions::Decision;
use crate::tables::free_target::FreeTarget;
use crate::units::round_up;

/// The use that a resize makes of the end of a chunk that the request no longer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It becomes free.
    Free,
    /// It stays in the chunk.
    Keep,
}

impl Tables {
    /// Changes the allocation at `address` to `bytes` bytes in a chunk of `needed` bytes: grows into the free chunk
    /// after it, or gives its tail back. Returns the size of its chunk.
    ///
    /// Returns `None` if no allocation that `target` matches starts there.
    ///
    /// # Errors
    /// If it cannot grow that far; nothing is changed.
    pub(crate) fn resize(
        &mut self,
        address: u64,
        target: FreeTarget,
        (bytes, needed): (u64, u64),
        tail: Tail,
    ) -> Option<Result<u64, Shortage>> {
        let handle = self.live.find(&self.chunks, address)?;
        let chunk = *self.chunks.get(handle);
        if !target.matches(chunk.id) {
            return None;
        }
        // The result depends on the chunk's size, which other settings change.
        self.history.end();
        let next = chunk.next.filter(|&next| self.chunks.get(next).is_free());
        let in_pages = self.elastic.is_some();
        let possible = match next {
            Some(next) if in_pages => self.possible_in_pages(&chunk, next),
            Some(next) => chunk.size + self.chunks.get(next).size,
            None => chunk.size,
        };
        if needed > possible {
            return Some(Err(Shortage::Neighbour { size: chunk.size, possible }));
        }
        if let Some(owner) = self.owners.owner_of(handle) {
            let (before, after) = (round_up(chunk.requested), round_up(bytes));
            if let Some(limit) = self.owners.exceeded_limit(owner, after.saturating_sub(before)) {
                return Some(Err(Shortage::Scope { size: chunk.size, limit }));
            }
            self.owners.account_resize(owner, before, after);
        }
        self.decisions.record(|| Decision::Resized { address, bytes });
        let mut size = chunk.size;
        if needed > size && in_pages {
            self.lengthen_in_pages(handle, needed);
            size = needed;
        } else if needed > size
            && let Some(next) = next
        {
            self.bins.remove(&mut self.chunks, next, possible - size);
            self.chunks.merge(handle, next, possible);
            if possible > needed {
                let rest = self.chunks.split(handle, needed, possible - needed);
                self.bins.insert(&mut self.chunks, rest, possible - needed);
            }
            size = needed;
        } else if needed < size && tail == Tail::Free {
            let rest = self.chunks.split(handle, needed, size - needed);
            if in_pages {
                self.merge_pages(rest, None, chunk.next, &[]);
            } else {
                self.merge_with_neighbours(rest, size - needed, None, chunk.next);
            }
            size = needed;
        }
        self.counters.account_resize((chunk.requested, chunk.size), (bytes, size));
        self.chunks.get_mut(handle).requested = bytes;
        Some(Ok(size))
    }
}
