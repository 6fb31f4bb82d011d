//! The turn: the right to talk to the source, one thread at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Unusable;
use crate::source::RegionSource;

thread_local! {
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// A source behind a mutex that knows which thread holds it. Taken before the pool's lock, never after.
pub(super) struct Turn {
    source: Mutex<Box<dyn RegionSource>>,
    /// Number of the thread that holds the turn, 0 for none.
    holder: AtomicU64,
}

/// The turn, held.
pub(super) struct Held<'a> {
    source: MutexGuard<'a, Box<dyn RegionSource>>,
    holder: &'a AtomicU64,
}

impl Turn {
    pub(super) fn new(source: Box<dyn RegionSource>) -> Self {
        Self { source: Mutex::new(source), holder: AtomicU64::new(0) }
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// When this thread holds it already: a source called its own pool, and would wait for itself.
    pub(super) fn take(&self) -> Result<Held<'_>, Unusable> {
        if self.holder.load(Ordering::Relaxed) == current_thread() {
            return Err(Unusable::InsideSource);
        }
        // A source that panicked has no state of ours in it.
        Ok(self.held(self.source.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the turn if nobody has it.
    pub(super) fn try_take(&self) -> Option<Held<'_>> {
        match self.source.try_lock() {
            Ok(source) => Some(self.held(source)),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(self.held(poisoned.into_inner())),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    fn held<'a>(&'a self, source: MutexGuard<'a, Box<dyn RegionSource>>) -> Held<'a> {
        self.holder.store(current_thread(), Ordering::Relaxed);
        Held { source, holder: &self.holder }
    }
}

impl Held<'_> {
    pub(super) fn source(&mut self) -> &mut dyn RegionSource {
        self.source.as_mut()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

fn current_thread() -> u64 {
    THREAD.with(|&number| number)
}
