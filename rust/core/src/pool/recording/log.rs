//! The buffer of recorded events.
//!
//! ```text
//! pool A, under its lock  --adds-->  its open batch  --full-->
//! pool B, under its lock  --adds-->  its open batch  --full-->  full batches, oldest first  --take-->  events by time
//! ```
//!
//! An event takes no lock but that of its pool: the log's own is taken for each batch, and where the tag changes.
//!
//! Longer than 300 lines: all that the log's own lock protects.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use allotment_sync::{Clock, generation};

use super::PoolEvent;
use super::batch::{Batch, RawEvent};
use super::dropped::Dropped;

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

/// What a log has: see [`EventLog::recent`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct RecentEvents {
    /// The allocations that are live before the first event, by time: each as the event that made it.
    pub live_before: Vec<PoolEvent>,
    /// The events, by time.
    pub events: Vec<PoolEvent>,
}

/// A buffer of events of one or several pools. Clones are the same log.
#[derive(Clone)]
pub struct EventLog(pub(super) Arc<Log>);

pub(super) struct Log {
    pub(super) clock: Clock,
    pub(super) refused: AtomicU64,
    capacity: usize,
    keep: Keep,
    /// The process of the log, by the number of its forks.
    process: u64,
    batches: Mutex<Batches>,
    /// What [`EventLog::on_refusal`] set.
    on_refusal: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Batches {
    /// Batches that no pool adds to any more, by the time when they became so.
    full: VecDeque<Unread>,
    /// The events of full batches.
    full_events: usize,
    /// Batches that pools add to.
    open: Vec<Unread>,
    spare: Vec<Arc<Batch>>,
    /// Number of events that a full log dropped, but for those that reading will drop.
    lost: u64,
    /// Of a log that keeps the last events: the allocations that are live after those that left it.
    dropped: Dropped,
    /// The tags of events so far, by their number less 1, and the numbers.
    tags: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// The threads of events that were read, by their number in what callers get.
    threads: HashMap<u32, u32>,
}

/// The events of a batch that were not read yet.
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
        Self(Arc::new(Log {
            clock: Clock::new(),
            refused: AtomicU64::new(0),
            capacity,
            keep,
            process: generation(),
            batches: Mutex::default(),
            on_refusal: OnceLock::new(),
        }))
    }

    /// Returns whether this process is a forked child of the one that made the log. Calls that read the log may wait for
    /// ever then: another thread of the parent may hold its lock.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.0.process != generation()
    }

    /// Has `action` called after each refusal, before the caller gets its error: a program that ends there can have
    /// written its events. It is called without locks, by the thread of the request, several threads at once. Returns
    /// false if there is an action already.
    pub fn on_refusal(&self, action: impl Fn() + Send + Sync + 'static) -> bool {
        self.0.on_refusal.set(Box::new(action)).is_ok()
    }

    /// Calls the action of [`EventLog::on_refusal`].
    pub(super) fn notify_of_refusal(&self) {
        if let Some(action) = self.0.on_refusal.get() {
            action();
        }
    }

    /// Removes and returns all events, by time.
    #[must_use]
    pub fn take(&self) -> VecDeque<PoolEvent> {
        let mut batches = self.lock();
        let mut unread: Vec<Unread> = batches.full.drain(..).collect();
        batches.full_events = 0;
        for open in &mut batches.open {
            open.update();
            unread.push(open.clone());
            open.from = open.to;
        }
        batches.lost += self.excess(unread.iter().map(Unread::len).sum());
        if self.0.keep == Keep::Last {
            for taken in &unread {
                batches.drop_events(taken);
            }
        }
        drop(batches);
        let events = self.read(&unread).1.into();
        self.lock().spare(unread);
        events
    }

    /// Returns a copy of all events, by time.
    #[must_use]
    pub fn events(&self) -> Vec<PoolEvent> {
        self.recent().events
    }

    /// Returns a copy of all events, and the allocations that are live before the first of them, as the log dropped or
    /// returned their events.
    ///
    /// A log that keeps the first events has none of those: it drops the events that come after its own.
    #[must_use]
    pub fn recent(&self) -> RecentEvents {
        let mut batches = self.lock();
        batches.open.iter_mut().for_each(Unread::update);
        let unread: Vec<Unread> = batches.full.iter().chain(&batches.open).cloned().collect();
        let mut dropped = batches.dropped.clone();
        drop(batches);
        let (excess, events) = self.read(&unread);
        for (pool, event) in excess {
            dropped.add(pool, event);
        }
        RecentEvents { live_before: self.finished(dropped.live()), events }
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

    /// Returns the oldest events that are above the capacity of a log that keeps the last ones, and the others as callers
    /// get them, by time.
    fn read(&self, unread: &[Unread]) -> (Vec<(u64, RawEvent)>, Vec<PoolEvent>) {
        let events = unread
            .iter()
            .flat_map(|Unread { batch, from, to }| batch.read(*from, *to).map(|event| (batch.pool, event)));
        let mut events: Vec<(u64, RawEvent)> = events.collect();
        // Events of one pool stay in its order: its times never decrease.
        events.sort_by_key(|(_, event)| event.ticks);
        let excess = match self.0.keep {
            Keep::Last => events.drain(..events.len().saturating_sub(self.0.capacity)).collect(),
            Keep::First => {
                events.truncate(self.0.capacity);
                Vec::new()
            }
        };
        (excess, self.finished(events))
    }

    /// Returns events of pools as callers get them, with tags and the log's numbers of threads.
    fn finished(&self, events: Vec<(u64, RawEvent)>) -> Vec<PoolEvent> {
        let (threads, tags) = self.names(events.iter().map(|(_, event)| event.thread));
        let events =
            events.into_iter().map(|(pool, RawEvent { ticks, id, bytes, thread, tag, kind })| PoolEvent {
                kind,
                nanoseconds: self.0.clock.nanoseconds(ticks),
                pool,
                id,
                bytes,
                thread: threads.get(&thread).copied().unwrap_or(u32::MAX),
                tag: tag.checked_sub(1).and_then(|tag| tags.get(tag as usize).cloned()),
            });
        events.collect()
    }

    /// Returns the log's numbers of threads, and all tags so far.
    fn names(&self, threads: impl Iterator<Item = u32>) -> (HashMap<u32, u32>, Vec<Arc<str>>) {
        let mut seen = Vec::new();
        for thread in threads {
            if !seen.contains(&thread) {
                seen.push(thread);
            }
        }
        let batches = &mut *self.lock();
        let numbers = seen.into_iter().map(|thread| {
            let next = u32::try_from(batches.threads.len()).unwrap_or(u32::MAX);
            (thread, *batches.threads.entry(thread).or_insert(next))
        });
        (numbers.collect(), batches.tags.clone())
    }

    /// Returns the number of a tag, above 0.
    pub(super) fn tag_number(&self, tag: &Arc<str>) -> u32 {
        const MOST: usize = (1 << 30) - 1;
        let batches = &mut *self.lock();
        let next = u32::try_from((batches.tags.len() + 1).min(MOST)).unwrap_or(0);
        let number = *batches.numbers.entry(Arc::clone(tag)).or_insert(next);
        if number == next && batches.tags.len() < MOST {
            batches.tags.push(Arc::clone(tag));
        }
        number
    }

    /// Returns a batch of `pool` with the event in it, in place of one that is full; `None` if the log has no room.
    pub(super) fn next_batch(
        &self,
        pool: u64,
        full: Option<Arc<Batch>>,
        event: RawEvent,
    ) -> Option<Arc<Batch>> {
        let Log { capacity, keep, .. } = *self.0;
        let batches = &mut *self.lock();
        if let Some(full) = full {
            batches.close(full);
        }
        let mut unread = batches.unread();
        if keep == Keep::First && unread >= capacity {
            batches.lost += 1;
            return None;
        }
        while keep == Keep::Last
            && let Some(oldest) = batches.full.front()
            && unread - oldest.len() >= capacity
            && let Some(oldest) = batches.full.pop_front()
        {
            unread -= oldest.len();
            batches.full_events -= oldest.len();
            batches.lost += oldest.len() as u64;
            batches.drop_events(&oldest);
            batches.spare([oldest]);
        }
        let spare = batches.spare.pop();
        let mut batch = spare.unwrap_or_else(|| Arc::new(Batch::new(pool, BATCH_EVENTS.min(capacity))));
        // Spare batches are nowhere else.
        if let Some(batch) = Arc::get_mut(&mut batch) {
            batch.reset(pool);
        }
        batch.add(event);
        batches.open.push(Unread { batch: Arc::clone(&batch), from: 0, to: 0 });
        Some(batch)
    }

    /// Moves a batch that its pool adds to no more to the full ones. In a forked child another thread of the parent may
    /// hold the lock for ever, and nothing is done.
    pub(super) fn close(&self, batch: Arc<Batch>) {
        if !self.is_inherited() {
            self.lock().close(batch);
        }
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
        self.full_events + self.open.iter().map(Unread::len).sum::<usize>()
    }

    /// Adds the events of a batch to those that left the log.
    fn drop_events(&mut self, Unread { batch, from, to }: &Unread) {
        batch.read(*from, *to).for_each(|event| self.dropped.add(batch.pool, event));
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
    fn close(&mut self, batch: Arc<Batch>) {
        let Some(at) = self.open.iter().position(|open| Arc::ptr_eq(&open.batch, &batch)) else { return };
        drop(batch);
        let mut closed = self.open.swap_remove(at);
        closed.update();
        self.full_events += closed.len();
        if closed.len() == 0 { self.spare([closed]) } else { self.full.push_back(closed) }
    }
}
