//! Trims idle pools from a background thread.
//!
//! One thread serves all registered pools of the process. It sleeps until the first pool is due and ends after the
//! last one is gone. It keeps no pool alive: a dropped pool removes its entry.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use allotment_sync::PerProcess;

use super::Pool;
use super::state::State;
use crate::error::{TrimError, Unusable};

/// The shortest period between two checks of a pool.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// How long the thread waits without pools before it ends, so that a program that makes pools one after another
/// starts one thread.
const LINGER: Duration = Duration::from_millis(100);

/// Per process: a forked child has no such thread and needs its own lock.
static IDLE: PerProcess<Idle> = PerProcess::new(Idle::new(), Idle::new);

impl Pool {
    /// Releases wholly free regions whenever the pool has been idle for about `after`.
    ///
    /// A background thread, shared by all pools of the process, does this. The source must accept calls from any
    /// thread at any time. The registration ends with the pool and is not inherited by a forked child. The thread
    /// calls `before` first, for callers that cache free memory. Checks are at least a millisecond apart.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn trim_when_idle(
        self: &Arc<Self>,
        after: Duration,
        before: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let after = after.max(MIN_PERIOD);
        let pool = Arc::downgrade(self);
        let entry = IdleEntry {
            pool,
            number: self.number,
            after,
            before: Box::new(before),
            last: None,
            trimmed: false,
        };
        // Set before the registration: the pool's drop removes an existing entry.
        self.is_trimmed_when_idle.store(true, Ordering::Relaxed);
        IDLE.get().add(entry)
    }

    /// Removes the pool's registration; called when the pool is dropped.
    pub(super) fn stop_trimming_when_idle(&self) {
        if self.is_trimmed_when_idle.load(Ordering::Relaxed) {
            IDLE.get().remove(self.number);
        }
    }

    /// Returns the number of allocations and frees so far.
    ///
    /// # Errors
    /// In a forked child.
    pub(crate) fn activity(&self) -> Result<u64, Unusable> {
        self.with_state(State::activity)?
    }
}

/// A registered pool.
struct IdleEntry {
    pool: Weak<Pool>,
    number: u64,
    after: Duration,
    before: Box<dyn Fn() + Send>,
    /// The pool's activity at the last check.
    last: Option<u64>,
    /// Whether the pool was trimmed since its last use.
    trimmed: bool,
}

impl IdleEntry {
    fn check(&mut self) {
        let Some(pool) = self.pool.upgrade() else { return };
        let activity = pool.activity().ok();
        if self.last != activity {
            self.last = activity;
            self.trimmed = false;
        } else if !self.trimmed {
            (self.before)();
            // One trim per idle period: the release of cached memory counts as use.
            self.last = pool.activity().ok();
            // If a source call is in progress the pool is in use, and other pools wait for this thread. A source that
            // fails is asked again after the next use.
            self.trimmed = !matches!(pool.try_trim(), Ok(None) | Err(TrimError::Unusable(_)));
        }
    }
}

/// State shared by the thread and the threads that create and drop pools.
struct Idle {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The registered pools, except the one being checked.
struct Queue {
    /// Entries by due time and pool number.
    due: BTreeMap<(Instant, u64), IdleEntry>,
    /// Due times by pool number.
    times: BTreeMap<u64, Instant>,
    has_thread: bool,
}

impl Idle {
    const fn new() -> Self {
        let queue = Queue { due: BTreeMap::new(), times: BTreeMap::new(), has_thread: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Only a panic in this file could poison the lock, and each change of the queue is a single call.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a pool, and starts the thread if needed.
    fn add(&'static self, entry: IdleEntry) -> io::Result<()> {
        let number = entry.number;
        self.remove(number);
        let mut queue = self.queue();
        let rejected = queue.insert(entry);
        if rejected.is_none() && !queue.has_thread {
            let name = "allotment-idle".to_owned();
            if let Err(error) = thread::Builder::new().name(name).spawn(|| self.work()) {
                let removed = queue.remove(number);
                drop(queue);
                drop(removed);
                return Err(error);
            }
            queue.has_thread = true;
        }
        drop(queue);
        drop(rejected);
        // The new entry may be due first.
        self.changed.notify_one();
        Ok(())
    }

    /// Removes a pool if it is registered.
    fn remove(&self, number: u64) {
        let mut queue = self.queue();
        let removed = queue.remove(number);
        if queue.due.is_empty() {
            self.changed.notify_one();
        }
        drop(queue);
        // Dropped without the lock: the entry's callback is foreign code.
        drop(removed);
    }

    /// The loop of the thread.
    fn work(&self) {
        let mut queue = self.queue();
        loop {
            let now = Instant::now();
            match queue.due.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let mut entry = first.remove();
                    queue.times.remove(&entry.number);
                    drop(queue);
                    // A pool whose source panics is not checked again; the others are.
                    let looked = catch_unwind(AssertUnwindSafe(|| entry.check()));
                    queue = self.queue();
                    let rejected = if looked.is_ok() { queue.insert(entry) } else { Some(entry) };
                    if rejected.is_some() {
                        drop(queue);
                        drop(rejected);
                        queue = self.queue();
                    }
                }
                Some(first) => queue = self.wait_timeout(first.key().0 - now, queue),
                None => {
                    queue = self.wait_timeout(LINGER, queue);
                    if queue.due.is_empty() && now.elapsed() >= LINGER {
                        queue.has_thread = false;
                        return;
                    }
                }
            }
        }
    }

    /// Waits for a change of the queue, for at most `timeout`.
    fn wait_timeout<'a>(&self, timeout: Duration, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait_timeout(queue, timeout).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Queue {
    /// Adds an entry, unless its pool is gone or its due time overflows; returns a rejected entry.
    fn insert(&mut self, entry: IdleEntry) -> Option<IdleEntry> {
        let due = Instant::now().checked_add(entry.after);
        match due.filter(|_| entry.pool.strong_count() > 0) {
            Some(due) => {
                self.times.insert(entry.number, due);
                self.due.insert((due, entry.number), entry)
            }
            None => Some(entry),
        }
    }

    fn remove(&mut self, number: u64) -> Option<IdleEntry> {
        let due = self.times.remove(&number)?;
        self.due.remove(&(due, number))
    }
}
