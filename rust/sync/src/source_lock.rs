//! A lock for long operations that detects reentry by the same thread.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use crate::primitives::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::thread;

/// A mutex over `value` that reports reentry as an error, for calls that may take long or call back.
#[derive(Debug)]
pub struct SourceLock<T> {
    value: Mutex<T>,
    /// Number of the thread that holds the lock; 0 if no thread does.
    holder: AtomicU64,
}

/// The calling thread already holds the lock; waiting would deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WouldDeadlock;

/// Access to the value; releases the lock when dropped.
pub struct SourceLockGuard<'a, T> {
    value: MutexGuard<'a, T>,
    holder: &'a AtomicU64,
}

impl<T> SourceLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicU64::new(0) }
    }

    /// Waits for the lock. A panic of an earlier holder does not poison it.
    ///
    /// # Errors
    /// When the calling thread holds the lock.
    pub fn lock(&self) -> Result<SourceLockGuard<'_, T>, WouldDeadlock> {
        if self.holder.load(Ordering::Relaxed) == thread::number() {
            return Err(WouldDeadlock);
        }
        Ok(self.guard(self.value.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the lock if no thread holds it.
    pub fn try_lock(&self) -> Option<SourceLockGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(self.guard(value)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn guard<'a>(&'a self, value: MutexGuard<'a, T>) -> SourceLockGuard<'a, T> {
        self.holder.store(thread::number(), Ordering::Relaxed);
        SourceLockGuard { value, holder: &self.holder }
    }
}

impl<T> Deref for SourceLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for SourceLockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for SourceLockGuard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}
