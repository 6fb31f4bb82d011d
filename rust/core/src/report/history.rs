//! The first events of a pool, recorded for a replay under other settings.
//!
//! Advice for the next run needs a replay of the program. A pool records its first few hundred allocations for that,
//! at four bytes per event, and drops the record when it makes more. The record also ends at an event that a second
//! run would not repeat by itself, such as a live change of the limit.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::tables::free_target::HELD;
use crate::units::GRANULE;

/// The most allocations that are recorded; a pool that makes more keeps no history.
pub(crate) const MAX_ALLOCATIONS: u64 = 512;

/// Bit of an event code: a free, with the number of the allocation in the other bits. Without it the code is the
/// needed chunk size in granules.
const FREE: u32 = 1 << 31;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request that needed a chunk of this many bytes was served. Allocations are numbered from 1.
    Allocated(u64),
    /// The allocation with this number was freed.
    Freed(u64),
}

/// The events of a pool from its start, while they are few and repeatable.
#[derive(Debug, Default)]
pub(crate) struct History {
    events: Vec<u32>,
    /// Whether recording has ended for good.
    ended: bool,
    /// The thread of all events: several threads may interleave differently in the next run.
    thread: Option<usize>,
    /// The needed size of the request that was refused after the last event.
    refused: Option<u64>,
}

impl History {
    /// Returns the events so far, if they are complete and only a request that needs `needed` bytes was refused.
    pub(crate) fn events_before(&self, needed: u64) -> Option<impl Iterator<Item = Event>> {
        let event = |&code: &u32| match code & FREE {
            0 => Event::Allocated(u64::from(code) * GRANULE),
            _ => Event::Freed(u64::from(code & !FREE)),
        };
        let is_complete = !self.ended && self.refused.is_none_or(|before| before == needed);
        is_complete.then(|| self.events.iter().map(event))
    }

    /// Records that allocation `id` was made; it needed a chunk of `needed` bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn allocated(&mut self, id: u64, needed: u64) {
        match u32::try_from(needed / GRANULE) {
            Ok(granules) if granules < FREE && id <= MAX_ALLOCATIONS => self.push(granules),
            _ => self.end(),
        }
    }

    /// Records that allocation `id` was freed.
    #[cold]
    #[inline(never)]
    pub(crate) fn freed(&mut self, id: Option<NonZeroU64>) {
        match u32::try_from(id.map_or(u64::MAX, |id| id.get() & !HELD)) {
            Ok(id) if id < FREE => self.push(FREE | id),
            _ => self.end(),
        }
    }

    /// Records that a request was refused. The same request may repeat; any other later event depends on the refusal,
    /// which a run under better settings would not see.
    pub(crate) fn refused(&mut self, needed: u64) {
        match self.refused {
            Some(before) if before != needed => self.end(),
            _ => self.refused = Some(needed),
        }
    }

    /// Ends the recording and drops all events.
    pub(crate) fn end(&mut self) {
        *self = Self { ended: true, ..Self::default() };
    }

    fn push(&mut self, code: u32) {
        let thread = this_thread();
        if self.refused.is_some()
            || thread.is_none()
            || self.thread.is_some_and(|first| Some(first) != thread)
        {
            self.end();
        }
        self.thread = thread;
        if !self.ended {
            self.events.push(code);
        }
    }
}

/// Returns a number that is unique among the live threads; `None` at the very end of a thread.
#[cfg(feature = "std")]
fn this_thread() -> Option<usize> {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.try_with(|mark| core::ptr::from_ref(mark).addr()).ok()
}

/// Without threads that the standard library knows, there are no pools that read the record.
#[cfg(not(feature = "std"))]
fn this_thread() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests;
