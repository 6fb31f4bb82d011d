//! Trims pools that are idle.
//!
//! One thread looks after all pools of the process that asked for it. It sleeps until the first of them is due, and
//! ends when the last of them is gone. It keeps no pool alive: a pool that is dropped takes its entry out.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use allotment_sync::PerProcess;

use super::Pool;
use crate::error::Unusable;

/// The shortest time between two looks at a pool.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long the thread stays when no pool is left: programs that make one pool after the other then start one thread.
const LINGER: Duration = Duration::from_millis(100);

/// A forked child has no thread, and a lock of its own.
static IDLE: PerProcess<Idle> = PerProcess::new(Idle::new(), Idle::new);

impl Pool {
    /// From now on, hands back the wholly free regions whenever the pool was not used for `after`, or somewhat longer.
    ///
    /// Another thread looks, one for all pools of the process, so the source must be one that any thread may call at
    /// any time. It forgets the pool when that is dropped; in a forked child there is none. `before` is called first:
    /// for callers that keep back unused memory. At least a millisecond lies between two looks.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn trim_when_idle(
        self: &Arc<Self>,
        after: Duration,
        before: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let after = after.max(SHORTEST);
        let pool = Arc::downgrade(self);
        let watched = Watched {
            pool,
            number: self.number,
            after,
            before: Box::new(before),
            last: None,
            trimmed: false,
        };
        // First: an entry that is there is taken out by the pool's drop.
        self.is_watched.store(true, Ordering::Relaxed);
        IDLE.get().watch(watched)
    }

    /// Takes the pool's entry out, for a pool that is dropped.
    pub(super) fn stop_trimming_when_idle(&self) {
        if self.is_watched.load(Ordering::Relaxed) {
            IDLE.get().forget(self.number);
        }
    }

    /// Counts allocations and frees so far.
    ///
    /// # Errors
    /// In a forked child.
    pub fn activity(&self) -> Result<u64, Unusable> {
        self.with_state(|state| state.activity())
    }
}

/// A pool that is looked at from time to time.
struct Watched {
    pool: Weak<Pool>,
    number: u64,
    after: Duration,
    before: Box<dyn Fn() + Send>,
    /// The pool's activity at the last look.
    last: Option<u64>,
    /// Whether it was trimmed since it was used.
    trimmed: bool,
}

impl Watched {
    fn look(&mut self) {
        let Some(pool) = self.pool.upgrade() else { return };
        let activity = pool.activity().ok();
        if self.last != activity {
            self.last = activity;
            self.trimmed = false;
        } else if !self.trimmed {
            (self.before)();
            // Only once for each time it falls idle: what was kept back counts as use.
            self.last = pool.activity().ok();
            // A pool whose source is being called is in use, and others wait for this thread.
            self.trimmed = matches!(pool.try_trim(), Ok(Some(_)));
        }
    }
}

/// What the thread shares with those that make and drop pools.
struct Idle {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The pools that are to be looked at, but the one that the thread is looking at.
struct Queue {
    /// By the time when each is due, and by its number.
    due: BTreeMap<(Instant, u64), Watched>,
    /// When each is due, by its number.
    times: BTreeMap<u64, Instant>,
    has_thread: bool,
}

impl Idle {
    const fn new() -> Self {
        let queue = Queue { due: BTreeMap::new(), times: BTreeMap::new(), has_thread: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Only a panic of this file's own code is possible here, and each change of the queue is a single call.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a pool, and starts the thread if there is none.
    fn watch(&'static self, watched: Watched) -> io::Result<()> {
        let number = watched.number;
        self.forget(number);
        let mut queue = self.queue();
        let rejected = queue.insert(watched);
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
        // It may be due before all others.
        self.changed.notify_one();
        Ok(())
    }

    /// Removes a pool, if it is there.
    fn forget(&self, number: u64) {
        let mut queue = self.queue();
        let removed = queue.remove(number);
        if queue.due.is_empty() {
            self.changed.notify_one();
        }
        drop(queue);
        // Without the lock: what is dropped with it is not of this file.
        drop(removed);
    }

    /// What the thread does.
    fn work(&self) {
        let mut queue = self.queue();
        loop {
            let now = Instant::now();
            match queue.due.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let mut watched = first.remove();
                    queue.times.remove(&watched.number);
                    drop(queue);
                    // A pool whose source panics is not looked at again; the others are.
                    let looked = catch_unwind(AssertUnwindSafe(|| watched.look()));
                    queue = self.queue();
                    let rejected = if looked.is_ok() { queue.insert(watched) } else { Some(watched) };
                    if rejected.is_some() {
                        drop(queue);
                        drop(rejected);
                        queue = self.queue();
                    }
                }
                Some(first) => queue = self.sleep(first.key().0 - now, queue),
                None => {
                    queue = self.sleep(LINGER, queue);
                    if queue.due.is_empty() && now.elapsed() >= LINGER {
                        queue.has_thread = false;
                        return;
                    }
                }
            }
        }
    }

    /// Sleeps until the queue was changed, or for `nap`, or less.
    fn sleep<'a>(&self, nap: Duration, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait_timeout(queue, nap).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Queue {
    /// Adds a pool, unless it is gone: its drop removes only what is there. Nor one that is due in ages.
    fn insert(&mut self, watched: Watched) -> Option<Watched> {
        let due = Instant::now().checked_add(watched.after);
        match due.filter(|_| watched.pool.strong_count() > 0) {
            Some(due) => {
                self.times.insert(watched.number, due);
                self.due.insert((due, watched.number), watched)
            }
            None => Some(watched),
        }
    }

    fn remove(&mut self, number: u64) -> Option<Watched> {
        let due = self.times.remove(&number)?;
        self.due.remove(&(due, number))
    }
}
