//! The buffer of recorded events.
//!
//! ```text
//! pool A, under its lock  --adds-->  its open batch  --full-->
//! pool B, under its lock  --adds-->  its open batch  --full-->  full batches, oldest first  --take-->  events by time
//! ```
//!
//! An event takes no lock but that of its pool: the log's own is taken for each batch.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allotment_sync::Clock;

use super::batch::{Batch, RawEvent};
use super::{EventKind, PoolEvent};

/// Events of a batch: 32 KiB.
const BATCH_EVENTS: usize = 1024;

/// Empty batches that are kept for reuse.
const SPARE_BATCHES: usize = 64;

/// Which events a full log drops. Of several pools, those of one may be some 1,000 events older than those of another.
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
    clock: Clock,
    capacity: usize,
    keep: Keep,
    refused: AtomicU64,
    batches: Mutex<Batches>,
}

#[derive(Default)]
struct Batches {
    /// Batches that no pool adds to any more, by the time when they became so.
    full: VecDeque<Unread>,
    /// Batches that pools add to.
    open: Vec<Unread>,
    spare: Vec<Arc<Batch>>,
    /// Number of events that a full log dropped, but for those that reading will drop.
    lost: u64,
    /// The tags of events so far, by their number less 1, and the numbers.
    tags: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// The threads of events that were read, by their number in what callers get.
    threads: Vec<u32>,
}

/// What is unread of a batch.
#[derive(Clone)]
struct Unread {
    batch: Arc<Batch>,
    from: usize,
    to: usize,
}

impl Unread {
    fn len(&self) -> usize {
        self.to - self.from
    }

    /// Counts what was added since.
    fn update(&mut self) {
        self.to = self.batch.len();
    }
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
        let capacity = capacity.max(1);
        let (clock, refused, batches) = (Clock::new(), AtomicU64::new(0), Mutex::default());
        Self(Arc::new(Log { clock, capacity, keep, refused, batches }))
    }

    /// Removes and returns all events, by time.
    #[must_use]
    pub fn take(&self) -> VecDeque<PoolEvent> {
        let mut batches = self.lock();
        let mut unread: Vec<Unread> = batches.full.drain(..).collect();
        for open in &mut batches.open {
            open.update();
            unread.push(open.clone());
            open.from = open.to;
        }
        batches.lost += self.excess(unread.iter().map(Unread::len).sum());
        drop(batches);
        let events = self.read(&unread).into();
        self.lock().spare(unread);
        events
    }

    /// Returns a copy of all events, by time.
    #[must_use]
    pub fn events(&self) -> Vec<PoolEvent> {
        let mut batches = self.lock();
        batches.open.iter_mut().for_each(Unread::update);
        let unread: Vec<Unread> = batches.full.iter().chain(&batches.open).cloned().collect();
        drop(batches);
        self.read(&unread)
    }

    /// Returns the number of events that a full log dropped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let mut batches = self.lock();
        let unread = batches.unread();
        batches.lost + self.excess(unread)
    }

    /// Returns the number of refusals so far, dropped ones included.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Returns how many of so many events are above the capacity.
    fn excess(&self, events: usize) -> u64 {
        events.saturating_sub(self.0.capacity) as u64
    }

    /// Returns the events as callers get them: by time, with tags and the log's numbers of threads.
    fn read(&self, unread: &[Unread]) -> Vec<PoolEvent> {
        let events = unread
            .iter()
            .flat_map(|Unread { batch, from, to }| batch.read(*from, *to).map(|event| (batch.pool, event)));
        let mut events: Vec<(u64, RawEvent)> = events.collect();
        // Those of one pool stay in its order: its times never decrease.
        events.sort_by_key(|(_, event)| event.ticks);
        match self.0.keep {
            Keep::Last => drop(events.drain(..events.len().saturating_sub(self.0.capacity))),
            Keep::First => events.truncate(self.0.capacity),
        }
        // The first reading of a process may wait for the clock's rate, with no lock held.
        let _ = self.0.clock.nanoseconds(0);
        let batches = &mut *self.lock();
        let (threads, tags) = (&mut batches.threads, &batches.tags);
        let events = events.into_iter().map(|(pool, RawEvent { ticks, id, bytes, thread, tag, kind })| {
            let known = threads.iter().position(|&known| known == thread);
            let thread = known.unwrap_or_else(|| {
                threads.push(thread);
                threads.len() - 1
            });
            PoolEvent {
                kind,
                nanoseconds: self.0.clock.nanoseconds(ticks),
                pool,
                id,
                bytes,
                thread: u32::try_from(thread).unwrap_or(u32::MAX),
                tag: tag.checked_sub(1).map(|tag| Arc::clone(&tags[tag as usize])),
            }
        });
        events.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Batches> {
        // Nothing between two of its changes panics.
        self.0.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batches {
    /// Returns the number of events that were not taken yet.
    fn unread(&mut self) -> usize {
        self.open.iter_mut().for_each(Unread::update);
        self.full.iter().chain(&self.open).map(Unread::len).sum()
    }

    /// Keeps batches that nothing reads or adds to for reuse.
    fn spare(&mut self, read: impl IntoIterator<Item = Unread>) {
        for Unread { mut batch, .. } in read {
            if self.spare.len() < SPARE_BATCHES && Arc::get_mut(&mut batch).is_some() {
                self.spare.push(batch);
            }
        }
    }

    /// Moves a batch that its pool adds to no more to the full ones.
    fn close(&mut self, batch: &Arc<Batch>) {
        if let Some(at) = self.open.iter().position(|open| Arc::ptr_eq(&open.batch, batch)) {
            let mut closed = self.open.swap_remove(at);
            closed.update();
            if closed.len() == 0 { self.spare([closed]) } else { self.full.push_back(closed) }
        }
    }
}

/// The end of a log that a pool adds its events to.
#[derive(Debug)]
pub(super) struct Writer {
    log: EventLog,
    pool: u64,
    /// Absent before the first event, and while the log is full and keeps what it has.
    batch: Option<Arc<Batch>>,
    /// The time of the last event.
    last: u64,
}

impl Writer {
    pub(super) fn new(log: &EventLog, pool: u64) -> Self {
        Self { log: log.clone(), pool, batch: None, last: 0 }
    }

    pub(super) fn is_of(&self, log: &EventLog) -> bool {
        Arc::ptr_eq(&self.log.0, &log.0)
    }

    /// Adds an event of this thread.
    #[inline]
    pub(super) fn add(&mut self, kind: EventKind, id: u64, bytes: u64, thread: u32, tag: Option<&Arc<str>>) {
        // The counters of two cores may differ by some ticks.
        self.last = self.log.0.clock.ticks().max(self.last);
        let tag = tag.map_or(0, |tag| self.tag_number(tag));
        let event = RawEvent { ticks: self.last, id, bytes, thread, tag, kind };
        if !self.batch.as_ref().is_some_and(|batch| batch.add(event)) {
            self.add_to_next(event);
        }
        if kind == EventKind::Refused {
            self.log.0.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    fn tag_number(&self, tag: &Arc<str>) -> u32 {
        const MOST: usize = (1 << 30) - 1;
        let batches = &mut *self.log.lock();
        let next = u32::try_from((batches.tags.len() + 1).min(MOST)).unwrap_or(0);
        let number = *batches.numbers.entry(Arc::clone(tag)).or_insert(next);
        if number == next && batches.tags.len() < MOST {
            batches.tags.push(Arc::clone(tag));
        }
        number
    }

    /// Adds an event to a new batch, if the log has room for one.
    #[cold]
    #[inline(never)]
    fn add_to_next(&mut self, event: RawEvent) {
        let Log { capacity, keep, .. } = *self.log.0;
        let batches = &mut *self.log.lock();
        if let Some(full) = self.batch.take() {
            batches.close(&full);
        }
        let mut unread = batches.unread();
        match keep {
            Keep::First if unread >= capacity => {
                batches.lost += 1;
                return;
            }
            Keep::First => {}
            Keep::Last => {
                while let Some(oldest) = batches.full.front()
                    && unread - oldest.len() >= capacity
                    && let Some(oldest) = batches.full.pop_front()
                {
                    unread -= oldest.len();
                    batches.lost += oldest.len() as u64;
                    batches.spare([oldest]);
                }
            }
        }
        let mut batch = batches
            .spare
            .pop()
            .unwrap_or_else(|| Arc::new(Batch::new(self.pool, BATCH_EVENTS.min(capacity))));
        // Spare batches are nowhere else.
        if let Some(batch) = Arc::get_mut(&mut batch) {
            batch.reset(self.pool);
        }
        batch.add(event);
        batches.open.push(Unread { batch: Arc::clone(&batch), from: 0, to: 0 });
        self.batch = Some(batch);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.log.lock().close(&batch);
        }
    }
}
