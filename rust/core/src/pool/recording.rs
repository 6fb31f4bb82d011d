//! Recordings: the events of pools as they happen, in a buffer that another thread may empty.
//!
//! A recorded pool has a fast path of its own: a pool that is not recorded does nothing for recordings. Events are added
//! under the lock of the pool, so their order is that of its decisions.

mod batch;
mod dropped;
mod log;
mod writer;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use self::log::{EventLog, Keep, RecentEvents};
use self::writer::Writer;

use super::limits::scope::tag_of_thread;
use super::state::State;
use super::{Pool, guarding::former};
use crate::chunk::Chunk;
use crate::error::Unusable;
use crate::tables::Allocation;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub enum EventKind {
    /// An allocation was made, or was live when the recording began.
    Allocated,
    /// An allocation was freed.
    Freed,
    /// A request was refused.
    Refused,
}

/// An event of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct PoolEvent {
    /// A kind of event.
    pub kind: EventKind,
    /// Nanoseconds since the log was made.
    pub nanoseconds: u64,
    /// The pool's [`number`](Pool::number).
    pub pool: u64,
    /// The allocation's number within the pool; 0 for a refusal.
    pub id: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// The thread of the call, numbered from 0 on. A deferred free is of the thread that runs it.
    pub thread: u32,
    /// The tag of that thread: see [`set_tag`](crate::set_tag).
    pub tag: Option<Arc<str>>,
}

/// Returns the number of this thread in the process.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: Cell<u32> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// The logs of one pool.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    pool: u64,
    writers: Vec<Writer>,
}

impl Recordings {
    pub(super) fn new(pool: u64) -> Self {
        Self { pool, writers: Vec::new() }
    }

    /// Adds an event to all logs.
    #[inline]
    pub(super) fn add(&mut self, kind: EventKind, id: u64, bytes: u64) {
        let (thread, tag) = (thread_number(), tag_of_thread());
        for writer in &mut self.writers {
            writer.add(kind, id, bytes, thread, tag.as_ref());
        }
    }

    pub(super) fn are_running(&self) -> bool {
        !self.writers.is_empty()
    }

    /// Adds a refusal to all logs; returns them for [`RefusalLogs::tell`].
    #[cold]
    fn add_refusal(&mut self, bytes: u64) -> RefusalLogs {
        if self.are_running() {
            self.add(EventKind::Refused, 0, bytes);
        }
        RefusalLogs(self.writers.iter().map(|writer| writer.log().clone()).collect())
    }
}

/// The logs that received a refusal.
#[must_use]
pub(super) struct RefusalLogs(Vec<EventLog>);

impl RefusalLogs {
    /// Calls the actions of [`EventLog::on_refusal`]. The caller has no locks.
    pub(super) fn notify(self) {
        self.0.iter().for_each(EventLog::notify_of_refusal);
    }
}

impl State {
    /// Counts and records a refusal. The caller then releases the pool's lock and calls [`RefusalLogs::notify`].
    #[cold]
    pub(super) fn account_refusal(&mut self, bytes: u64) -> RefusalLogs {
        self.allocator.counters.account_refuse();
        self.recordings.add_refusal(bytes)
    }

    /// Records that an allocation was made; one of zero bytes is none.
    pub(super) fn record_allocation(&mut self, allocation: &Allocation) {
        if self.recordings.are_running() && allocation.id != 0 {
            self.recordings.add(EventKind::Allocated, allocation.id, allocation.requested);
        }
    }

    /// Returns the allocation at `address` while a recording runs, for [`State::record_free`].
    pub(super) fn recorded(&self, address: u64) -> Option<Allocation> {
        if !self.recordings.are_running() {
            return None;
        }
        let start = self.chunk_start(address)?;
        let chunk: Chunk =
            *self.allocator.chunks.get(self.allocator.live.find(&self.allocator.chunks, start)?);
        Some(former(&chunk, address))
    }

    /// Records that an allocation was freed.
    pub(super) fn record_free(&mut self, freed: &Allocation) {
        self.recordings.add(EventKind::Freed, freed.id, freed.requested);
    }
}

impl Pool {
    /// Adds every following event of the pool to `log`, after the allocations that are live now, by address.
    ///
    /// Allocations of zero bytes are no events. An allocation that is
    /// resized in place is freed and made anew, under the same number.
    ///
    /// # Errors
    /// In a forked child.
    pub fn start_recording(&self, log: &EventLog) -> Result<(), Unusable> {
        self.with_settled_state(|state| {
            let (thread, tag) = (thread_number(), tag_of_thread());
            let mut writer = Writer::new(log, state.recordings.pool);
            for allocation in state.live_allocations() {
                let Allocation { id, requested, .. } = allocation;
                writer.add(EventKind::Allocated, id, requested, thread, tag.as_ref());
            }
            state.recordings.writers.push(writer);
            self.update_slow_path(state, |reasons| reasons.recorded = true);
        })
    }

    /// Ends what [`Pool::start_recording`] began; returns whether the pool was recorded to this log.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stop_recording(&self, log: &EventLog) -> Result<bool, Unusable> {
        self.with_state(|state| {
            let writers = &mut state.recordings.writers;
            let before = writers.len();
            writers.retain(|writer| !writer.is_of(log));
            let (ended, more) = (writers.len() < before, !writers.is_empty());
            self.update_slow_path(state, |reasons| reasons.recorded = more);
            ended
        })
    }
}

#[cfg(test)]
mod tests;
