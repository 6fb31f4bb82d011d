//! The first events of a pool, kept so that they can be played again under other settings.
//!
//! Advice for the next run of a program is found by playing the program. A pool keeps its first few hundred
//! allocations for that, at four bytes an event; a pool that makes more drops them all. The history also ends when
//! something happens that a second run would not repeat by itself, such as a live change of the limit.

use std::num::NonZeroU64;

use crate::claim::HELD;
use crate::units::GRANULE;

/// A pool that makes more allocations than this keeps no history.
pub(crate) const LONGEST: u64 = 512;

/// The bit that marks a free; the other bits are the number of the allocation. Without it they are the size of the
/// chunk that was needed, in granules.
const FREE: u32 = 1 << 31;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request that needed a chunk of so many bytes was served. Allocations are numbered from 1.
    Allocated(u64),
    /// The allocation of this number was freed.
    Freed(u64),
}

/// The events of a pool from its start, while they are few and a second run would repeat them.
#[derive(Debug, Default)]
pub(crate) struct History {
    events: Vec<u32>,
    /// It is not complete, and never will be.
    ended: bool,
    /// The thread of all events: several threads may take turns in another order next time.
    thread: Option<usize>,
    /// The size that was needed by the request that was refused after the last event.
    refused: Option<u64>,
}

impl History {
    /// The events so far, if they are all and no request but one that needs `needed` bytes was refused.
    pub(crate) fn events_before(&self, needed: u64) -> Option<impl Iterator<Item = Event>> {
        let event = |&code: &u32| match code & FREE {
            0 => Event::Allocated(u64::from(code) * GRANULE),
            _ => Event::Freed(u64::from(code & !FREE)),
        };
        let is_complete = !self.ended && self.refused.is_none_or(|before| before == needed);
        is_complete.then(|| self.events.iter().map(event))
    }

    /// Allocation `id` got a chunk; it needed `needed` bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn allocated(&mut self, id: u64, needed: u64) {
        match u32::try_from(needed / GRANULE) {
            Ok(granules) if granules < FREE && id <= LONGEST => self.push(granules),
            _ => self.end(),
        }
    }

    /// Allocation `id` was freed.
    #[cold]
    #[inline(never)]
    pub(crate) fn freed(&mut self, id: Option<NonZeroU64>) {
        match u32::try_from(id.map_or(u64::MAX, |id| id.get() & !HELD)) {
            Ok(id) if id < FREE => self.push(FREE | id),
            _ => self.end(),
        }
    }

    /// A request that needed `needed` bytes was refused. The same request may be repeated; any other event after it
    /// depends on the refusal, which a second run under better settings does not see.
    pub(crate) fn refused(&mut self, needed: u64) {
        match self.refused {
            Some(before) if before != needed => self.end(),
            _ => self.refused = Some(needed),
        }
    }

    /// Drops all events.
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

/// A number that no other living thread has; none at the very end of a thread.
fn this_thread() -> Option<usize> {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.try_with(|mark| std::ptr::from_ref(mark).addr()).ok()
}

#[cfg(test)]
mod tests;
