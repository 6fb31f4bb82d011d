//! The lock behind the bias: a mutex for short critical sections.
//!
//! A running thread takes a free lock before waiting ones (it barges): a hand-over to a waiting thread would cost a
//! transfer of the tables between processors, and perhaps a wakeup, for each critical section. Of the waiting threads
//! one is **awake** and looks at the lock, ever more rarely; the others sleep. A thread that has waited for
//! [`STARVATION`] is handed the lock at the next release.
//!
//! ```text
//! lock    free? ─ yes → taken
//!           └ no: the first to wait looks now and then ─→ taken
//!                 and in the end, like all others, sleeps ─ woken → looks again
//!                                                         └ starves → is handed the lock
//! unlock  a thread starves? hand it the lock : release ─ threads sleep and none is awake? wake one
//! ```

use std::sync::PoisonError;

use crate::primitives::{
    AtomicBool, AtomicU32, Condvar, Mutex, MutexGuard, Ordering, Waited, heavy, init_barrier, light_or_full,
    pause,
};

/// Flag of [`InnerLock::waiters`]: a waiting thread is awake, or was woken.
const AWAKE: u32 = 1;
/// Flag of [`InnerLock::waiters`]: a sleeping thread shall get the lock at the next release.
const STARVES: u32 = 2;
/// The number that each sleeping thread adds to [`InnerLock::waiters`].
const SLEEPER: u32 = 4;

/// The first pause between two looks, in nanoseconds. Each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: u64 = 100;
const LONGEST_PAUSE: u64 = 3_200;
/// The number of looks before a thread sleeps: 50 µs.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 20 };
/// A thread that has waited for this many nanoseconds is handed the lock.
const STARVATION: u64 = 5_000_000;

pub(crate) struct InnerLock {
    taken: AtomicBool,
    /// The sleeping threads and the flags. Changed under the mutex, except for [`AWAKE`].
    waiters: AtomicU32,
    wakeups: Mutex<Wakeups>,
    woken: Condvar,
    handed_over: Condvar,
}

/// The condition that a sleeping thread waits for.
struct Wakeups {
    /// A thread that sleeps is to be the one awake.
    wakes_one: bool,
    /// The lock is taken on behalf of the starving thread.
    handed_over: bool,
}

/// How a thread stopped to sleep.
enum Wakeup {
    /// It has the lock.
    Locked,
    /// It is the thread that is awake.
    Awake,
}

impl InnerLock {
    pub(crate) fn new() -> Self {
        init_barrier();
        Self {
            taken: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            wakeups: Mutex::new(Wakeups { wakes_one: false, handed_over: false }),
            woken: Condvar::new(),
            handed_over: Condvar::new(),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        // The load keeps a waiting thread from taking the cache line of a lock that is taken.
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        if self.waiters.load(Ordering::Relaxed) & STARVES != 0 {
            self.hand_over();
            return;
        }
        self.taken.store(false, Ordering::Release);
        light_or_full();
        let waiters = self.waiters.load(Ordering::Relaxed);
        if waiters >= SLEEPER && waiters & (AWAKE | STARVES) != AWAKE {
            self.wake_one();
        }
    }

    #[cold]
    fn wait(&self) {
        let waited = Waited::from_now();
        let mut awake = self.waiters.fetch_or(AWAKE, Ordering::Relaxed) & AWAKE == 0;
        loop {
            if awake && self.look() {
                return;
            }
            match self.sleep(awake, &waited) {
                Wakeup::Locked => return,
                Wakeup::Awake => awake = true,
            }
        }
    }

    /// Looks at the lock now and then, as the thread that is awake; returns whether it was free once.
    fn look(&self) -> bool {
        let mut nanoseconds = FIRST_PAUSE;
        for _ in 0..LOOKS {
            if self.waiters.load(Ordering::Relaxed) & STARVES != 0 {
                return false;
            }
            if self.try_lock() {
                self.waiters.fetch_and(!AWAKE, Ordering::Relaxed);
                return true;
            }
            pause(nanoseconds);
            nanoseconds = LONGEST_PAUSE.min(2 * nanoseconds);
        }
        false
    }

    /// Sleeps until another thread wakes this one or hands it the lock.
    #[cold]
    fn sleep(&self, awake: bool, waited: &Waited) -> Wakeup {
        let mut wakeups = self.wakeups();
        let mut starves = false;
        self.waiters.fetch_add(SLEEPER, Ordering::Relaxed);
        if awake {
            self.waiters.fetch_and(!AWAKE, Ordering::Relaxed);
        }
        // Either the thread that releases the lock sees the waiter, or the waiter sees that the lock is free.
        heavy();
        loop {
            if starves && wakeups.handed_over {
                wakeups.handed_over = false;
                self.stop_sleeping(starves);
                return Wakeup::Locked;
            }
            if !starves && wakeups.wakes_one {
                wakeups.wakes_one = false;
                self.stop_sleeping(starves);
                return Wakeup::Awake;
            }
            if self.try_lock() {
                self.stop_sleeping(starves);
                return Wakeup::Locked;
            }
            if !starves && waited.is_over(STARVATION) {
                starves = self.waiters.fetch_or(STARVES, Ordering::Relaxed) & STARVES == 0;
                if starves {
                    heavy();
                    continue;
                }
            }
            let until = if starves { &self.handed_over } else { &self.woken };
            wakeups = until
                .wait_timeout(wakeups, waited.rest_of(STARVATION))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Removes the calling thread from the sleeping ones.
    fn stop_sleeping(&self, starves: bool) {
        self.waiters.fetch_sub(if starves { SLEEPER | STARVES } else { SLEEPER }, Ordering::Relaxed);
    }

    #[cold]
    fn wake_one(&self) {
        let mut wakeups = self.wakeups();
        let waiters = self.waiters.load(Ordering::Relaxed);
        if waiters & STARVES != 0 {
            // It began to starve after this thread had decided to release the lock.
            self.handed_over.notify_one();
        } else if waiters >= SLEEPER && self.waiters.fetch_or(AWAKE, Ordering::Relaxed) & AWAKE == 0 {
            wakeups.wakes_one = true;
            self.woken.notify_one();
        }
    }

    /// Leaves the lock taken, on behalf of the starving thread.
    #[cold]
    fn hand_over(&self) {
        let mut wakeups = self.wakeups();
        wakeups.handed_over = true;
        self.handed_over.notify_one();
    }

    fn wakeups(&self) -> MutexGuard<'_, Wakeups> {
        // Nothing under this mutex panics.
        self.wakeups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
