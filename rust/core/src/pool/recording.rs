//! Recordings: the events of pools as they happen, in a buffer that another thread may empty.
//!
//! A recorded pool has its fast path closed, as with scopes and tags: a pool that is not recorded does nothing for
//! recordings. Events are added under the lock of the pool, so their order is that of its decisions.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use super::limits::scope::tag_of_thread;
use super::state::State;
use super::{Pool, guarding::former};
use crate::chunk::Chunk;
use crate::error::Unusable;
use crate::tables::Allocation;

/// What happened.
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
    /// What happened.
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

/// Which events a full log drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The log keeps the last events: the oldest one makes room.
    Last,
    /// The log keeps what it has, and counts new events as lost.
    First,
}

/// A buffer of events of one or several pools. Clones are the same log.
#[derive(Clone)]
pub struct EventLog(Arc<Log>);

struct Log {
    start: Instant,
    capacity: usize,
    keep: Keep,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    kept: VecDeque<PoolEvent>,
    lost: u64,
    refused: u64,
    threads: Vec<ThreadId>,
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").field("capacity", &self.0.capacity).finish_non_exhaustive()
    }
}

impl EventLog {
    /// Creates an empty log of at most `capacity` events, at least 1.
    #[must_use]
    pub fn new(capacity: usize, keep: Keep) -> Self {
        let events = Mutex::default();
        Self(Arc::new(Log { start: Instant::now(), capacity: capacity.max(1), keep, events }))
    }

    /// Removes and returns all events.
    #[must_use]
    pub fn take(&self) -> VecDeque<PoolEvent> {
        std::mem::take(&mut self.lock().kept)
    }

    /// Returns a copy of all events.
    #[must_use]
    pub fn events(&self) -> Vec<PoolEvent> {
        self.lock().kept.iter().cloned().collect()
    }

    /// Returns the number of events that a full log dropped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lock().lost
    }

    /// Returns the number of refusals so far, dropped ones included.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    fn add(&self, pool: u64, kind: EventKind, id: u64, bytes: u64) {
        let nanoseconds = u64::try_from(self.0.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (thread, tag) = (thread::current().id(), tag_of_thread());
        let mut log = self.lock();
        log.refused += u64::from(kind == EventKind::Refused);
        if log.kept.len() == self.0.capacity {
            log.lost += 1;
            if self.0.keep == Keep::First {
                return;
            }
            log.kept.pop_front();
        }
        let known = log.threads.iter().position(|&known| known == thread);
        let thread = known.unwrap_or_else(|| {
            log.threads.push(thread);
            log.threads.len() - 1
        });
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        log.kept.push_back(PoolEvent { kind, nanoseconds, pool, id, bytes, thread, tag });
    }

    /// A thread that panicked here left no event half-written.
    fn lock(&self) -> MutexGuard<'_, Events> {
        self.0.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The logs of one pool.
#[derive(Debug, Default)]
pub(super) struct Recordings {
    pool: u64,
    logs: Vec<EventLog>,
}

impl Recordings {
    pub(super) fn new(pool: u64) -> Self {
        Self { pool, logs: Vec::new() }
    }

    /// Adds an event to all logs.
    #[cold]
    pub(super) fn add(&self, kind: EventKind, id: u64, bytes: u64) {
        for log in &self.logs {
            log.add(self.pool, kind, id, bytes);
        }
    }

    pub(super) fn are_running(&self) -> bool {
        !self.logs.is_empty()
    }
}

impl State {
    /// Records that an allocation was made; one of zero bytes is none.
    pub(super) fn record_allocation(&self, allocation: &Allocation) {
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
    pub(super) fn record_free(&self, freed: &Allocation) {
        self.recordings.add(EventKind::Freed, freed.id, freed.requested);
    }
}

impl Pool {
    /// Adds every following event of the pool to `log`, after the allocations that are live now, by address.
    ///
    /// The fast path is closed while a recording runs. Allocations of zero bytes are no events. An allocation that is
    /// resized in place is freed and made anew, under the same number.
    ///
    /// # Errors
    /// In a forked child.
    pub fn start_recording(&self, log: &EventLog) -> Result<(), Unusable> {
        self.with_settled_state(|state| {
            for allocation in state.live_allocations() {
                log.add(self.number, EventKind::Allocated, allocation.id, allocation.requested);
            }
            state.recordings.logs.push(log.clone());
            self.update_slow_path(state, |reasons| reasons.recorded = true);
        })
    }

    /// Ends what [`Pool::start_recording`] began; returns whether the pool was recorded to this log.
    ///
    /// # Errors
    /// In a forked child.
    pub fn stop_recording(&self, log: &EventLog) -> Result<bool, Unusable> {
        self.with_state(|state| {
            let logs = &mut state.recordings.logs;
            let before = logs.len();
            logs.retain(|other| !Arc::ptr_eq(&other.0, &log.0));
            let (ended, more) = (logs.len() < before, !logs.is_empty());
            self.update_slow_path(state, |reasons| reasons.recorded = more);
            ended
        })
    }
}

#[cfg(test)]
mod tests;
