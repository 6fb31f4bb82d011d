//! A poisoning mutex over the biased lock.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::thread::panicking;

use crate::biased::{BiasedLock, Hold, NoBarrier};
use crate::primitives::{Access, AtomicBool, Ordering, TrackedCell};

/// A mutex that costs a few instructions while one thread uses it alone.
///
/// A panic while the lock is held poisons it; every later attempt to lock fails.
pub struct Mutex<T> {
    lock: BiasedLock,
    poisoned: AtomicBool,
    value: TrackedCell<T>,
}

// SAFETY: as for std's mutex: the lock gives one thread at a time access, so the value moves between threads and is
// never shared.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: moving the mutex moves its value, and no guard exists then.
unsafe impl<T: Send> Send for Mutex<T> {}

// As for std's mutex: a panic under the lock poisons it.
impl<T> UnwindSafe for Mutex<T> {}
impl<T> RefUnwindSafe for Mutex<T> {}

/// Why a lock was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockError {
    /// A thread panicked while it held the lock; the value may be inconsistent.
    Poisoned,
    /// The system has forbidden the system call `membarrier` since the mutex was made, and the thread that owns the
    /// lock does not use it: nothing tells whether that thread is in the critical section.
    BarrierForbidden,
}

impl From<NoBarrier> for LockError {
    fn from(NoBarrier: NoBarrier) -> Self {
        Self::BarrierForbidden
    }
}

/// Access to the value; releases the lock when dropped. Not `Send`: the lock records its thread.
pub struct MutexGuard<'a, T> {
    // Dropped before the lock is released: fields drop in order of declaration.
    access: Access<T>,
    held: HeldLock<'a, T>,
    stays: PhantomData<*mut T>,
}

/// The held lock; released when dropped.
struct HeldLock<'a, T> {
    mutex: &'a Mutex<T>,
    hold: Hold,
    was_panicking: bool,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex over `value`.
    pub fn new(value: T) -> Self {
        Self { lock: BiasedLock::new(), poisoned: AtomicBool::new(false), value: TrackedCell::new(value) }
    }

    /// Creates an unlocked mutex that no thread owns: for short critical sections of many threads.
    pub fn new_unbiased(value: T) -> Self {
        let mutex = Self::new(value);
        mutex.lock.forbid_owners();
        mutex
    }

    /// Takes the mutex from the thread that owns it, without a barrier.
    pub fn forget_owner(&mut self) {
        self.lock.forget_owner();
    }

    /// Waits for the lock and takes it. Deadlocks if the calling thread holds it.
    ///
    /// # Errors
    /// When the mutex is poisoned, or the barrier that takes it from its owner is forbidden.
    #[inline]
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, LockError> {
        self.guard(self.lock.lock()?)
    }

    /// Takes the lock if no thread holds it, the calling thread included.
    ///
    /// # Errors
    /// When the mutex is poisoned.
    #[inline]
    pub fn try_lock(&self) -> Result<Option<MutexGuard<'_, T>>, LockError> {
        self.lock.try_lock().map(|hold| self.guard(hold)).transpose()
    }

    /// Runs `work` on the value with the lock held, like [`Mutex::lock`] but without a guard that has to live in
    /// memory.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R, LockError> {
        let hold = self.lock.lock()?;
        if self.is_poisoned() {
            // SAFETY: this thread has just taken it.
            unsafe { self.lock.unlock(hold) };
            return Err(LockError::Poisoned);
        }
        Ok(self.run(hold, work))
    }

    /// Runs `work` on the value if this thread owns the mutex and no other thread waits: the fast path. Returns
    /// `None` if it cannot, or if `work` does.
    #[inline(always)]
    pub fn try_with_as_owner<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let record = self.lock.try_lock_as_owner()?;
        self.run(Hold::AsOwner(record), work)
    }

    /// Runs `work` and releases the lock.
    #[inline(always)]
    fn run<R>(&self, hold: Hold, work: impl FnOnce(&mut T) -> R) -> R {
        let unwinding = PoisonOnUnwind { mutex: self, hold };
        let result = {
            let access = self.value.access();
            // SAFETY: the lock is held until the access ends.
            work(unsafe { self.value.value(&access) })
        };
        std::mem::forget(unwinding);
        // SAFETY: the caller took the lock in this way on this thread.
        unsafe { self.lock.unlock(hold) };
        result
    }

    /// Poisons the mutex and releases it, after a panic.
    #[cold]
    #[inline(never)]
    fn poison(&self, hold: Hold) {
        self.poisoned.store(true, Ordering::Relaxed);
        // The owner's fast path does not check for poison, so there must be no owner. While this thread holds the lock
        // there is none but itself.
        self.lock.forbid_owners();
        // SAFETY: the caller holds the lock in this way.
        unsafe { self.lock.unlock(hold) };
        self.lock.remove_owner();
    }

    /// Returns whether a thread panicked while it held the lock.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// Returns the guard of a lock that this thread has just taken.
    #[inline]
    fn guard(&self, hold: Hold) -> Result<MutexGuard<'_, T>, LockError> {
        let lock = HeldLock { mutex: self, hold, was_panicking: panicking() };
        if self.is_poisoned() {
            return Err(LockError::Poisoned);
        }
        Ok(MutexGuard { access: self.value.access(), held: lock, stays: PhantomData })
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held while the guard lives, and `&self` excludes `deref_mut`.
        unsafe { self.held.mutex.value.value(&self.access) }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held while the guard lives, and `&mut self` is exclusive.
        unsafe { self.held.mutex.value.value(&self.access) }
    }
}

impl<T> Drop for HeldLock<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.was_panicking && panicking() {
            self.mutex.poison(self.hold);
        } else {
            // SAFETY: this thread took the lock, and the guard is not `Send`.
            unsafe { self.mutex.lock.unlock(self.hold) };
        }
    }
}

/// Poisons the mutex if a panic unwinds through the work; forgotten otherwise.
struct PoisonOnUnwind<'a, T> {
    mutex: &'a Mutex<T>,
    hold: Hold,
}

impl<T> Drop for PoisonOnUnwind<'_, T> {
    // `hold` is passed by value: a reference would force it into memory on the fast path.
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.poison(self.hold);
    }
}
