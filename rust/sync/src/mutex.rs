//! A mutex over the biased lock, which knows when what it guards was left half done.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::thread::panicking;

use crate::biased::{BiasedLock, Slot};
use crate::primitives::{Access, AtomicBool, Ordering, WatchedCell};

/// A mutex that costs a few instructions while one thread uses it alone.
///
/// A panic inside marks it broken, and from then on nobody gets in.
pub struct Mutex<T> {
    lock: BiasedLock,
    broken: AtomicBool,
    value: WatchedCell<T>,
}

// SAFETY: as for the standard library's: the lock lets one thread at the value at a time, so it moves between
// threads and is never shared.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: a mutex that moves takes its value along, and nobody is inside.
unsafe impl<T: Send> Send for Mutex<T> {}

// As for the standard library's: a panic inside is noticed.
impl<T> UnwindSafe for Mutex<T> {}
impl<T> RefUnwindSafe for Mutex<T> {}

/// Somebody panicked inside: the value may be half of what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// The way to the value, until dropped. Stays on its thread: the lock knows who came in.
pub struct Guard<'a, T> {
    // Ends before the lock does: fields are dropped in this order.
    access: Access<T>,
    held: Held<'a, T>,
    stays: PhantomData<*mut T>,
}

/// The lock, held until dropped.
struct Held<'a, T> {
    mutex: &'a Mutex<T>,
    was_panicking: bool,
}

impl<T> Mutex<T> {
    /// A mutex over `value` that nobody holds.
    pub fn new(value: T) -> Self {
        Self { lock: BiasedLock::new(), broken: AtomicBool::new(false), value: WatchedCell::new(value) }
    }

    /// Waits for the lock and takes it. A thread that has it already waits for ever.
    ///
    /// # Errors
    /// When somebody panicked inside.
    #[inline]
    pub fn lock(&self) -> Result<Guard<'_, T>, Broken> {
        self.lock.lock();
        self.guard()
    }

    /// Takes the lock if nobody has it, this thread included.
    ///
    /// # Errors
    /// When somebody panicked inside.
    #[inline]
    pub fn try_lock(&self) -> Result<Option<Guard<'_, T>>, Broken> {
        if self.lock.try_lock() { self.guard().map(Some) } else { Ok(None) }
    }

    /// Works on the value if this thread owns the mutex, has nobody to wait for and is not inside already: the
    /// shortest way in there is. `None` if not, and where `work` says so.
    #[inline(always)]
    pub fn work_as_owner<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let slot = self.lock.enter_as_owner()?;
        let unwinding = Unwinding { mutex: self, slot };
        let result = {
            let access = self.value.access();
            // SAFETY: the lock is held until the access is over.
            work(unsafe { self.value.value(&access) })
        };
        std::mem::forget(unwinding);
        self.lock.leave_as_owner(slot);
        result
    }

    /// Leaves as the owner who panicked inside.
    #[cold]
    #[inline(never)]
    fn end_broken(&self, slot: Slot) {
        self.broken.store(true, Ordering::Relaxed);
        self.lock.leave_as_owner(slot);
        self.lock.disown();
    }

    /// Whether somebody panicked inside.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// The guard of a lock that was just taken.
    #[inline]
    fn guard(&self) -> Result<Guard<'_, T>, Broken> {
        let held = Held { mutex: self, was_panicking: panicking() };
        if self.is_broken() {
            return Err(Broken);
        }
        Ok(Guard { access: self.value.access(), held, stays: PhantomData })
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("broken", &self.is_broken()).finish_non_exhaustive()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held for as long as the guard lives, and `&self` keeps `deref_mut` away.
        unsafe { self.held.mutex.value.value(&self.access) }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held for as long as the guard lives, and `&mut self` is the only way to it.
        unsafe { self.held.mutex.value.value(&self.access) }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let breaks = !self.was_panicking && panicking();
        if breaks {
            self.mutex.broken.store(true, Ordering::Relaxed);
        }
        // SAFETY: made of a lock that this thread took, and its guard cannot leave the thread.
        unsafe { self.mutex.lock.unlock() };
        if breaks {
            // An owner does not look whether the mutex is broken.
            self.mutex.lock.disown();
        }
    }
}

/// Dropped when a panic ends an owner's work, and only then.
struct Unwinding<'a, T> {
    mutex: &'a Mutex<T>,
    slot: Slot,
}

impl<T> Drop for Unwinding<'_, T> {
    // By value, or else it would have to be in memory all the time.
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.end_broken(self.slot);
    }
}
