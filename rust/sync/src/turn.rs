//! A turn: something for one thread at a time, which notices when that thread comes again.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use crate::primitives::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::thread;

/// A value that one thread uses at a time, perhaps for long.
#[derive(Debug)]
pub struct Turn<T> {
    value: Mutex<T>,
    /// Number of the thread that has the turn, 0 for none.
    holder: AtomicU64,
}

/// This thread has the turn already, and would wait for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside;

/// The turn, held until dropped.
pub struct TurnGuard<'a, T> {
    value: MutexGuard<'a, T>,
    holder: &'a AtomicU64,
}

impl<T> Turn<T> {
    /// A turn that nobody has.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicU64::new(0) }
    }

    /// Waits for the turn. A panic of an earlier holder is that holder's alone.
    ///
    /// # Errors
    /// When this thread has it.
    pub fn take(&self) -> Result<TurnGuard<'_, T>, Inside> {
        if self.holder.load(Ordering::Relaxed) == thread::number() {
            return Err(Inside);
        }
        Ok(self.held(self.value.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the turn if nobody has it.
    pub fn try_take(&self) -> Option<TurnGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(self.held(value)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.held(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn held<'a>(&'a self, value: MutexGuard<'a, T>) -> TurnGuard<'a, T> {
        self.holder.store(thread::number(), Ordering::Relaxed);
        TurnGuard { value, holder: &self.holder }
    }
}

impl<T> Deref for TurnGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for TurnGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for TurnGuard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}
